"""Full disks, killed processes and Ctrl-C: a release is there whole or it is not there."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import SfumatoError
from tests.workflow.people import files, people, release

ROOT = Path(__file__).resolve().parents[2]
#: At how many moments of its work the process that saves is killed.
KILLS = 7
_PATIENCE = 120.0
# Ready means that signals are taken: one that comes earlier ends Python and not the command.
READY = (
    "from sfumato.cli import signals; from sfumato.cli.main import main; signals.install(); print('ready', flush=True); main()"
)


@contextmanager
def files_no_longer_than(limit: int) -> Iterator[None]:
    """The kernel refuses to write past this length, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("limit", [0, 10, 1_000, 3_000, 6_000, 20_000])
def test_a_full_disk_leaves_nothing(tmp_path: Path, limit: int) -> None:
    made = release()
    with files_no_longer_than(limit), pytest.raises(SfumatoError) as raised:
        made.save(tmp_path / "out")
    assert str(tmp_path / "out") in str(raised.value) and "partial" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [0, 1_000, 6_000])
def test_a_full_disk_keeps_the_release_that_was_there(tmp_path: Path, limit: int) -> None:
    made = release()
    made.save(tmp_path / "out")
    with files_no_longer_than(limit), pytest.raises(SfumatoError):
        made.save(tmp_path / "out", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert sf.verify(tmp_path / "out").holds


def test_protecting_writes_nothing_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    data = people()
    release()  # the owner's key exists
    with files_no_longer_than(0):  # rows that nobody has verified stay in memory
        sf.protect(data, sf.KAnonymity(5), sf.Lattice(suppression=0.05))
    assert list(tmp_path.iterdir()) == []


def start(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "SFUMATO_KEY": str(folder / "owner.key")}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def whole_or_absent(folder: Path) -> bool:
    """True when a whole release is there; anything but whole or absent fails."""
    if not folder.exists():
        return False
    found = sf.verify(folder, allow_demonstration=True)  # the saver has a seed
    assert found.holds, found.explain()
    assert (folder / "owner" / "card.html").stat().st_size > 1000
    return True


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_process_killed_while_saving_leaves_a_whole_release_or_none(tmp_path: Path, overwrite: bool) -> None:
    process = start(["-m", "tests.faults.saver", str(tmp_path)], tmp_path)
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline().strip() == "ready", process.communicate()[1]

    def saved(folder: Path, seconds: float) -> float:
        process.stdin.write(f"{folder}\t{'overwrite' if overwrite else 'new'}\t{seconds}\n")
        process.stdin.flush()
        return float(process.stdout.readline() or process.communicate()[1])

    other = release()
    seen = set()
    lasts = _PATIENCE
    for attempt in range(KILLS + 1):
        folder = tmp_path / f"run{attempt}"
        folder.mkdir()
        if overwrite:
            other.save(folder / "out")
        if attempt == 0:
            lasts = saved(folder / "out", _PATIENCE)
        else:
            saved(folder / "out", lasts * (attempt - 1) / (KILLS - 1))
        there = whole_or_absent(folder / "out")
        assert there or (attempt and not overwrite)
        seen.add(there)
        # Somebody else can save to the same place afterwards, and the leftovers of the killed process are
        # removed.
        other.save(folder / "out", overwrite=True)
        assert {path.name for path in folder.iterdir()} == {"out"}
    process.communicate()
    assert overwrite or seen == {True, False}


@pytest.mark.slow
@pytest.mark.e2e
def test_ctrl_c_ends_with_130_and_nothing_half_written(tmp_path: Path) -> None:
    files(tmp_path, rows=60_000)
    arguments = [
        "protect",
        "people.csv",
        "--schema",
        "people.toml",
        "--k",
        "5",
        "--output",
        "out",
        "--method",
        "Lattice, suppression=0.05",
    ]
    codes = set()
    for delay in (0.1, 0.4, 0.7, 1.0, 1.3, 1.6):
        process = start(["-c", READY, *arguments, "--overwrite"], tmp_path)
        assert process.stdout is not None and process.stdout.readline().strip() == "ready", process.communicate()[1]
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode in (0, 130, -signal.SIGINT), (process.returncode, out, err)
        assert "Traceback" not in err or process.returncode == -signal.SIGINT, err
        codes.add(process.returncode)
        assert not [path for path in tmp_path.iterdir() if ".partial" in path.name]
        whole_or_absent(tmp_path / "out")
    assert 130 in codes


@pytest.mark.slow
@pytest.mark.e2e
def test_ctrl_c_stops_a_running_search_within_moments_and_leaves_nothing(tmp_path: Path) -> None:
    files(tmp_path, rows=200_000)
    (tmp_path / "tmp").mkdir()
    script = (
        "from sfumato.cli import main, tables\n"
        "from contextlib import contextmanager\n"
        "@contextmanager\n"
        "def told(json, quiet=False):\n"
        "    yield lambda phase, done, total: print(phase, flush=True)\n"
        "tables.shown_progress = told\n"
        "main.main()\n"
    )
    arguments = ["protect", "people.csv", "--schema", "people.toml", "--k", "5", "--method", "KMember", "--output", "out"]
    environment = {**os.environ, "SFUMATO_KEY": str(tmp_path / "owner.key"), "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline().strip()
    assert first, process.communicate()[1]
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (process.returncode, first, out, err)
    assert "nothing was left half-written" in err and "Traceback" not in err
    assert "recoding" not in out, "the search was over before it was stopped"
    assert {path.name for path in tmp_path.iterdir()} <= {"people.csv", "people.toml", "tmp", "owner.key"}
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.e2e
def test_a_terminated_process_cleans_up(tmp_path: Path) -> None:
    files(tmp_path, rows=60_000)
    (tmp_path / "tmp").mkdir()
    arguments = ["protect", "people.csv", "--schema", "people.toml", "--k", "5", "--method", "Lattice, suppression=0.05"]
    environment = {**os.environ, "SFUMATO_KEY": str(tmp_path / "owner.key"), "TMPDIR": str(tmp_path / "tmp")}
    process = subprocess.Popen(
        [sys.executable, "-c", READY, *arguments], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    time.sleep(1.2)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode in (0, 143)
    assert list((tmp_path / "tmp").iterdir()) == []
    whole_or_absent(tmp_path / "out")
