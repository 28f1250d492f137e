"""Refute a function named on the command line: it is imported and run in a child process with limits.

The child has its own session, a folder that is thrown away, an empty environment and limits on time, memory and file
size; it answers in lines of JSON over a pipe. Whatever it leaves running is killed. This never runs from a server or a
recipe: a function that somebody else sends is somebody else's program.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core.declared import require
from sfumato.core.errors import InputError, ParameterError, forgetting
from sfumato.core.exact import Number, exact, shown
from sfumato.core.files import read_plain, temporary_folder
from sfumato.core.limited_process import LimitedProcess, Limits, limited_process
from sfumato.core.progress import Progress, silent
from sfumato.dp.refute.tester import Observed, Refutation

MEMORY_MIB = 4096
_GRACE = 30.0
_MOST_BYTES = 1 << 20
_MOST_NEIGHBOURS = 64 << 20
_FILE_BYTES = 16 << 20
_MORE_PROCESSES = 200


def refute_target(
    target: str,
    *,
    neighbours: str | None = None,
    epsilon: Number = 1,
    delta: Number = 0,
    samples: int | None = None,
    seconds: float = 20.0,
    memory: int = MEMORY_MIB,
    vectorised: bool = False,
    progress: Progress = silent,
) -> Refutation:
    """Try to disprove the claim for `module:function` or `file.py:function`.

    `neighbours` is JSON, a JSON file, or a Python file that sets NEIGHBOURS; without it the function's own module has to
    set NEIGHBOURS to a pair, or to a mapping from names of functions to pairs. `memory` is in MiB.
    """
    module, _, function = target.rpartition(":")
    require(bool(module) and bool(function), "the target is written as module:function or file.py:function")
    require(0 < seconds <= 24 * 3600, "seconds lies between 0 and a day")
    require(memory >= 256, "memory is at least 256 MiB")
    config: dict[str, Any] = {
        "module": module if not module.endswith(".py") else str(Path(module).resolve()),
        "function": function,
        "epsilon": shown(exact(epsilon, "epsilon")),
        "delta": shown(exact(delta, "delta")),
        "samples": samples,
        "seconds": seconds,
        "vectorised": vectorised,
        **_neighbours(neighbours),
    }
    longest = 2 * seconds + _GRACE
    return _Run(longest, Limits(memory << 20, int(longest), _FILE_BYTES, _MORE_PROCESSES), progress).answer(config)


@forgetting()
def _neighbours(source: str | None) -> dict[str, Any]:
    """The pair as plain data, or where the child finds it."""
    if source is None:
        return {}
    if source.endswith(".py"):
        require(Path(source).is_file(), "the file of the neighbours does not exist")
        return {"neighbours_file": str(Path(source).resolve())}
    text = source
    if source.endswith(".json"):
        file = Path(source)
        require(file.is_file(), "the file of the neighbours is missing")
        text = read_plain(file, ParameterError, limit=_MOST_NEIGHBOURS, what="file of the neighbours").decode("utf-8", "replace")
    try:
        pair = json.loads(text)
    except (ValueError, RecursionError):
        raise ParameterError("neighbours is a pair as JSON, such as [[1, 2, 3], [1, 2]], or a .json or .py file") from None
    require(isinstance(pair, list) and len(pair) == 2, "neighbours is a list of two databases")
    return {"neighbours": pair}


@dataclass
class _Run:
    """One run of the child process, which has so many seconds to answer."""

    seconds: float
    limits: Limits
    progress: Progress
    _buffer: bytearray = field(default_factory=bytearray)
    _received: int = 0

    def answer(self, config: dict[str, Any]) -> Refutation:
        """What came of it."""
        with (
            temporary_folder("refute") as folder,
            _pipe() as (reading, writing),
            limited_process(
                "sfumato.workflow.refuting.child",
                (),
                self.limits,
                stdin=subprocess.PIPE,
                environment={"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder},
                folder=folder,
                path=[os.getcwd(), *(entry for entry in sys.path if entry)],
                handles=(writing,),
            ) as child,
        ):
            try:
                child.send(json.dumps({**config, "pipe": writing}).encode())
            except BrokenPipeError:
                raise InputError("the child process could not be started") from None
            return self._receive(child, reading)

    def _receive(self, child: LimitedProcess, reading: int) -> Refutation:
        until = time.monotonic() + self.seconds
        while True:
            if time.monotonic() > until:
                raise InputError(
                    f"the function did not come back within {self.seconds:.0f} seconds and was stopped. Give smaller databases, "
                    "or more --seconds."
                )
            over = child.over
            while select.select([reading], [], [], 0 if over else 0.1)[0]:
                for message in self._lines(os.read(reading, 65536)):
                    if "progress" in message:
                        self._show(message["progress"])
                    else:
                        return _finding(message)
            if over:
                raise InputError(_how_it_ended(child))

    def _lines(self, data: bytes) -> Iterator[dict[str, Any]]:
        self._received += len(data)
        if not data or self._received > _MOST_BYTES:
            raise InputError("the function wrote into the pipe that reports its result; it was stopped")
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            line, self._buffer = bytes(self._buffer[:end]), self._buffer[end + 1 :]
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                raise InputError("the function wrote into the pipe that reports its result; it was stopped")
            yield message

    def _show(self, draws: object) -> None:
        if isinstance(draws, int) and not isinstance(draws, bool):
            self.progress("drawing", max(draws, 0), 0)


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _finding(message: dict[str, Any]) -> Refutation:
    """The child's answer, read with suspicion: foreign code ran beside whoever wrote it."""
    if isinstance(message.get("error"), str):
        raise InputError(message["error"][:600])
    try:
        result = message["result"]
        witness = result["witness"]
        observed = None
        if witness is not None:
            low, high = map(float, witness["interval"])
            other_low, other_high = map(float, witness["other_interval"])
            observed = Observed(
                str(witness["event"])[:2000],
                str(witness["direction"])[:100],
                float(witness["probability"]),
                (low, high),
                float(witness["other_probability"]),
                (other_low, other_high),
            )
        return Refutation(
            result["refuted"] is True,
            float(result["claimed"]["epsilon"]),
            float(result["claimed"]["delta"]),
            float(result["epsilon_at_least"]),
            float(result["delta_at_least"]),
            observed,
            int(result["samples"]),
            int(result["draws"]),
            float(result["confidence"]),
            float(result["seconds"]),
            tuple(str(note)[:300] for note in result["notes"][:10]),
        )
    except (KeyError, TypeError, ValueError):
        raise InputError("the function wrote into the pipe that reports its result; it was stopped") from None


def _how_it_ended(child: LimitedProcess) -> str:
    child.stop()  # what it forked, while its own number is still taken
    code = child.code()
    if code in (-getattr(signal, name, 0) for name in ("SIGXCPU", "SIGKILL")) and code:
        return "the function used up its time or memory and was stopped by the system. Give smaller databases, or more --seconds."
    how = f"by the signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return (
        f"the function ended the process it ran in ({how}), so nothing was tested. Call it once in a shell of its own to see why."
    )
