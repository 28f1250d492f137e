"""Whom a budget protects and which data it is about, as the owner types it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.cli.main import run
from sfumato.data.writers import write_file
from sfumato.ledger import Ledger
from tests.cli.test_commands import as_json

SCHEMA = """
dataset = "visits"
[columns.patient_id]
role = "identifier"
type = "string"
[columns.ward]
type = "string"
domain = ["a", "b"]
"""
ON = ["--data", "visits.csv", "--schema", "visits.toml"]
COUNT = ["query", "SELECT COUNT(*) AS n FROM visits", *ON, "--epsilon", "0.1", "--max-rows", "1"]
HISTOGRAM = [
    "publish",
    "PrivateHistogram",
    "visits.csv",
    "-s",
    "visits.toml",
    "--set",
    'columns=["ward"]',
    "--set",
    "epsilon=0.1",
    "--set",
    "max_rows=1",
]


def write(rows: int) -> None:
    write_file(pa.table({"patient_id": [f"p{row // 8}" for row in range(rows)], "ward": ["a"] * rows}), Path("visits.csv"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    write(400)
    Path("visits.toml").write_text(SCHEMA)
    assert run(["ledger", "grant", "visits", "analyst", "--epsilon", "2"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize("command", [COUNT, [*COUNT, "--explain"], HISTOGRAM], ids=["query", "explain", "publish"])
def test_names_of_people_without_a_unit_are_refused_with_both_ways_out(
    place: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "--unit record" in said and 'role = "unit"' in said and "'patient_id'" in said
    for unit in ("record", "patient_id"):
        assert run([*command, "--unit", unit, *(["-o", f"out-{unit}"] if command is HISTOGRAM else [])]) in (0, 3)
    with Ledger.open("sfumato-ledger.db") as ledger:
        assert [str(each.protected) for each in ledger.spends()] == (
            [] if "--explain" in command else ["one record added or removed"]
        )


def test_the_owner_changes_the_unit_and_sees_what_is_left(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*COUNT, "--unit", "record"]) == 0
    capsys.readouterr()
    assert run([*COUNT, "--unit", "patient_id"]) == 3
    assert "sfumato ledger unit visits --unit patient_id --rows-per-unit" in " ".join(capsys.readouterr().err.split())
    assert run(["ledger", "unit", "visits", "--unit", "patient_id"]) == 0
    shown = capsys.readouterr().out
    assert "about one patient_id added or removed" in shown and "not covered: ε = 0.1" in shown and "ε = 1.9 left" in shown
    assert run([*COUNT, "--unit", "patient_id"]) == 0
    assert "notice    not covered: ε = 0.1 was charged earlier" in capsys.readouterr().out
    told = as_json(["ledger", "unit", "visits", "--unit", "patient_id", "--rows-per-unit", "8"], capsys)
    assert told["not_covered"] == [] and told["rows_per_unit"] == 8 and told["unit"] == "patient_id"
    assert told["accounts"][0]["left"] == {"kind": "pure", "epsilon": "11/10"}
    assert as_json([*COUNT, "--unit", "patient_id"], capsys)["not_covered"] == []
    assert run(["ledger", "verify"]) == 0 and run(["ledger", "show"]) == 0
    assert "unit     visits   -        patient_id" in capsys.readouterr().out
    assert run(["ledger", "unit", "visits", "--unit", "patient_id"]) == 2
    assert run(["ledger", "unit", "elsewhere", "--unit", "patient_id"]) == 2


def test_a_grown_table_is_shown_to_the_owner_and_not_to_the_analyst(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "versions", "visits"]) == 0
    assert "no session was opened" in capsys.readouterr().out
    assert run([*COUNT, "--unit", "record"]) == 0
    first = capsys.readouterr().out.splitlines()[:2]
    write(5000)
    assert run([*COUNT, "--unit", "record"]) == 0
    again = capsys.readouterr()
    assert again.out.splitlines()[:2] == first and "change" not in again.out + again.err
    assert run(["ledger", "versions", "visits"]) == 0
    shown = capsys.readouterr().out
    assert "first seen" in shown and "every row" in shown and "the data changed under version" in shown
    assert as_json(["ledger", "versions", "visits"], capsys)["outdated"] == [""]
    assert run(["ledger"]) == 0
    assert "the data of visits changed under their version" in capsys.readouterr().out
    assert run([*COUNT, "--unit", "record", "--data-version", "2"]) == 0
    assert run([*HISTOGRAM, "--unit", "record", "--data-version", "3", "--no-digest", "-o", "out"]) == 0
    capsys.readouterr()
    told = as_json(["ledger", "versions", "visits"], capsys)
    assert told["outdated"] == [] == as_json(["ledger"], capsys)["outdated"], "a new version was declared"
    assert [(each["version"], each["state"]) for each in told["versions"]] == [
        ("", "first seen"),
        ("", "changed"),
        ("2", "first seen"),
        ("3", "not taken"),
    ]
