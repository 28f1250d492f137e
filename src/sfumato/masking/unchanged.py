"""How many values come out of a swap as they went in: equal values that change places change nothing.

A column of few values can be swapped throughout and still be published as it was. A column is refused when less than a
twentieth of its values change, unless it could hardly be otherwise: where nearly everybody has the same value, dealing all
values out at random would change few of them too, and half as many are then enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.data.records import CategoryColumn, NumberColumn

Real = NDArray[np.float64]

#: A column is refused when more than this share of its known values comes out as it was.
MOST_UNCHANGED = 0.95


def unchanged_share(column: NumberColumn | CategoryColumn, masked: NDArray[np.number]) -> float:
    """The share of known values that are the same as before; 0 where none is known."""
    present = int(np.count_nonzero(column.known))
    return _same(column, masked, present) / present if present else 0.0


def changed_at_random(frequencies: NDArray[np.integer] | Real) -> float:
    """The share of values that would change if all of them were dealt out anew at random, from how often each occurs."""
    shares = frequencies / frequencies.sum()
    return max(0.0, 1.0 - float(shares @ shares))


def least_changed(at_random: float) -> float:
    """The smallest share of changed values that is accepted, when dealing out at random would change so many."""
    return min(1.0 - MOST_UNCHANGED, at_random / 2)


def refuse_unchanged(
    method: str,
    columns: Iterable[NumberColumn | CategoryColumn],
    masked: Mapping[str, NDArray[np.number]],
    what_to_do: str,
    *,
    rate: float = 1.0,
    expected: float = 0.0,
) -> dict[str, float]:
    """The unchanged share by column; refuse columns that would be published nearly as they are.

    `rate` is the share of records that the method was asked to change. Where fewer than `expected` values would change in a
    random dealing, none may have changed by mere chance, and the column is not judged.
    """
    shares, faults = {}, []
    for column in columns:
        share = shares[column.name] = unchanged_share(column, masked[column.name])
        if 1.0 - share >= rate * (1.0 - MOST_UNCHANGED) or not column.known.any():
            continue
        at_random = changed_at_random(_frequencies(column))
        judged = rate * at_random * int(np.count_nonzero(column.known)) >= expected
        if judged and (share == 1.0 or 1.0 - share < rate * least_changed(at_random)):
            faults.append(
                f"column '{column.name}' would be published nearly as it is: {100 * share:.1f} % of its known values come out "
                f"unchanged (in a stratum, where there are strata), because most of them changed places with equal ones or "
                f"not at all; {what_to_do}"
            )
    all_at_once(Unsupported, method, faults)
    return shares


def _same(column: NumberColumn | CategoryColumn, masked: NDArray[Any], present: int) -> int:
    if isinstance(column, NumberColumn):
        return int(np.count_nonzero(column.values == masked))  # a missing value equals nothing
    return int(np.count_nonzero(column.codes == masked)) - (column.codes.size - present)


def _frequencies(column: NumberColumn | CategoryColumn) -> NDArray[np.int64]:
    values = column.values if isinstance(column, NumberColumn) else column.codes
    return np.unique(values[column.known], return_counts=True)[1]
