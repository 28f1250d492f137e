"""Post-processing: expressions over noisy answers and keys, computed here and never in the engine.

An expression that has no value (division by zero, a logarithm of a negative number) is missing; nothing fails, because the
answer is paid for by then. What the query alone shows to be wrong is refused by `check`, which is asked first.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.parse import function_name, refuse_clauses

#: A value of the answer: a key, a noisy number, or missing.
Cell = Any


def _number(value: Cell) -> Cell:
    return int(value) if isinstance(value, bool) else value


def _both(compute: Callable[[Any, Any], Cell]) -> Callable[[exp.Expression, Mapping[str, Cell]], Cell]:
    def rule(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
        left, right = evaluate(node.this, row), evaluate(node.expression, row)
        if left is None or right is None:
            return None
        found = compute(*_alike(left, right))
        return None if isinstance(found, complex) else found

    return rule


def _alike(left: Cell, right: Cell) -> tuple[Cell, Cell]:
    """A text beside a date is read as a date."""
    if isinstance(left, datetime.date) and isinstance(right, str):
        return left, datetime.date.fromisoformat(right)
    if isinstance(right, datetime.date) and isinstance(left, str):
        return datetime.date.fromisoformat(left), right
    return _number(left), _number(right)


def _equal(left: Cell, right: Cell) -> bool:
    if left is None or right is None:
        return False
    one, other = _alike(left, right)
    return bool(one == other)


def _one(compute: Callable[[Any], Cell]) -> Callable[[exp.Expression, Mapping[str, Cell]], Cell]:
    def rule(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
        value = evaluate(node.this, row)
        return None if value is None else compute(_number(value))

    return rule


def branch_taken(node: exp.Expression, row: Mapping[str, Cell]) -> int:
    """Which branch of a CASE is taken, counted from 0; as many as there are where none is."""
    branches = node.args["ifs"]
    for number, branch in enumerate(branches):
        tested = evaluate(branch.this, row)
        if tested is True if node.this is None else _equal(evaluate(node.this, row), tested):
            return number
    return len(branches)


def branch_value(node: exp.Expression, number: int) -> exp.Expression:
    """What a CASE is in that branch."""
    branches = node.args["ifs"]
    chosen = branches[number].args["true"] if number < len(branches) else node.args.get("default")
    return exp.Null() if chosen is None else chosen


def _case(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    return evaluate(branch_value(node, branch_taken(node, row)), row)


def _coalesce(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    return next((v for part in (node.this, *node.expressions) if (v := evaluate(part, row)) is not None), None)


def _and(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    sides = (evaluate(node.this, row), evaluate(node.expression, row))
    return False if False in sides else None if None in sides else bool(sides[0] and sides[1])


def _or(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    sides = (evaluate(node.this, row), evaluate(node.expression, row))
    return True if True in sides else None if None in sides else bool(sides[0] or sides[1])


def _is(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    return value is None if isinstance(node.expression, exp.Null) else value is bool(node.expression.this)


def _between(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value, low, high = (evaluate(node.args[name], row) for name in ("this", "low", "high"))
    if value is None or low is None or high is None:
        return None
    (least, first), (second, most) = _alike(low, value), _alike(value, high)
    return bool(least <= first and second <= most)


def _one_of(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    if value is None:
        return None
    listed = [evaluate(entry, row) for entry in node.expressions]
    if any(_equal(value, entry) for entry in listed):
        return True
    return None if None in listed else False


def _round(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    """Halves upwards, as in rows."""
    value = evaluate(node.this, row)
    digits = node.args.get("decimals")
    places = 0 if digits is None else evaluate(digits, row)
    if not isinstance(value, (int, float)) or not isinstance(places, int) or abs(places) > 15:
        return value
    power = 10.0**places
    try:
        return math.floor(value * power + 0.5) / power
    except OverflowError:
        return value


def rounding_step(node: exp.Expression) -> float | None:
    """The step that a node rounds to; None where it does not round, or not to a fixed digit."""
    if isinstance(node, (exp.Floor, exp.Ceil, exp.IntDiv)):
        return 1.0
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return 1.0 if "INT" in _type_name(node) else None
    if not isinstance(node, exp.Round):
        return None
    digits = node.args.get("decimals")
    if digits is not None and digits.find(exp.Column) is not None:
        return None
    places = 0 if digits is None else evaluate(digits, {})
    return 10.0**-places if isinstance(places, int) and abs(places) <= 15 else None


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[exp.Expression, Mapping[str, Cell]], Cell]:
    def rule(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
        values = [evaluate(part, row) for part in (node.this, *node.expressions)]
        return None if None in values else choose(values)  # missing when one is, as in rows

    return rule


def _nullif(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    return None if value == evaluate(node.expression, row) else value


def _literal(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    if node.args.get("is_string"):
        return str(node.this)
    text = str(node.this)
    return int(text) if text.isdecimal() else float(text)


def _cast(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    kind = _type_name(node)
    if kind == "DATE" and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if "INT" in kind:
        return math.floor(value + 0.5) if math.isfinite(value) else None
    return float(value)


def _type_name(node: exp.Expression) -> str:
    return str(getattr(node.args["to"].this, "name", ""))


_RULES: dict[type[exp.Expression], Callable[[exp.Expression, Mapping[str, Cell]], Cell]] = {
    exp.Column: lambda node, row: row[node.name],
    exp.Literal: _literal,
    exp.Boolean: lambda node, row: bool(node.this),
    exp.Null: lambda node, row: None,
    exp.Paren: lambda node, row: evaluate(node.this, row),
    exp.Add: _both(lambda a, b: a + b),
    exp.Sub: _both(lambda a, b: a - b),
    exp.Mul: _both(lambda a, b: a * b),
    exp.Div: _both(lambda a, b: a / b),
    exp.IntDiv: _both(lambda a, b: math.floor(a / b)),
    exp.Mod: _both(lambda a, b: math.fmod(a, b)),
    exp.Pow: _both(lambda a, b: float(a) ** float(b) if abs(b) < 100 else None),
    exp.Neg: _one(lambda a: -a),
    exp.Abs: _one(abs),
    exp.Sqrt: _one(lambda a: math.sqrt(a) if a >= 0 else None),
    exp.Ln: _one(lambda a: math.log(a) if a > 0 else None),
    exp.Exp: _one(lambda a: math.exp(a)),
    exp.Floor: _one(lambda a: math.floor(a)),
    exp.Ceil: _one(lambda a: math.ceil(a)),
    exp.Round: _round,
    exp.EQ: _both(lambda a, b: a == b),
    exp.NEQ: _both(lambda a, b: a != b),
    exp.LT: _both(lambda a, b: a < b),
    exp.LTE: _both(lambda a, b: a <= b),
    exp.GT: _both(lambda a, b: a > b),
    exp.GTE: _both(lambda a, b: a >= b),
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _one(lambda a: not a),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _one_of,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extreme(min),
    exp.Greatest: _extreme(max),
    exp.Cast: _cast,
    exp.TryCast: _cast,
}

#: How long a number in the query may be.
_MOST_DIGITS = 60
#: Nodes that stand inside others and are read by their parents.
_INSIDE = (exp.Identifier, exp.If, exp.DataType, exp.DataTypeParam)


_NUMBERS = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.IntDiv,
    exp.Mod,
    exp.Pow,
    exp.Neg,
    exp.Abs,
    exp.Sqrt,
    exp.Ln,
    exp.Exp,
    exp.Floor,
    exp.Ceil,
    exp.Round,
)
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_CHOSEN = (exp.Case, exp.Coalesce, exp.Least, exp.Greatest, exp.Nullif)


def check(node: exp.Expression, kind_of: Callable[[str], str]) -> str | None:
    """Refuse what cannot be computed over an answer; returns the kind of the result, None for a missing constant."""
    for part in node.walk():
        if type(part) not in _RULES and not isinstance(part, _INSIDE):
            raise Unsupported(f"{function_name(part)} over aggregates is not supported; compute it from the answer")
        if isinstance(part, exp.In):
            refuse_clauses(part, {"this", "expressions"}, "IN")
        elif isinstance(part, (exp.Between, exp.Round, exp.Case)):
            refuse_clauses(part, {"this", "low", "high", "decimals", "ifs", "default"}, function_name(part))
    try:
        return _kind(node, kind_of)
    except (KeyError, AttributeError, TypeError):
        raise Unsupported("an expression over aggregates is not written as expected") from None


def _kind(node: exp.Expression, kind_of: Callable[[str], str]) -> str | None:
    def inner(part: exp.Expression) -> str | None:
        return _kind(part, kind_of)

    if isinstance(node, exp.Column):
        return kind_of(node.name)
    if isinstance(node, exp.Literal):
        return "string" if node.is_string else _written_number(str(node.this))
    if isinstance(node, exp.Boolean):
        return "boolean"
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Paren):
        return inner(node.this)
    if isinstance(node, _NUMBERS):
        _expect((inner(part) for part in node.iter_expressions()), "number", node)
        return "number"
    if isinstance(node, (exp.And, exp.Or, exp.Not)):
        _expect((inner(part) for part in node.iter_expressions()), "boolean", node)
        return "boolean"
    if isinstance(node, exp.Is):
        inner(node.this)
        return "boolean"
    if isinstance(node, _COMPARED):
        _comparable(list(node.iter_expressions()), inner, node)
        return "boolean"
    if isinstance(node, exp.Case):
        branches = node.args["ifs"]
        if node.this is None:
            _expect((inner(branch.this) for branch in branches), "boolean", node)
        else:
            _comparable([node.this, *(branch.this for branch in branches)], inner, node)
        default = node.args.get("default")
        return _same(
            (inner(part) for part in (*(branch.args["true"] for branch in branches), *([default] if default else []))), node
        )
    if isinstance(node, _CHOSEN):
        return _same((inner(part) for part in node.iter_expressions()), node)
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return _cast_kind(node, inner(node.this))
    raise Unsupported(f"{function_name(node)} over aggregates is not supported; compute it from the answer")


def _written_number(text: str) -> str:
    try:
        if len(text) > _MOST_DIGITS or not math.isfinite(float(text)):
            raise Unsupported("a number in the query has too many digits")
    except ValueError:
        raise Unsupported("a number in the query is not written as expected") from None
    return "number"


def _cast_kind(node: exp.Expression, given: str | None) -> str | None:
    if _type_name(node) == "DATE" and given == "string":
        _check_date(node.this)
        return "date"
    if given not in ("number", None):
        raise Unsupported("CAST over aggregates is for numbers")
    return given


def _expect(kinds: Iterable[str | None], wanted: str, node: exp.Expression) -> None:
    if any(kind not in (wanted, None) for kind in kinds):
        raise Unsupported(f"{function_name(node)} over an answer needs a {wanted} on each side")


def _comparable(parts: list[exp.Expression], inner: Callable[[exp.Expression], str | None], node: exp.Expression) -> None:
    """Refuse to compare different kinds; a constant text beside a date is read as a date."""
    kinds = [inner(part) for part in parts]
    if {kind for kind in kinds if kind is not None} != {"date", "string"}:
        _same(kinds, node)
        return
    for part, kind in zip(parts, kinds, strict=True):
        if kind == "string":
            _check_date(part)


def _check_date(node: exp.Expression) -> None:
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Literal):
        raise Unsupported("a date is written as DATE '2026-01-31'")
    try:
        datetime.date.fromisoformat(str(node.this))
    except ValueError:
        raise Unsupported("a date in the query is not written as 'YYYY-MM-DD'") from None


def _same(kinds: Iterable[str | None], node: exp.Expression) -> str | None:
    known = {kind for kind in kinds if kind is not None}
    if len(known) > 1:
        raise Unsupported(f"{function_name(node)} mixes a {' and a '.join(sorted(known))}")
    return next(iter(known), None)


def evaluate(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    """The value of an expression for one group."""
    try:
        return _RULES[type(node)](node, row)
    except (ArithmeticError, TypeError, ValueError):
        return None
