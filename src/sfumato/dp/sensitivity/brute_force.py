"""Sensitivity by trying everything: all tables over a small finite domain, all their neighbours.

Global sensitivity is a property of the query and the neighbour relation; the sensitivity around one data set is a property
of the data, is marked so, and is refused by every mechanism. Dwork, McSherry, Nissim, Smith, "Calibrating noise to
sensitivity in private data analysis", TCC 2006; Nissim, Raskhodnikova, Smith, "Smooth sensitivity and sampling in private
data analysis", STOC 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb
from typing import Any, TypeAlias, TypeVar

import numpy as np

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError
from sfumato.core.guarantees.loss import Neighbours
from sfumato.dp.sensitivity.base import Sensitivity

#: Whatever stands for one record where a query is tried out.
Record: TypeAlias = Any
Answer: TypeAlias = "int | float | Fraction | Sequence[int | float | Fraction] | np.ndarray[Any, Any]"
Places: TypeAlias = tuple[int, ...]
D = TypeVar("D")

#: More tables than this are not tried.
MOST_TABLES = 500_000


def global_sensitivity(
    query: Callable[[list[Record]], Answer],
    domain: Sequence[Record],
    neighbours: Neighbours,
    *,
    sizes: Sequence[int],
    unit: str = "record",
) -> Sensitivity:
    """The largest change of a query between neighbouring tables, over all tables of these sizes with records of the domain.

    Tables are multisets: the query must not depend on the order of records. Under `add_remove` both neighbours have one of
    the `sizes`; under `replace` both have the same. Fractions and integers are compared exactly, floats as the binary
    fractions they are.

    >>> global_sensitivity(lambda table: sum(table), [-2, 0, 5], "add_remove", sizes=range(4)).l1
    Fraction(5, 1)
    """
    require(neighbours in {"add_remove", "replace"}, "neighbours is 'add_remove' or 'replace'")
    require(len(domain) > 0 and len(sizes) > 0 and min(sizes) >= 0, "the domain and the sizes must not be empty")
    tables = sum(comb(len(domain) + size - 1, size) for size in sizes)
    require(tables <= MOST_TABLES, f"there are {tables:,} tables to try, more than {MOST_TABLES:,}: use a smaller domain or size")
    # Tables are places in the domain: records that are equal and yet not the same (1 and True) stay different.
    pairs = _added(len(domain), sizes) if neighbours == "add_remove" else _replaced(len(domain), sizes)
    return largest_change(lambda places: query([domain[place] for place in places]), pairs, neighbours, unit=unit)


def local_sensitivity(
    query: Callable[[list[Record]], Answer],
    data: Sequence[Record],
    domain: Sequence[Record],
    neighbours: Neighbours,
    *,
    unit: str = "record",
) -> Sensitivity:
    """The largest change between this data set and its neighbours. Marked `local`: it tells about the data."""
    require(neighbours in {"add_remove", "replace"}, "neighbours is 'add_remove' or 'replace'")
    records = [*data, *domain]
    here, new = tuple(range(len(data))), range(len(data), len(records))
    without = [here[:place] + here[place + 1 :] for place in here]
    if neighbours == "replace":
        others = [(*rest, record) for rest in without for record in new]
    else:
        others = [*without, *((*here, record) for record in new)]
    pairs = ((here, other) for other in others)
    change = largest_change(lambda places: query([records[place] for place in places]), pairs, neighbours, unit=unit)
    return replace(change, local=True, why="the largest change around one data set; not for calibrating noise")


def largest_change(
    query: Callable[[D], Answer], pairs: Iterable[tuple[D, D]], neighbours: Neighbours, *, unit: str
) -> Sensitivity:
    """The largest L1, squared L2 and single change over pairs of neighbours; equal tables are asked about once."""
    tried = False
    l1 = l2_squared = largest = Fraction(0)
    cache: dict[Any, list[Fraction]] = {}

    def answered(table: D) -> list[Fraction]:
        key = table if isinstance(table, tuple) else tuple(table)  # type: ignore[arg-type]
        if key not in cache:
            cache[key] = _exact(query(table))
        return cache[key]

    for one, two in pairs:
        tried = True
        first, second = answered(one), answered(two)
        require(len(first) == len(second), "the query must give answers of one length")
        changes = [abs(a - b) for a, b in zip(first, second, strict=True)]
        l1 = max(l1, sum(changes, Fraction(0)))
        l2_squared = max(l2_squared, sum((change**2 for change in changes), Fraction(0)))
        largest = max(largest, max(changes, default=Fraction(0)))
    require(
        tried,
        "no two neighbouring tables are among these, so that nothing was tried: under 'add_remove' name sizes that follow "
        "each other, such as range(4); under 'replace' sizes of at least 1 and two records in the domain",
    )
    return Sensitivity(l1, l2_squared, largest, neighbours, unit, "found by trying all pairs of neighbours")


def _added(records: int, sizes: Sequence[int]) -> Iterator[tuple[Places, Places]]:
    allowed = set(sizes)
    for size in sorted(allowed):
        if size + 1 in allowed:
            for places in combinations_with_replacement(range(records), size):
                for extra in range(records):
                    yield places, tuple(sorted((*places, extra)))


def _replaced(records: int, sizes: Sequence[int]) -> Iterator[tuple[Places, Places]]:
    for size in sorted({size for size in sizes if size >= 1}):
        for rest in combinations_with_replacement(range(records), size - 1):
            tables = [tuple(sorted((*rest, extra))) for extra in range(records)]
            yield from ((one, two) for position, one in enumerate(tables) for two in tables[position + 1 :])


def _exact(answer: Answer) -> list[Fraction]:
    many = isinstance(answer, Sequence | np.ndarray)
    entries: list[Any] = np.asarray(answer, dtype=object).ravel().tolist() if many else [answer]
    try:
        return [Fraction(entry.item() if isinstance(entry, np.generic) else entry) for entry in entries]
    except (TypeError, ValueError, OverflowError):
        raise ParameterError("the query must answer finite numbers, one or several") from None
