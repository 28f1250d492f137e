"""A program in a process of its own, with limits on memory, time and output; what it starts is ended with it.

The process has a session of its own, an environment in which nothing of the caller's stands unless it is handed over, and one
thread per library, so that a limit on memory means something. What it may use it gives up before the program starts
(`core.limited_start`). A process that leaves both its session and its environment behind is not found.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from sfumato.core.platforms import require_ability

_MARK = "SFUMATO_LIMITED_RUN"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


@dataclass(frozen=True)
class Limits:
    """What a process may use: bytes of `memory`, `seconds` of CPU, bytes of `output` in one file, and how many `processes` it
    may start (None for a program of ours, which starts none)."""

    memory: int
    seconds: int
    output: int
    processes: int | None = None


@dataclass(frozen=True)
class LimitedProcess:
    """A process that runs, or has ended; `stdin` is where it reads, if that is a pipe."""

    _process: subprocess.Popen[bytes]

    def send(self, content: bytes) -> None:
        """All that it will read; raises `BrokenPipeError` where nobody does."""
        stdin = self._process.stdin
        if stdin is None:
            raise ValueError("the process reads no pipe")
        try:
            stdin.write(content)
        finally:
            stdin.close()

    @property
    def over(self) -> bool:
        """Whether it has ended; where the system can tell without reaping it, its number is not given to anybody else yet."""
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def code(self, seconds: float | None = None) -> int:
        """The code it ends with, negative for a signal; raises `TimeoutError` where it does not end in so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None

    def stop(self) -> None:
        """Kill it with what it started, as far as that stayed in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it and let go of it."""
        if self._process.returncode is None:
            self.stop()
            self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


@contextlib.contextmanager
def limited_process(
    program: str | Path,
    arguments: Sequence[str],
    limits: Limits,
    *,
    stdin: BinaryIO | int,
    stdout: BinaryIO | int = subprocess.DEVNULL,
    environment: Mapping[str, str],
    folder: str | None = None,
    path: Sequence[str] | None = None,
    handles: Sequence[int] = (),
) -> Iterator[LimitedProcess]:
    """Start a program of this interpreter, a file or a module by its name; it is killed at the end of the block, and so is what
    it left running. `path` is where it imports from, if not from where Python does by itself; `handles` are open files that it
    keeps. An `OSError` of the system is passed on where the process cannot be started."""
    require_ability(hasattr(os, "killpg"), "a program with limits on memory and time")
    token = secrets.token_hex(16)
    start = json.dumps({"limits": dataclasses.asdict(limits), "path": None if path is None else list(path)})
    process = subprocess.Popen(  # noqa: S603  (our own interpreter and our own program)
        [sys.executable, "-I", "-B", str(Path(__file__).with_name("limited_start.py")), start, str(program), *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**_ONE_THREAD, **environment, _MARK: token},
        pass_fds=tuple(handles),
        start_new_session=True,
    )
    child = LimitedProcess(process)
    try:
        yield child
    finally:
        child.end()
        if limits.processes is not None:
            _end_marked(token)


def _end_marked(token: str) -> None:
    """Kill what fled into another session, and what that started meanwhile."""
    for _ in range(3):
        if not [pid for pid in _marked(token) if _killed(pid)]:
            return


def _marked(token: str) -> Iterator[int]:
    """Processes that carry this run's token in their environment (where the system tells)."""
    mark = f"{_MARK}={token}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                yield int(entry.name)
        except OSError:
            continue


def _killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True
