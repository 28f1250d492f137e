"""How a table is read, said to every command that reads one: by its schema, and by options over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.main import run
from sfumato.data.schema import Schema
from sfumato.data.texts.reading import Reading
from tests.first_hour.files import hospital

SCHEMA = """dataset = "ward"
unit = "record"
unlisted = "drop"
{read}
[columns]
Geschlecht = {{role = "quasi", type = "string", domain = ["m", "w"], hierarchy = {{flat = true}}}}
Geburtsdatum = {{role = "quasi", type = "date", hierarchy = {{dates = ["year", "decade", "century"]}}}}
Kosten = {{role = "sensitive", type = "number", bounds = [0, 60000]}}
Gewicht = {{role = "plain", type = "number", bounds = [40, 140]}}
"""
READ = """[read]
separator = ";"
encoding = "cp1252"
decimal = ","
thousands = "."
date_format = "%d.%m.%Y"
missing = ["k.A."]
"""
OPTIONS = ["--separator", ";", "--encoding", "cp1252", "--decimal", ",", "--thousands", ".", "--date-format", "%d.%m.%Y"]
OPTIONS += ["--missing", "k.A."]
SOURCE = "krankenhaus.csv"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hospital(tmp_path, rows=200)
    (tmp_path / "with.toml").write_text(SCHEMA.format(read=READ))
    (tmp_path / "bare.toml").write_text(SCHEMA.format(read=""))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code, capsys.readouterr()
    return json.loads(capsys.readouterr().out)


def protected(output: str, *more: str) -> list[str]:
    return ["protect", SOURCE, "--k", "5", "--t", "Kosten=0.9", "-o", output, "--no-ledger", *more]


def test_the_thousands_mark_of_a_schema_is_taken_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "plain.csv").write_text("Gewicht\n" + "70.5\n" * 9)
    (place / "weights.toml").write_text(
        'dataset = "w"\n[read]\ndecimal = ","\nthousands = "."\n[columns]\nGewicht = {type = "number"}\n'
    )
    asked = ["inspect", "plain.csv", "--decimal", "."]
    assert told([*asked, "--thousands", ""], capsys)["rows"] == 9
    shown = ["hierarchy", "new", "Gewicht", "-d", "plain.csv", "-s", "weights.toml", "--decimal", "."]
    assert "thousands '' is for none" in told(shown, capsys, 2)["error"]
    assert told([*shown, "--thousands", ""], capsys)["values"] == 1


def test_the_schema_says_it_or_options_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(protected("bare", "--schema", "bare.toml"), capsys, 2)["kind"] == "SourceError"
    by_schema = told(protected("a", "--schema", "with.toml"), capsys)
    by_options = told(protected("b", "--schema", "bare.toml", *OPTIONS), capsys)
    assert by_schema["scores"] == by_options["scores"]
    assert Schema.load("b/owner/schema.toml").read == Schema.load("with.toml").read
    assert told(["verify", "a", "--original", SOURCE], capsys)["holds"] is True
    (Path("b") / "owner" / "schema.toml").unlink()
    assert told(["verify", "b/public", "--original", SOURCE, *OPTIONS], capsys)["accepted"] is True
    assert "[read]" in told(["verify", "b/public", "--original", SOURCE], capsys, 2)["error"]
    recipe = '[[guarantee]]\nname = "KAnonymity"\nk = 5\n'
    Path("r.toml").write_text(f'data = "{SOURCE}"\nschema = "bare.toml"\noutput = "c"\nledger = false\n{READ}{recipe}')
    assert run(["protect", "r.toml"]) == 0
    assert run(["protect", "r.toml", "--overwrite", "--decimal", "."]) == 2


def test_every_other_command_that_reads_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(protected("out", "--schema", "with.toml")) == 0
    for schema, options in (("with.toml", []), ("bare.toml", OPTIONS)):
        checked = told(["check", SOURCE, "--schema", schema, "--original", SOURCE, *options], capsys)
        assert checked["measures"]["records"] == 200
        shown = told(["hierarchy", schema, "--data", SOURCE, *options], capsys)
        assert shown["Geburtsdatum"][1]["examples"][0].isdecimal()  # years, not texts
        asked = ["query", "SELECT AVG(Kosten) FROM ward", "--data", SOURCE, "--schema", schema, "--epsilon", "1", "--explain"]
        assert "columns" in told([*asked, *options], capsys)
        question = ["query", "SELECT SUM(Gewicht) AS s FROM ward", "--data", SOURCE, "--schema", schema, "--seed", "1"]
        assert run(["ledger", "grant", "ward", "analyst", "--epsilon", "2", "--ledger", f"{schema}.db"]) == 0
        answered = told([*question, "--epsilon", "1", "--ledger", f"{schema}.db", *options], capsys)
        assert answered["rows"][0]["s"] > 5_000  # 200 people: read as texts they would weigh nothing
        compared = [
            "compare",
            SOURCE,
            "--schema",
            schema,
            "-m",
            "RankSwapping(p=10)",
            "--runs",
            "1",
            "--workers",
            "1",
            "--no-cache",
        ]
        assert told([*compared, *options], capsys)["points"]
        assert run(["publish", "PrivateHistogram", SOURCE, "--schema", schema, "--set", 'columns=["Geschlecht"]', "--set",
                    "epsilon=1", "--ledger", f"{schema}.db", "-o", f"h-{schema}", *options]) == 0  # fmt: skip
    attacked = told(["attack", "out", "--with", SOURCE, *OPTIONS], capsys)
    assert attacked["attacks"]
    assert told(["attack", "out", "--with", SOURCE, "--schema", "with.toml"], capsys)["attacks"] == attacked["attacks"]


def test_options_that_say_nothing_here_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "pass --data" in told(["hierarchy", "with.toml", "--decimal", ","], capsys, 2)["error"]
    assert "pass that with --with" in told(["attack", "out", "--decimal", ","], capsys, 2)["error"]
    assert "decimal must be" in told(["inspect", SOURCE, "--decimal", ";"], capsys, 2)["error"]
    assert run(["inspect", SOURCE, "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"--{name.replace('_', '-')}" in shown for name in Reading.names())
