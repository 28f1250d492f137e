"""What is measured with noise: counts of units, rows and distinct values, sums of fixed-point integers, trees of counts.

Each measurement adds an integer per row, and one row can add at most `change` to it; rounding to the grid happens
before the bound is taken, so that its effect is inside the sensitivity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.measuring.pair_statistic import PairStatistic
from sfumato.dp.sql.measuring.statistic import Statistic
from sfumato.dp.sql.operators.aggregates import Asked
from sfumato.dp.sql.operators.language import lower
from sfumato.dp.sql.operators.term import ANY_DAYS, ANY_MOMENTS, EXACT, Term, arithmetic, as_number, bounded, constant
from sfumato.dp.sql.reading.catalogue import QueryRows
from sfumato.dp.sql.reading.normal_form import normal_rows
from sfumato.engines import expressions as e
from sfumato.engines.functions import numbers as f

#: A real value within its bounds is distinguished from 2^20 to 2^21 others on either side: far finer than the noise.
GRID_BITS = 20
#: Leaves and branching of the tree of counts behind quantiles: 16³ leaves in three levels.
LEAVES, BRANCHING = 4096, 16
#: So many deviations of a rank do MIN and MAX keep clear of the ends.
CLEAR_OF_ENDS = 1.5


@dataclass(frozen=True)
class QueryMeasurement:
    """One noisy number per group (or a tree of them).

    `expression` is the integer that each row adds (for `rows`: counted where it has a value; for `values`: what is counted
    once however many rows have it; for `tree`: its leaf).
    `change` bounds it; `step` is the real worth of 1, and the value measured is `step` times the sum. A row in the
    middle of its bounds adds `middle`, from which errors are computed beforehand.
    """

    name: str
    kind: Literal["units", "rows", "values", "sum", "tree"]
    expression: e.Expression | None = None
    where: e.Expression | None = None
    change: int = 1
    step: Fraction = Fraction(1)
    leaves: int = 0
    middle: Fraction = field(default=Fraction(0), repr=False)  # not part of what a question is, see `identity`

    @property
    def levels(self) -> int:
        """How many nodes of the tree one row is counted in; 1 for other measurements."""
        if self.kind != "tree":
            return 1
        from sfumato.dp.algorithms.count_tree import level_sizes

        return len(level_sizes(self.leaves, BRANCHING))


@dataclass(frozen=True)
class GridNumber:
    """How a bounded number becomes an integer: value ≈ centre + step · integer, the integer at most `limit` in size."""

    expression: e.Expression
    step: Fraction
    limit: int
    centre: Fraction


def on_grid(term: Term, *, centred: bool) -> GridNumber:
    """A bounded number as an integer per row; whole numbers stay exact, others are rounded to a power of two."""
    raw, term = term, bounded(term)
    if term.low is None or term.high is None:
        raise Unsupported("an unbounded number cannot be summed")  # callers say more, see `needs_bounds`
    low, high = term.low, term.high
    whole = term.kind == "integer"
    if whole:
        centre = Fraction((low + high) // 2) if centred else Fraction(0)
        limit = max(abs(high - centre), abs(low - centre))
        if limit >= EXACT or max(abs(low), abs(high)) >= EXACT:
            return _rounded(as_number(term), low, high, centred=centred)
        moved = term if centre == 0 else arithmetic("-", term, constant(int(centre)))
        return GridNumber(moved.expression, Fraction(1), max(int(limit), 1), centre)
    # Around the middle the fixed point clamps to both bounds by itself, and clamping twice costs time on every row.
    return _rounded(raw if centred and raw.kind == "number" else as_number(term), low, high, centred=centred)


def _rounded(term: Term, low: Fraction, high: Fraction, *, centred: bool) -> GridNumber:
    width = max(abs(low), abs(high)) if not centred else (high - low) / 2
    step, scale = Fraction(1), 1
    while width > 0 and width * scale < 2**GRID_BITS and scale < 2**40:
        scale *= 2
    step = Fraction(1, scale)
    centre = Fraction(0)
    if centred:
        centre = Fraction(round((low + high) / 2 / step)) * step
    reach = max(abs(high - centre), abs(low - centre))
    limit = float(reach) if float(reach) > 0 else float(step)
    if limit * scale >= 2**61:
        raise Unsupported("the bounds of a summed column are beyond 2^61; declare tighter ones")
    moved = term.expression if centre == 0 else e.Arithmetic("-", term.expression, e.Literal(float(centre)))
    # From 2^52 on, adding a half rounds in floating point, and may round up.
    largest = int((Fraction(limit) * scale + Fraction(1, 2)) // 1) + (limit * scale >= 2**51)
    return GridNumber(f.FixedPoint(moved, scale, limit), step, max(largest, 1), centre)


def leaf_of(term: Term) -> tuple[e.Expression, int, Fraction, Fraction]:
    """The leaf of a value in the tree over its bounds, with the number of leaves and the ends of the tree.

    Whole numbers in a small range have a leaf each.
    """
    term = bounded(term)
    if term.low is None or term.high is None:
        raise Unsupported("an unbounded number has no tree")
    low, high = term.low, term.high
    if term.kind == "integer" and high - low < LEAVES:
        leaves = int(high - low) + 1
        return f.Bucket(term.expression, float(low), float(high) + 1.0, leaves), leaves, low, high + 1
    if low == high:
        high = low + 1
    return f.Bucket(as_number(term).expression, float(low), float(high), LEAVES), LEAVES, low, high


#: What brings a number made of dates its bounds; dates have none of their own.
_DECLARE = {
    ANY_DAYS: 'List the dates that there may be in the schema (domain = ["2024-01-01", …]), or clamp in the query',
    ANY_MOMENTS: "Clamp in the query",
}


def needs_bounds(what: str, term: Term) -> Unsupported:
    """The refusal of an unbounded sum, with what to do about it."""
    why = term.hint or "no bounds are declared for it"
    declare = _DECLARE.get(why, "Declare bounds = [low, high] in the schema, or clamp in the query")
    return Unsupported(f"{what} needs a bounded number: {why}. {declare}: {what}(CLAMP(x, 0, 100))")


class StatisticPlan:
    """The measurements behind the statistics, each taken once however many statistics use it."""

    def __init__(self, rows: QueryRows, asked: Iterable[Asked] = ()) -> None:
        self.rows = rows
        # Tables by the names that this plan has for them: two spellings of one measurement are one.
        self.normal = normal_rows(rows.plan, str)
        self.averaged = [each for each in asked if each.aggregate.measures == "moments"]
        self.measurements: dict[tuple[object, ...], QueryMeasurement] = {}

    def statistic(self, asked: Asked) -> Statistic:
        """How one aggregate is computed."""
        where = None if asked.where is None else lower(asked.where, self.rows.resolve)
        if where is not None and where.kind != "boolean":
            raise Unsupported("FILTER (WHERE …) needs a condition")
        condition = None if where is None else where.expression
        aggregate = asked.aggregate
        if aggregate.measures == "units":
            return self._units(asked, condition)
        if asked.argument is None:
            return Statistic(asked.function, count=self._rows(None, condition), whole=True)
        term = lower(asked.argument, self.rows.resolve)
        if aggregate.measures == "rows":
            return Statistic(asked.function, count=self._rows(term.expression, condition), whole=True)
        if not term.numeric:
            raise Unsupported(f"{aggregate.called} needs a number, not a {term.kind}")
        raw, term = term, bounded(term)
        if term.low is None or term.high is None:
            raise needs_bounds(aggregate.called, term)
        if aggregate.measures == "pairs":
            return self._pair(asked, raw, condition)
        if aggregate.measures == "tree":
            return self._quantile(asked, term, condition)
        if aggregate.measures == "sum" and any(self._about(each) == self._about(asked) for each in self.averaged):
            # A mean of the same column is measured anyhow: its parts give the sum, and nothing more is spent.
            moments = self._moments(asked, raw, condition)
            return replace(moments, low=None, high=None, whole=raw.kind == "integer", positive=term.low >= 0)
        if aggregate.measures == "sum":
            grid = on_grid(term, centred=False)
            middle = (term.low + term.high) / 2 / grid.step
            total = self._add(QueryMeasurement("", "sum", grid.expression, condition, grid.limit, grid.step, middle=middle))
            whole = grid.step == 1 and term.kind == "integer"
            return Statistic(asked.function, total=total, step=grid.step, whole=whole, positive=term.low >= 0)
        return self._moments(asked, raw, condition)

    def _moments(self, asked: Asked, raw: Term, condition: e.Expression | None) -> Statistic:
        sums = self._sums(asked.function, raw, condition, squares=asked.aggregate.squares)
        return replace(sums, count=self._rows(raw.expression, condition))

    def _sums(self, function: str, raw: Term, condition: e.Expression | None, *, squares: bool) -> Statistic:
        grid, term = on_grid(raw, centred=True), bounded(raw)
        total = self._add(QueryMeasurement("", "sum", grid.expression, condition, grid.limit, grid.step))
        moments = Statistic(function, total=total, step=grid.step, centre=grid.centre, low=term.low, high=term.high)
        if not squares:
            return moments
        around = bounded(arithmetic("-", term, _constant_term(grid.centre, term)))
        squared = arithmetic("*", around, around)
        on_squares = on_grid(replace(squared, low=max(squared.low or Fraction(0), Fraction(0))), centred=True)
        name = self._add(QueryMeasurement("", "sum", on_squares.expression, condition, on_squares.limit, on_squares.step))
        return replace(moments, squares=name, square_step=on_squares.step, square_centre=on_squares.centre)

    def _pair(self, asked: Asked, one: Term, condition: e.Expression | None) -> Statistic:
        if asked.other is None:
            raise Unsupported(f"{asked.aggregate.called} takes two columns")
        other = lower(asked.other, self.rows.resolve)
        if not other.numeric:
            raise Unsupported(f"{asked.aggregate.called} needs numbers, not a {other.kind}")
        bounds = bounded(other)
        if bounds.low is None or bounds.high is None:
            raise needs_bounds(asked.aggregate.called, bounds)
        both = [e.Not(e.IsMissing(term.expression)) for term in (one, other)]
        both_known = e.And(tuple(both if condition is None else [condition, *both]))
        count = self._rows(None, both_known)
        columns = [
            self._around(term, both_known, count, squares=squares)
            for term, squares in zip((one, other), asked.aggregate.squared, strict=True)
        ]
        factors = [
            bounded(arithmetic("-", term, _constant_term(each.centre, term)))
            for term, each in zip((bounded(one), bounds), columns, strict=True)
        ]
        grid = on_grid(arithmetic("*", *factors), centred=True)
        total = self._add(QueryMeasurement("", "sum", grid.expression, both_known, grid.limit, grid.step))
        product = Statistic("avg", count=count, total=total, step=grid.step, centre=grid.centre)
        return PairStatistic(asked.function, count=count, one=columns[0], other=columns[1], product=product, total=total)

    def _around(self, raw: Term, both_known: e.Expression, count: str, *, squares: bool) -> Statistic:
        """The sums of a column around the middle of its bounds, over the rows where both columns are known."""
        moments = self._sums("var_pop", raw, both_known, squares=squares)
        return replace(moments, count=count)

    def _units(self, asked: Asked, condition: e.Expression | None) -> Statistic:
        argument = asked.argument
        held = self.rows.find(argument) if isinstance(argument, exp.Column) else None
        if held is not None and (held.unit or held.perhaps_unit):
            if held.perhaps_unit:  # counted where the right side of a LEFT JOIN has a row
                there = e.Not(e.IsMissing(held.term.expression))
                condition = there if condition is None else e.And((condition, there))
            return Statistic(asked.function, count=self._add(QueryMeasurement("", "units", None, condition)), whole=True)
        if argument is None:
            raise Unsupported("COUNT(DISTINCT …) takes one column")
        value = bounded(lower(argument, self.rows.resolve)).expression
        return Statistic(asked.function, count=self._add(QueryMeasurement("", "values", value, condition)), whole=True)

    def _rows(self, expression: e.Expression | None, condition: e.Expression | None) -> str:
        return self._add(QueryMeasurement("", "rows", expression, condition))

    def _quantile(self, asked: Asked, term: Term, condition: e.Expression | None) -> Statistic:
        leaf, leaves, low, high = leaf_of(term)
        name = self._add(QueryMeasurement("", "tree", leaf, condition, leaves=leaves))
        rank = asked.rank if asked.aggregate.rank is None else asked.aggregate.rank
        whole = term.kind == "integer" and leaves == high - low
        return Statistic(asked.function, tree=name, low=low, high=high, rank=rank, whole=whole)

    def _about(self, asked: Asked) -> tuple[str | None, ...]:
        """What is aggregated over which rows, however it is written."""
        parts = (asked.argument, asked.where)
        return tuple(None if part is None else self.normal.of(lower(part, self.rows.resolve).expression) for part in parts)

    def _add(self, measurement: QueryMeasurement) -> str:
        forms = [None if part is None else self.normal.of(part) for part in (measurement.expression, measurement.where)]
        identity = (measurement.kind, *forms, measurement.change, measurement.step, measurement.leaves)
        if identity not in self.measurements:
            self.measurements[identity] = replace(measurement, name=f"m{len(self.measurements)}")
        return self.measurements[identity].name


def _constant_term(value: Fraction, like: Term) -> Term:
    return constant(int(value)) if like.kind == "integer" and value.denominator == 1 else constant(float(value))
