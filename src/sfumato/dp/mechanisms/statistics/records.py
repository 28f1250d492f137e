"""Records as whole numbers inside declared bounds: clamped, then rounded to a fraction of the width.

Each record is rounded by itself, so a sum of records changes by what one of them can change; the sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError
from sfumato.dp.mechanisms.grid import real_of

#: Numbers as somebody has them, in a list of mixed kinds too; what is no number is refused.
Records: TypeAlias = Sequence[float] | Sequence[int] | Sequence[Any] | NDArray[Any]

#: A record is one of 2^30 + 1 places between its bounds; eight thousand million of them sum up within 64 bits.
PLACES = 2**30


def places(values: Records, lower: Fraction, upper: Fraction, count: int = PLACES) -> NDArray[np.int64]:
    """Whole numbers from 0 (lower) to `count` (upper). What is missing or not a number counts as lower."""
    low, width = float(lower), float(upper - lower)
    with np.errstate(invalid="ignore", over="ignore"):
        share = (numbers(values) - low) / width * count
        return np.clip(np.rint(np.nan_to_num(share, nan=0.0, posinf=count, neginf=0.0)), 0, count).astype(np.int64)


def numbers(values: Records) -> NDArray[np.float64]:
    """Floating-point numbers; what is missing becomes NaN, what is too large infinite. What is no number is refused by
    its type: no record's value decides."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths
        raise _no_numbers() from None
    if array.dtype.kind in "iufb":
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    if array.dtype.kind != "O":
        raise _no_numbers()
    return np.array([_number(entry) for entry in array.ravel()], dtype=np.float64).reshape(array.shape)


def _no_numbers() -> ParameterError:
    # The message must not say which record it was, nor what it holds.
    return ParameterError("the records must be numbers, missing ones None or NaN")


def _number(entry: Any) -> float:
    try:
        number = math.nan if type(entry).__name__ in _MISSING else real_of(entry)
    except ParameterError:
        raise _no_numbers() from None
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


#: What pandas calls a missing value, by name: it is not imported for this.
_MISSING = frozenset({"NAType", "NaTType"})
