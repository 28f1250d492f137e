"""Constants and conditions of a query: comparisons, AND, OR and NOT."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.operators import box
from sfumato.dp.sql.operators.base import (
    Arrays,
    Cell,
    Cells,
    Floats,
    Kinds,
    Operator,
    OverAnswers,
    Terms,
    alike,
    array_of_one,
    image_of,
    of_one,
    of_two,
    same_kind,
    takes,
)
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.term import Term, condition, constant, null
from sfumato.engines import expressions as e
from sfumato.engines.expressions import Value

_COMPARISONS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "is",
}

#: How long a number in the query may be.
_MOST_DIGITS = 60
_TOO_LONG = "a number in the query has too many digits"


# Over rows -------------------------------------------------------------------------------------------------------------


def _literal(node: exp.Literal, terms: Terms) -> Term:
    if node.is_string:
        return constant(str(node.this))
    text = str(node.this)
    if len(text) > _MOST_DIGITS:
        raise Unsupported(_TOO_LONG)
    try:
        return constant(int(text))
    except ValueError:
        return constant(float(text))


def _and_or(node: exp.And | exp.Or, terms: Terms) -> Term:
    sides = (truth(node.this, terms), truth(node.expression, terms))
    return condition(e.And(sides) if isinstance(node, exp.And) else e.Or(sides))


def _not(node: exp.Not, terms: Terms) -> Term:
    return condition(e.Not(truth(node.this, terms)))


def _compare(node: exp.Binary, terms: Terms) -> Term:
    left, right = _alike(terms(node.this), terms(node.expression))
    return condition(e.Compare(_COMPARISONS[type(node)], left.expression, right.expression))  # type: ignore[arg-type]


def _distinct(node: exp.NullSafeNEQ, terms: Terms) -> Term:
    return condition(e.Not(_compare(exp.NullSafeEQ(this=node.this, expression=node.expression), terms).expression))


def _alike(left: Term, right: Term) -> tuple[Term, Term]:
    """Both sides of a comparison in comparable kinds: a text beside a date is read as a date."""
    for one, other, swapped in ((left, right, False), (right, left, True)):
        if other.text is not None and one.kind in ("date", "datetime"):
            read = moment(other.text, one.kind)
            return (read, one) if swapped else (one, read)
        if other.missing and one.kind != other.kind:
            none = null(one.kind)
            return (none, one) if swapped else (one, none)
    if left.kind != right.kind and not (left.numeric and right.numeric):
        raise Unsupported(f"a {left.kind} cannot be compared with a {right.kind}")
    return left, right


def moment(text: str, kind: str) -> Term:
    """A constant text read as a date or a moment."""
    try:
        if kind == "date":
            return constant(datetime.date.fromisoformat(text))
        read = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Unsupported("a date in the query is not written as 'YYYY-MM-DD'") from None
    if read.tzinfo is not None:
        raise Unsupported("a moment in the query has a time zone; write it without: TIMESTAMP '2026-01-31 10:00'")
    return constant(read)


def truth(node: exp.Expression, terms: Terms) -> e.Expression:
    """What stands where a condition is needed."""
    term = terms(node)
    if term.missing:
        return e.Literal(None, "boolean")
    if term.kind != "boolean":
        raise Unsupported(f"a {term.kind} stands where a condition is needed; compare it with something")
    return term.expression


def _between(node: exp.Between, terms: Terms) -> Term:
    term = terms(node.this)
    parts = []
    for operator, key in ((">=", "low"), ("<=", "high")):
        left, right = _alike(term, terms(node.args[key]))
        parts.append(e.Compare(operator, left.expression, right.expression))  # type: ignore[arg-type]
    return condition(e.And(tuple(parts)))


def _one_of(node: exp.In, terms: Terms) -> Term:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        raise Unsupported(
            "IN (SELECT …) stands in WHERE: put the condition there, or into a sub-query in FROM that has it as its WHERE"
        )
    term = terms(node.this)
    if len(node.expressions) > 10_000:
        raise Unsupported("IN lists more than 10,000 values; put them into a public table and join it")
    values: list[Value] = []
    for entry in node.expressions:
        _, other = _alike(term, terms(entry))
        if other.missing:
            raise Unsupported("no value equals a NULL in IN (…): leave it out, and add OR a IS NULL where missing values count")
        if not isinstance(other.expression, e.Literal):
            raise Unsupported("IN takes a list of constants; for columns write a = b OR a = c")
        values.append(other.expression.value)
    return condition(e.OneOfValues(term.expression, tuple(values)))


def _is(node: exp.Is, terms: Terms) -> Term:
    term = terms(node.this)
    if isinstance(node.expression, exp.Null):
        return condition(e.IsMissing(term.expression))
    if isinstance(node.expression, exp.Boolean):
        if term.kind != "boolean":
            raise Unsupported("IS TRUE and IS FALSE are for conditions")
        return condition(e.Compare("is", term.expression, e.Literal(bool(node.expression.this))))
    raise Unsupported("IS takes NULL, TRUE or FALSE")


# Over answers ----------------------------------------------------------------------------------------------------------


def _constant_kind(node: exp.Literal, kinds: Kinds) -> str | None:
    if node.is_string:
        return "string"
    text = str(node.this)
    try:
        if len(text) > _MOST_DIGITS or not math.isfinite(float(text)):
            raise Unsupported(_TOO_LONG)
    except ValueError:
        raise Unsupported("a number in the query is not written as expected") from None
    return "number"


def _constant(node: exp.Literal, cells: Cells) -> Cell:
    args = node.args
    return str(args["this"]) if args.get("is_string") else _written_number(str(args["this"]))


@lru_cache(maxsize=1024)
def _written_number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)


def _constant_array(node: exp.Literal, arrays: Arrays) -> Floats | None:
    return None if node.args.get("is_string") else np.array([[float(node.this)]])


def _same(node: exp.Paren, kinds: Kinds) -> str | None:
    return kinds(node.this)


def comparable(parts: list[exp.Expression], kinds: Kinds, node: exp.Expression) -> None:
    """Refuse to compare different kinds; a constant text beside a date is read as a date."""
    listed = [kinds(part) for part in parts]
    if {kind for kind in listed if kind is not None} != {"date", "string"}:
        same_kind(listed, node)
        return
    for part, kind in zip(parts, listed, strict=True):
        if kind == "string":
            check_date(part)


def _compared_kind(node: exp.Expression, kinds: Kinds) -> str | None:
    comparable(list(node.iter_expressions()), kinds, node)
    return "boolean"


def check_date(node: exp.Expression) -> None:
    """Refuse what is not a constant date."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Literal):
        raise Unsupported("a date is written as DATE '2026-01-31'")
    try:
        datetime.date.fromisoformat(str(node.this))
    except ValueError:
        raise Unsupported("a date in the query is not written as 'YYYY-MM-DD'") from None


def _is_kind(node: exp.Is, kinds: Kinds) -> str | None:
    kinds(node.this)
    return "boolean"


def equal(left: Cell, right: Cell) -> bool:
    """True for two values that are there and the same."""
    if left is None or right is None:
        return False
    one, other = alike(left, right)
    return bool(one == other)


def _both(node: exp.And, cells: Cells) -> Cell:
    sides = (cells(node.this), cells(node.expression))
    return False if False in sides else None if None in sides else bool(sides[0] and sides[1])


def _either(node: exp.Or, cells: Cells) -> Cell:
    sides = (cells(node.this), cells(node.expression))
    return True if True in sides else None if None in sides else bool(sides[0] or sides[1])


def _is_cell(node: exp.Is, cells: Cells) -> Cell:
    value = cells(node.this)
    return value is None if isinstance(node.expression, exp.Null) else value is bool(node.expression.this)


def _between_cell(node: exp.Between, cells: Cells) -> Cell:
    value, low, high = (cells(node.args[name]) for name in ("this", "low", "high"))
    if value is None or low is None or high is None:
        return None
    (least, first), (second, most) = alike(low, value), alike(value, high)
    return bool(least <= first and second <= most)


def _listed(node: exp.In, cells: Cells) -> Cell:
    value = cells(node.this)
    if value is None:
        return None
    listed = [cells(entry) for entry in node.expressions]
    if any(equal(value, entry) for entry in listed):
        return True
    return None if None in listed else False


def _compared(compute: Callable[[Any, Any], bool], image: Callable[[Box, Box], Box]) -> OverAnswers:
    return OverAnswers(_compared_kind, of_two(compute), image=image_of(image))


#: What does not change numbers.
UNCHANGED = array_of_one(lambda values: values)
SAME = image_of(lambda part: part)

ROWS = (
    Operator(
        "constants", (exp.Literal,), rows=_literal, answers=OverAnswers(_constant_kind, _constant, _constant_array),
        reads=("is_string",),
    ),
    Operator(
        "TRUE, FALSE", (exp.Boolean,), rows=lambda node, terms: constant(bool(node.this)),
        answers=OverAnswers(lambda node, kinds: "boolean", lambda node, cells: bool(node.this)),
    ),
    Operator(
        "NULL", (exp.Null,), rows=lambda node, terms: null(),
        answers=OverAnswers(lambda node, kinds: None, lambda node, cells: None, lambda node, arrays: np.array([[np.nan]])),
    ),
    Operator(
        "(a)", (exp.Paren,), rows=lambda node, terms: terms(node.this),
        answers=OverAnswers(_same, lambda node, cells: cells(node.this), UNCHANGED, linear="sum", contracts="first", image=SAME),
    ),
    Operator(
        "a = b", (exp.EQ,), "equal; like every comparison missing where a side is, and a text beside a date is read as a date",
        _compare, _compared(lambda a, b: a == b, box.equal),
    ),
    Operator("a <> b", (exp.NEQ,), "different", _compare, _compared(lambda a, b: a != b, box.different)),
    Operator("a < b", (exp.LT,), "less; texts by their bytes", _compare, _compared(lambda a, b: a < b, box.less)),
    Operator("a <= b", (exp.LTE,), "less or equal", _compare, _compared(lambda a, b: a <= b, box.at_most)),
    Operator("a > b", (exp.GT,), "greater", _compare, _compared(lambda a, b: a > b, lambda a, b: box.less(b, a))),
    Operator("a >= b", (exp.GTE,), "greater or equal", _compare, _compared(lambda a, b: a >= b, lambda a, b: box.at_most(b, a))),
    Operator("a IS NOT DISTINCT FROM b", (exp.NullSafeEQ,), "equal, or both missing; never missing itself", _compare),
    Operator("a IS DISTINCT FROM b", (exp.NullSafeNEQ,), "different, or one of both missing; never missing itself", _distinct),
    Operator(
        "a BETWEEN low AND high", (exp.Between,), "`low <= a AND a <= high`", _between,
        OverAnswers(_compared_kind, _between_cell), reads=("low", "high"),
    ),
    Operator(
        "a IN (b, …)", (exp.In,), "equal to one of some constants, or of the values of a public table", _one_of,
        OverAnswers(_compared_kind, _listed), reads=("query", "unnest"),
    ),
    Operator(
        "a IS NULL", (exp.Is,), "whether a is missing; also `IS TRUE` and `IS FALSE` of a condition", _is,
        OverAnswers(_is_kind, _is_cell),
    ),
    Operator(
        "p AND q", (exp.And,), "both hold; missing where that depends on a missing one", _and_or,
        OverAnswers(takes("boolean"), _both, image=image_of(box.smaller)),
    ),
    Operator(
        "p OR q", (exp.Or,), "one of both holds; missing where that depends on a missing one", _and_or,
        OverAnswers(takes("boolean"), _either, image=image_of(box.larger)),
    ),
    Operator(
        "NOT p", (exp.Not,), "p does not hold", _not,
        OverAnswers(takes("boolean"), of_one(lambda a: not a), image=image_of(box.denied)),
    ),
)  # fmt: skip
