"""A program in a process of its own: what it may use it gives up before it starts, and nothing of it runs on."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from sfumato.core.limited_process import Limits, limited_process

ROOMY = Limits(memory=1 << 30, seconds=20, output=1 << 20)


def code_of(program: Path, text: str, limits: Limits = ROOMY, seconds: float = 30) -> int:
    program.write_text(text)
    with limited_process(program, ["one"], limits, stdin=subprocess.DEVNULL, environment={}) as child:
        return child.code(seconds)


def test_a_program_sees_its_arguments_and_nothing_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    text = "import os, sys; sys.exit(7 if sys.argv[1:] == ['one'] and 'DATABASE_PASSWORD' not in os.environ else 8)"
    assert code_of(tmp_path / "program.py", text) == 7


def test_memory_and_output_end_where_the_limits_say(tmp_path: Path) -> None:
    greedy = "import sys\ntry:\n    bytearray(2 << 30)\nexcept MemoryError:\n    sys.exit(7)"
    assert code_of(tmp_path / "greedy.py", greedy) == 7
    loud = f"import sys\ntry:\n    open({str(tmp_path / 'file')!r}, 'wb').write(bytes(2 << 20))\nexcept OSError:\n    sys.exit(7)"
    assert code_of(tmp_path / "loud.py", loud) == 7
    assert (tmp_path / "file").stat().st_size <= ROOMY.output


def test_one_that_does_not_end_is_killed_with_what_it_started(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    text = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        f"open({str(place)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)"
    )
    (tmp_path / "endless.py").write_text(text)
    limits = Limits(ROOMY.memory, ROOMY.seconds, ROOMY.output, processes=50)
    with limited_process(tmp_path / "endless.py", (), limits, stdin=subprocess.DEVNULL, environment={}) as child:
        until = time.monotonic() + 20
        while not (place.exists() and place.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        with pytest.raises(TimeoutError):
            child.code(0.1)
    pid = int(place.read_text())
    for _ in range(100):
        if not _runs(pid):
            return
        time.sleep(0.05)
    raise AssertionError("it runs on")


def _runs(pid: int) -> bool:
    """Whether a process runs: one that ended and that nobody has asked for is over, too."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
