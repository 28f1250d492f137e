"""Masking and comparing as a person types it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv
import pytest

from sfumato.cli.main import run
from tests.workflow.test_mask import SCHEMA, table

MAIN = "from sfumato.cli.main import main; main()"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pcsv.write_csv(table(), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(SCHEMA.to_toml())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def as_json(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_mask_verify_attack(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["protect", "people.csv", "--schema", "people.toml", "--method", "Mdav(k=5)", "--output", "out"]) == 0
    shown = capsys.readouterr().out
    assert "Mdav(k=5" in shown and "disclosure_risk" in shown and "information_loss" in shown
    assert run(["verify", "out"]) == 0
    told = as_json(["attack", "out", "--with", "people.csv", "--aligned", "--attack", "RegisterLinkage"], capsys)
    assert 0 < told["attacks"][0]["success"] <= 0.25 and told["attacks"][0]["targets"] == 300
    by_name = as_json(["attack", "out", "--with", "people.csv", "--attack", "RegisterLinkage"], capsys)
    assert by_name["attacks"] == told["attacks"]  # the owner's folder knows the names
    assert run(["attack", "out/public", "--with", "people.csv", "--attack", "RegisterLinkage"]) == 2


def test_a_mask_without_a_promise(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["protect", "people.csv", "--schema", "people.toml", "--method", "AdditiveNoise, ratio=0.1", "--output", "out"]
    assert run([*arguments, "--risk", "distance_linkage", "--utility", "pil"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("verdict   no promise: nothing is guaranteed") and "distance_linkage" in shown and "pil" in shown
    assert run(["verify", "out"]) == 1  # there is no claim that could hold
    assert "promises no guarantee" in capsys.readouterr().out


def test_protect_without_guarantee_or_mask_is_refused(place: Path) -> None:
    assert run(["protect", "people.csv", "--schema", "people.toml", "--method", "Mondrian", "--output", "out"]) == 2
    assert run(["protect", "people.csv", "--schema", "people.toml", "--method", "Mdav(k=301)", "--output", "out"]) == 2
    assert not (place / "out").exists() and not (place / "sfumato-ledger.db").exists()


def test_compare_draws_the_map_and_says_what_to_take(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "people.csv", "--schema", "people.toml", "-m", "Mdav(k=[3, 10])", "-m", "RankSwapping, p=10"]
    arguments += ["--workers", "1"]
    assert run([*arguments, "-o", "map.html", "-o", "map.svg"]) == 0
    shown = capsys.readouterr().out
    assert "Mdav(k=10)" in shown and "Take " in shown and "look      map.html" in shown
    assert (place / "map.html").exists() and (place / "map.svg").exists()
    told = as_json([*arguments, "--most-risk", "0.9"], capsys)
    assert {point["label"] for point in told["points"]} == {"Mdav(k=3)", "Mdav(k=10)", "RankSwapping(p=10)"}
    assert told["recommended"] in {point["label"] for point in told["points"] if point["front"]}


def test_compare_guesses_roles_and_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "people.csv", "-m", "Mdav(k=5)", "--workers", "1"]) == 0
    assert "roles were guessed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "wrong",
    [
        ["-m", "Mdaw(k=5)"],
        ["-m", "Mdav(k=5"],
        ["-m", "Mdav(k=500)"],
        ["-m", "Mdav(k=5)", "--risk", "loss"],
        ["-m", "Mdav(k=5)", "-o", "map.pdf"],
        ["-m", "Mdav(k=5)", "--most-risk", "7"],
        ["-m", "Mdav(k=5)", "--cache", "x", "--no-cache"],
    ],
)
def test_what_cannot_be_compared_is_one_clear_error(place: Path, wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "people.csv", "--schema", "people.toml", *wrong]) == 2
    assert not list(place.glob("map*"))
    assert "internal" not in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_running_and_the_next_run_goes_on(place: Path) -> None:
    pcsv.write_csv(table(2500), place / "people.csv")
    methods = [f"Mdav(k={k})" for k in range(3, 13)]
    command = [sys.executable, "-c", MAIN, "compare", "people.csv", "--schema", "people.toml", "--cache", "kept", "--json"]
    for method in methods:
        command += ["-m", method]
    process = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    limit = time.monotonic() + 120
    while time.monotonic() < limit and len(list((place / "kept").glob("*.json"))) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and not (place / "map.html").exists()
    before = len(list((place / "kept").glob("*.json")))
    assert 3 <= before < len(methods)
    left = subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, text=True)
    assert left.stdout == ""
    done = subprocess.run(command, cwd=place, capture_output=True, timeout=300)
    assert done.returncode == 0 and len(json.loads(done.stdout)["points"]) == len(methods)


@pytest.mark.parametrize("method", ["KAnonymity(k=3) by Mondrian", 'Combined(masks=[{name="Mdav", k=3, columns=["height"]}])'])
def test_the_command_that_compare_proposes_can_be_typed(method: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "people.csv", "--schema", "people.toml", "-m", method, "--workers", "1"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "sfumato protect" in line]
    words = shlex.split(line.split("sfumato ", 1)[1])
    assert run([*words, "--output", "out"]) == 0


def test_a_bracket_that_is_not_closed_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["protect", "people.csv", "--method", "Mdav(k=5"]) == 2
    assert "the parenthesis after 'Mdav' is not closed" in capsys.readouterr().err
