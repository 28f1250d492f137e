"""Do two conditions ever keep the same row? Answered "no" only where that is certain.

Conditions are those of a plan. Each compared term is a variable whose values fall into finitely many regions (missing, not a
number, each constant, the gaps between constants), in which every comparison has one answer; a search over the regions
looks for a row that fulfils all conditions in three-valued logic. Terms count as independent of each other, so a row may
be found that no data could hold: then the conditions are taken to overlap, which costs budget and never privacy.
McSherry, "Privacy integrated queries", SIGMOD 2009 (section 4.2: parallel composition).
"""

from __future__ import annotations

import datetime
import math
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from sfumato.engines.expressions import (
    And,
    Compare,
    Expression,
    IsMissing,
    Kind,
    Not,
    OneOfValues,
    Or,
    Reference,
    Value,
    columns_of,
)
from sfumato.engines.expressions import Literal as Constant

#: A search that has made this many comparisons gives up, and the conditions count as overlapping.
_MOST_WORK = 100_000

#: Whole numbers beyond this may be compared as floating point by an engine, so nothing is concluded from them.
_EXACT = 2**53

#: The possible answers of a condition, as a set of bits.
_TRUE, _FALSE, _UNKNOWN = 1, 2, 4
_ANYTHING = _TRUE | _FALSE | _UNKNOWN

_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>", "is": "is"}


@dataclass(frozen=True)
class _Region:
    """Values of a term that all comparisons treat alike. A gap lies strictly between two constants."""

    kind: Literal["missing", "nan", "point", "gap"]
    at: Any = None
    below: Any = None


_Assignment: TypeAlias = dict[Expression, _Region]


def equals(column: str, value: Value) -> Expression:
    """The condition that a column has this value."""
    return Compare("=", Reference(column), Constant(value))


def within(column: str, low: Value, high: Value) -> Expression:
    """The condition that a column lies from `low` to `high`, both included."""
    return And((Compare(">=", Reference(column), Constant(low)), Compare("<=", Reference(column), Constant(high))))


def among(column: str, *values: Value) -> Expression:
    """The condition that a column has one of these values."""
    return OneOfValues(Reference(column), values)


def certainly_disjoint(*conditions: Expression | None, kinds: Mapping[str, Kind] | None = None) -> bool:
    """True when no row whatever fulfils all conditions; `None` is the condition that every row fulfils.

    `kinds` may tell what columns hold: between two neighbouring whole numbers lies no integer.

    >>> certainly_disjoint(equals("hiv", "positive"), equals("hiv", "negative"))
    True
    """
    stated = [condition for condition in conditions if condition is not None]
    return not _Search(stated, kinds or {}).finds_a_row()


def composition_of(first: Expression | None, second: Expression | None) -> Literal["parallel", "sequential"]:
    """How answers about the rows of two conditions compose: in parallel only if no row is in both."""
    return "parallel" if certainly_disjoint(first, second) else "sequential"


def columns_read(condition: Expression | None) -> frozenset[str]:
    """The columns that a condition looks at."""
    return frozenset() if condition is None else frozenset(columns_of(condition))


class _Search:
    """A backtracking search for a row.

    Engines differ on NaN. Where it compares to nothing, it is a region of its own; where it lies above all numbers, it
    behaves like the gap above the largest constant.
    """

    def __init__(self, conditions: Iterable[Expression], kinds: Mapping[str, Kind]) -> None:
        self.conditions, self.work, self.cost = list(conditions), 0, 1
        self.constants: dict[Expression, list[Value]] = {}
        readers: dict[Expression, set[int]] = {}
        for place, condition in enumerate(self.conditions):
            for term, values in _atoms(condition):
                self.constants.setdefault(term, []).extend(values)
                readers.setdefault(term, set()).add(place)
                self.cost += 1
        # Terms that several conditions read come first: contradictions show early.
        self.terms = sorted(self.constants, key=lambda term: -len(readers[term]))
        self.regions = {term: list(_regions(term, values, kinds)) for term, values in self.constants.items()}
        self.unclear = {term: _unclear(values) for term, values in self.constants.items()}
        self.lists: dict[int, frozenset[Any]] = {}

    def finds_a_row(self) -> bool:
        return self._extends({}, 0)

    def _extends(self, row: _Assignment, depth: int) -> bool:
        self.work += self.cost
        if self.work > _MOST_WORK:
            return True
        if any(not self._answers(condition, row) & _TRUE for condition in self.conditions):
            return False
        if depth == len(self.terms):
            return True
        term = self.terms[depth]
        return any(self._extends({**row, term: region}, depth + 1) for region in self.regions[term])

    def _answers(self, condition: Expression, row: _Assignment) -> int:
        match condition:
            case Constant(value) if value is None or isinstance(value, bool):
                return _UNKNOWN if value is None else _TRUE if value else _FALSE
            case And(terms):
                answers = _TRUE
                for term in terms:
                    answers = _both(answers, self._answers(term, row))
                return answers
            case Or(terms):
                answers = _TRUE
                for term in terms:
                    answers = _both(answers, _flipped(self._answers(term, row)))
                return _flipped(answers)
            case Not(term):
                return _flipped(self._answers(term, row))
            case IsMissing(term):
                if term not in row:
                    return _TRUE | _FALSE
                return _TRUE if row[term].kind == "missing" else _FALSE
            case OneOfValues(term, values):
                return self._listed(condition, term, values, row.get(term))
        operator, term, value = _comparison(condition)
        return self._compared(operator, term, value, row.get(term))

    def _listed(self, condition: Expression, term: Expression, values: tuple[Value, ...], region: _Region | None) -> int:
        if region is None or (region.kind == "point" and region.at in self.unclear[term]):
            return _ANYTHING
        if region.kind == "missing":
            return _UNKNOWN if values else _FALSE
        if None in self.unclear[term]:
            return _ANYTHING
        if id(condition) not in self.lists:
            self.lists[id(condition)] = frozenset(map(_ordered, values))
        listed = self.lists[id(condition)]
        if region.kind == "point" and region.at in listed:
            return _TRUE
        return _UNKNOWN if None in listed else _FALSE

    def _compared(self, operator: str, term: Expression, value: Value, region: _Region | None) -> int:
        if region is None:
            return _ANYTHING
        missing = region.kind == "missing"
        if operator == "is":
            if value is None or missing:
                return _TRUE if value is None and missing else _FALSE
            operator = "="
        if value is None or missing:
            return _UNKNOWN
        constant, ordering = _ordered(value), operator in ("<", "<=", ">", ">=")
        if constant is None or None in self.unclear[term] or (region.kind == "point" and region.at in self.unclear[term]):
            return _ANYTHING
        if ordering and isinstance(value, str):
            return _ANYTHING  # engines sort texts by rules of their own
        if region.kind == "nan":
            holds = operator == "<>"
        else:
            holds = _holds(operator, region, constant)
        return _TRUE if holds else _FALSE


def _holds(operator: str, region: _Region, constant: Any) -> bool:
    if region.kind == "point":
        equal, less = bool(region.at == constant), bool(region.at < constant)
    else:
        equal, less = False, region.below is not None and bool(region.below <= constant)
    answers = {"=": equal, "<>": not equal, "<": less, "<=": less or equal, ">": not less and not equal, ">=": not less}
    return answers[operator]


def _regions(term: Expression, values: list[Value], kinds: Mapping[str, Kind]) -> Iterator[_Region]:
    """Every value of a term is in one of these."""
    points = sorted({ordered for value in values if (ordered := _ordered(value)) is not None})
    yield _Region("missing")
    yield from (_Region("point", point) for point in points)
    of = {point[0] for point in points}
    if of == {"boolean"}:
        yield from (_Region("point", other) for truth in (True, False) if (other := _ordered(truth)) not in points)
        return
    if of != {"number"} and of != {"date"} and of != {"datetime"}:
        yield _Region("gap")  # any other value; texts have no order that all engines share
        return
    whole = isinstance(term, Reference) and kinds.get(term.name) in ("integer", "wide") and of == {"number"}
    if of == {"number"} and not whole:
        yield _Region("nan")
    for low, high in zip([None, *points], [*points, None], strict=True):
        if not (whole and low and high and math.floor(low[1]) + 1 >= math.ceil(high[1])):
            yield _Region("gap", low, high)


def _unclear(values: list[Value]) -> set[Any]:
    """Points that stand for several texts, which some engine may tell apart; `None` where kinds are mixed."""
    spelled: dict[Any, set[Value]] = {}
    for value in values:
        if isinstance(value, str):
            spelled.setdefault(_ordered(value), set()).add(value)
    unclear: set[Any] = {point for point, texts in spelled.items() if len(texts) > 1}
    kinds = {point[0] for value in values if (point := _ordered(value)) is not None}
    return unclear | (
        {None} if len(kinds) > 1 or any(value is not None and _ordered(value) is None for value in values) else set()
    )


def _ordered(value: Value) -> tuple[str, Any] | None:
    """A constant as a point of its kind's order; `None` where engines may disagree on what equals what."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, (int, float)):
        sound = math.isfinite(value) and abs(value) <= _EXACT
        return ("number", Fraction(value)) if sound else None
    if isinstance(value, str):
        # Two texts count as different only if no usual collation could hold them equal.
        return ("text", unicodedata.normalize("NFKC", value).casefold().strip())
    if isinstance(value, datetime.datetime):
        return None if value.tzinfo is not None else ("datetime", value)
    return ("date", value)


def _atoms(condition: Expression) -> Iterator[tuple[Expression, list[Value]]]:
    """The compared terms of a condition with the constants they are compared with."""
    match condition:
        case And(terms) | Or(terms):
            for term in terms:
                yield from _atoms(term)
        case Not(term):
            yield from _atoms(term)
        case IsMissing(term):
            yield term, []
        case OneOfValues(term, values):
            yield term, list(values)
        case Constant(value) if value is None or isinstance(value, bool):
            return
        case _:
            _, term, value = _comparison(condition)
            yield term, [value]


def _comparison(condition: Expression) -> tuple[str, Expression, Value]:
    """`term operator constant`, whichever side the constant is on; anything else is a truth value compared to true."""
    match condition:
        case Compare(operator, Constant(value), right) if not isinstance(right, Constant):
            return _MIRRORED[operator], right, value
        case Compare(operator, left, Constant(value)) if not isinstance(left, Constant):
            return operator, left, value
    return "=", condition, True


def _both(left: int, right: int) -> int:
    """The possible answers of "a and b" from those of a and b."""
    answers = 0
    if left & _TRUE and right & _TRUE:
        answers |= _TRUE
    if left & _FALSE or right & _FALSE:
        answers |= _FALSE
    if (left & _UNKNOWN and right & (_UNKNOWN | _TRUE)) or (right & _UNKNOWN and left & (_UNKNOWN | _TRUE)):
        answers |= _UNKNOWN
    return answers


def _flipped(answers: int) -> int:
    swapped = (_TRUE if answers & _FALSE else 0) | (_FALSE if answers & _TRUE else 0)
    return swapped | (answers & _UNKNOWN)
