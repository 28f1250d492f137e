"""SQL expressions over rows, one rule per allowed node; everything else is refused with a reason.

Every allowed function is total: it has a value for each input, so that whether a query fails never depends on a record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from sqlglot import exp

from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.dp.sql.parse import function_name
from sfumato.dp.sql.term import LONGEST, Term, written_size

#: Resolves a column reference of the query.
Resolve: TypeAlias = Callable[[exp.Column], Term]
Rule: TypeAlias = Callable[[Any, Resolve], Term]
F = TypeVar("F", bound=Rule)

_RULES: dict[type[exp.Expression], Rule] = {}
_NAMED: dict[str, Rule] = {}

_ELSE = "only total functions that mean the same on every engine are allowed"

#: Why some well-known functions are not offered, and what to write instead.
_REASONS: Mapping[type[exp.Expression], str] = {
    exp.Rand: "a query may not draw its own random numbers: the same question must mean the same thing",
    exp.CurrentDate: "the answer would depend on the day it is asked; write the date as DATE '2026-01-31'",
    exp.CurrentTimestamp: "the answer would depend on when it is asked; write the moment as a constant",
    exp.Sqrt: "roots differ between engines in the last digit; take the root of the answer instead",
    exp.Ln: "logarithms fail on some values; transform the answer instead of the rows",
    exp.Log: "logarithms fail on some values; transform the answer instead of the rows",
    exp.Exp: "exponentials overflow on some values; transform the answer instead of the rows",
    exp.RegexpLike: "regular expressions differ between engines; use LIKE",
    exp.SimilarTo: "regular expressions differ between engines; use LIKE",
    exp.Subquery: "a sub-query inside an expression is not supported; join its table instead",
    exp.Select: "a sub-query inside an expression is not supported; join its table instead",
    exp.Exists: "join the other table on the unit instead",
    exp.Window: "aggregate per unit in a sub-query instead",
}


def rule(*nodes: type[exp.Expression]) -> Callable[[F], F]:
    """Register what a node means."""

    def register(function: F) -> F:
        _RULES.update(dict.fromkeys(nodes, function))
        return function

    return register


def named_rule(name: str) -> Callable[[F], F]:
    """Register a function that the parser knows by name only."""

    def register(function: F) -> F:
        _NAMED[name] = function
        return function

    return register


def is_unknown(node: exp.Expression) -> bool:
    """True for a call of a function that no rule knows."""
    return isinstance(node, exp.Anonymous) and str(node.this).upper() not in _NAMED


def lower(node: exp.Expression, resolve: Resolve) -> Term:
    """The term that an SQL expression means."""
    found = _RULES.get(type(node))
    if found is None and isinstance(node, exp.Anonymous):
        found = _NAMED.get(str(node.this).upper())
    if found is not None:
        _refuse_extras(node)
        try:
            term = found(node, resolve)
        except SfumatoError:
            raise
        except (KeyError, AttributeError, TypeError, ValueError, OverflowError):
            raise Unsupported(f"{function_name(node)} is not written as expected; check its arguments") from None
        if written_size(term.expression) > LONGEST:
            raise Unsupported("the expression is too long or too deeply nested; compute parts of it in a sub-query")
        return term
    if isinstance(node, exp.AggFunc):
        raise Unsupported(
            f"{function_name(node)} stands where a value of one row is needed; aggregates belong in SELECT or HAVING"
        )
    raise Unsupported(f"{function_name(node)} is not supported: {_REASONS.get(type(node), _ELSE)}")


#: What each node may say; anything else would be passed over in silence, and is refused.
_SAID: Mapping[type[exp.Expression], frozenset[str]] = {
    exp.Column: frozenset({"table"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Between: frozenset({"low", "high"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.Cast: frozenset({"to"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.Round: frozenset({"decimals"}),
    exp.WidthBucket: frozenset({"min_value", "max_value", "num_buckets"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.TimestampTrunc: frozenset({"unit"}),
    exp.DateTrunc: frozenset({"unit"}),
    exp.Least: frozenset({"ignore_nulls"}),
    exp.Greatest: frozenset({"ignore_nulls"}),
    exp.Coalesce: frozenset({"is_nvl", "is_null"}),
}
_ALWAYS = frozenset({"this", "expression", "expressions"})


def _refuse_extras(node: exp.Expression) -> None:
    allowed = _ALWAYS | _SAID.get(type(node), frozenset())
    extra = [name for name, value in node.args.items() if value and name not in allowed]
    if extra:
        raise Unsupported(f"{function_name(node)} with '{extra[0].strip('_').upper()}' is not supported")


def constant_of(term: Term, where: str) -> Fraction:
    """The number of a constant term; anything else is refused."""
    value = term.constant
    if value is None:
        raise Unsupported(f"{where} takes constants")
    return value
