"""How many records of a class share what an adversary knows of their sets.

For every class and every choice of 0 to m items from each set that some record shows, the records with
these items are counted; all sizes count, not only m, because a set may be shorter than that. Terrovitis,
Mamoulis, Kalnis, "Privacy-preserving anonymization of set-valued data", PVLDB 1(1), 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product

import numpy as np

from sfumato.core.errors import Unsupported
from sfumato.measures.guarantees.classes import Classes, Integers, tally_occurring
from sfumato.measures.guarantees.examined import ExaminedTable

#: Choices of items that are counted at most, in a class and in a table: more would not fit or not end.
MAX_CHOICES_OF_CLASS = 20_000_000
MAX_CHOICES = 200_000_000

Known = tuple[tuple[str, ...], ...]


def fewest_sharing(examined: ExaminedTable, classes: Classes, sets: Sequence[str], most: int) -> Integers:
    """Per class the fewest records (different units where there is a unit column) that share up to `most` items of each set.

    Knowing no item is a choice too, so this is never more than the size of the class.
    """
    fewest = classes.units.copy()
    if not len(classes):
        return fewest
    if examined.counts_units and not examined.unit:
        raise Unsupported(
            "how many different units share some items of a set follows from no count of units per class. Group by the unit "
            "column as well, or count records."
        )
    columns = [examined.column(name) for name in sets]
    items = [
        [items_of(text, examined.described(name).items or "") for text in column.values]
        for name, column in zip(sets, columns, strict=True)
    ]
    people = [examined.column(examined.unit).codes] if examined.unit else []
    rows = np.stack([classes.of_row, *(column.codes for column in columns), *people], axis=1)
    different, count = tally_occurring(rows, classes.counts)
    starts = np.searchsorted(different[:, 0], np.arange(len(classes) + 1))
    budget = MAX_CHOICES
    for klass, (low, high) in enumerate(zip(starts, starts[1:], strict=False)):
        shown = [[items[c][code] for c, code in enumerate(row[: len(sets)])] for row in different[low:high, 1:].tolist()]
        budget -= _affordable(shown, most, budget)
        if people:
            fewest[klass] = _fewest_units(shown, different[low:high, -1].tolist(), most)
        else:
            fewest[klass] = _fewest_records(shown, count[low:high].tolist(), most)
    return fewest


def items_of(text: str | None, separator: str) -> tuple[str, ...]:
    """The different items of a published set, in order."""
    pieces = (text or "").split(separator)
    return tuple(sorted({piece.strip() for piece in pieces} - {""}))


def _choices(shown: Sequence[tuple[str, ...]], most: int) -> Iterator[Known]:
    """Everything that somebody who knows up to `most` items of each set may know about a record that shows these."""
    of_each = (
        list(chain.from_iterable(combinations(items, size) for size in range(min(most, len(items)) + 1))) for items in shown
    )
    return product(*of_each)


def _fewest_records(shown: Sequence[Sequence[tuple[str, ...]]], count: Sequence[int], most: int) -> int:
    sharing: dict[Known, int] = {}
    for sets, records in zip(shown, count, strict=True):
        for choice in _choices(sets, most):
            sharing[choice] = sharing.get(choice, 0) + records
    return min(sharing.values())


def _fewest_units(shown: Sequence[Sequence[tuple[str, ...]]], units: Sequence[int], most: int) -> int:
    sharing: dict[Known, set[int]] = {}
    for sets, unit in zip(shown, units, strict=True):
        for choice in _choices(sets, most):
            sharing.setdefault(choice, set()).add(unit)
    return min(len(members) for members in sharing.values())


def _affordable(shown: Sequence[Sequence[tuple[str, ...]]], most: int, budget: int) -> int:
    """How many choices this class has; refused where they could not be counted."""
    limit = min(budget, MAX_CHOICES_OF_CLASS)
    needed = 0
    for sets in shown:
        needed += math.prod(_number_of_choices(len(items), most, limit) for items in sets)
        if needed > limit:
            raise Unsupported(
                f"the sets have more combinations of up to {most} items than can be counted. Assume fewer known "
                "items, or shorten the sets."
            )
    return needed


def _number_of_choices(items: int, most: int, limit: int) -> int:
    """The ways to choose up to `most` of so many items, or some number above the limit."""
    number = 0
    for size in range(min(most, items) + 1):
        number += math.comb(items, size)
        if number > limit:
            break
    return number
