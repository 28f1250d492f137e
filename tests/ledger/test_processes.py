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


def finished(processes: list[subprocess.Popen[str]], timeout: float = 240) -> list[list[str]]:
    outputs = [process.communicate(timeout=timeout)[0].splitlines() for process in processes]
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


def check_cap(place: Place, processes: int, attempts: int) -> None:
    """Ann's grant is too small for what her processes attempt, then the cap for what those of the last two analysts do.

    The cap leaves room for all that the first two analysts may have, so that who is refused does not depend on who is faster.
    """
    analysts = ("ann", "bob", "cec", "dan")
    each = processes // len(analysts) * attempts
    grants = {"ann": each * 5 // 7, "bob": each, "cec": each, "dan": 10 * each}
    cap = each * 25 // 7
    told: Counter[str] = Counter()
    with place.open() as ledger:
        for analyst, times in grants.items():
            ledger.grant("d", analyst, LossAmount.pure(Fraction(times, 100)))
        ledger.cap("d", LossAmount.pure(Fraction(cap, 100)))
        for pair in (analysts[:2], analysts[2:]):
            running = [start("reserve", place, pair[n % 2], f"{pair[0]}{n}", attempts // 2) for n in range(processes)]
            for line in (line for lines in finished(running, timeout=3000) for line in lines):
                told[line.split()[0]] += int(line.split()[1])
        assert told["reserved"] == cap == ledger.count("d", "reserve")
        assert told["grant"] == each - grants["ann"]
        assert told["cap"] == grants["ann"] + 3 * each - cap
        spent = {account.analyst: account.spent for account in ledger.accounts("d")}
        assert spent["*"] == LossAmount.pure(Fraction(cap, 100)) and spent["ann"] == LossAmount.pure(Fraction(grants["ann"], 100))
        report = ledger.verify()
        assert report.ok, report.finding


def test_processes_of_several_analysts_never_spend_more_than_grants_and_cap(place: Place) -> None:
    check_cap(place, processes=4, attempts=28)


def test_of_two_units_that_race_for_a_budget_exactly_one_wins(place: Place) -> None:
    """Each process is refused on the datasets that the other was the first to spend on, and on no other."""
    datasets = [f"d{number}" for number in range(40)]
    with place.open() as ledger:
        for dataset in datasets:
            ledger.grant(dataset, "ann", LossAmount.pure(1))
        units = ("patient", "record", "household")
        won = finished([start("fix_units", place, unit, len(datasets)) for unit in units])
        assert sorted(itertools.chain(*won)) == sorted(datasets), "a budget has one winner"
        fixed = {account.dataset: account for account in ledger.accounts()}
        for unit, mine in zip(units, won, strict=True):
            for account in (fixed[dataset] for dataset in mine):
                assert account.protected is not None and account.protected.unit == unit
                assert account.spent == LossAmount.pure("0.01"), "who was refused was charged"
        assert ledger.verify().ok


def check_kills(place: Place, supervisors: int, kills: int) -> None:
    """Kill spenders at random points; whatever they were told must still hold."""
    with place.open() as ledger:
        for analyst in ("ann", "bob", "cec"):
            ledger.grant("d", analyst, LossAmount.pure(10**6))
        ledger.cap("d", LossAmount.pure(10**6))
        outputs = finished([start("kills", place, f"s{number}", kills) for number in range(supervisors)], timeout=3000)
        settle(ledger)
        check_promises(ledger, [line for lines in outputs for line in lines])


def settle(ledger: Ledger) -> None:
    """A server may still finish a statement of somebody who is dead by now."""
    seen = None
    while seen != (seen := ledger.head()):
        time.sleep(0.5)


def check_promises(ledger: Ledger, told: list[str]) -> None:
    report = ledger.verify()
    assert report.ok, report.finding
    entries = {kind: ledger.entries(kind=kind) for kind in ("reserve", "rollback", "commit")}
    charged = Counter(entry.analyst for entry in entries["reserve"])
    charged.subtract(entry.analyst for entry in entries["rollback"])
    charged["*"] = charged.total()
    for account in ledger.accounts("d"):
        assert account.spent == LossAmount.pure(Fraction(charged[account.analyst], 100))
    reserved = {entry.token: entry.payload["question"] for entry in entries["reserve"]}
    returned = {entry.payload["reservation"] for entry in entries["rollback"]}
    answers = {entry.payload["question"]: (entry.hash, entry.payload["answer"]) for entry in entries["commit"]}
    assert len(answers) == len(entries["commit"]), "a question has two answers"
    verbs: Counter[str] = Counter()
    for verb, question, shown, *value in (line.split() for line in told):
        verbs[verb] += 1
        if verb == "answered":
            assert answers[question] == (shown, value[0]), "another answer was shown than the one that is stored"
        else:
            assert reserved[shown] == question, "a charge was lost"
            assert verb != "returned" or shown in returned
    assert verbs["reserved"] and verbs["answered"], "nothing happened between the kills"


def test_killed_spenders_lose_no_charge_and_no_answer(place: Place) -> None:
    check_kills(place, supervisors=2, kills=8)


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_many_processes_append_without_lost_or_doubled_entries(place: Place) -> None:
    check_appends(place, processes=8, appends=1000)


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_sixteen_processes_with_a_hundred_thousand_reservations_never_exceed_grants_and_cap(place: Place) -> None:
    check_cap(place, processes=16, attempts=7_000)  # 112,000 attempts, of which exactly 100,000 fit


@pytest.mark.stress
@pytest.mark.timeout(3600)
def test_a_thousand_kills_lose_no_charge_and_no_answer(place: Place) -> None:
    check_kills(place, supervisors=4, kills=250)


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
