"""Which measurements the aggregates of a query need, each taken once however many aggregates use it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.aggregates import Asked
from sfumato.dp.sql.language import lower
from sfumato.dp.sql.measurement import Measurement, leaf_of, needs_bounds, on_grid
from sfumato.dp.sql.normal_form import normal_rows
from sfumato.dp.sql.rows import Rows
from sfumato.dp.sql.statistics import Statistic
from sfumato.dp.sql.term import Term, arithmetic, bounded, constant
from sfumato.engines import expressions as e


class StatisticPlan:
    """The measurements behind the statistics, each taken once however many statistics use it."""

    def __init__(self, rows: Rows, asked: Iterable[Asked] = ()) -> None:
        self.rows = rows
        # Tables by the names that this plan has for them: two spellings of one measurement are one.
        self.normal = normal_rows(rows.plan, str)
        self.averaged = [each for each in asked if each.aggregate.measures == "moments"]
        self.found: dict[tuple[object, ...], Measurement] = {}

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
        if aggregate.measures == "tree":
            return self._quantile(asked, term, condition)
        if aggregate.measures == "sum" and any(self._about(each) == self._about(asked) for each in self.averaged):
            # A mean of the same column is measured anyhow: its parts give the sum, and nothing more is spent.
            return replace(self._moments(asked, raw, condition), low=None, high=None, whole=raw.kind == "integer")
        if aggregate.measures == "sum":
            grid = on_grid(term, centred=False)
            middle = (term.low + term.high) / 2 / grid.step
            total = self._add(Measurement("", "sum", grid.expression, condition, grid.limit, grid.step, middle=middle))
            return Statistic(asked.function, total=total, step=grid.step, whole=grid.step == 1 and term.kind == "integer")
        return self._moments(asked, raw, condition)

    def _moments(self, asked: Asked, raw: Term, condition: e.Expression | None) -> Statistic:
        grid, term = on_grid(raw, centred=True), bounded(raw)
        total = self._add(Measurement("", "sum", grid.expression, condition, grid.limit, grid.step))
        moments = Statistic(
            asked.function,
            count=self._rows(raw.expression, condition),
            total=total,
            step=grid.step,
            centre=grid.centre,
            low=term.low,
            high=term.high,
        )
        if not asked.aggregate.squares:
            return moments
        around = bounded(arithmetic("-", term, _constant_term(grid.centre, term)))
        squared = arithmetic("*", around, around)
        squares = on_grid(replace(squared, low=max(squared.low or Fraction(0), Fraction(0))), centred=True)
        name = self._add(Measurement("", "sum", squares.expression, condition, squares.limit, squares.step))
        return replace(moments, squares=name, square_step=squares.step, square_centre=squares.centre)

    def _units(self, asked: Asked, condition: e.Expression | None) -> Statistic:
        argument = asked.argument
        if isinstance(argument, exp.Column) and self.rows.find(argument).unit:
            return Statistic(asked.function, count=self._add(Measurement("", "units", None, condition)), whole=True)
        raise Unsupported(
            "COUNT(DISTINCT …) is supported for the unit column only: how many values one unit adds to other columns cannot be "
            "bounded in a count of values. Group by the column and count units instead"
        )

    def _rows(self, expression: e.Expression | None, condition: e.Expression | None) -> str:
        return self._add(Measurement("", "rows", expression, condition))

    def _quantile(self, asked: Asked, term: Term, condition: e.Expression | None) -> Statistic:
        leaf, leaves, low, high = leaf_of(term)
        name = self._add(Measurement("", "tree", leaf, condition, leaves=leaves))
        rank = asked.rank if asked.aggregate.rank is None else asked.aggregate.rank
        whole = term.kind == "integer" and leaves == high - low
        return Statistic(asked.function, tree=name, low=low, high=high, rank=rank, whole=whole)

    def _about(self, asked: Asked) -> tuple[str | None, ...]:
        """What is aggregated over which rows, however it is written."""
        parts = (asked.argument, asked.where)
        return tuple(None if part is None else self.normal.of(lower(part, self.rows.resolve).expression) for part in parts)

    def _add(self, measurement: Measurement) -> str:
        forms = [None if part is None else self.normal.of(part) for part in (measurement.expression, measurement.where)]
        identity = (measurement.kind, *forms, measurement.change, measurement.step, measurement.leaves)
        if identity not in self.found:
            self.found[identity] = replace(measurement, name=f"m{len(self.found)}")
        return self.found[identity].name


def _constant_term(value: Fraction, like: Term) -> Term:
    return constant(int(value)) if like.kind == "integer" and value.denominator == 1 else constant(float(value))
