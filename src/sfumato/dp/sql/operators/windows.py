"""Windows over the groups of an answer: ranks, running sums, shares and earlier groups, computed from noisy numbers at no cost.

As SQL has it, windows see the groups that HAVING leaves, before ORDER BY and LIMIT. What is computed is post-processing.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.base import Cell
from sfumato.dp.sql.operators.language import evaluate
from sfumato.dp.sql.operators.ordering import Ordering, in_this_order, sort_key
from sfumato.dp.sql.parse import function_name, refuse_clauses, sql_text

#: What the text of a window begins with, after that of every placeholder.
WINDOW = "window "

_FRAMES = "a window has the frame ROWS BETWEEN n PRECEDING AND m FOLLOWING, with UNBOUNDED or CURRENT ROW for an end, or none"

#: How many rows before and after its own a frame reaches; None for all of them.
Reached = tuple[int | None, int | None]


#: What is kept of several cells: their sum or extreme, and how many are not missing.
_Kept = tuple[Any, int]


@dataclass(frozen=True)
class WindowFunction:
    """One function over groups: how it is written, and what it makes of the groups that it sees.

    It makes a place in the order, which `place` counts; or what a neighbour has, in `direction`; or something of the cells in the
    frame: they are put `together`, and `value` follows from that and from how many are not missing. How noise passes, and which
    bounds and kinds hold, follows from what it `makes`.
    """

    node: type[exp.Func]
    makes: Literal["sum", "mean", "count", "extreme", "place", "neighbour"]
    together: Callable[[Any, Any], Any] = operator.add
    value: Callable[[Any, int], Cell] = lambda kept, present: kept
    place: Callable[[_Partition, int], int] = lambda partition, number: number
    direction: int = 0

    @property
    def name(self) -> str:
        """The name of the function in SQL."""
        return str(self.node.sql_name())  # type: ignore[no-untyped-call]

    @property
    def largest(self) -> bool:
        """True for the largest of the groups that it sees."""
        return self.together is max

    @property
    def needs_order(self) -> bool:
        """True where nothing can be said without an order."""
        return self.makes in ("place", "neighbour")


ROWS = (
    WindowFunction(exp.Sum, "sum"),
    WindowFunction(exp.Avg, "mean", value=lambda kept, present: kept / present if present else None),
    WindowFunction(exp.Count, "count", value=lambda kept, present: present),
    WindowFunction(exp.Min, "extreme", together=min),
    WindowFunction(exp.Max, "extreme", together=max),
    WindowFunction(exp.Rank, "place", place=lambda partition, number: partition.first[number] + 1),
    WindowFunction(exp.DenseRank, "place", place=lambda partition, number: partition.dense[number]),
    WindowFunction(exp.RowNumber, "place", place=lambda partition, number: number + 1),
    WindowFunction(exp.Lag, "neighbour", direction=-1),
    WindowFunction(exp.Lead, "neighbour", direction=1),
)
_BY_NODE: Mapping[type[exp.Expression], WindowFunction] = {row.node: row for row in ROWS}
_THERE_ARE = f"over groups there are {', '.join(row.name for row in ROWS[:-1])} and {ROWS[-1].name}"


@dataclass(frozen=True)
class WindowColumn:
    """One window: a function of an expression over groups, within those that are alike in `partition`, in an order.

    `rows` is the frame where one is written; without, it is the whole partition, or up to the last of equal rows in the order.
    """

    function: WindowFunction
    argument: exp.Expression | None
    partition: tuple[exp.Expression, ...]
    order: tuple[Ordering, ...]
    rows: Reached | None = None
    offset: int = 1
    default: exp.Expression | None = None

    @property
    def text(self) -> str:
        """One text for equal windows."""
        parts = [*self.partition, *(each.expression for each in self.order)]
        written = [sql_text(part) for part in (self.argument, self.default, *parts) if part is not None]
        turns = [(each.descending, each.nulls_first) for each in self.order]
        shape = (self.argument is None, self.default is None, len(self.partition))
        return repr((self.function.name.lower(), written, shape, turns, self.rows, self.offset))

    @property
    def chooses(self) -> bool:
        """True where noisy numbers decide which groups a window sees, or in which order."""
        looked_at = [*self.partition, *(each.expression for each in self.order)]
        return any(column.name.startswith(PLACEHOLDER) for part in looked_at for column in part.find_all(exp.Column))


def read_window(
    node: exp.Window, placed: Callable[[exp.Expression], exp.Expression], ordered: Callable[[exp.Ordered], Ordering]
) -> WindowColumn:
    """A window as the query writes it; `placed` and `ordered` put placeholders into expressions over groups."""
    refuse_clauses(node, {"this", "partition_by", "order", "spec", "over"}, "a window")
    called = node.this
    function = _BY_NODE.get(type(called))
    if function is None:
        raise Unsupported(f"{function_name(called)} is no window here: {_THERE_ARE}")
    refuse_clauses(called, {"this", "offset", "default", "big_int"}, function.name)
    order = node.args.get("order")
    if function.needs_order and order is None:
        raise Unsupported(f"{function.name} needs an order: OVER (ORDER BY …)")
    argument = None if function.makes == "place" or isinstance(called.this, exp.Star) else called.this
    if argument is None and function.makes not in ("count", "place"):
        raise Unsupported(f"{function.name} needs an argument")
    default = called.args.get("default")
    return WindowColumn(
        function,
        None if argument is None else placed(argument),
        tuple(placed(part) for part in node.args.get("partition_by") or ()),
        () if order is None else tuple(ordered(entry) for entry in order.expressions),
        _rows(node.args.get("spec")),
        1 if called.args.get("offset") is None else _whole(called.args["offset"]),
        None if default is None else placed(default),
    )


def _whole(node: exp.Expression) -> int:
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdecimal() or len(str(node.this)) > 9:
        raise Unsupported("LAG, LEAD and frames take a constant number of groups")
    return int(node.this)


def _rows(spec: exp.Expression | None) -> Reached | None:
    if spec is None:
        return None
    start, end = _side(spec, "start", "PRECEDING"), _side(spec, "end", "FOLLOWING")
    if str(spec.args.get("kind")).upper() != "ROWS":
        if str(spec.args.get("kind")).upper() == "RANGE" and (start, end) == (None, 0):
            return None
        raise Unsupported(_FRAMES)
    return start, end


def _side(spec: exp.Expression, name: str, away: str) -> int | None:
    """How far a frame reaches on one side; negative where it ends before its own row."""
    held, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
    if held is None or held == "CURRENT ROW":
        return 0
    if held == "UNBOUNDED":
        if side != away:
            raise Unsupported(_FRAMES)
        return None
    number = _whole(held)
    return number if side == away else -number


@dataclass(frozen=True)
class WindowValues:
    """A window in each group that it sees: its value, and of how many groups that is computed."""

    values: Mapping[int, Cell]
    counts: Mapping[int, int]


def window_values(window: WindowColumn, rows: Sequence[tuple[int, Mapping[str, Cell]]]) -> WindowValues:
    """A window over groups, each with its place and what expressions are computed from."""
    parts: dict[tuple[Any, ...], list[tuple[int, Mapping[str, Cell]]]] = {}
    for place, row in rows:
        parts.setdefault(tuple(evaluate(part, row) for part in window.partition), []).append((place, row))
    values: dict[int, Cell] = {}
    counts: dict[int, int] = {}
    for part in parts.values():
        ordered = in_this_order(part, window.order)
        partition = _Partition(window, ordered)
        for number, (place, _) in enumerate(ordered):
            values[place], counts[place] = partition.value(number)
    return WindowValues(values, counts)


class _Partition:
    """The groups of one partition in the window's order.

    Of each row: the first and the last of those that are equal to it, and how many different ones there are up to it.
    """

    first: list[int]
    last: list[int]
    dense: list[int]

    def __init__(self, window: WindowColumn, ordered: Sequence[tuple[int, Mapping[str, Cell]]]) -> None:
        self.window, self.ordered = window, ordered
        keys = [tuple(sort_key(evaluate(each.expression, row)) for each in window.order) for _, row in ordered]
        size = len(keys)
        self.first, self.last, self.dense = [0] * size, [size - 1] * size, [1] * size
        for number in range(1, size):
            same = keys[number] == keys[number - 1]
            self.first[number] = self.first[number - 1] if same else number
            self.dense[number] = self.dense[number - 1] + (not same)
        for number in range(size - 2, -1, -1):
            self.last[number] = self.last[number + 1] if keys[number] == keys[number + 1] else number
        self.cells = [1 if window.argument is None else evaluate(window.argument, row) for _, row in ordered]
        kept: list[_Kept] = [(None, 0) if cell is None else (cell, 1) for cell in self.cells]
        self.kept = kept
        self.from_first = list(itertools.accumulate(kept, self._together))
        self.to_last = list(itertools.accumulate(reversed(kept), self._together))[::-1]

    def value(self, number: int) -> tuple[Cell, int]:
        """The value of the window in one row, and of how many rows it is computed."""
        window, function = self.window, self.window.function
        if function.makes == "place":
            return function.place(self, number), 1
        if function.makes == "neighbour":
            other = number + window.offset * function.direction
            if 0 <= other < len(self.cells):
                return self.cells[other], 1
            return (None if window.default is None else evaluate(window.default, self.ordered[number][1])), 0
        first, last = self._frame(number)
        kept, present = self._over(first, last) if first <= last else (None, 0)
        return function.value(kept, present), max(last - first + 1, 0)

    def _frame(self, number: int) -> tuple[int, int]:
        end = len(self.cells) - 1
        if self.window.rows is None:
            return 0, self.last[number] if self.window.order else end
        before, after = self.window.rows
        return (0 if before is None else max(number - before, 0)), (end if after is None else min(number + after, end))

    def _over(self, first: int, last: int) -> _Kept:
        if first == 0:
            return self.from_first[last]
        if last == len(self.cells) - 1:
            return self.to_last[first]
        return reduce(self._together, self.kept[first : last + 1])

    def _together(self, one: _Kept, other: _Kept) -> _Kept:
        if not one[1] or not other[1]:
            return other if not one[1] else one
        return self.window.function.together(one[0], other[0]), one[1] + other[1]
