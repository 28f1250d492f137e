"""Units in which very large and very small numbers can be squared: powers of two, so that changing the unit rounds nothing.

Squares of values beyond 1e154 have no float, and those of values below 1e-162 are 0, so that a column would look constant.
Values of an ordinary size keep their unit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported, all_at_once
from sfumato.data.records import NumberColumn, Records

Real = NDArray[np.float64]

#: Columns whose largest value lies between 1/this and this keep their unit; fourth powers of it are finite.
_ORDINARY = 1e50


def unit_of(values: Real) -> float:
    """The unit of a column: 1, or the power of two nearest to its largest absolute value where that is extreme."""
    largest = float(np.max(np.abs(values), initial=0.0, where=~np.isnan(values)))
    if largest == 0 or 1 / _ORDINARY <= largest <= _ORDINARY:
        return 1.0
    # Not below the least normal float: dividing by a smaller one would overflow.
    return float(np.ldexp(1.0, max(int(np.frexp(largest)[1]) - 1, -1022)))


def in_units(values: Real, unit: float) -> Real:
    """Values divided by the unit; what is too far away for a float becomes infinite."""
    if unit == 1:
        return values
    with np.errstate(over="ignore"):
        return values / unit


def in_own_units(original: Records, masked: Records) -> tuple[Records, Records]:
    """Both sides, each column of numbers in the unit of the original; refused where masked values are so far away from the
    original ones that their squares have no float in that unit."""
    left, right, faults = [], [], []
    for before, after in zip(original.columns, masked.columns, strict=True):
        if isinstance(before, NumberColumn) and isinstance(after, NumberColumn):
            unit = unit_of(before.values)
            shown = in_units(after.values, unit)
            largest = float(np.max(np.abs(in_units(before.values, unit)), initial=0.0, where=before.known)) or 1.0
            if float(np.max(np.abs(shown), initial=0.0, where=after.known)) > _ORDINARY * largest:
                faults.append(
                    f"column '{before.name}' has masked values more than {_ORDINARY:g} times as large as any original one; check "
                    "the mask, or leave the column out (columns=)"
                )
            before, after = replace(before, values=in_units(before.values, unit)), replace(after, values=shown)
        left.append(before)
        right.append(after)
    all_at_once(Unsupported, "comparing masked records", faults)
    return Records(tuple(left), original.size), Records(tuple(right), masked.size)
