"""Expressions over answers, computed for many groups and many possible values at once.

The same arithmetic as `post`, on arrays: what has no value is not a number. The first column of an array is what is shown; a
divisor that has another sign there than elsewhere may have been zero in between, and what it divides has no value there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

Floats = NDArray[np.float64]
Columns = Mapping[str, Floats]


def computed(node: exp.Expression, columns: Columns) -> Floats | None:
    """The value of an expression without jumps, one row per group; None where one of its parts is not arithmetic."""
    rule = _RULES.get(type(node))
    return None if rule is None else rule(node, columns)


def _both(compute: Callable[[Floats, Floats], Floats]) -> Callable[[exp.Expression, Columns], Floats | None]:
    def rule(node: exp.Expression, columns: Columns) -> Floats | None:
        left, right = computed(node.this, columns), computed(node.expression, columns)
        return None if left is None or right is None else compute(left, right)

    return rule


def _one(compute: Callable[[Floats], Floats]) -> Callable[[exp.Expression, Columns], Floats | None]:
    def rule(node: exp.Expression, columns: Columns) -> Floats | None:
        value = computed(node.this, columns)
        return None if value is None else compute(value)

    return rule


def _all(compute: Callable[[Floats, Floats], Floats]) -> Callable[[exp.Expression, Columns], Floats | None]:
    def rule(node: exp.Expression, columns: Columns) -> Floats | None:
        found: Floats | None = None
        for part in (node.this, *node.expressions):
            value = computed(part, columns)
            if value is None:
                return None
            found = value if found is None else compute(found, value)
        return found

    return rule


def _divided(left: Floats, right: Floats) -> Floats:
    return left / np.where(np.sign(right) == np.sign(right[:, :1]), right, np.nan)


def _power(left: Floats, right: Floats) -> Floats:
    return np.where(np.abs(right) < 100, np.power(left, right), np.nan)


def _literal(node: exp.Expression, columns: Columns) -> Floats | None:
    return None if node.args.get("is_string") else np.array([[float(node.this)]])


_RULES: dict[type[exp.Expression], Callable[[exp.Expression, Columns], Floats | None]] = {
    exp.Column: lambda node, columns: columns[node.name],
    exp.Literal: _literal,
    exp.Null: lambda node, columns: np.array([[np.nan]]),
    exp.Paren: _one(lambda value: value),
    exp.Add: _both(np.add),
    exp.Sub: _both(np.subtract),
    exp.Mul: _both(np.multiply),
    exp.Div: _both(_divided),
    exp.Pow: _both(_power),
    exp.Neg: _one(np.negative),
    exp.Abs: _one(np.abs),
    exp.Sqrt: _one(np.sqrt),
    exp.Ln: _one(lambda value: np.where(value > 0, np.log(value), np.nan)),
    exp.Exp: _one(np.exp),
    exp.Coalesce: _all(lambda first, other: np.where(np.isnan(first), other, first)),
    exp.Nullif: _both(lambda value, other: np.where(value == other, np.nan, value)),
    exp.Least: _all(np.minimum),
    exp.Greatest: _all(np.maximum),
    exp.Cast: _one(lambda value: value),
    exp.TryCast: _one(lambda value: value),
}
