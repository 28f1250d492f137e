"""`sfumato.toml` in the working folder: dataset, ledger and key for options that nobody typed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.cli import defaults
from sfumato.cli.main import run
from tests.workflow.people import files

PROTECT = [
    "protect",
    "people.csv",
    "--schema",
    "people.toml",
    "--k",
    "5",
    "--l",
    "disease=2",
    "--method",
    "Lattice, suppression=0.05",
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


def test_a_release_is_signed_and_entered_as_the_file_says(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "new", "mine.key"]) == 0
    Path("sfumato.toml").write_text('ledger = "book.db"\nkey = "mine.key"\n')
    capsys.readouterr()
    assert run([*PROTECT, "-o", "out"]) == 0
    assert capsys.readouterr().err == 'from sfumato.toml: ledger = "book.db", key = "mine.key"\n'  # once
    assert (place / "book.db").is_file() and not (place / "sfumato-ledger.db").exists()
    assert (place / "out" / "public" / "signature.json").is_file()
    assert "defaults" not in told(["verify", "out"], capsys), "a release of somebody else is in a ledger of theirs"
    assert told(["ledger", "releases"], capsys)["releases"] and run(["ledger", "verify"]) == 0


def test_what_is_typed_wins(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sfumato.toml").write_text('ledger = "book.db"\nkey = "missing.key"\n')
    assert run(["key", "new", "typed.key"]) == 0
    capsys.readouterr()
    assert "defaults" not in told([*PROTECT, "-o", "out", "--ledger", "typed.db", "--sign", "typed.key"], capsys)
    assert (place / "typed.db").is_file() and not (place / "book.db").exists()
    assert told([*PROTECT, "-o", "two", "--no-ledger", "--sign", "typed.key"], capsys)["ledger"] == "not entered"
    assert not (place / "book.db").exists()
    assert run([*PROTECT, "-o", "three"]) == 2  # the key of the file is needed, and missing


def test_a_recipe_says_it_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = 'data = "people.csv"\nschema = "people.toml"\noutput = "out"\noverwrite = true\n'
    recipe += '{}[[guarantee]]\nname = "KAnonymity"\nk = 5\n'
    Path("sfumato.toml").write_text('ledger = "book.db"\n')
    Path("recipe.toml").write_text(recipe.format('ledger = "own.db"\n'))
    assert run(["protect", "recipe.toml"]) == 0
    assert "from sfumato.toml" not in capsys.readouterr().err
    assert (place / "own.db").is_file() and not (place / "book.db").exists()
    Path("recipe.toml").write_text(recipe.format(""))
    assert run(["protect", "recipe.toml"]) == 0 and (place / "book.db").is_file()


def test_the_dataset_is_the_one_of_the_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sfumato.toml").write_text('dataset = "clinic"\n')
    assert run(["ledger", "grant", "clinic", "ann", "--epsilon", "1"]) == 0
    assert run(["ledger", "grant", "other", "ann", "--epsilon", "1"]) == 0
    entries = told(["ledger", "show"], capsys)
    assert {each["dataset"] for each in entries["entries"]} == {"clinic"} and entries["defaults"]["dataset"] == "clinic"
    assert {each["dataset"] for each in told(["ledger", "show", "--dataset", "other"], capsys)["entries"]} == {"other"}
    assert told(["ledger", "versions"], capsys)["dataset"] == "clinic"
    assert run(["inspect", "people.csv", "-o", "start.toml"]) == 0
    assert sf.Schema.load("start.toml").dataset == "clinic"
    assert run(["inspect", "people.csv", "-o", "named.toml", "--dataset", "other"]) == 0
    assert sf.Schema.load("named.toml").dataset == "other"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('legder = "x"\ndatset = "d"\nkey = 5\n', ["did you mean 'ledger'?", "did you mean 'dataset'?", "key must be the file"]),
        ('ledger = ""\n', ["ledger must be the ledger's file or URL"]),
        ('ledger = "postgresql://ada:canary-secret@host/db"\n', ["ledger holds a password"]),
        ('ledger = "postgresql://host/db?password=canary-secret"\n', ["ledger holds a password"]),
        ('ledger = "host=h password=canary-secret"\n', ["ledger holds a password"]),
        ('key = "-----BEGIN PRIVATE KEY----- canary-secret"\n', ["the key itself does not belong here"]),
        ("ledger = [\n", ["is not valid TOML"]),
        ("#" * 70_000, ["longer than 64,000 bytes"]),
    ],
)
def test_all_faults_of_the_file_at_once(place: Path, text: str, faults: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("sfumato.toml").write_text(text)
    assert run(["ledger", "show"]) == 2
    shown = capsys.readouterr().err
    assert all(fault in shown for fault in faults) and "canary-secret" not in shown
    assert run(["ledger", "--help"]) == 0 and run(["version"]) == 0  # what does not need it is not disturbed


def test_only_a_plain_file_of_this_folder_is_read(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    below = place / "below"
    below.mkdir()
    (place / "sfumato.toml").write_text('ledger = "above.db"\n')
    monkeypatch.chdir(below)
    assert run(["ledger", "show"]) == 2
    assert "above.db" not in capsys.readouterr().err
    Path("sfumato.toml").symlink_to(place / "sfumato.toml")
    assert run(["ledger", "show"]) == 2 and "is a link" in capsys.readouterr().err
    Path("sfumato.toml").unlink()
    os.mkfifo("sfumato.toml")
    assert stat.S_ISFIFO(Path("sfumato.toml").stat().st_mode)
    assert run(["ledger", "show"]) == 2 and "not a plain file" in capsys.readouterr().err


def test_every_key_is_the_default_of_an_option_that_exists() -> None:
    from tests.cli.test_help import ALL

    parameters = {each.name for command in ALL.values() for each in command.params}
    assert set(defaults.PARAMETERS.values()) <= parameters
