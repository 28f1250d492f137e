"""Aggregates of a query, told apart from the expressions around them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.parse import function_name, refuse_clauses, sql_text

Function = Literal[
    "count", "count_distinct", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "min", "max", "quantile"
]

_FUNCTIONS: dict[type[exp.Expression], Function] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Min: "min",
    exp.Max: "max",
}
#: The aggregates that a refusal offers.
THERE_ARE = "there are COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN and QUANTILE"
#: What each placeholder column of an aggregate begins with; no identifier of a query can.
PLACEHOLDER = "\x00aggregate "


@dataclass(frozen=True)
class Asked:
    """One aggregate as the query writes it: of an expression (None for rows), over the rows where `where` holds."""

    function: Function
    argument: exp.Expression | None
    where: exp.Expression | None = None
    rank: Fraction | None = None

    @property
    def text(self) -> str:
        """One text for equal aggregates."""
        parts = [
            self.function,
            "" if self.argument is None else sql_text(self.argument),
            "" if self.where is None else sql_text(self.where),
        ]
        return "|".join([*parts, "" if self.rank is None else str(self.rank)])


def is_aggregate(node: exp.Expression) -> bool:
    """True for a node that aggregates rows."""
    return isinstance(node, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Quantile))


def taken_out(node: exp.Expression, found: dict[str, Asked]) -> exp.Expression:
    """The expression with every aggregate replaced by a placeholder column; the aggregates are added to `found`."""
    if is_aggregate(node):
        asked = _asked(node)
        found.setdefault(asked.text, asked)
        return exp.column(exp.to_identifier(PLACEHOLDER + asked.text, quoted=True))
    if isinstance(node, exp.Window):
        raise Unsupported("window functions are not supported; aggregate per unit in a sub-query instead")
    made = node.copy()
    for key, value in list(made.args.items()):
        if isinstance(value, exp.Expression):
            made.set(key, taken_out(value, found))
        elif isinstance(value, list):
            made.set(key, [taken_out(entry, found) if isinstance(entry, exp.Expression) else entry for entry in value])
    return made


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
    if isinstance(node, exp.Count):
        return _count(node)
    if isinstance(node, exp.CountIf):
        return Asked("count", None, node.this)
    if isinstance(node, exp.Median):
        return Asked("quantile", _plain(node.this), rank=Fraction(1, 2))
    if isinstance(node, (exp.Quantile, exp.ApproxQuantile)):
        return Asked("quantile", _plain(node.this), rank=_rank(node.args.get("quantile")))
    if isinstance(node, (exp.PercentileCont, exp.PercentileDisc)) and node.expression is not None:
        if isinstance(node.expression, exp.Order):
            return _ordered_quantile(node)
        return Asked("quantile", _plain(node.this), rank=_rank(node.expression))
    function = _FUNCTIONS.get(type(node))
    if function is None:
        name = function_name(node)
        raise Unsupported(f"the aggregate {name} is not supported; {THERE_ARE}")
    if node.args.get("expressions"):
        raise Unsupported(f"{function.upper()} takes one argument")
    return Asked(function, _plain(node.this))


def _count(node: exp.Count) -> Asked:
    inner = node.this
    if node.expressions:
        raise Unsupported("COUNT takes one argument")
    if isinstance(inner, exp.Star) or inner is None or isinstance(inner, exp.Literal):
        return Asked("count", None)
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise Unsupported("COUNT(DISTINCT …) takes one column")
        return Asked("count_distinct", inner.expressions[0])
    return Asked("count", inner)


def _within_group(node: exp.WithinGroup) -> Asked:
    function, order = node.this, node.expression
    if not isinstance(function, (exp.PercentileCont, exp.PercentileDisc)) or len(order.expressions) != 1:
        raise Unsupported("WITHIN GROUP is for PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)")
    rank = _rank(function.this)
    ordered = order.expressions[0]
    return Asked("quantile", _plain(ordered.this), rank=1 - rank if ordered.args.get("desc") else rank)


def _ordered_quantile(node: exp.PercentileCont | exp.PercentileDisc) -> Asked:
    """QUANTILE_CONT(x, q ORDER BY x), as DuckDB spells WITHIN GROUP."""
    argument, order = _plain(node.this), node.expression.expressions
    if len(order) != 1 or order[0].this != argument:
        raise Unsupported("ORDER BY inside a quantile names the column that the quantile is of, and no other")
    rank = _rank(node.expression.this)
    return Asked("quantile", argument, rank=1 - rank if order[0].args.get("desc") else rank)


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
