"""Post-processing: expressions over noisy answers and keys, computed here and never in the engine.

An expression that has no value (division by zero, a logarithm of a negative number) is missing; nothing fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.parse import function_name

#: A value of the answer: a key, a noisy number, or missing.
Cell = Any


def _number(value: Cell) -> Cell:
    return int(value) if isinstance(value, bool) else value


def _both(compute: Callable[[Any, Any], Cell]) -> Callable[[exp.Expression, Mapping[str, Cell]], Cell]:
    def rule(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
        left, right = evaluate(node.this, row), evaluate(node.expression, row)
        if left is None or right is None:
            return None
        try:
            return compute(_number(left), _number(right))
        except (ZeroDivisionError, OverflowError, TypeError, ValueError):
            return None

    return rule


def _one(compute: Callable[[Any], Cell]) -> Callable[[exp.Expression, Mapping[str, Cell]], Cell]:
    def rule(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
        value = evaluate(node.this, row)
        try:
            return None if value is None else compute(_number(value))
        except (OverflowError, TypeError, ValueError):
            return None

    return rule


def _case(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    for branch in node.args["ifs"]:
        tested = evaluate(branch.this, row)
        holds = tested is True if node.this is None else tested is not None and tested == evaluate(node.this, row)
        if holds:
            return evaluate(branch.args["true"], row)
    default = node.args.get("default")
    return None if default is None else evaluate(default, row)


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
    return None if None in (value, low, high) else bool(low <= value <= high)


def _one_of(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    return None if value is None else value in [evaluate(entry, row) for entry in node.expressions]


def _round(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    digits = node.args.get("decimals")
    places = 0 if digits is None else evaluate(digits, row)
    if not isinstance(value, (int, float)) or not isinstance(places, int) or abs(places) > 15:
        return value
    return round(value, places) if places else float(round(value))


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[exp.Expression, Mapping[str, Cell]], Cell]:
    def rule(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
        known = [v for part in (node.this, *node.expressions) if (v := evaluate(part, row)) is not None]
        return choose(known) if known else None

    return rule


def _nullif(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    return None if value == evaluate(node.expression, row) else value


def _literal(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    if node.args.get("is_string"):
        return str(node.this)
    text = str(node.this)
    return int(text) if text.isdigit() else float(text)


def _cast(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    value = evaluate(node.this, row)
    kind = getattr(node.args["to"].this, "name", "")
    if value is None or not isinstance(value, (int, float)):
        return value
    return int(round(value)) if "INT" in kind else float(value)


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

#: Nodes that stand inside others and are read by their parents.
_INSIDE = (exp.Identifier, exp.If, exp.DataType, exp.DataTypeParam)


def check(node: exp.Expression) -> None:
    """Refuse what cannot be computed over an answer."""
    for part in node.walk():
        if type(part) not in _RULES and not isinstance(part, _INSIDE):
            name = function_name(part)
            raise Unsupported(f"{name} over aggregates is not supported; compute it from the answer")
        if isinstance(part, exp.In) and (part.args.get("query") is not None or not part.expressions):
            raise Unsupported("IN takes a list of constants")


def evaluate(node: exp.Expression, row: Mapping[str, Cell]) -> Cell:
    """The value of an expression for one group."""
    return _RULES[type(node)](node, row)
