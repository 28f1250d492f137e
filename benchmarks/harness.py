"""Measure cases side by side and judge them by their bars.

A case is something we do, and what it is held against: another program measured in the same run, a number
published for another program, or a fixed limit. Time is CPU time of this process, one thread: a run to warm
up, then the median of the repetitions; what is measured beside us takes turns in who goes first. A fast run
with a wrong result has failed.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Unit = Literal["ms", "s", "MB"]

REPEATS = 9
PER_SECOND: dict[str, float] = {"s": 1.0, "ms": 1000.0}
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "ARROW_IO_THREADS",
)


@dataclass(frozen=True)
class Case:
    """One measurement.

    `ours` is timed on what `prepare` returns, which is not. With `reports` it is not timed: it returns the
    number, in `unit`. `peer` is timed beside us (with `peer_reports` it returns its own number, having warmed
    up by itself), or is the number published for it. The ratio is ours to
    `limit` where there is one and ours to `peer` otherwise; the case is met when it is at most `bar` and
    `check` finds no fault with any result. `stretch` is a number we would like to reach and are not held to.
    `remark` adds to the note what is worth knowing about a result.
    """

    name: str
    ours: Callable[[Any], Any]
    unit: Unit = "ms"
    limit: float | None = None
    peer: Callable[[], Any] | float | None = None
    bar: float = 1.0
    prepare: Callable[[], Any] = lambda: None
    check: Callable[[Any], str | None] = lambda result: None
    remark: Callable[[Any], str] = lambda result: ""
    reports: bool = False
    peer_reports: bool = False
    repeats: int = REPEATS
    warm_run: bool = True
    stretch: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.limit is None and self.peer is None:
            raise ValueError(f"case '{self.name}' has nothing to be held against: give it a limit or a peer")


@dataclass(frozen=True)
class Result:
    """What was measured, as `results.json` keeps it; `ours`, `peer` and `limit` are in `unit`."""

    name: str
    ours: float
    peer: float | None
    limit: float | None
    ratio: float
    bar: float
    met: bool
    unit: Unit
    repeats: int
    note: str


def one_thread() -> None:
    """Hold this process and its children to one thread; call it before anything that computes is imported."""
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def all_threads() -> dict[str, str]:
    """The environment for a child that may use its cores: without what `one_thread` sets."""
    return {name: value for name, value in os.environ.items() if name not in _ONE_THREAD}


def measure(case: Case, *, repeats: int | None = None) -> Result:
    """Run a case and judge it."""
    times = case.repeats if repeats is None else min(repeats, case.repeats)
    ours: list[float] = []
    theirs: list[float] = []
    faults: list[str] = []
    beside = case.peer if callable(case.peer) else None
    result: Any = None
    for turn in range(0 if case.warm_run else 1, times + 1):  # turn 0 warms up
        for side in ("ours", "peer") if turn % 2 else ("peer", "ours"):
            if side == "ours":
                result = None  # so that an earlier result does not occupy memory while the next is made
                spent, result = _once(case)
                fault = case.check(result)
                faults += [fault] if fault else []
                ours += [spent] if turn else []
            elif beside is not None and case.peer_reports:
                theirs += [float(beside())] if turn else []
            elif beside is not None:
                spent = _cpu(beside)[0] * PER_SECOND[case.unit]
                theirs += [spent] if turn else []
    peer = statistics.median(theirs) if theirs else case.peer if isinstance(case.peer, (int, float)) else None
    return judge(case, statistics.median(ours), peer, times, list(dict.fromkeys(faults)), case.remark(result))


def judge(case: Case, ours: float, peer: float | None, repeats: int, faults: Sequence[str] = (), remark: str = "") -> Result:
    """Compare a measured number with the limit or the peer."""
    against = case.limit if case.limit is not None else peer
    if against is None:
        raise ValueError(f"case '{case.name}': its peer was not measured")
    ratio = ours / against
    stretch = ""
    if case.stretch is not None:
        stretch = f"stretch {case.stretch:g} {case.unit} {'reached' if ours <= case.stretch else 'not reached'}"
    wrong = f"WRONG RESULT: {'; '.join(faults)}" if faults else ""
    return Result(
        name=case.name,
        ours=ours,
        peer=peer,
        limit=case.limit,
        ratio=ratio,
        bar=case.bar,
        met=ratio <= case.bar and not faults,
        unit=case.unit,
        repeats=repeats,
        note=". ".join(part for part in (wrong, case.note, remark, stretch) if part),
    )


def _once(case: Case) -> tuple[float, Any]:
    prepared = case.prepare()
    if case.reports:
        number = float(case.ours(prepared))
        return number, number
    spent, result = _cpu(lambda: case.ours(prepared))
    return spent * PER_SECOND[case.unit], result


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    before = time.process_time()
    result = work()
    return time.process_time() - before, result


def as_json(results: Iterable[Result]) -> str:
    """The results as text: a list of objects, one per case."""
    listed = [{name: _short(value) for name, value in asdict(result).items()} for result in results]
    return json.dumps(listed, indent=1, ensure_ascii=False) + "\n"


def write(results: Iterable[Result], path: Path) -> None:
    """Replace the file in one step."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(as_json(results), encoding="utf-8")
    os.replace(partial, path)


def _short(value: Any) -> Any:
    """Four digits: more would be noise."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


HEADER = ("", "case", "ours", "limit", "peer", "ratio", "bar", "note")


def row(result: Result) -> tuple[str, ...]:
    """A result as a line of the table."""
    return (
        "ok" if result.met else "MISSED",
        result.name,
        f"{_number(result.ours)} {result.unit}",
        _number(result.limit),
        _number(result.peer),
        f"{result.ratio:.3g}",
        f"≤ {result.bar:g}",
        result.note,
    )


WIDTHS = (6, 58, 11, 7, 9, 7, 6)


def line(cells: Sequence[str]) -> str:
    """One printed line; the note is as long as it is."""
    shown = [
        cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, WIDTHS, strict=False))
    ]
    return "  ".join([*shown, cells[-1]]).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def summary(results: Sequence[Result]) -> str:
    """How many bars were met, and which were not."""
    missed = [result.name for result in results if not result.met]
    text = f"{len(results) - len(missed)} of {len(results)} bars met"
    return text + "".join(f"\n  missed: {name}" for name in missed)
