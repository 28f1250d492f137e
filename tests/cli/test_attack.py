"""`sfumato attack` on what took Python before: why a table was generalised, and who a model was trained on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.main import run

PEOPLE = "age,disease\n1,HIV\n1,HIV\n2,none\n2,none\n2,none\n2,none\n5,HIV\n5,flu\n"
SCHEMA = """dataset = "clinic"
[columns.age]
role = "quasi"
type = "integer"
bounds = [0, 8]
hierarchy = { intervals = [3, 9] }
[columns.disease]
role = "sensitive"
"""
PROMISE = 'AlphaKAnonymity, alpha=0.5, k=1, attribute="disease", protected_values=["HIV"]'
ANSWERS = "label,member,no,yes\nyes,1,0.1,0.9\nno,1,0.8,0.2\nyes,0,0.6,0.4\nno,0,0.6,0.4\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path)
    return tmp_path


def fill(folder: Path) -> None:
    (folder / "people.csv").write_text(PEOPLE)
    (folder / "people.toml").write_text(SCHEMA)
    (folder / "answers.csv").write_text(ANSWERS)


def published(method: str, output: str = "out") -> None:
    assert run(["protect", "people.csv", "--schema", "people.toml", "--guarantee", PROMISE, "--method", method,
                "--output", output, "--no-ledger"]) == 0  # fmt: skip


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release by each of some methods; attacks change none of them."""
    folder = tmp_path_factory.mktemp("releases")
    fill(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SFUMATO_KEY", str(folder / "owner.key"))
        for method in ("KMember", "Mondrian(relaxed=true)", "Mondrian"):
            published(method, method)
    return folder


def game(**changes: Any) -> None:
    content = {
        "attack": {"name": "MembershipInModels"},
        "published": {"answers": "answers.csv"},
        "knowledge": {"training_loss": 0.3},
    }
    Path("game.json").write_text(json.dumps({**content, **changes}))


def test_why_a_release_was_generalised(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published("Mondrian")
    capsys.readouterr()
    assert run(["attack", "out", "--with", "people.csv", "--attack", "Minimality"]) == 0
    shown = capsys.readouterr().out
    assert "Minimality: success 100 %" in shown and "blind guessing 50 %, gain 100 %, 2 targets" in shown
    assert "HIV" not in shown and "none" not in shown
    assert run(["attack", "out", "--with", "people.csv", "-a", 'Minimality(value="HIV")', "-a", "Linkage", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["attacks"]
    assert [entry["attack"] for entry in told] == ["Minimality", "Linkage"]
    assert (told[0]["success"], told[0]["details"]["max_posterior"], told[0]["details"]["l"]) == (1.0, "1", 2)


@pytest.mark.parametrize(
    ("method", "attack", "why"),
    [
        ("KMember", "Minimality", "made by KMember"),
        ("Mondrian(relaxed=true)", "Minimality", "'relaxed'"),
        ("Mondrian", "Minimality(value=)", "parameters as in TOML"),
        ("Mondrian", 'Minimality(value="canary-31")', "value asked for"),
        ("Mondrian", "Minimality(l=1)", "l must be a whole number"),
        ("Mondrian", 'Minimality(attribute="age")', "promises nothing about 'age'"),
        ("Mondrian", "Minimalty", "Did you mean 'Minimality'?"),
        ("Mondrian", "MembershipInModels", ".json"),
    ],
)
def test_what_cannot_be_attacked_so_ends_with_2(
    releases: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    method: str,
    attack: str,
    why: str,
) -> None:
    monkeypatch.chdir(releases)
    monkeypatch.setenv("SFUMATO_KEY", str(releases / "owner.key"))
    assert run(["attack", method, "--with", "people.csv", "--attack", attack]) == 2
    shown = capsys.readouterr()
    assert why in shown.err and shown.out == "" and "canary" not in shown.err and "Traceback" not in shown.err
    assert run(["attack", method, "--with", "people.csv", "--attack", attack, "--json"]) == 2
    assert why in json.loads(capsys.readouterr().out)["error"]


def test_minimality_asks_for_a_register(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published("Mondrian")
    assert run(["attack", "out", "--attack", "Minimality"]) == 2
    assert "--with" in capsys.readouterr().err


def test_who_a_model_was_trained_on(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    game()
    assert run(["attack", "game.json"]) == 0
    assert "MembershipInModels: success 100 %" in capsys.readouterr().out
    assert run(["attack", "game.json", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["attacks"]
    assert (told["success"], told["baseline"], told["targets"]) == (1.0, 0.5, 4)
    game(knowledge={"shadow_answers": "answers.csv"}, attack={"name": "MembershipInModels", "method": "shadow", "seed": 1})
    assert run(["attack", "game.json"]) == 0
    game(knowledge={})
    assert run(["attack", "game.json"]) == 2
    assert "training_loss" in capsys.readouterr().err


def test_answers_are_looked_for_beside_the_file_that_names_them(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game()
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run(["attack", "../game.json"]) == 0


def test_help_says_how_parameters_are_written() -> None:
    command = [sys.executable, "-c", "from sfumato.cli.main import main; main()", "attack", "--help"]
    shown = " ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert 'Minimality(value="HIV")' in shown and "on a model" in shown
