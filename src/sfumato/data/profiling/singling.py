"""Quasi-identifiers in the order in which they single people out, and which few of many an outsider most likely knows.

Whoever knows some columns of a record faces a class of n records with the same values, and finds the right one with chance 1/n.
The mean of these chances over all records is the number of classes divided by the number of records. Columns are added greedily:
first the one with the highest chance alone, then each time the one that raises it most. What a column adds is its gain, which
depends on the columns before it. At most 20,000 records, taken evenly, are looked at; in a larger table classes are larger, and
chances smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.data.profiling.identifier_names import role_by_name
from sfumato.kernels.classes.grouping import group_columns

#: More suggested quasi-identifiers than this are too many to generalise together.
MANY = 8
#: So many of them are worth keeping to begin with.
FEW = 6
_MOST_RECORDS = 20_000
_MOST_COLUMNS = 200


@dataclass(frozen=True)
class SinglingOut:
    """A column, the chance of finding a record by it and all columns before it, and what it added to that."""

    column: str
    chance: float
    gain: float


def singling_order(codes: Mapping[str, tuple[NDArray[np.int32], int]], rows: int) -> tuple[SinglingOut, ...]:
    """The columns, each with what it adds to those before; of columns that add the same the first comes first."""
    if not rows:
        return ()
    chosen = np.unique(np.linspace(0, rows - 1, min(rows, _MOST_RECORDS)).astype(np.int64))
    left = {name: (column[chosen], width) for name, (column, width) in list(codes.items())[:_MOST_COLUMNS]}
    classes, count = np.zeros(chosen.size, dtype=np.int32), 1
    order: list[SinglingOut] = []
    while left:
        split = {name: group_columns([classes, column], [count, width]) for name, (column, width) in left.items()}
        best = max(split, key=lambda name: split[name][1].size)
        before, count = (count if order else 0), split[best][1].size
        classes = split[best][0].astype(np.int32)
        order.append(SinglingOut(best, count / chosen.size, (count - before) / chosen.size))
        del left[best]
        if count == chosen.size:  # every record is alone: no other column adds anything
            order += [SinglingOut(name, 1.0, 0.0) for name in left]
            break
    return tuple(order)


def few_to_keep(order: Sequence[SinglingOut]) -> tuple[str, ...]:
    """Of many quasi-identifiers the few that an outsider most likely knows by their names, then those that single out most."""
    if len(order) <= MANY:
        return tuple(each.column for each in order)
    named = [each.column for each in order if (role_by_name(each.column) or ("plain", ""))[0] == "quasi"]
    others = [each.column for each in order if each.column not in named]
    kept = {*named[:FEW], *others[: max(FEW - len(named), 0)]}
    return tuple(each.column for each in order if each.column in kept)
