"""Ctrl-C in the middle of a library: it may raise an error of its own in its place, and its threads do not hear of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_LONGEST_CHAIN = 100
#: What stops a command: Ctrl-C, termination, and a terminal that was closed.
STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_interrupts: dict[object, Callable[[], Any]] = {}
_usual: dict[int, Callable[[int, FrameType | None], Any]] = {}


def stop_behind(error: BaseException) -> BaseException | None:
    """The `KeyboardInterrupt` or `SystemExit` that led to an error, where there is one."""
    waiting: list[BaseException | None] = [error]
    for _ in range(_LONGEST_CHAIN):
        current = waiting.pop() if waiting else None
        if isinstance(current, KeyboardInterrupt | SystemExit):
            return current
        if current is not None:
            waiting += [current.__context__, current.__cause__]
        elif not waiting:
            return None
    return None


@contextmanager
def stops_come_through() -> Iterator[None]:
    """Let a Ctrl-C through that a library turned into an error of its own (DuckDB: a `RuntimeError`)."""
    try:
        yield
    except Exception as error:
        stop = stop_behind(error)
        if stop is None:
            raise
        raise stop from None


@contextmanager
def interrupted_on_stop(interrupt: Callable[[], object]) -> Iterator[None]:
    """Call `interrupt` when Ctrl-C or termination arrives, before Python raises.

    A library that works in threads of its own waits for them before it lets Python raise, so that they have to be stopped.
    """
    listener = object()
    _interrupts[listener] = interrupt
    _listen()
    try:
        yield
    finally:
        del _interrupts[listener]
        _leave()


def end_with_parent() -> None:
    """Ask the system to end this process when the one that started it ends, however it does (Linux)."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _listen() -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # signals are none of its business
    for number in STOPS:
        usual = signal.getsignal(number)
        if callable(usual) and usual is not _arrived:
            _usual[number] = usual
            signal.signal(number, _arrived)


def _leave() -> None:
    if _interrupts or threading.current_thread() is not threading.main_thread():
        return
    for number, usual in _usual.items():
        if signal.getsignal(number) is _arrived:
            signal.signal(number, usual)
    _usual.clear()


def _arrived(number: int, frame: FrameType | None) -> None:
    for interrupt in list(_interrupts.values()):
        with suppress(Exception):  # what is closed by now needs no telling
            interrupt()
    if number in _usual:
        _usual[number](number, frame)
