"""A bar for long work: one line of a terminal or one display of a notebook, gone when the work is done.

Where nobody looks (standard error leads to a file or a pipe) there is no surface; `Lines` writes there, one line for each phase.
"""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from typing import Protocol

from sfumato.core.markup import element

_BETWEEN_UPDATES = 0.1  # seconds
_WIDTH = 30
_LONGEST_PHASE = 40


class Surface(Protocol):
    """Where a bar is seen."""

    def show(self, phase: str, done: int, total: int, seconds: float) -> None:
        """Draw it in place of what was there."""

    def clear(self) -> None:
        """Leave nothing behind."""


class Bar:
    """A receiver of progress that draws a few times a second."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._started, self._last_time, self._last_phase = time.monotonic(), 0.0, ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase != self._last_phase or now - self._last_time >= _BETWEEN_UPDATES:
            self._last_time, self._last_phase = now, phase
            with suppress(OSError, ValueError):  # a bar that cannot be drawn stops no work
                self._surface.show(phase, done, total, now - self._started)

    def clear(self) -> None:
        """The work is done."""
        with suppress(OSError, ValueError):
            self._surface.clear()


class Lines:
    """A receiver that writes a line on standard error when a phase begins, with the seconds since the start: for logs."""

    def __init__(self) -> None:
        self._started, self._last_phase = time.monotonic(), ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase == self._last_phase:
            return
        self._last_phase = phase
        with suppress(OSError, ValueError, AttributeError):  # standard error may be closed, or None
            sys.stderr.write(f"{time.monotonic() - self._started:7.1f} s  {phase}\n")
            sys.stderr.flush()


def drawn(phase: str, done: int, total: int, seconds: float) -> str:
    """One line of text: the phase, a bar and a share where the total is known, and the time since the start."""
    clock = f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    name = phase[:_LONGEST_PHASE]
    if total <= 0:
        return f"{name}  {clock}"
    share = min(max(done / total, 0.0), 1.0)
    full = int(share * _WIDTH)
    return f"{name}  [{'#' * full}{'.' * (_WIDTH - full)}] {share:4.0%}  {clock}"


class _Terminal:
    """The last line of a terminal, written over."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._width = 0

    def show(self, phase: str, done: int, total: int, seconds: float) -> None:
        text = drawn(phase, done, total, seconds)[: max(shutil.get_terminal_size().columns - 1, 1)]
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def clear(self) -> None:
        self._stream.write("\r" + " " * self._width + "\r")
        self._stream.flush()


class _Display:
    """What a notebook displays: HTML, and text for those that show none."""

    def __init__(self, text: str = "", phase: str = "", done: int = 0, total: int = 0) -> None:
        self._text, self._phase, self._done, self._total = text, phase, done, total

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        if not self._text:
            return ""
        reached = {"value": str(min(self._done, self._total)), "max": str(self._total)} if self._total > 0 else {}
        return element("div", element("progress", **reached), f" {self._phase}").source


class _Handle(Protocol):
    """What IPython gives back for a display."""

    def update(self, shown: object) -> None: ...


class _Notebook:
    """One display below the cell, updated in place."""

    def __init__(self, handle: _Handle) -> None:
        self._handle = handle

    def show(self, phase: str, done: int, total: int, seconds: float) -> None:
        self._handle.update(_Display(drawn(phase, done, total, seconds), phase, done, total))

    def clear(self) -> None:
        self._handle.update(_Display())


def surface() -> Surface | None:
    """The notebook or terminal that somebody looks at; None where there is none."""
    notebook = sys.modules.get("IPython")  # whoever runs in a notebook has loaded it
    shell = None if notebook is None else notebook.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        from importlib import import_module

        return _Notebook(import_module("IPython.display").display(_Display(), display_id=True))
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else None
