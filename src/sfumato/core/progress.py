"""One way for long work to say how far it is and to be stopped.

A method calls `progress(phase, done, total)`; the receiver shows it (terminal, web page) and may raise `Cancelled`.
Phases are words of the program, never values of the data.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives `phase` (what is being done), `done` and `total` (0 when unknown); raises `Cancelled` to stop the work."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


def silent(phase: str, done: int, total: int) -> None:
    """The default receiver: shows nothing and never cancels."""
