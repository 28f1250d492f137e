"""Ctrl-C, termination and a closed terminal: they leave through the same doors as an error, so that temporary files are removed.

Python raises wherever it happens to be. Inside a callback of the compiler that loads our kernels the exception is
lost, or the process crashes; there the signal waits until the compiler has finished. A second Ctrl-C does not wait.
Where an object is being deleted Python cannot raise at all; the signal is sent again a moment later.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from sfumato.core.stopping import STOPS

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

#: Exit codes of a command that was stopped.
STOPPED = tuple(128 + number for number in STOPS)
_ASK_AGAIN = 0.02
_COMPILER = ("llvmlite", "numba")

_heard: list[int] = []
_interrupts: list[int] = []
_waiting: list[int] = []


def install() -> None:
    """Take over the signals that stop this process."""
    for number in STOPS:
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT:  # nohup stays in force
            signal.signal(number, _arrived)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _again)
        sys.unraisablehook = _not_raised


def ignore() -> None:
    """The command is done: a late Ctrl-C must not say otherwise."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        sys.unraisablehook = sys.__unraisablehook__


def leave(code: int) -> NoReturn:
    """Leave a command that was stopped and has cleaned up behind itself.

    Python would take its libraries down first, while their threads are still at work: now and then one of them aborts the
    process, and a system that keeps what aborted processes held in memory would keep records.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def interrupted() -> bool:
    """Whether somebody pressed Ctrl-C: a library that is being loaded may lose the exception and raise another."""
    return bool(_interrupts)


def stopped_by() -> int | None:
    """The signal that came last, None where none came: as `interrupted`, for what the exception of any of them became."""
    return _heard[-1] if _heard else None


def _arrived(number: int, frame: FrameType | None) -> None:
    _heard.append(number)
    impatient = bool(_interrupts) or not hasattr(signal, "SIGALRM")
    if number == signal.SIGINT:
        _interrupts.append(number)
    if _in_compiler(frame) and not impatient:
        _wait(number)
        return
    _stop(number)


def _wait(number: int) -> None:
    _waiting.append(number)
    signal.setitimer(signal.ITIMER_REAL, _ASK_AGAIN)


def _not_raised(lost: UnraisableHookArgs) -> None:
    if isinstance(lost.exc_value, KeyboardInterrupt):
        _wait(signal.SIGINT)
    elif isinstance(lost.exc_value, SystemExit):
        number = lost.exc_value.code
        _wait(number - 128 if isinstance(number, int) and number - 128 in STOPS else signal.SIGTERM)
    else:
        sys.__unraisablehook__(lost)


def _again(number: int, frame: FrameType | None) -> None:
    if not _waiting:
        return
    if _in_compiler(frame):
        signal.setitimer(signal.ITIMER_REAL, _ASK_AGAIN)
        return
    _stop(_waiting[-1])


def _stop(number: int) -> None:
    _waiting.clear()  # once is enough: what waited must not raise again while the first is handled
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


def _in_compiler(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).split(".")[0] in _COMPILER:
            return True
        frame = frame.f_back
    return False
