"""What is published about a mask, and what a stranger publishes compared with the mask itself: nothing else is believed.

What follows from parameters and columns is computed again; what follows from the data must fit what anybody sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.core import registry
from sfumato.core.certificate import plain
from sfumato.core.plain_data import Plain, PlainDict

if TYPE_CHECKING:
    from sfumato.data.schema import Schema
    from sfumato.masking.base import Mask

#: The key under which several strata tell different things.
BY_STRATUM = "by stratum"
_ABOUT = ("method", "masked_columns")
#: How far published numbers may be from those computed again, and how large they may be.
_ROUNDING, _LARGEST = 1e-9, 1e300


@dataclass(frozen=True)
class VisibleTable:
    """What anybody sees of a masked table: its schema, its columns with those that were removed, and how many rows the mask
    left; None where another mask came after it."""

    schema: Schema
    columns: frozenset[str]
    rows: int | None


@dataclass(frozen=True)
class Test:
    """Whether something that is published, and follows from the data, fits what anybody sees."""

    passes: Callable[[Any, VisibleTable], bool]


def transparency_of(mask: Mask, columns: Sequence[str], published: Sequence[Plain]) -> PlainDict:
    """Method, parameters and the columns whose values it changes (none, where it only chooses records); what each stratum adds is
    stated once where it is the same, otherwise stratum by stratum."""
    facts: dict[str, Any] = {"method": mask.described(), "masked_columns": []}
    for name in dict.fromkeys(name for stratum in published for name in stratum):
        values = [plain(stratum.get(name)) for stratum in published]
        facts[name] = values[0] if all(value == values[0] for value in values) else {BY_STRATUM: values}
    facts["masked_columns"] = list(mask.changed_columns(columns, facts))
    return facts


def can_be_published_by(mask: Mask, published: object, visible: VisibleTable) -> bool:
    """Whether `published` can be all that was published about the mask; a stranger may have written it. Earlier versions may have
    published less."""
    if not isinstance(published, dict) or not isinstance(published.get("method"), dict):
        return False
    own, stated = plain(mask.described()), registry.in_names_of_now("mask", published["method"])
    if stated.get("name") != own["name"] or any(own.get(name) != value for name, value in stated.items()):
        return False
    names = published.get("masked_columns")
    if not isinstance(names, list) or not all(isinstance(name, str) and name in visible.columns for name in names):
        return False
    facts = {name: value for name, value in published.items() if name not in _ABOUT}
    strata = _strata(facts) if mask.strata else [facts]
    return _are_masked(mask, names, facts, visible) and all(mask.could_tell(each, tuple(names), visible) for each in strata)


def fits(expected: object, value: object, visible: VisibleTable) -> bool:
    """Whether a value is the one expected, or passes the test that stands in its place."""
    return expected.passes(value, visible) if isinstance(expected, Test) else alike(plain(expected), value)


def alike(one: Any, other: Any) -> bool:  # plain data of any depth
    """Whether two plain values are the same up to the rounding of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if type(one) in (int, float) and type(other) in (int, float):
        return abs(one) < _LARGEST and abs(other) < _LARGEST and math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(one) is type(other) and bool(one == other)


def _are_masked(mask: Mask, names: list[str], facts: Plain, visible: VisibleTable) -> bool:
    """Whether these are the columns that the mask changes; a column that was removed may have been among them. Earlier versions
    named all columns that it looks at, also where it only chooses records."""
    chosen = mask.columns_of(visible.schema, tuple(visible.schema.columns))
    if names == list(mask.changed_columns(chosen, facts)):
        return True
    if mask.columns is not None:
        return names == list(chosen)
    removed = visible.columns - set(visible.schema.columns)
    return len(set(names)) == len(names) and set(names) - removed == set(chosen) - removed


def _strata(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is published about each stratum: a fact stands for all of them, or there are as many as strata."""
    several = {name: fact[BY_STRATUM] for name, fact in facts.items() if isinstance(fact, dict) and set(fact) == {BY_STRATUM}}
    counts = {len(each) if isinstance(each, list) else 0 for each in several.values()}
    if len(counts) != 1 or counts == {0}:
        return [dict(facts)]
    shown = [{**facts, **{name: each[place] for name, each in several.items()}} for place in range(counts.pop())]
    return [{name: fact for name, fact in each.items() if fact is not None} for each in shown]
