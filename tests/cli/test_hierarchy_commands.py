"""`sfumato hierarchy`: the levels of those that there are, and new ones from the values of a column."""

from __future__ import annotations

import csv
import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.cli.main import run
from tests.workflow.test_new_hierarchy import PLACES, staff

SCHEMA = """dataset = "staff"
unit = "record"
[columns.occupation]
role = "quasi"
hierarchy = { flat = true }  # to do
[columns.age]
role = "quasi"
type = "integer"
hierarchy = { intervals = [5, 10, 20] }
[columns.illness]
role = "sensitive"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from sfumato.data.writers import write_csv

    write_csv(staff(), tmp_path / "staff.csv")
    (tmp_path / "staff.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*arguments: str) -> list[str]:
    return ["hierarchy", "new", *arguments]


def as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_two_hundred_occupations_take_one_command_and_one_edited_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(new("occupation", "--data", "staff.csv", "--schema", "staff.toml", "--write", "--declared")) == 0
    shown = capsys.readouterr().out
    assert "wrote occupation.csv" in shown and "records below 5" in shown
    assert run(["hierarchy", "staff.toml"]) == 2  # not filled in yet
    assert "have an empty cell" in capsys.readouterr().err
    rows = list(csv.reader((place / "occupation.csv").open(), delimiter=";"))
    assert len(rows) > 150 and {row[0] for row in rows} <= set(PLACES)
    (place / "occupation.csv").write_text("".join(f"{value};{value.split()[0]};*\n" for value, *_ in rows))
    assert (
        run(["protect", "staff.csv", "--schema", "staff.toml", "--k", "5", "-m", "Lattice, suppression=0.05", "-o", "out"]) == 0
    )
    assert run(["verify", "out"]) == 0
    public = (place / "out" / "public").rglob("*")
    assert not [file for file in public if "values" in file.name]


def test_what_is_written_is_its_owners_alone_and_never_overwritten_unasked(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(new("occupation", "--data", "staff.csv")) == 0
    for name in ("occupation.csv", "occupation.values.csv"):
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
    (place / "occupation.csv").write_text("edited;by;*\n")
    assert run(new("occupation", "--data", "staff.csv")) == 2
    assert "exists already" in capsys.readouterr().err
    assert (place / "occupation.csv").read_text() == "edited;by;*\n"
    assert run(new("occupation", "--data", "staff.csv", "--overwrite")) == 0
    assert len((place / "occupation.csv").read_text().splitlines()) > 150


@pytest.mark.parametrize("output", ["staff.csv", "./staff.csv", "groups.csv", "a.csv"])
def test_what_is_read_is_never_written_over(place: Path, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "a.values.csv").write_text("x;y\n")
    (place / "groups.csv").symlink_to("a.values.csv")
    before = (place / "staff.csv").read_bytes()
    assert run(new("occupation", "-d", "staff.csv", "--groups", "groups.csv", "-o", output, "--overwrite")) == 2
    assert "one of those that are read" in capsys.readouterr().err
    assert (place / "staff.csv").read_bytes() == before and (place / "a.values.csv").read_text() == "x;y\n"


def test_the_earlier_hierarchy_is_not_written_over(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "occupation.csv").write_text("a;b;*\n")
    assert run(new("occupation", "-d", "staff.csv", "--from", "occupation.csv", "--overwrite")) == 2
    assert "one of those that are read" in capsys.readouterr().err
    assert (place / "occupation.csv").read_text() == "a;b;*\n"


def test_a_refused_schema_leaves_no_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(new("age", "--data", "staff.csv", "--as", "ages", "-s", "staff.toml", "--write")) == 2
    assert "intervals" in capsys.readouterr().err and not list(place.glob("age*"))
    assert run(new("age", "--data", "staff.csv", "--as", "ages", "-s", "staff.toml", "--write", "--overwrite")) == 0
    assert "cuts = [5, 10, " in (place / "staff.toml").read_text() and "# to do" in (place / "staff.toml").read_text()
    assert run(new("age", "--data", "staff.csv", "--write")) == 2


def test_a_file_beside_another_schema_is_named_from_there(place: Path) -> None:
    (place / "schemas").mkdir()
    (place / "staff.toml").rename(place / "schemas" / "staff.toml")
    assert run(new("occupation", "-d", "staff.csv", "-s", "schemas/staff.toml", "--similar", "--write")) == 0
    assert 'file = "../occupation.csv"' in (place / "schemas" / "staff.toml").read_text()
    assert run(["hierarchy", "schemas/staff.toml", "--data", "staff.csv"]) == 0


def test_the_look_of_values_is_told_with_what_speaks_against_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.data.writers import write_csv

    write_csv(pa.table({"dx": ["E11.9"] * 95 + ["Diabetes"] * 5}), place / "visits.csv")
    assert run(new("dx", "--data", "visits.csv")) == 0
    shown = capsys.readouterr().out
    assert "icd10: 95 % of the records fit, 1 other value" in shown and "add: --as icd10" in shown
    told = as_json(new("dx", "--data", "visits.csv", "--as", "auto", "--overwrite"), capsys)
    assert (told["made_by"], told["unplaced"], told["unplaced_records"]) == ("icd10", {"Diabetes": None}, 5)
    assert told["evidence"][0] == {
        "kind": "icd10", "values": 1, "records": 95, "other_values": 1, "other_records": 5, "named": True
    }  # fmt: skip
    assert told["line"] == 'hierarchy = {file = "dx.csv", leaves = "data"}'
    assert (place / "dx.csv").read_text().splitlines() == [
        "E11.9;E11;E10-E14;IV Hormones, nutrition and metabolism;*",
        "Diabetes;;;;*",
    ]


def test_groups_that_were_pasted(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "groups.txt").write_text("Ill: flu, Cold\nWell: nnone\n")
    assert run(new("illness", "-d", "staff.csv", "--groups", "groups.txt")) == 0
    shown = capsys.readouterr().out
    assert "1 value placed in another spelling" in shown and "'none' (nearest: 'nnone')" in shown


def test_the_levels_of_a_schema_are_shown_without_a_further_word(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = as_json(["hierarchy", "staff.toml", "--column", "age"], capsys)
    assert plain == as_json(["hierarchy", "--column", "age", "staff.toml"], capsys)
    assert plain == as_json(["hierarchy", "show", "staff.toml", "--column", "age"], capsys)
    with_data = as_json(["hierarchy", "staff.toml", "--column", "age", "--data", "staff.csv", "--k", "60"], capsys)
    assert with_data["age"][0]["small_records"] > 0 and with_data["age"][-1]["smallest"] == 4_000
    assert run(["hierarchy", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "new" in shown and "show" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["occupation"], "--data"),
        (["occupation", "--data", "nothing.csv"], "nothing.csv"),
        (["jobs", "--data", "staff.csv"], "no column 'jobs'"),
        (["occupation", "--data", "staff.csv", "--as", "jobs"], "there is no kind"),
        (["occupation", "--data", "staff.csv", "--similar", "--as", "isco08"], "Choose one"),
        (["occupation", "--data", "staff.csv", "-o", "x.txt"], "does not end with .csv"),
        (["occupation", "--data", "staff.csv", "--country", "CH"], "--as postcodes"),
        (["occupation", "--data", "staff.csv", "--country", "CH", "--as", "auto"], "--as postcodes"),
    ],
)
def test_bad_input_is_one_clear_error(place: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(new(*arguments)) == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.out == "" and "worker" not in shown.err
    assert not list(place.glob("*.values.csv"))
