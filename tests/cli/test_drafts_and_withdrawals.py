"""Drafts, dry runs and withdrawals as a person types them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.main import run
from sfumato.ledger import Ledger
from tests.cli.test_commands import as_json
from tests.cli.test_private import BY_SEX, COUNT, ON, place
from tests.workflow.people import files

__all__ = ["place"]  # a fixture

WHY = "a role was wrong"
PROTECT = ["protect", "people.csv", "--schema", "people.toml", "--method", "Lattice, suppression=0.3", "--overwrite"]
HISTOGRAM = ["publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--analyst", "ann"]
HISTOGRAM += [
    "--set",
    'columns=["sex", "age"]',
    "--set",
    "bins={age=[18, 40, 65, 90]}",
    "--set",
    "epsilon=1/2",
    "--set",
    "max_rows=1",
]


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files(tmp_path, 120)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answering(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.StringIO(said))


def test_a_draft_enters_nothing_and_verify_ends_with_1(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*PROTECT, "--k", "3", "--draft"]) == 0
    shown = capsys.readouterr().out
    assert "draft     nothing was entered" in shown and "ledger    not entered" in shown and "sign " not in shown
    assert "not to give away)" in shown and "(to give away)" not in shown
    assert "earlier   not compared: there is no such ledger yet" in shown
    assert not (house / "sfumato-ledger.db").exists()
    assert run(["verify", "out"]) == 1
    assert "a draft, not a release" in capsys.readouterr().out
    assert as_json(["verify", "out"], capsys, 1)["verdict"] == "draft"
    assert run([*PROTECT, "--k", "5"]) == 0
    told = as_json([*PROTECT, "--k", "3", "--draft"], capsys)
    assert told["draft"] is True and told["ledger"] == "not entered" and told["composition"]["earlier_releases"] == 1
    with Ledger.open(house / "sfumato-ledger.db") as ledger:
        assert ledger.count() == 1
    assert as_json([*PROTECT, "--k", "3"], capsys)["draft"] is False


def test_an_option_makes_a_draft_of_a_recipe(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = 'data = "people.csv"\nschema = "people.toml"\noutput = "out"\n[[guarantee]]\nname = "KAnonymity"\nk = 5\n'
    (house / "recipe.toml").write_text(recipe)
    assert as_json(["protect", "recipe.toml", "--draft"], capsys)["draft"] is True
    assert not (house / "sfumato-ledger.db").exists()
    assert run(["protect", "recipe.toml", "--draft", "--overwrite", "--write-to", "rows.duckdb"]) == 2
    assert "a draft is not put into a database" in capsys.readouterr().err and not (house / "rows.duckdb").exists()


def test_a_release_is_withdrawn_by_the_id_that_is_listed(
    house: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run([*PROTECT, "--k", "5"]) == 0
    capsys.readouterr()
    assert run(["ledger", "releases"]) == 0
    named = capsys.readouterr().out.split()[-1]
    assert named.endswith("…") and len(named) == 17
    asked = ["ledger", "withdraw", named, "--reason", WHY]
    for said in ("n\n", ""):  # no, and nothing at all
        answering(monkeypatch, said)
        assert run(asked) == 2
        shown = capsys.readouterr()
        assert "was never given to anybody" in shown.err and "called back still counts" in shown.err
        assert "was not confirmed. Nothing was entered" in shown.err and shown.out == ""
    assert "was not confirmed" in as_json(asked, capsys, 2)["error"]
    with Ledger.open(house / "sfumato-ledger.db") as ledger:
        assert ledger.count() == 1
    answering(monkeypatch, "y\n")
    assert run(asked) == 0
    assert "your word, which nobody can verify and every later certificate repeats" in capsys.readouterr().out
    assert run(["ledger", "releases"]) == 0
    assert f"never given away by its owner's word: {WHY}" in capsys.readouterr().out
    [told] = as_json(["ledger", "releases"], capsys)["releases"]
    assert told["withdrawn"]["reason"] == WHY and told["hash"].startswith(named[:16])
    assert [entry["kind"] for entry in as_json(["ledger", "show"], capsys)["entries"]] == ["release", "withdrawal"]
    assert run(["ledger", "verify"]) == 0 and run(["verify", "out", "--ledger", "sfumato-ledger.db"]) == 1
    shown = capsys.readouterr().out
    assert "verdict   warning: its owner withdrew this release" in shown and "NOT keep" not in shown
    assert run([*PROTECT, "--k", "3"]) == 0
    assert "notice    withdrawn: the owner states that 1 other release of this data set" in capsys.readouterr().out
    assert as_json(["verify", "out", "--ledger", "sfumato-ledger.db"], capsys)["withdrawn"] == [told["hash"]]


def test_with_yes_nobody_is_asked(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = as_json([*PROTECT, "--k", "5"], capsys)["ledger"]
    told = as_json(["ledger", "withdraw", entry, "--reason", WHY, "--dataset", "clinic", "--yes"], capsys)
    assert (told["release"], told["dataset"], told["reason"]) == (entry, "clinic", WHY)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["f" * 64, "--reason", WHY], "the ledger has no entry"),
        (["the first", "--reason", WHY], "is no id of a release"),
        (["{}", "--reason", " "], "a withdrawal needs its reason"),
        (["{}"], "--reason"),
        (["{}", "--reason", WHY, "--dataset", "other"], "is about dataset 'clinic', and 'other' was named"),
    ],
)
def test_what_cannot_be_withdrawn_ends_with_2_before_anybody_is_asked(
    house: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    entry = as_json([*PROTECT, "--k", "5"], capsys)["ledger"]
    assert run(["ledger", "withdraw", *[each.format(entry) for each in arguments]]) == 2
    shown = capsys.readouterr()
    assert said in shown.err and "never given to anybody" not in shown.err
    with Ledger.open(house / "sfumato-ledger.db") as ledger:
        assert ledger.count() == 1


def test_no_ledger_is_made_for_a_withdrawal(house: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "withdraw", "f" * 64, "--reason", WHY, "--yes"]) == 2
    assert "there is no ledger" in capsys.readouterr().err and not (house / "sfumato-ledger.db").exists()


def nothing_spent(place: Path) -> bool:
    with Ledger.open(place / "sfumato-ledger.db") as ledger:
        return ledger.count() == 1 and not ledger.spends()  # the grant alone


@pytest.mark.parametrize("asked", [["query", COUNT, *ON, "--epsilon", "0.5"], HISTOGRAM], ids=["query", "publish"])
def test_noise_has_no_draft_but_a_dry_run(place: Path, capsys: pytest.CaptureFixture[str], asked: list[str]) -> None:
    assert run([*asked, "--draft"]) == 2
    shown = capsys.readouterr()
    assert "would be free noise" in shown.err and "--dry-run" in shown.err and shown.out == ""
    assert run([asked[0], "--help"]) == 0
    helped = capsys.readouterr().out
    assert "--dry-run" in helped and "--draft" not in helped
    assert nothing_spent(place)


def test_a_dry_run_of_a_question_says_price_bounds_and_columns(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["query", BY_SEX, *ON, "--epsilon", "0.5", "--max-rows", "1", "--max-groups", "1", "--dry-run"]
    assert run([*asked, "--output", "o"]) == 0
    shown = capsys.readouterr().out
    for said in ("costs ε = 0.5 of the budget", "would release:", "income: number, with noise, from 0 to 100,000"):
        assert said in shown, shown
    assert "left      ε = 2" in shown and "nothing was drawn, charged or entered" in shown
    told = as_json(asked, capsys)
    assert told["dry_run"] is True and told["left"] == {"kind": "pure", "epsilon": "2/1"}
    assert told["loss"]["epsilon"] == "1/2" and [each["name"] for each in told["answer"]["columns"]] == ["sex", "n", "income"]
    batch = as_json(["query", f"{COUNT}; {BY_SEX}", *asked[2:]], capsys)
    assert batch["total"]["epsilon"] == "1" and len(batch["answers"]) == 2 and batch["dry_run"] is True
    within = as_json(["query", COUNT, *ON, "--within", "50", "--max-rows", "1", "--dry-run"], capsys)
    assert within["dry_run"] is True and within["loss"]["name"] == "PureDP"
    assert nothing_spent(place) and not (place / "o").exists()


def test_a_dry_run_of_an_artefact_says_price_bounds_and_columns(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*HISTOGRAM, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    for said in (
        "costs ε = 0.5 of the budget, protecting one user",
        "At most 1 row of each user",
        "reads 'sex': string, 2 values, declared",
        "reads 'age': integer, from 18 to 90, declared",
    ):
        assert said in shown, shown
    assert "would release: sex (string), age_from (number), age_to (number), count (integer)" in shown, shown
    assert "left      ε = 2" in shown and "nothing was drawn, charged or entered" in shown
    told: dict[str, Any] = as_json([*HISTOGRAM, "--dry-run"], capsys)
    assert told["loss"]["name"] == "PureDP" and told["dry_run"] is True and "age" in told["reads"]
    assert nothing_spent(place) and not (place / "out").exists()
    assert run([*HISTOGRAM[:4], "--dry-run", "--set", "epsilon=1", "--set", "columns=income"]) == 2  # refused as it would be
    (place / "sfumato-ledger.db").unlink()
    assert as_json([*HISTOGRAM, "--dry-run"], capsys)["left"] is None and not (place / "sfumato-ledger.db").exists()
