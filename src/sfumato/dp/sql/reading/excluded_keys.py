"""Declared values of a key that WHERE rules out: decided from the query and the declarations alone, before any row is read.

A value is ruled out when the condition cannot hold for a row that has it, whatever its other columns are. Then no row is in that
group, with or without any unit, so that the answer need not show it and nothing is spent on its noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from sqlglot import exp

from sfumato.dp.sql.operators.term import Term, possible_values
from sfumato.dp.sql.reading.catalogue import QueryRows
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.expressions import Value
from sfumato.engines.functions import numbers as f

#: Keys with more declared values than this are shown as they are declared.
_MOST = 20_000
_ANYTHING = frozenset((True, False, None))

#: What a condition may come out as.
Outcomes: TypeAlias = frozenset[bool | None]


@dataclass(frozen=True)
class _Held:
    """What a row holds: missing, or a value between two ends, which are the same where that is one value."""

    low: Any = None  # of the column's kind
    high: Any = None
    missing: bool = False

    @property
    def exact(self) -> bool:
        return not self.missing and self.low == self.high


class Exclusions:
    """The conditions that rows meet, and which values of their columns they leave."""

    def __init__(self, rows: QueryRows) -> None:
        self.rows = rows

    @cached_property
    def conditions(self) -> list[e.Expression]:
        """What WHERE asks of every row."""
        conditions, plan = [], self.rows.plan
        while isinstance(plan, p.Filter):
            conditions.append(plan.condition)
            plan = plan.source
        return conditions

    def resolve(self, node: exp.Column) -> Term:
        """A column, without the declared values that no row can have."""
        return self.narrowed(self.rows.resolve(node))

    def narrowed(self, term: Term) -> Term:
        """The term without the values that no row can have."""
        values = possible_values(term)
        if not self.conditions or values is None or len(values) > _MOST:
            return term
        left = tuple(value for value in values if self._possible(term, value))
        return term if len(left) == len(values) else replace(term, values=left)

    def _possible(self, term: Term, value: Value) -> bool:
        held = _held(term, value)
        # A row's value as WHERE sees it is not yet moved into its bounds.
        seen = term.expression.term if isinstance(term.expression, f.Clamp) else term.expression
        return all(True in _outcomes(condition, {seen: held}) for condition in self.conditions)


def _held(term: Term, value: Value) -> _Held:
    if value is None:
        return _Held(missing=True)
    low = high = _comparable(value)
    if term.numeric and term.low is not None and term.high is not None and isinstance(value, int):
        # Whatever lies beyond a bound counts as the bound.
        low = -math.inf if value <= term.low else low
        high = math.inf if value >= term.high else high
    return _Held(low, high)


def _comparable(value: Value) -> Any:
    """Texts compare by their bytes."""
    return value.encode() if isinstance(value, str) else value


def _outcomes(expression: e.Expression, assumed: Mapping[e.Expression, _Held]) -> Outcomes:
    match expression:
        case e.And(terms):
            return _all([_outcomes(term, assumed) for term in terms])
        case e.Or(terms):
            return _denied(_all([_denied(_outcomes(term, assumed)) for term in terms]))
        case e.Not(term):
            return _denied(_outcomes(term, assumed))
        case e.IsMissing(term) if term in assumed:
            return frozenset((assumed[term].missing,))
        case e.OneOfValues(term, values) if term in assumed:
            return _listed(assumed[term], [_comparable(value) for value in values])
        case e.Compare(operator, left, right):
            return _compared(operator, _operand(left, assumed), _operand(right, assumed))
        case e.Literal(value, _) if value is None or isinstance(value, bool):
            return frozenset((value,))
        case _ if expression in assumed:
            held = assumed[expression]
            return frozenset((None,)) if held.missing else frozenset((held.low,)) if held.low in (True, False) else _ANYTHING
        case _:
            return _ANYTHING


def _operand(expression: e.Expression, assumed: Mapping[e.Expression, _Held]) -> _Held | None:
    if isinstance(expression, e.Literal):
        value = _comparable(expression.value)
        return _Held(missing=True) if value is None else _Held(value, value)
    return assumed.get(expression)


def _all(parts: list[Outcomes]) -> Outcomes:
    """What AND may come out as."""
    outcomes: set[bool | None] = set()
    if all(True in part for part in parts):
        outcomes.add(True)
    if any(False in part for part in parts):
        outcomes.add(False)
    if any(None in part for part in parts) and all(part & {True, None} for part in parts):
        outcomes.add(None)
    return frozenset(outcomes)


def _denied(outcomes: Outcomes) -> Outcomes:
    return frozenset(None if each is None else not each for each in outcomes)


def _listed(held: _Held, values: list[Any]) -> Outcomes:
    if held.missing:
        return frozenset((None,))
    inside = any(held.low <= value <= held.high for value in values)
    return frozenset((inside,)) if held.exact or not inside else frozenset((True, False))


def _compared(operator: str, left: _Held | None, right: _Held | None) -> Outcomes:
    if left is None or right is None:
        return _ANYTHING
    if left.missing or right.missing:
        return frozenset((left.missing and right.missing,)) if operator == "is" else frozenset((None,))
    # Which comparisons are possible at all.
    less, more = left.low < right.high, left.high > right.low
    same = left.low <= right.high and right.low <= left.high
    true = {"<": less, "<=": less or same, ">": more, ">=": more or same, "=": same, "is": same, "<>": less or more}[operator]
    false = {"<": more or same, "<=": more, ">": less or same, ">=": less, "=": less or more, "is": less or more, "<>": same}
    return frozenset(each for each, possible in ((True, true), (False, false[operator])) if possible)
