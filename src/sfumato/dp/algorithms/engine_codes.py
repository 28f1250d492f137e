"""Declared values and bins as codes that an engine computes, the same as this process computes them.

Where a declaration cannot be said so, the code is None and the rows are read: see `declared_values.read`.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.texts import text_of
from sfumato.engines.cell_counts import Code, part_of, unwritten
from sfumato.engines.expressions import (
    Choose,
    Compare,
    Expression,
    IsMissing,
    Kind,
    Literal,
    Not,
    OneOfValues,
    Or,
    Reference,
    Value,
)
from sfumato.engines.functions.parts import LARGEST_WHOLE, EqualPart, PartByEdges, WholePart, parts_fit
from sfumato.engines.functions.texts import Like, TextPart
from sfumato.engines.sql.relation import SqlRelation

_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
#: Edges that are no equal steps are compared one by one, in a tree; beyond so many the rows are read.
MOST_EDGES = 257
#: What a number that is written as text may begin with.
_DIGITS = ("-", ".", *"0123456789")
#: What Python takes for white space.
_BLANKS = tuple(chr(place) for place in range(0x3001) if chr(place).isspace())


def listed_code(column: str, kind: Kind, places: Mapping[str, int], size: int, other: int | None = None) -> Code | None:
    """The code of a column whose values are listed by their texts; None for kinds whose texts engines write differently."""
    if kind not in _TYPED:
        return None
    if kind == "number" and any(_is_number(text) and math.isinf(float(text)) for text in places):
        return None  # engines write infinity in ways of their own
    typed = ((_TYPED[kind](text), code) for text, code in places.items())
    return Code(column, size, values=tuple((value, code) for value, code in typed if value is not None), other=other)


def edges_code(column: str, kind: Kind, edges: Sequence[float], whole: bool) -> Code | None:
    """The bin of a number between edges that rise: numbers outside are in the outermost bins."""
    if kind not in ("integer", "number"):
        return None
    count, held = len(edges) - 1, Reference(column)
    first, last = edges[0], edges[-1] - 1
    steps = np.array(edges, dtype=np.float64)
    from_whole = whole and float(first).is_integer() and max(abs(first), abs(last)) <= LARGEST_WHOLE
    if from_whole and np.all(np.diff(steps) == 1):
        return Code(column, count, WholePart(held, int(first), int(last), count))
    if equal_steps(steps):
        ends = (float(steps[0]), float(steps[-1]), count)
        return Code(column, count, PartByEdges((held, Reference(part_of(column))), *ends), part=EqualPart(held, *ends))
    if len(edges) > MOST_EDGES or not np.all(np.isfinite(steps)):
        return None
    code = _between(held, [float(edge) for edge in steps[1:-1]], 0)
    return Code(column, count, Choose(((IsMissing(held), Literal(None, "integer")),), code))


def equal_steps(edges: NDArray[np.float64]) -> bool:
    """True for edges that `EqualPart` finds: each is computed from its place, and the formula is at most one place below it."""
    low, high, count = float(edges[0]), float(edges[-1]), len(edges) - 1
    if not parts_fit(low, high, count):
        return False
    places = np.arange(count)
    if not np.array_equal(low + places * ((high - low) / count), edges[:-1]):
        return False
    below = places - np.floor((edges[:-1] - low) / (high - low) * count)
    return bool(np.all((below == 0) | (below == 1)))


def whole_parts(column: str, kind: Kind, low: int, high: int, count: int, size: int, other: int | None) -> Code | None:
    """The part of a run of whole numbers."""
    if kind not in ("integer", "number"):
        return None
    return Code(column, size, WholePart(Reference(column), low, high, count), other=other)


def equal_parts(column: str, kind: Kind, low: float, high: float, count: int, size: int, other: int | None) -> Code | None:
    """The part of a range of numbers; a range of one number has one part."""
    if kind not in ("integer", "number"):
        return None
    held = Reference(column)
    if low == high:
        there: Expression = Choose(((Not(IsMissing(held)), Literal(0)),), Literal(None, "integer"))
        return Code(column, size, there, other=other)
    return Code(column, size, EqualPart(held, low, high, count), other=other) if parts_fit(low, high, count) else None


def also_numbers(relation: SqlRelation, column: str, places: Mapping[str, int], form: Callable[[str], str]) -> dict[str, int]:
    """The texts of a column that stand for a listed one, where those that are numbers may be written in several ways.

    What is not written as declared is asked for, if it may be a number, and put into its `form` here.
    """
    if not any(_is_number(text) for text in places):
        return dict(places)
    begins = OneOfValues(TextPart(Reference(column), 1, 1), _DIGITS)
    return {**places, **_spelled(relation, column, places, begins, form)}


def also_padded(relation: SqlRelation, column: str, places: Mapping[str, int]) -> dict[str, int]:
    """The texts of a column that are a listed one between white space."""
    held = Reference(column)
    around = Or((OneOfValues(TextPart(held, 1, 1), _BLANKS), *(Like(held, f"%{blank}") for blank in _BLANKS)))
    return {**places, **_spelled(relation, column, places, around, str.strip)}


def _spelled(
    relation: SqlRelation, column: str, places: Mapping[str, int], condition: Expression, form: Callable[[str], str]
) -> dict[str, int]:
    plan = unwritten(relation.fields, column, list(places), condition)
    answer = relation.run(plan)
    others = [text for text in answer.column(0).to_pylist() if text is not None]
    return {text: places[form(text)] for text in others if form(text) in places}


def _between(held: Reference, edges: Sequence[float], first: int) -> Expression:
    """How many of the edges are at most the number, from `first` on: a tree of comparisons."""
    if not edges:
        return Literal(first)
    middle = len(edges) // 2
    below = Compare("<", held, Literal(edges[middle]))
    return Choose(((below, _between(held, edges[:middle], first)),), _between(held, edges[middle + 1 :], first + middle + 1))


def _is_number(text: str) -> bool:
    """True for a text that another one may stand for: the one form of some number."""
    try:
        return text_of(float(text)) == text
    except ValueError:
        return False


def _integer(text: str) -> Value:
    return int(text) if _WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63 else None


def _number(text: str) -> Value:
    return float(text) if _is_number(text) and math.isfinite(float(text)) else None


def _date(text: str) -> Value:
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.isoformat() == text else None


#: The value of each kind that has a given text; other kinds have several texts or none.
_TYPED: Mapping[Kind, Callable[[str], Value]] = {
    "string": lambda text: None if "\x00" in text else text,
    "integer": _integer,
    "number": _number,
    "boolean": {"true": True, "false": False}.get,
    "date": _date,
}
