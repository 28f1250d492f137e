"""A stranger's first hour: six files with the faults that such files have go from nothing to a verified release by commands."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.data.schema import Schema
from sfumato.report.headline import ROLES_UNREAD
from tests.first_hour.files import FILES

#: What was decided for each file: options of `inspect`. Roles that nobody confirms are one decision more.
DECIDED = {
    "stroke": ["gender", "age", "work_type"],
    "staff": ["Age", "Gender", "Department"],
    "cases": ["age", "sex", "date_confirmed"],
    "bank": ["age", "job", "marital"],
    "hospital": ["Geschlecht", "Geburtsdatum", "PLZ"],
    "students": ["sex", "age", "school"],
}
LONGEST_LINE = 120
WORST_RATIO = 1.1
#: Three columns that are named, and the roles that nobody confirmed; the aim is one fewer.
MOST_DECISIONS = 4
#: Seconds of computing that the commands for one file may take together, whatever else the machine does meanwhile.
MOST_SECONDS = 60


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SFUMATO_KEY", str(tmp_path / "owner.key"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def facts(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", FILES)
def test_from_nothing_to_a_verified_release_by_commands(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = FILES[name](place).name
    options = [part for column in DECIDED[name] for part in ("--quasi", column)]
    begun = sum(os.times()[:4])
    assert run(["inspect", source, "-o", "start.toml", *options]) == 0
    text = Path("start.toml").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= LONGEST_LINE
    assert text.count("[columns.") == len(tomllib.loads(text)["columns"])
    by_command = facts(["protect", source, "--schema", "start.toml", "--k", "5", "-o", "out"], capsys)
    assert run(["verify", "out", "--original", source]) == 0
    assert sum(os.times()[:4]) - begun <= MOST_SECONDS
    assert len(DECIDED[name]) + by_command["warnings"].count(ROLES_UNREAD) <= MOST_DECISIONS
    assert ROLES_UNREAD in by_command["warnings"]
    # a schema that somebody wrote by hand for the same columns keeps hardly more
    hand_made = str(Path(__file__).parent / "schemas" / f"{name}.toml")
    by_hand = facts(["protect", source, "--schema", hand_made, "--k", "5", "-o", "hand", "--no-ledger"], capsys)
    losses = [told["scores"]["loss"] for told in (by_command, by_hand)]
    assert losses[0] <= WORST_RATIO * losses[1], losses


def test_roles_that_nobody_confirmed_are_warned_about(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = FILES["stroke"](place).name
    assert run(["inspect", source, "-o", "start.toml", "--quasi", "gender", "--quasi", "age"]) == 0
    shown = capsys.readouterr().out
    assert "because its owner left it out of the quasi-identifiers; whoever knows its value of somebody can use it" in shown
    assert 'delete its line roles = "proposed"' in shown
    protect = ["protect", source, "--schema", "start.toml", "--k", "5"]
    assert run([*protect, "-o", "out"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count(ROLES_UNREAD) == shown.out.count(ROLES_UNREAD) == 1
    assert run([*protect, "-o", "strict", "--strict"]) == 1
    assert ROLES_UNREAD in capsys.readouterr().err and not Path("strict").exists()
    with pytest.warns(sf.SfumatoWarning, match="the roles of the columns are those that `sfumato inspect` proposed"):
        release = sf.protect(source, [sf.KAnonymity(5)], schema="start.toml", ledger=None)
    assert "nobody confirmed them" in release.card("owner") and "confirmed" not in release.card()
    public = "".join(file.read_text() for file in Path("out/public").iterdir() if file.suffix in (".json", ".toml", ".html"))
    assert "proposed" not in public  # how far its owner read is nobody else's business
    assert Schema.load("out/owner/schema.toml").roles == "proposed"  # the recipe beside it warns again
    text = Path("start.toml").read_text(encoding="utf-8")
    assert text.count('\nroles = "proposed"\n') == 1
    Path("start.toml").write_text(text.replace('\nroles = "proposed"\n', "\n"), encoding="utf-8")
    capsys.readouterr()
    assert run([*protect, "-o", "again"]) == 0
    shown = capsys.readouterr()
    assert "nobody has confirmed" not in shown.err + shown.out


def test_roles_that_were_decided_in_python_are_not_warned_about(place: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"sex": ["f", "m"] * 20, "job": ["a", "b", "b", "a"] * 10})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sf.protect(frame, k=5, quasi=["sex"], sensitive=["job"])
    assert not [each for each in caught if "confirmed" in str(each.message)]


def test_every_fault_of_the_files_is_found(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = {}
    roles: dict[str, dict[str, str]] = {}
    for name, make in FILES.items():
        told = facts(["inspect", make(place).name, "-o", f"{name}.toml"], capsys)
        read[name] = told["read"]
        roles[name] = {column["name"]: column["role"] for column in told["columns"]}
        assert Schema.load(f"{name}.toml").read.to_mapping() == told["read"]
        assert all(told["read_because"][key] for key in told["read"])
        assert bool(told["many"]) is (len(told["quasi"]) > 8)
    assert read["stroke"] == {"separator": ",", "encoding": "utf-8", "missing": ["N/A", "Unknown"]}
    assert read["staff"] == {"separator": ",", "encoding": "utf-8-sig"}
    assert read["cases"] == {"separator": ",", "encoding": "utf-8", "date_format": "%d.%m.%Y", "missing": ["NA"]}
    assert read["bank"] == {"separator": ";", "encoding": "utf-8", "missing": ["unknown"]}
    marks = {"separator": ";", "encoding": "cp1252", "decimal": ",", "thousands": ".", "date_format": "%d.%m.%Y"}
    assert read["hospital"] == marks | {"missing": ["k.A.", "unbekannt"]}
    assert read["students"] == {"separator": ";", "encoding": "utf-8"}
    assert roles["staff"]["Department.2"] == roles["cases"]["notes"] == roles["hospital"]["Bemerkung"] == "identifier"
    types = {name: column.type for name, column in Schema.load("hospital.toml").columns.items()}
    assert (types["Kosten"], types["Gewicht"], types["Geburtsdatum"]) == ("number", "number", "date")


def test_of_many_columns_the_command_for_a_few_is_printed_and_can_be_typed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = FILES["staff"](place).name
    odd = "staff of '24.csv"
    source = str(Path(source).rename(odd))
    told = facts(["inspect", source, "-o", "start.toml", "--separator", ","], capsys)
    program, *proposed = shlex.split(told["many"][0].rpartition(": ")[2])
    assert program == "sfumato" and proposed.count("--quasi") == 6 and "no promise" in told["many"][1]
    without = [word for word in proposed if word != "--overwrite"]
    assert run(without) == 2  # the file is there
    assert run(proposed) == 0
    schema = Schema.load("start.toml")
    assert set(schema.quasi) == set(proposed[proposed.index("--quasi") + 1 :: 2])
    warned = [name for name in told["quasi"] if schema.columns[name].role == "plain"]
    assert len(warned) == len(told["quasi"]) - 6
    assert Path("start.toml").read_text(encoding="utf-8").count("WARNING") == len(warned)
    assert run(["inspect", source, "--quasi", "Agee", "--overwrite"]) == 2
    assert "did you mean 'Age'?" in capsys.readouterr().err


def test_the_same_in_a_few_lines_of_python(place: Path) -> None:
    source = FILES["hospital"](place)
    profile = sf.inspect(source, schema_out="start.toml")
    release = sf.protect(source, [sf.KAnonymity(5)], schema="start.toml", ledger=None)
    release.save("out")
    assert sf.verify("out", original=source).accepted and profile.reading.reading.decimal == ","
