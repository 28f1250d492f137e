"""Aggregates of a query: one row each, how they are read, and what is measured for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.parse import function_name, refuse_clauses, sql_text

#: How many quantiles one call may list.
MOST_RANKS = 100
#: What each placeholder column of an aggregate begins with; no identifier of a query can.
PLACEHOLDER = "\x00aggregate "


class QuantileList(exp.Array):
    """Several quantiles of one column in one call, which make a list: the placeholders of its elements."""


@dataclass(frozen=True)
class Asked:
    """One aggregate as the query writes it: of an expression (None for rows), over the rows where `where` holds.

    Of two expressions for `other`: a covariance, or the regression of `other` on `argument`.
    """

    function: str
    argument: exp.Expression | None
    where: exp.Expression | None = None
    rank: Fraction | None = None
    other: exp.Expression | None = None

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
        parts.append("" if self.rank is None else str(self.rank))
        return "|".join(parts if self.other is None else [*parts, sql_text(self.other)])


@dataclass(frozen=True)
class QueryAggregate:
    """One aggregate: how it is written, what is measured for it, and how it follows from that.

    `function` names it in what is kept, `spelled` and `words` in the docs, `offered` in refusals of others, `called` in those of
    its argument. `nodes` are how the parser reads it, and `read` makes of one what is asked.

    Measured are rows, units, a sum, moments (the number of rows, a sum around the middle of the bounds and, with `squares`, one
    of squares), pairs (moments of two columns and the sum of their products) or a tree of counts, in which it has a `rank`.
    `sample` divides by one row less, `root` takes the root. Of a pair `squared` says of which of its columns squares are
    measured, and `at_zero` that the line of least squares is asked for at 0. Within one unit an engine computes it as
    `per_unit`, None where it is not offered there.
    """

    function: str
    spelled: str
    words: str
    measures: Literal["rows", "units", "sum", "moments", "pairs", "tree"]
    nodes: tuple[type[exp.Expression], ...] = ()
    read: Callable[[Any, str], Asked] = lambda node, function: _of_one(node, function)
    offered: str = ""
    called: str = ""
    rank: Fraction | None = None
    squares: bool = False
    sample: bool = False
    root: bool = False
    squared: tuple[bool, bool] = (False, False)
    at_zero: bool = False
    per_unit: Literal["count", "count_distinct", "sum", "min", "max"] | None = None


def is_aggregate(node: exp.Expression) -> bool:
    """True for a node that aggregates rows."""
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Quantile))


def taken_out(node: exp.Expression, aggregates: dict[str, Asked]) -> exp.Expression:
    """The expression with every aggregate replaced by a placeholder column; the aggregates are added to `aggregates`."""
    if is_aggregate(node):
        if (correlation := _correlation(node)) is not None:
            # The square of a number that may have either sign: the interval of the square follows from that of the number.
            return exp.Pow(this=taken_out(correlation, aggregates), expression=exp.Literal.number(2))
        if (ranks := _listed_ranks(node)) is not None:
            return _several(node, ranks, aggregates)
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
        return replace(inner, where=node.expression.this)
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


def _correlation(node: exp.Expression) -> exp.Expression | None:
    """CORR(y, x) for REGR_R2(y, x), with its FILTER; None for any other aggregate."""
    if isinstance(node, exp.Filter):
        inner = _correlation(node.this)
        return None if inner is None else exp.Filter(this=inner, expression=node.expression.copy())
    return exp.Corr(this=node.this.copy(), expression=node.expression.copy()) if isinstance(node, exp.RegrR2) else None


def _pair(node: exp.Expression, function: str) -> Asked:
    """CORR(x, y), or REGR_SLOPE(y, x): the one that explains comes second there."""
    explained, explaining = _plain(node.this), _plain(node.args.get("expression"))
    return Asked(function, explaining, other=explained)


def _listed_ranks(node: exp.Expression) -> exp.Array | None:
    """The list of ranks in QUANTILE_CONT(x, [q, r]) or PERCENTILE_CONT(ARRAY[q, r]); None where there is one rank."""
    if isinstance(node, exp.Filter):
        return _listed_ranks(node.this)
    held = node.this.this if isinstance(node, exp.WithinGroup) else node.args.get("quantile")
    if isinstance(node, (exp.PercentileCont, exp.PercentileDisc)):
        held = node.expression.this if isinstance(node.expression, exp.Order) else node.expression
    return held if isinstance(held, exp.Array) else None


def _several(node: exp.Expression, ranks: exp.Array, aggregates: dict[str, Asked]) -> QuantileList:
    if not 1 <= len(ranks.expressions) <= MOST_RANKS:
        raise Unsupported(f"a list of quantiles has 1 to {MOST_RANKS} ranks, such as QUANTILE_CONT(income, [0.25, 0.5, 0.75])")
    elements = []
    for place in range(len(ranks.expressions)):
        single = node.copy()
        listed = _listed_ranks(single)
        if listed is not None:
            listed.replace(listed.expressions[place].copy())
        elements.append(taken_out(single, aggregates))
    return QuantileList(expressions=elements)


def _rank(node: exp.Expression | None) -> Fraction:
    try:
        rank = Fraction(str(node.this)) if isinstance(node, exp.Literal) and not node.is_string else None
    except ValueError:
        rank = None
    if rank is None or not 0 <= rank <= 1:
        raise Unsupported(
            "a quantile takes constant ranks between 0 and 1: QUANTILE(income, 0.9), or QUANTILE_CONT(income, [0.1, 0.9])"
        )
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
        "count_distinct", "COUNT(DISTINCT unit)",
        "number of units; of another column the number of its values, counted among at most `max_rows` of each unit",
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
        "corr", "CORR(a, b)", "correlation of the rows where both are known, -1 to 1; missing where one of them does not vary",
        "pairs", (exp.Corr,), _pair, offered="CORR", called="CORR", squared=(True, True),
    ),
    QueryAggregate(
        "covar_pop", "COVAR_POP(a, b)", "covariance of the rows where both are known", "pairs", (exp.CovarPop,), _pair,
        called="COVAR",
    ),
    QueryAggregate(
        "covar_samp", "COVAR_SAMP(a, b)", "covariance of a sample", "pairs", (exp.CovarSamp,), _pair, called="COVAR", sample=True,
    ),
    QueryAggregate(
        "regr_slope", "REGR_SLOPE(b, a)", "slope of the line of least squares of b on a, where both are known", "pairs",
        (exp.RegrSlope,), _pair, offered="REGR_SLOPE", called="REGR", squared=(True, False),
    ),
    QueryAggregate(
        "regr_intercept", "REGR_INTERCEPT(b, a)", "where that line is at a = 0", "pairs", (exp.RegrIntercept,), _pair,
        called="REGR", squared=(True, False), at_zero=True,
    ),
    QueryAggregate("corr", "REGR_R2(b, a)", "square of `CORR(b, a)`", "pairs"),
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
        "quantile", "PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY a)",
        "as `QUANTILE(a, q)`; also `QUANTILE_CONT(a, q)`. A list of ranks `[0.25, 0.5]` makes a list of values", "tree",
        (exp.PercentileCont, exp.PercentileDisc), _percentile, called="QUANTILE",
    ),
)  # fmt: skip
#: By what each is called in what is kept, the first of several spellings.
AGGREGATES = {row.function: row for row in reversed(ROWS)}
_BY_NODE = {node: row for row in ROWS for node in row.nodes}
_OFFERED = [row.offered for row in ROWS if row.offered]
#: The aggregates that a refusal offers.
THERE_ARE = f"there are {', '.join(_OFFERED[:-1])} and {_OFFERED[-1]}"
