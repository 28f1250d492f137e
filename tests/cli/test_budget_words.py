"""What an analyst reads who is refused: the cure for what was learnt, and the command with which the owner grants enough."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.core.errors import BudgetRefused
from sfumato.dp.book import OwnBook
from sfumato.ledger.accounts import EVERYBODY, Account, Charge
from sfumato.ledger.amounts import LossAmount

SCHEMA = (
    'dataset = "my clinic"\nunit = "record"\n[columns.age]\nrole = "quasi"\ntype = "integer"\nbounds = [0, 99]\nsource = "{}"\n'
)
ASK = ["query", "SELECT COUNT(*) FROM data", "-d", "t.csv", "-s", "t.toml", "--ledger", "my book.db", "--analyst", "ann"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("age\n" + "30\n40\n" * 50)
    Path("t.toml").write_text(SCHEMA.format("declared"))
    return tmp_path


@pytest.mark.parametrize("first", [["--epsilon", "1"], ["--rho", "1/8"], ["--epsilon", "1", "--delta", "1e-6"]])
@pytest.mark.parametrize("asked", [["--epsilon", "3"], ["--rho", "1/3"]])
def test_the_command_in_a_refusal_grants_enough(
    place: Path, first: list[str], asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a grant, with too little of one, and with one of another kind."""
    for granted in (None, first):
        if granted is not None:
            assert run(["ledger", "grant", "my clinic", "ann", *granted, "--ledger", "my book.db"]) == 0
        else:
            assert run(["ledger", "grant", "my clinic", "bob", "--epsilon", "1", "--ledger", "my book.db"]) == 0
        capsys.readouterr()
        assert run([*ASK, *asked]) == 3
        refused = capsys.readouterr().err
        command = shlex.split(refused[refused.index("sfumato ledger grant") :])
        assert command[3:5] == ["my clinic", "ann"] and command[-2:] == ["--ledger", "my book.db"]
        if granted is None:
            continue
        assert run(command[1:]) == 0
        assert run([*ASK, *asked]) == 0


def test_the_cap_and_the_unit_name_their_commands_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "grant", "my clinic", "ann", "--epsilon", "5", "--ledger", "my book.db"]) == 0
    assert run(["ledger", "cap", "my clinic", "--epsilon", "1", "--ledger", "my book.db"]) == 0
    assert run([*ASK, "--epsilon", "2"]) == 3
    refused = capsys.readouterr().err
    assert refused.endswith("sfumato ledger cap 'my clinic' --epsilon 2 --ledger 'my book.db'\n")
    assert run([*ASK, "--epsilon", "1/2"]) == 0
    assert run(["ledger", "grant", "my clinic", "ann", "--epsilon", "5", "--unit", "patient", "--ledger", "my book.db"]) == 3
    assert capsys.readouterr().err.endswith(
        "sfumato ledger unit 'my clinic' --unit patient --rows-per-unit MOST --ledger 'my book.db'\n"
    )


def test_a_loss_that_nothing_spent_can_be_added_to_is_refused_without_a_command() -> None:
    spent = Account("d", "ann", LossAmount.zcdp(1), LossAmount.zcdp("0.5"))
    with pytest.raises(BudgetRefused, match="ρ = 0.5 is spent, which cannot be restated in ε with δ") as refusal:
        spent.charged(LossAmount.approx(1, "1e-6"))
    assert refusal.value.command == "" and "--rho (rho=)" in str(refusal.value)
    fresh = Account("d", EVERYBODY, LossAmount.zcdp(1), LossAmount.zcdp(0))
    with pytest.raises(BudgetRefused, match="sfumato ledger cap d --epsilon 1 --delta 0.000001"):
        fresh.charged(LossAmount.approx(1, "1e-6"))


def test_a_budget_of_a_session_names_no_ledger() -> None:
    book = OwnBook("d", "ann", LossAmount.pure(1))
    for loss in (LossAmount.pure(2), LossAmount.zcdp(1)):
        with pytest.raises(BudgetRefused, match="the budget of the session itself") as refusal:
            book.reserve("d", "ann", Charge(loss), "q")
        assert "sfumato ledger" not in str(refusal.value)


@pytest.mark.parametrize(
    "command",
    [
        ["query", "SELECT AVG(age) FROM data", "-d", "t.csv", "-s", "t.toml", "--epsilon", "1", "--explain"],
        ["publish", "PrivateHistogram", "t.csv", "-s", "t.toml", "--set", 'columns=["age"]', "--set", "epsilon=1"],
    ],
)
def test_what_was_learnt_is_refused_with_its_cure(place: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.toml").write_text(SCHEMA.format("data"))
    assert run(command) == 2
    refused = capsys.readouterr().err
    assert 'set source = "declared"' in refused and "Declaring means: you know what may occur" in refused
    Path("t.toml").write_text(SCHEMA.format("declared"))
    assert run([*command, "--ledger", "my book.db"]) in (0, 3)  # no longer a matter of the schema
