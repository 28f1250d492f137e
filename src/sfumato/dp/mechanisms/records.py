"""Records as whole numbers inside declared bounds: clamped, then rounded to a fraction of the width.

Each record is rounded by itself, so a sum of records changes by what one of them can change; the sums are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError

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
    """Floating-point numbers; what is missing becomes NaN."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        # The message must not say which record it was, nor what it holds.
        raise ParameterError("the records must be numbers that fit a floating-point number, missing ones None or NaN") from None
    return found
