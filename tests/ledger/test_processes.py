"""Several processes on one ledger, some of them killed: nothing is lost, doubled or torn."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.ledger import Ledger, LossAmount
from tests.ledger.conftest import Place

ROOT = Path(__file__).resolve().parents[2]


def start(verb: str, place: Place, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.ledger.worker", verb, place.address, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def finished(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    outputs = [process.communicate(timeout=240)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


def check_appends(place: Place, processes: int, appends: int) -> None:
    finished([start("append", place, f"p{number}", appends) for number in range(processes)])
    with place.open() as ledger:
        found = Counter(entry.token for entry in ledger.releases("d"))
        report = ledger.verify()
    expected = {f"p{process}-{number}" for process in range(processes) for number in range(appends)}
    assert report.ok and report.entries == processes * appends
    assert set(found) == expected and set(found.values()) == {1}


def test_processes_append_without_lost_or_doubled_entries(place: Place) -> None:
    check_appends(place, processes=4, appends=25)


def test_processes_that_enter_the_same_release_enter_it_once(place: Place) -> None:
    finished([start("append", place, "same", 10) for _ in range(3)])
    with place.open() as ledger:
        assert ledger.head().sequence == 10 and ledger.verify().ok


def test_processes_that_create_a_ledger_at_once_share_it(place: Place) -> None:
    created = finished([start("create", place) for _ in range(4)])
    assert len({identity for [identity] in created}) == 1


def test_a_kill_inside_a_transaction_leaves_no_torn_entry(place: Place) -> None:
    with place.open() as ledger:
        kept = ledger.enter_release("d", {}, token="kept")
        process = start("die_inside_a_transaction", place)
        assert process.communicate(timeout=60)[0] == "written\n"
        assert process.returncode == -signal.SIGKILL
        assert ledger.entries() == [kept] and ledger.verify().ok
        assert ledger.enter_release("d", {}, token="next").previous == kept.hash


def check_spending(place: Place, grant: str, processes: int, questions: int) -> None:
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.pure(grant))
        outputs = finished([start("spend", place, f"p{number}", questions) for number in range(processes)])
        verbs = Counter(line.split()[0] for lines in outputs for line in lines)
        spent = Fraction(verbs["reserved"] - verbs["returned"], 100)
        [account] = ledger.accounts("d")
        assert account.spent == LossAmount.pure(spent) and account.spent.within(account.granted)
        assert verbs["refused"], "the grant was too large to test anything"
        assert ledger.verify().ok


def test_processes_together_never_spend_more_than_the_grant(place: Place) -> None:
    check_spending(place, "0.5", processes=4, questions=60)


def check_kills(place: Place, kills: int) -> None:
    """Kill a spender at ever other moments; whatever it was told must still hold."""
    told: list[str] = []
    with place.open() as ledger:
        ledger.grant("d", "ann", LossAmount.pure(10**6))
        for number in range(kills):
            process = start("spend", place, f"k{number}", 10_000)
            assert process.stdout is not None
            told.append(process.stdout.readline())
            time.sleep(0.0007 * (number % 23))
            process.kill()
            told += process.stdout.readlines()
            process.stdout.close()
            assert process.wait(timeout=60) == -signal.SIGKILL, "the worker ended before it was killed"
        # The last line of a killed process may be cut.
        check_promises(ledger, [line for line in told if line.endswith("\n")])


def check_promises(ledger: Ledger, told: list[str]) -> None:
    report = ledger.verify()
    assert report.ok, report.finding
    kinds = Counter(entry.kind for entry in ledger.entries())
    [account] = ledger.accounts("d")
    assert account.spent == LossAmount.pure(Fraction(kinds["reserve"] - kinds["rollback"], 100))
    reserved = {entry.payload["question"] for entry in ledger.entries(kind="reserve")}
    for verb, question, *entry in (line.split() for line in told):
        assert question in reserved, "a charge was lost"
        if verb == "answered" and entry and len(entry[0]) == 64:  # the last line of a killed process may be cut
            stored = ledger.answer("d", "ann", question)
            assert stored is not None and stored.entry == entry[0] and stored.value == {"value": question}
    answers = Counter(entry.payload["question"] for entry in ledger.entries(kind="commit"))
    assert not answers or set(answers.values()) == {1}


@pytest.mark.slow
def test_killed_spenders_lose_no_charge_and_no_answer(place: Place) -> None:
    check_kills(place, kills=8)


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_many_processes_append_without_lost_or_doubled_entries(place: Place) -> None:
    check_appends(place, processes=8, appends=1000)


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_many_processes_together_never_spend_more_than_the_grant(place: Place) -> None:
    check_spending(place, "50", processes=16, questions=2000)


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_many_killed_spenders_lose_no_charge_and_no_answer(place: Place) -> None:
    check_kills(place, kills=200)


def test_a_forked_process_does_not_share_the_connection(place: Place) -> None:
    import os

    with place.open() as ledger:
        for token in ("before", "child", "after"):
            if token != "child":
                ledger.note("d", {}, token=token)
                continue
            child = os.fork()
            if child == 0:
                try:
                    ledger.note("d", {}, token="child")
                    os._exit(0)
                except BaseException:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        sequences = [entry.token for entry in ledger.entries()]
        assert sequences == ["before", "child", "after"] and ledger.verify().ok
    assert all(one != other for one, other in itertools.pairwise(sequences))
