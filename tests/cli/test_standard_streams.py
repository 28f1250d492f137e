"""Where the output goes: closed, full or no longer read, each is one clear end and never a fault of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "people.csv").write_text("age,area\n30,50 m²\n31,60 m²\n32,70 m²\n", encoding="utf-8")
    program = f"{sys.executable} -m sfumato"
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command.replace('sfumato', program)}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("command", ["inspect people.csv", "inspect people.csv --json", "inspect none.csv --json", "--help"])
def test_a_full_standard_output_is_one_clear_error(command: str, tmp_path: Path) -> None:
    done = shell(f"sfumato {command} > /dev/full", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "No space left" in done.stderr or "none.csv" in done.stderr


def test_a_closed_standard_output_is_said_before_the_work(tmp_path: Path) -> None:
    done = shell("sfumato inspect people.csv -o new.toml >&-", tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "standard output is closed" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_closed_standard_error_does_not_change_the_code(tmp_path: Path) -> None:
    assert shell("sfumato inspect none.csv 2>&-", tmp_path).returncode == 2
    assert shell("sfumato inspect people.csv 2>&-", tmp_path).returncode == 0


@pytest.mark.parametrize("command", ["inspect people.csv", "inspect people.csv --json", "--help"])
def test_a_reader_that_went_away_is_no_failed_guarantee(command: str, tmp_path: Path) -> None:
    done = shell(f"(sleep 0.2; sfumato {command}) | true", tmp_path)
    assert (done.returncode, done.stderr) == (141, "")


def test_superscript_digits_are_read_like_any_text(tmp_path: Path) -> None:
    done = shell("sfumato inspect people.csv --json", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_character_that_the_encoding_lacks_is_shown_by_its_number(encoding: str, tmp_path: Path) -> None:
    granted = f"PYTHONIOENCODING={encoding} sfumato ledger grant people ann --epsilon 1"
    done = shell(f"{granted} && PYTHONIOENCODING={encoding} sfumato ledger", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u03b5 = 1" in done.stdout
    failed = shell(f"PYTHONIOENCODING={encoding} sfumato inspect 'ε.csv'", tmp_path)
    assert failed.returncode == 2 and "\\u03b5.csv" in failed.stderr
