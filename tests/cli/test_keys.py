"""`sfumato key`: a private file, a public one beside it, and releases that verify with it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.wire.signatures import SigningKey
from sfumato.workflow.publishing.signing import new_key
from tests.workflow.people import files, release


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_key_signs_a_release_that_others_verify(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "new", "signing.key"]) == 0
    shown = capsys.readouterr().out
    assert (place / "signing.key").stat().st_mode & 0o777 == 0o600
    public = (place / "signing.key.pub").read_text().strip()
    assert public in shown and public == str(SigningKey.load("signing.key").public)
    assert "PRIVATE" not in shown
    protect = ["protect", "people.csv", "--schema", "people.toml", "--k", "5", "--method", "Lattice, suppression=0.05"]
    assert run([*protect, "--output", "out", "--sign", "signing.key"]) == 0
    assert run(["verify", "out", "--public-key", "signing.key.pub"]) == 0
    assert run(["verify", "out/public", "--public-key", public]) == 0
    assert "which you expected" in capsys.readouterr().out
    assert run(["key", "new", "other.key"]) == 0
    assert run(["verify", "out", "--public-key", "other.key.pub"]) == 1


def test_show_prints_the_public_half_of_either_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "new", "signing.key", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    for name in ("signing.key", "signing.key.pub"):
        assert run(["key", "show", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {name: made[name] for name in ("public_key", "identity")}
    assert made["public"] == "signing.key.pub"


@pytest.mark.parametrize("taken", ["signing.key", "signing.key.pub"])
def test_no_existing_file_is_overwritten(place: Path, taken: str, capsys: pytest.CaptureFixture[str]) -> None:
    (place / taken).write_text("mine")
    assert run(["key", "new", "signing.key"]) == 2
    assert "not overwritten" in capsys.readouterr().err
    assert (place / taken).read_text() == "mine"
    assert {path.name for path in place.iterdir()} == {"people.csv", "people.toml", taken}


def test_keys_that_cannot_be_used_are_one_clear_error(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["key", "new", "missing/signing.key"]) == 2
    assert run(["key", "show", "missing.key"]) == 2
    assert run(["key", "show", "people.csv"]) == 2
    assert run(["key", "new", "signing.key"]) == 0
    (place / "signing.key").chmod(0o644)
    assert run(["key", "show", "signing.key"]) == 2
    assert "chmod 600" in capsys.readouterr().err


def test_signing_is_proposed_where_no_key_was_given(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    protect = [
        "protect",
        "people.csv",
        "--schema",
        "people.toml",
        "--k",
        "5",
        "--no-ledger",
        "--method",
        "Lattice, suppression=0.05",
    ]
    assert run(["key", "new", "signing.key"]) == 0
    capsys.readouterr()
    assert run([*protect, "--output", "plain", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["signed"] is False and "sfumato key new" in told["proposal"]
    assert run([*protect, "--output", "plain", "--overwrite"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("sign ")] == [
        f"sign      {told['proposal']}"
    ]
    assert run([*protect, "--output", "signed", "--sign", "signing.key", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["signed"] is True and "proposal" not in told


def test_saving_in_python_proposes_to_sign(place: Path) -> None:
    made = release(100)
    with pytest.warns(sf.SfumatoWarning, match="sfumato key new"):
        made.save(place / "plain")
    new_key(place / "signing.key")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.save(place / "signed", sign=place / "signing.key")
