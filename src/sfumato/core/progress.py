"""One way for long work to say how far it is and to be stopped.

A method calls `progress(phase, done, total)`; the receiver shows it (terminal, notebook, web page) and may raise `Cancelled`.
Phases are words of the program, never values of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol, TypeAlias

from sfumato.core.errors import ParameterError


class Progress(Protocol):
    """Receives `phase` (what is being done), `done` and `total` (0 when unknown); raises `Cancelled` to stop the work."""

    def __call__(self, phase: str, done: int, total: int) -> None: ...


#: What a public function takes: True for a bar where somebody looks (a terminal, a notebook), "lines" for a line of each phase
#: on standard error wherever that leads, False for nothing, or a receiver.
ProgressLike: TypeAlias = Progress | bool | Literal["lines"]


def silent(phase: str, done: int, total: int) -> None:
    """The default receiver: shows nothing and never cancels."""


@contextmanager
def shown(progress: ProgressLike) -> Iterator[Progress]:
    """The receiver for what somebody asked for; a bar is gone when the work is done, however it ends."""
    if progress is False:
        yield silent
    elif progress is True:
        from sfumato.core.progress_bar import Bar, surface

        seen = surface()
        if seen is None:
            yield silent
            return
        bar = Bar(seen)
        try:
            yield bar
        finally:
            bar.clear()
    elif progress == "lines":
        from sfumato.core.progress_bar import Lines

        yield Lines()
    elif callable(progress):
        yield progress
    else:
        raise ParameterError('progress is True for a bar, "lines" for a line of each phase, False, or a function that is told')
