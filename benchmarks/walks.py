"""How far one piece of data walks: the modules whose functions run, and the changes from room to room.

`python -m benchmarks.walks` prints a row for each walk with its bar. A module counts once, however often it is entered; a change
of room is a function that calls a function of another room, counted once for each pair of functions. What is loaded before, the
bodies of modules and the libraries below are no part of a walk, nor is what happens inside a kernel, compiled or not.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import sfumato as sf
from sfumato.kernels.compiled import every_kernel

_PACKAGE = "sfumato."

#: Most modules and, where there is a bar, most changes of room.
BARS: dict[str, tuple[int, int | None]] = {
    "protect a table, entered and saved": (80, None),
    "one question in SQL": (40, 60),
    "one mask in a comparison": (50, None),
}


class Walk:
    """What ran while `work` did."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.modules: set[str] = set()
        self.changes: set[tuple[str, str]] = set()
        self._twins = {kernel.twin.__code__ for kernel in every_kernel()}
        self._inside_twins = 0
        sys.setprofile(self._step)
        try:
            work()
        finally:
            sys.setprofile(None)

    def _step(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code in self._twins:
            self._inside_twins += {"call": 1, "return": -1}.get(event, 0)
        place = _place(frame)
        if event != "call" or place is None or self._inside_twins:
            return
        self.modules.add(place[0])
        caller = frame.f_back
        while caller is not None and _place(caller) is None:
            caller = caller.f_back
        source = None if caller is None else _place(caller)
        if source is not None and _room(source[0]) != _room(place[0]):
            self.changes.add((".".join(source), ".".join(place)))


def _place(frame: FrameType) -> tuple[str, str] | None:
    """Module and function, of ours alone."""
    module, function = str(frame.f_globals.get("__name__", "")), frame.f_code.co_qualname
    return (module, function) if module.startswith(_PACKAGE) and function != "<module>" else None


def _room(module: str) -> str:
    return module.split(".")[1]


def walks() -> dict[str, Callable[[], object]]:
    """Each walk as a thing to do; the second time, when everything is loaded."""
    people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    session = sf.Session({"people": people}, budget=sf.PureDP(1000))
    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    times = iter(range(1000))

    def protect() -> object:
        release = sf.protect(people, [sf.KAnonymity(5)], ledger=place / "ledger.db")
        return release.save(place / str(next(times)))

    def ask() -> object:
        return session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", epsilon=1 + next(times))

    def compare() -> object:
        return sf.compare(people, [sf.Mdav(k=5)], runs=1, cache=False)

    return dict(zip(BARS, (protect, ask, compare), strict=True))


def main() -> int:
    """Print the walks; 1 where one passes its bar."""
    warnings.simplefilter("ignore")
    logging.disable()
    missed = 0
    for name, work in walks().items():
        work()
        walk = Walk(work)
        most_modules, most_changes = BARS[name]
        over = len(walk.modules) > most_modules or (most_changes is not None and len(walk.changes) > most_changes)
        missed += over
        bar = f"bar {most_modules}" + ("" if most_changes is None else f" and {most_changes}")
        print(
            f"{name:<36}{len(walk.modules):>4} modules{len(walk.changes):>5} changes of room   {bar}{'   MISSED' if over else ''}"
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
