"""Aggregates of a query: one row each, how they are read, and how they follow from noisy measurements.

What follows from measurements is post-processing. Means and variances are held inside what the declared bounds allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.parse import function_name, refuse_clauses, sql_text

Floats = NDArray[np.float64]

#: What each placeholder column of an aggregate begins with; no identifier of a query can.
PLACEHOLDER = "\x00aggregate "


@dataclass(frozen=True)
class Asked:
    """One aggregate as the query writes it: of an expression (None for rows), over the rows where `where` holds."""

    function: str
    argument: exp.Expression | None
    where: exp.Expression | None = None
    rank: Fraction | None = None

    @property
    def aggregate(self) -> QueryAggregate:
        """The row of the function."""
        return AGGREGATES[self.function]

    @property
    def text(self) -> str:
        """One text for equal aggregates."""
        parts = [
            self.function,
            "" if self.argument is None else sql_text(self.argument),
            "" if self.where is None else sql_text(self.where),
        ]
        return "|".join([*parts, "" if self.rank is None else str(self.rank)])


@dataclass(frozen=True)
class QueryAggregate:
    """One aggregate: how it is written, what is measured for it, and how it follows from that.

    `function` names it in what is kept, `spelled` and `words` in the docs, `offered` in refusals of others, `called` in those of
    its argument. `nodes` are how the parser reads it, and `read` makes of one what is asked.

    Measured are rows, units, a sum, moments (the number of rows, a sum around the middle of the bounds and, with `squares`, one
    of squares) or a tree of counts, in which it has a `rank`. `sample` divides by one row less, `root` takes the root. Within
    one unit an engine computes it as `per_unit`, None where it is not offered there.
    """

    function: str
    spelled: str
    words: str
    measures: Literal["rows", "units", "sum", "moments", "tree"]
    nodes: tuple[type[exp.Expression], ...] = ()
    read: Callable[[Any, str], Asked] = lambda node, function: _of_one(node, function)
    offered: str = ""
    called: str = ""
    rank: Fraction | None = None
    squares: bool = False
    sample: bool = False
    root: bool = False
    per_unit: Literal["count", "count_distinct", "sum", "min", "max"] | None = None


def is_aggregate(node: exp.Expression) -> bool:
    """True for a node that aggregates rows."""
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Quantile))


def taken_out(node: exp.Expression, aggregates: dict[str, Asked]) -> exp.Expression:
    """The expression with every aggregate replaced by a placeholder column; the aggregates are added to `aggregates`."""
    if is_aggregate(node):
        asked = _asked(node)
        aggregates.setdefault(asked.text, asked)
        return exp.column(exp.to_identifier(PLACEHOLDER + asked.text, quoted=True))
    if isinstance(node, exp.Window):
        raise Unsupported("a window is computed over the groups of the outer query, not inside an aggregate")
    copied = node.copy()
    for key, value in list(copied.args.items()):
        if isinstance(value, exp.Expression):
            copied.set(key, taken_out(value, aggregates))
        elif isinstance(value, list):
            copied.set(key, [taken_out(entry, aggregates) if isinstance(entry, exp.Expression) else entry for entry in value])
    return copied


_SAID = {"this", "expression", "expressions", "big_int", "quantile"}


def _asked(node: exp.Expression) -> Asked:
    refuse_clauses(node, _SAID, function_name(node))
    if isinstance(node, exp.Filter):
        inner = _asked(node.this)
        if inner.where is not None:
            raise Unsupported("an aggregate takes one FILTER")
        return Asked(inner.function, inner.argument, node.expression.this, inner.rank)
    if isinstance(node, exp.WithinGroup):
        return _within_group(node)
    aggregate = _BY_NODE.get(type(node))
    if aggregate is None:
        raise Unsupported(_unknown(node))
    return aggregate.read(node, aggregate.function)


def _unknown(node: exp.Expression) -> str:
    return f"the aggregate {function_name(node)} is not supported; {THERE_ARE}"


def _of_one(node: exp.Expression, function: str) -> Asked:
    if node.args.get("expressions"):
        raise Unsupported(f"{function.upper()} takes one argument")
    return Asked(function, _plain(node.this))


def _count(node: exp.Count, function: str) -> Asked:
    inner = node.this
    if node.expressions:
        raise Unsupported("COUNT takes one argument")
    if isinstance(inner, exp.Star) or inner is None or isinstance(inner, exp.Literal):
        return Asked(function, None)
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise Unsupported("COUNT(DISTINCT …) takes one column")
        return Asked("count_distinct", inner.expressions[0])
    return Asked(function, inner)


def _quantile(node: exp.Expression, function: str) -> Asked:
    return Asked(function, _plain(node.this), rank=_rank(node.args.get("quantile")))


def _percentile(node: exp.PercentileCont | exp.PercentileDisc, function: str) -> Asked:
    """QUANTILE_CONT(x, q), or QUANTILE_CONT(x, q ORDER BY x) as DuckDB spells WITHIN GROUP."""
    if node.expression is None:
        raise Unsupported(_unknown(node))
    if not isinstance(node.expression, exp.Order):
        return Asked(function, _plain(node.this), rank=_rank(node.expression))
    argument, order = _plain(node.this), node.expression.expressions
    if len(order) != 1 or order[0].this != argument:
        raise Unsupported("ORDER BY inside a quantile names the column that the quantile is of, and no other")
    rank = _rank(node.expression.this)
    return Asked(function, argument, rank=1 - rank if order[0].args.get("desc") else rank)


def _within_group(node: exp.WithinGroup) -> Asked:
    function, order = node.this, node.expression
    if not isinstance(function, (exp.PercentileCont, exp.PercentileDisc)) or len(order.expressions) != 1:
        raise Unsupported("WITHIN GROUP is for PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)")
    rank = _rank(function.this)
    ordered = order.expressions[0]
    return Asked("quantile", _plain(ordered.this), rank=1 - rank if ordered.args.get("desc") else rank)


def _rank(node: exp.Expression | None) -> Fraction:
    try:
        rank = Fraction(str(node.this)) if isinstance(node, exp.Literal) and not node.is_string else None
    except ValueError:
        rank = None
    if rank is None or not 0 <= rank <= 1:
        raise Unsupported("a quantile takes one constant rank between 0 and 1, such as QUANTILE(income, 0.9)")
    return rank


def _plain(node: exp.Expression | None) -> exp.Expression:
    if node is None:
        raise Unsupported("an aggregate needs an argument")
    if isinstance(node, exp.Distinct):
        raise Unsupported("DISTINCT inside SUM, AVG and others is not supported: what one unit adds could not be bounded")
    if isinstance(node, exp.Order):
        raise Unsupported("ORDER BY inside an aggregate is not supported")
    if any(is_aggregate(part) for part in node.walk()):
        raise Unsupported("an aggregate of an aggregate needs a sub-query that aggregates per unit first")
    return node


ROWS = (
    QueryAggregate(
        "count", "COUNT(*)", "number of rows; `COUNT(a)` of those where a is not missing", "rows", (exp.Count,), _count,
        offered="COUNT", per_unit="count",
    ),
    QueryAggregate(
        "count", "COUNT_IF(p)", "number of rows where p holds", "rows", (exp.CountIf,),
        lambda node, function: Asked(function, None, node.this), per_unit="count",
    ),
    QueryAggregate(
        "count_distinct", "COUNT(DISTINCT unit)", "number of units; of another column per unit only",
        "units", per_unit="count_distinct",
    ),
    QueryAggregate("sum", "SUM(a)", "sum", "sum", (exp.Sum,), offered="SUM", called="SUM", per_unit="sum"),
    QueryAggregate("avg", "AVG(a)", "mean, within the bounds of a", "moments", (exp.Avg,), offered="AVG", called="AVG"),
    QueryAggregate(
        "var_samp", "VARIANCE(a)", "variance of a sample, at least 0; also `VAR_SAMP`", "moments", (exp.Variance,),
        offered="VARIANCE", called="VAR", squares=True, sample=True,
    ),
    QueryAggregate("var_pop", "VAR_POP(a)", "variance, at least 0", "moments", (exp.VariancePop,), called="VAR", squares=True),
    QueryAggregate(
        "stddev_samp", "STDDEV(a)", "root of `VARIANCE`; also `STDDEV_SAMP`", "moments", (exp.Stddev, exp.StddevSamp),
        offered="STDDEV", called="VAR", squares=True, sample=True, root=True,
    ),
    QueryAggregate(
        "stddev_pop", "STDDEV_POP(a)", "root of `VAR_POP`", "moments", (exp.StddevPop,), called="VAR", squares=True, root=True
    ),
    QueryAggregate(
        "min", "MIN(a)", "smallest value, kept clear of the end by the noise of a rank; exact per unit", "tree", (exp.Min,),
        offered="MIN", called="MIN", rank=Fraction(0), per_unit="min",
    ),
    QueryAggregate(
        "max", "MAX(a)", "largest value, kept clear of the end by the noise of a rank; exact per unit", "tree", (exp.Max,),
        offered="MAX", called="MAX", rank=Fraction(1), per_unit="max",
    ),
    QueryAggregate(
        "quantile", "MEDIAN(a)", "`QUANTILE(a, 0.5)`", "tree", (exp.Median,),
        lambda node, function: Asked(function, _plain(node.this), rank=Fraction(1, 2)), offered="MEDIAN", called="QUANTILE",
    ),
    QueryAggregate(
        "quantile", "QUANTILE(a, q)", "value below which a share q of the rows lies", "tree",
        (exp.Quantile, exp.ApproxQuantile), _quantile, offered="QUANTILE", called="QUANTILE",
    ),
    QueryAggregate(
        "quantile", "PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY a)", "as `QUANTILE(a, q)`; also `QUANTILE_CONT(a, q)`", "tree",
        (exp.PercentileCont, exp.PercentileDisc), _percentile, called="QUANTILE",
    ),
)  # fmt: skip
AGGREGATES = {row.function: row for row in ROWS}
_BY_NODE = {node: row for row in ROWS for node in row.nodes}
_OFFERED = [row.offered for row in ROWS if row.offered]
#: The aggregates that a refusal offers.
THERE_ARE = f"there are {', '.join(_OFFERED[:-1])} and {_OFFERED[-1]}"


# From measurements ------------------------------------------------------------------------------------------------------

#: Below this many rows (after noise) a mean says nothing; the division is held here.
FEWEST = 1.0


@dataclass(frozen=True)
class Statistic:
    """One aggregate of the query, computed from measurements by name.

    `centre` is what values were measured around, `square_centre` the same for their squares; results of means stay
    inside [low, high]. A `positive` sum is one of values that are not below 0.
    """

    function: str
    count: str | None = None
    total: str | None = None
    squares: str | None = None
    tree: str | None = None
    step: Fraction = Fraction(1)
    square_step: Fraction = Fraction(1)
    centre: Fraction = Fraction(0)
    square_centre: Fraction = Fraction(0)
    low: Fraction | None = None
    high: Fraction | None = None
    rank: Fraction | None = None
    whole: bool = False
    positive: bool = False

    @property
    def aggregate(self) -> QueryAggregate:
        """The row of the function."""
        return AGGREGATES[self.function]

    @property
    def parts(self) -> tuple[str, ...]:
        """The measurements it is computed from."""
        return tuple(part for part in (self.count, self.total, self.squares, self.tree) if part is not None)

    @property
    def linear(self) -> bool:
        """True for one measurement as it is: counts, and sums that are measured by themselves."""
        return self.total is None and self.tree is None or self.aggregate.measures == "sum" and self.count is None

    @property
    def steady(self) -> bool:
        """True when the error is the same whatever the data."""
        return self.linear or self.aggregate.measures == "sum"

    def value(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group."""
        if self.total is None:
            return noisy[self.count or ""]
        if self.aggregate.measures == "sum":
            total = noisy[self.total] * float(self.step)
            return total if self.count is None else total + noisy[self.count] * float(self.centre)
        if self.squares is None:
            return self._inside(self._around(noisy) + float(self.centre))
        return self._spread(noisy, np.minimum(self._squares(noisy) - self._around(noisy) ** 2, self._widest))

    def possible(self, noisy: Mapping[str, Floats]) -> Floats:
        """The statistic per group and possible noise, the first of which is none: what it may be without the noise.

        A variance is measured halfway between the possible mean and the one that is shown, and one of a sample may be above the
        largest of so many rows, see docs/theory/margins.md.
        """
        if self.squares is None:
            return self.value(noisy)
        around = self._around(noisy)
        shown = around[:, :1]
        if self.low is not None and self.high is not None:
            shown = np.clip(shown, float(self.low - self.centre), float(self.high - self.centre))
        spread = self._spread(noisy, self._squares(noisy) - around**2 + (around - shown) ** 2 / 2)
        spread[:, 0] = self.value({name: column[:, 0] for name, column in noisy.items() if name in self.parts})
        return np.minimum(spread, self.largest(self.fewest))

    def _rows(self, noisy: Mapping[str, Floats]) -> Floats:
        return np.maximum(noisy[self.count or ""], FEWEST)

    def _around(self, noisy: Mapping[str, Floats]) -> Floats:
        """The mean less the centre."""
        return noisy[self.total or ""] * float(self.step) / self._rows(noisy)

    def _squares(self, noisy: Mapping[str, Floats]) -> Floats:
        """The mean of the squares of values less the centre."""
        return noisy[self.squares or ""] * float(self.square_step) / self._rows(noisy) + float(self.square_centre)

    def _spread(self, noisy: Mapping[str, Floats], variance: Floats) -> Floats:
        """The kind of variance or deviation that is asked for."""
        spread = np.maximum(variance, 0.0)
        if self.aggregate.sample:
            rows = self._rows(noisy)
            spread = spread * rows / np.maximum(rows - 1.0, FEWEST)
        return np.sqrt(spread) if self.aggregate.root else spread

    @property
    def ends(self) -> tuple[float, float] | None:
        """What the statistic can be at all, whatever the rows; None where nothing bounds it."""
        if self.low is None or self.high is None or self.aggregate.measures != "moments":
            return None
        if self.squares is None:
            return float(self.low), float(self.high)
        return 0.0, float(self.largest(self.fewest))

    @property
    def certain(self) -> tuple[float, float]:
        """Between which ends the statistic lies by the question and the declared bounds alone."""
        if self.tree is not None and self.low is not None and self.high is not None:
            return float(self.low), float(self.high)
        if self.ends is not None:
            return self.ends
        return 0.0 if self.positive or self.aggregate.measures in ("rows", "units") else -math.inf, math.inf

    def largest(self, rows: Floats | float) -> Floats | float:
        """The largest variance or deviation of so many rows: half of them at either bound."""
        share = rows / (rows - 1.0) if self.aggregate.sample else 1.0
        largest = self._widest * share
        return np.sqrt(largest) if self.aggregate.root else largest

    @property
    def fewest(self) -> float:
        """With fewer rows than this the statistic has no value, and an answer can say nothing about it."""
        return 2.0 if self.aggregate.sample else 1.0

    @property
    def _widest(self) -> float:
        return float(self.high - self.low) ** 2 / 4 if self.low is not None and self.high is not None else math.inf

    def _inside(self, value: Floats) -> Floats:
        if self.low is None or self.high is None:
            return value
        return np.clip(value, float(self.low), float(self.high))
