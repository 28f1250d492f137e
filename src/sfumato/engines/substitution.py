"""The same expression over other parts: what rewrites need that look at every kind of expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sfumato.engines import expressions as e


def with_children(expression: e.Expression, below: tuple[e.Expression, ...]) -> e.Expression:
    """The same expression over others, in the order of `children`."""
    if all(new is old for new, old in zip(below, e.children(expression), strict=True)):
        return expression
    match expression:
        case e.Compare() | e.Arithmetic():
            return replace(expression, left=below[0], right=below[1])
        case e.And() | e.Or() | e.Joined() | e.RowFunction():
            return replace(expression, terms=below)
        case e.Choose(branches):
            pairs = tuple((below[2 * i], below[2 * i + 1]) for i in range(len(branches)))
            return replace(expression, branches=pairs, otherwise=below[-1])
        case e.Scrambled():
            return replace(expression, term=below[0], numbers=below[1:])
        case e.Reference() | e.Literal():
            return expression
        case _:
            return replace(expression, term=below[0])


def substituted(expression: e.Expression, columns: Mapping[str, e.Expression]) -> e.Expression:
    """The expression with what columns stand for in their places."""
    if isinstance(expression, e.Reference):
        return columns[expression.name]
    return with_children(expression, tuple(substituted(child, columns) for child in e.children(expression)))
