"""Commands that are terminated, hung up or killed at any moment: no row is left anywhere, and outputs are whole or absent."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sfumato.core import files
from sfumato.workflow.publishing.appearing import appearing_folder
from tests.faults.long_commands import CANARY, COMMANDS, SIGNALS, Place

pytestmark = pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks for processes in /proc")

#: How often each command is killed by each signal in `make stress`.
KILLS = int(os.environ.get("SFUMATO_KILLS", "100"))


def kill_again_and_again(place: Place, command: str, stops: list[int], seed: str) -> dict[str, int]:
    """Kill a command at random moments of its run; returns how often it was stopped and how often it was faster."""
    arguments = COMMANDS[command]
    begun = time.monotonic()
    code, text = place.start(arguments)
    assert code in (0, 1), text
    lasts = time.monotonic() - begun
    draw = random.Random(seed)
    counts = {"stopped": 0, "faster": 0}
    for stop in stops:
        place.reset()
        code, text = place.start(arguments, stop, draw.uniform(0, lasts))
        assert code in (0, 1, 128 + stop, -stop), (code, text)
        assert "Traceback" not in text or code == -stop, text
        counts["stopped" if code in (128 + stop, -stop) else "faster"] += 1
        place.assert_nothing_raw(command)
        place.assert_whole_or_absent()
        if code == 128 + stop:  # it heard the signal and cleaned up behind itself
            place.assert_clean()
    place.reset()
    code, text = place.start(arguments)
    assert code in (0, 1), text
    place.assert_clean()
    return counts


@pytest.fixture(scope="module")
def small_place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place.furnish(tmp_path_factory.mktemp("place"), rows=200)


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.parametrize("command", sorted(COMMANDS))
@pytest.mark.xdist_group("kills")  # they share a place
def test_a_killed_command_leaves_nothing_raw(command: str, small_place: Place) -> None:
    kill_again_and_again(small_place, command, list(SIGNALS.values()), seed=f"a few {command}")


@pytest.mark.stress
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("stop", sorted(SIGNALS))
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_kills_at_many_moments_leave_nothing_raw(command: str, stop: str, tmp_path: Path) -> None:
    place = Place.furnish(tmp_path, rows=3_000)
    counts = kill_again_and_again(place, command, [SIGNALS[stop]] * KILLS, seed=f"many {command} {stop}")
    print(command, stop, counts)
    assert sum(counts.values()) == KILLS
    assert counts["stopped"] > 0 or KILLS < 20, "no kill found it at work"


_HOLDER = """
import os, sys
from pathlib import Path
from sfumato.core import files
from sfumato.workflow.publishing.appearing import appearing_folder
with files.temporary_folder("test") as folder, appearing_folder(Path(sys.argv[1])) as hidden:
    Path(folder, "row").write_text("Zylberquist")
    (hidden / "file").write_text("half")
    print(folder, hidden, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def own_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path / "tmp"


def holder(tmp_path: Path, *prefix: str) -> tuple[subprocess.Popen[str], Path, Path]:
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", _HOLDER, str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    folder, hidden = process.stdout.readline().split()
    return process, Path(folder), Path(hidden)


def test_what_a_killed_process_held_is_swept_and_what_a_live_one_holds_is_not(tmp_path: Path, own_temporary: Path) -> None:
    process, folder, hidden = holder(tmp_path)
    files.sweep()
    with appearing_folder(tmp_path / "out"):
        assert folder.is_dir() and hidden.is_dir(), "a live process lost its folder"
    os.rename(tmp_path / "out", tmp_path / "other")
    process.kill()
    process.communicate()
    assert folder.is_dir() and hidden.is_dir()
    files.sweep()
    with appearing_folder(tmp_path / "out"):
        pass
    assert not folder.exists() and not hidden.exists()


def test_a_live_process_of_another_pid_namespace_keeps_its_folders(tmp_path: Path, own_temporary: Path) -> None:
    """Its process number means nothing here, or names somebody else."""
    inside = ("unshare", "--fork", "--pid", "--mount-proc", "--user", "--map-root-user")
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody make a PID namespace")
    process, folder, hidden = holder(tmp_path, *inside)
    files.sweep()
    with appearing_folder(tmp_path / "out"):
        pass
    assert folder.is_dir() and hidden.is_dir()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_only_held_folders_of_this_user_are_swept(own_temporary: Path) -> None:
    mine = own_temporary / "sfumato-notes"
    mine.mkdir()
    link = own_temporary / f"{files.PREFIX}link"
    link.symlink_to(mine)
    (own_temporary / f"{files.PREFIX}file").write_text("no folder")
    files.sweep()
    assert mine.is_dir() and link.is_symlink()


def test_a_folder_of_a_forked_holder_stays_until_its_holder_removes_it(own_temporary: Path) -> None:
    held = files.hold_temporary("test")
    child = os.fork()
    if not child:
        held.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.path.is_dir()
    held.remove()
    assert not held.path.exists()


_SPILLS = """
import sys
from pathlib import Path
from sfumato.engines.duckdb.connections import Connections
print("ready", flush=True)
with Connections("a table", threads=1, memory_limit="60MB").one() as connection:
    while True:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE sorted AS SELECT 'Zylberquist' || (i % 1000000) AS name, i "
            "FROM range(3000000) t(i) ORDER BY name, i DESC"
        )
"""


@pytest.mark.slow
def test_a_killed_engine_leaves_no_row_that_can_be_read_in_its_spill(own_temporary: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _SPILLS], stdout=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while sum(path.stat().st_size for path in own_temporary.rglob("*.tmp")) < 20_000_000:
        assert process.poll() is None and time.monotonic() < until, "nothing was spilled"
        time.sleep(0.05)
    process.kill()
    process.wait()
    spilled = [path for path in own_temporary.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in spilled) >= 20_000_000
    assert not any(CANARY in path.read_bytes() for path in spilled)
    files.sweep()
    assert list(own_temporary.iterdir()) == []


def test_memory_files_have_no_name(own_temporary: Path) -> None:
    descriptor = files.memory_file()
    os.write(descriptor, CANARY)
    assert list(own_temporary.iterdir()) == []
    assert os.fstat(descriptor).st_nlink == 0
    os.close(descriptor)


def test_without_memory_files_a_file_is_unlinked_once_opened(own_temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    test_memory_files_have_no_name(own_temporary)


_LOST = """
import os, signal, sys
from contextlib import suppress
from sfumato.cli import signals
from sfumato.cli.main import main

signal.signal(signal.SIGTERM, signal.SIG_DFL)
signals.install()
with suppress(SystemExit):
    os.kill(os.getpid(), signal.SIGTERM)
sys.argv = ["sfumato", "inspect", "nothing.csv"]
main()
"""


def test_a_signal_that_a_library_made_an_error_of_is_still_told_by_the_exit_code(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _LOST], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr


_INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from sfumato.cli import signals
from sfumato.workflow.publishing.appearing import appearing_folder

signal.signal(signal.SIGTERM, signal.SIG_DFL)
signals.install()
place, event, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
left = [count]

def interrupt(name, arguments):
    if name == event and "partial-" in str(arguments[0]):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGTERM)

sys.addaudithook(interrupt)
with appearing_folder(place, overwrite=True) as hidden:
    (hidden / "public").mkdir()
    (hidden / "public" / "certificate.json").write_text("{}")
"""


@pytest.mark.parametrize(
    ("event", "count"), [("os.mkdir", 1), ("os.chmod", 1), ("os.chmod", 2), ("os.remove", 1), ("os.rmdir", 1), ("os.rmdir", 2)]
)
def test_a_signal_while_the_hidden_folder_is_made_or_removed_leaves_none(event: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "out" / "public").mkdir(parents=True)
    (tmp_path / "out" / "public" / "certificate.json").write_text("the release before")
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED, str(tmp_path / "out"), event, str(count)], capture_output=True)
    assert done.returncode in (0, 143), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "public" / "certificate.json").read_text() in ("{}", "the release before")
