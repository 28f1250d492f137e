"""Errors of expressions over noisy statistics, carried over from the measurements to first order.

Each measurement is moved by its own standard deviation and the expression is computed again; the changes add up in
squares, because the noises are independent. Statistics that share a measurement (SUM and AVG of one column) so move
together. Rounding is taken out of the expression and put back as an error of its own: a rounded number does not move
with small noise, and then jumps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from sqlglot import exp

from sfumato.dp.sql.measuring.statistic import Floats, Statistic
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.base import Cell, arguments
from sfumato.dp.sql.operators.choices import branch_taken, branch_value
from sfumato.dp.sql.operators.language import Row, evaluate, over_answers

#: What stands for the error of a rounding in an expression without it.
ROUNDING = "\x00rounding "
#: The share of a deviation by which measurements are moved to find a slope.
_SLIGHT = 1e-3

#: A sum of the two rounding errors of what is told and of what the data says has at most this variance, in squared steps.
ROUNDING_VARIANCE = 1 / 6


def noisy_parts(node: exp.Expression) -> set[str]:
    """The statistics that an expression is computed from."""
    return {column.name.removeprefix(PLACEHOLDER) for column in node.find_all(exp.Column) if column.name.startswith(PLACEHOLDER)}


@dataclass(frozen=True)
class Smooth:
    """An expression without its roundings.

    `roundings` are the steps of those inside, by the columns that stand for their errors. `grid` is the step of one on the
    outside: the result is a multiple of it.
    """

    node: exp.Expression
    roundings: Mapping[str, float] = field(default_factory=dict)
    grid: float | None = None


def smooth(node: exp.Expression, steady: Collection[str]) -> Smooth | None:
    """The expression without roundings, and without what on its outside can only shrink an error; None where it jumps.

    `steady` are the statistics that always have a value, with the same error whatever the data.
    """
    inner, grid = _peeled(node, steady)
    roundings: dict[str, float] = {}
    unrounded = _unrounded(inner, roundings)
    return None if unrounded is None else Smooth(unrounded, roundings, grid)


def _peeled(node: exp.Expression, steady: Collection[str]) -> tuple[exp.Expression, float | None]:
    """Without signs, casts, limits and one rounding on the outside: none of them makes two values differ more.

    Without a default as well where it is never needed; elsewhere it may be as far away as one likes.
    """
    grid: float | None = None
    while True:
        operator = over_answers(node)
        rounding = _rounding(node)
        listed = arguments(node)
        noisy = [part for part in listed if noisy_parts(part)]
        if rounding is not None and grid is None:
            grid, node = rounding
        elif operator is not None and rounding is None and operator.contracts == "first" and noisy_parts(listed[0]):
            node = listed[0]
        elif isinstance(node, exp.Coalesce) and noisy_parts(listed[0]) and _always_there(listed[0], steady):
            node = listed[0]
        elif operator is not None and operator.contracts == "single" and len(noisy) == 1:
            node = noisy[0]
        else:
            return node, grid


def _always_there(node: exp.Expression, steady: Collection[str]) -> bool:
    """True where noise does not decide whether an expression has a value: sums of steady statistics, rounded or not."""
    rounding = _rounding(node)
    return _always_there(rounding[1], steady) if rounding is not None else linear(node, steady)


def bends(node: exp.Expression) -> bool:
    """True where an expression folds or cuts off what is noisy: its interval does not lie evenly around it."""
    operators = [over_answers(part) for part in node.walk() if noisy_parts(part)]
    return any(operator is not None and (operator.turns == 0 or operator.contracts == "single") for operator in operators)


def _rounding(node: exp.Expression) -> tuple[float, exp.Expression] | None:
    """The step that a node rounds to, and what it rounds; None where it does not round, or not to a fixed digit."""
    operator = over_answers(node)
    return None if operator is None else operator.rounding(node, Row({}).value)


def _unrounded(node: exp.Expression, roundings: dict[str, float]) -> exp.Expression | None:
    """The expression with `x + error` for each rounded x; None where it jumps in another way."""
    if not noisy_parts(node):
        return node.copy()
    rounding = _rounding(node)
    if rounding is not None:
        step, inner = rounding
        smoothed = _unrounded(inner, roundings)
        name = ROUNDING + str(len(roundings))
        roundings[name] = step
        error = exp.column(exp.to_identifier(name, quoted=True))
        return None if smoothed is None else exp.Paren(this=exp.Add(this=smoothed, expression=error))
    operator = over_answers(node)
    if not isinstance(node, exp.Column) and (operator is None or operator.array is None):
        return None
    copied = node.copy()
    for name, value in list(copied.args.items()):
        parts = value if isinstance(value, list) else [value]
        changed = [_unrounded(part, roundings) if isinstance(part, exp.Expression) else part for part in parts]
        if any(after is None and before is not None for before, after in zip(parts, changed, strict=True)):
            return None
        copied.set(name, changed if isinstance(value, list) else changed[0])
    return copied


def linear(node: exp.Expression, steady: Collection[str]) -> bool:
    """True where noise moves the result by the same amount whatever the data and the group: sums of steady statistics."""
    if isinstance(node, exp.Column):
        return not node.name.startswith(PLACEHOLDER) or node.name.removeprefix(PLACEHOLDER) in steady
    if node.find(exp.Column) is None:
        return True
    operator = over_answers(node)
    form = None if operator is None else operator.linear
    if form == "sum":
        return all(linear(part, steady) for part in arguments(node))
    if form is None:
        return False
    rest, factor = arguments(node)
    if form == "product" and factor.find(exp.Column) is not None:
        rest, factor = factor, rest
    return factor.find(exp.Column) is None and linear(rest, steady)


@dataclass(frozen=True)
class NoiseChange:
    """How far an expression moves with one standard deviation of each noise, and with all its roundings at their worst."""

    parts: Mapping[str, float]
    roundings: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """The standard error by the noise alone."""
        return math.hypot(*self.parts.values())

    def error(self, grid: float | None) -> float:
        """The standard error with roundings, against the rounded truth."""
        steps = (*self.roundings, grid or 0.0)
        return math.hypot(self.deviation, *(math.sqrt(ROUNDING_VARIANCE) * step for step in steps))


@dataclass(frozen=True)
class _MovedSource:
    """One thing that can be off: the statistics that move with it, by how many deviations it is off."""

    name: str
    moved: Mapping[float, Mapping[str, Sequence[float]]]

    def touches(self, parts: Collection[str]) -> bool:
        return any(text in parts for text in self.moved[1.0])


_OFF = (1.0, -1.0, _SLIGHT, -_SLIGHT)


class MovedStatistics:
    """The statistics of every group as they are, and as they would be were a measurement off; without quantiles, which no
    measurement moves by itself.
    """

    def __init__(
        self,
        statistics: Mapping[str, Statistic],
        noisy: Mapping[str, Floats],
        deviations: Mapping[str, float],
    ) -> None:
        flat = {text: statistic for text, statistic in statistics.items() if statistic.tree is None}
        self.present: dict[str, Sequence[float]] = {text: statistic.value(noisy).tolist() for text, statistic in flat.items()}
        self.sources: list[_MovedSource] = []
        for name in dict.fromkeys(part for statistic in flat.values() for part in statistic.parts):
            using = {text: statistic for text, statistic in flat.items() if name in statistic.parts}
            moved: dict[float, dict[str, Sequence[float]]] = {}
            for off in _OFF:
                there = {**noisy, name: noisy[name] + off * deviations[name]}
                moved[off] = {text: statistic.value(there).tolist() for text, statistic in using.items()}
            self.sources.append(_MovedSource(name, moved))

    def row(self, place: int, others: Mapping[str, Cell]) -> dict[str, Cell]:
        """What an expression is computed from in one group."""
        return {**others, **{PLACEHOLDER + text: values[place] for text, values in self.present.items()}}

    def change(self, smoothed: Smooth, place: int, keys: Mapping[str, Cell]) -> NoiseChange | None:
        """How far an expression moves in one group; None where it has no value there or beside it."""
        row = self.row(place, {**keys, **dict.fromkeys(smoothed.roundings, 0.0)})
        present = number_of(evaluate(smoothed.node, row))
        if present is None:
            return None
        parts: dict[str, float] = {}
        used = noisy_parts(smoothed.node)
        for source in self.sources:
            if not source.touches(used):
                continue
            moved_values = {off: number_of(evaluate(smoothed.node, {**row, **_placed(source.moved[off], place)})) for off in _OFF}
            steps = [abs(value - present) for off in (1.0, -1.0) if (value := moved_values[off]) is not None]
            above, below = moved_values[_SLIGHT], moved_values[-_SLIGHT]
            if above is not None and below is not None:
                # The slope as well: far from the point a ratio may change less than it does beside it.
                steps.append(abs(above - below) / (2 * _SLIGHT))
            if not steps or not math.isfinite(max(steps)):
                return None
            parts[source.name] = parts.get(source.name, 0.0) + max(steps)
        roundings = []
        for name, step in smoothed.roundings.items():
            moved = [number_of(evaluate(smoothed.node, {**row, name: sign * step})) for sign in (1.0, -1.0)]
            roundings.append(max((abs(value - present) for value in moved if value is not None), default=0.0))
        return NoiseChange(parts, tuple(roundings))


def number_of(cell: Cell) -> float | None:
    """A finite number as such; None for anything else."""
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return None
    try:
        return float(cell) if math.isfinite(cell) else None
    except OverflowError:
        return None


def _placed(moved: Mapping[str, Sequence[float]], place: int) -> dict[str, Cell]:
    return {PLACEHOLDER + text: values[place] for text, values in moved.items()}


def taken(node: exp.Expression, keys: Mapping[str, Cell]) -> tuple[int, ...]:
    """The branch of each CASE that the keys of a group decide, from left to right."""
    if _by_keys(node):
        number = branch_taken(node, Row(keys).value)
        return (number, *taken(branch_value(node, number), keys))
    return tuple(number for part in node.iter_expressions() for number in taken(part, keys))


def decided(node: exp.Expression, numbers: Iterator[int]) -> exp.Expression:
    """The expression with the taken branch for each CASE that keys decide."""
    if _by_keys(node):
        return exp.Paren(this=decided(branch_value(node, next(numbers)), numbers))
    copied = node.copy()
    for name, value in list(copied.args.items()):
        if isinstance(value, exp.Expression):
            copied.set(name, decided(value, numbers))
        elif isinstance(value, list):
            copied.set(name, [decided(part, numbers) if isinstance(part, exp.Expression) else part for part in value])
    return copied


def _by_keys(node: exp.Expression) -> TypeGuard[exp.Case]:
    """True for a CASE that looks at nothing noisy."""
    if not isinstance(node, exp.Case):
        return False
    looked_at = [*([node.this] if node.this is not None else []), *(branch.this for branch in node.args["ifs"])]
    return not any(noisy_parts(part) for part in looked_at)
