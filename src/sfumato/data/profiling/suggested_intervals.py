"""Intervals to start from: nested round widths, or cuts at quantiles where equal widths would put nearly everybody into one.

Both are learnt from the data. Cuts are rounded as far as their neighbours allow; where values lie close together they can still
be values of records, so that cuts stay with the owner. The outermost intervals are open.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

#: About so many intervals stand on the finest level.
FINEST_INTERVALS = 16
#: From this share of the known values in one interval on, equal widths are of no use.
CROWDED = 0.75

#: Below this, numbers have not all their digits, and steps between them cannot be rounded.
_SMALLEST = 1e-290

Numbers = NDArray[np.float64]


def nested_widths(extent: float, whole: bool) -> tuple[float, ...]:
    """Doubling interval widths from a round number upward, as long as they divide the extent."""
    if not math.isfinite(extent) or extent < _SMALLEST:
        return ()
    first = _round_up(extent / FINEST_INTERVALS)
    first = max(first, 2.0) if whole else float(f"{first:.6g}")
    widths = []
    width = first
    while width < extent:
        widths.append(float(f"{width:.12g}"))
        width *= 2
    return tuple(widths)


def fullest_interval(values: Numbers, counts: NDArray[np.int64], width: float) -> float:
    """The share of the records in the fullest interval of this width, counted from 0."""
    _, place = np.unique(np.floor(values / width), return_inverse=True)
    return float(np.bincount(place, weights=counts).max() / counts.sum()) if values.size else 0.0


def quantile_cuts(values: Numbers, counts: NDArray[np.int64], whole: bool) -> tuple[float, ...]:
    """Growing cuts that leave about equally many records between them; a value that many share counts as often as an interval
    may hold, so that the others are still told apart."""
    if not values.size or float(np.ptp(values)) < _SMALLEST:
        return ()
    order = np.argsort(values)
    points, rows = values[order], np.minimum(counts[order], math.ceil(counts.sum() / FINEST_INTERVALS))
    reached = np.cumsum(rows)
    ranks = np.arange(1, FINEST_INTERVALS) * reached[-1] / FINEST_INTERVALS
    quantiles = np.unique(points[np.minimum(np.searchsorted(reached, ranks, side="right"), points.size - 1)])
    quantiles = quantiles[quantiles > points[0]]
    ends = np.concatenate([points[:1], quantiles, points[-1:]])
    cuts: list[float] = []
    for place, quantile in enumerate(quantiles.tolist(), 1):
        nearest = min(quantile - ends[place - 1], ends[place + 1] - quantile) or quantile - ends[place - 1]
        if nearest < _SMALLEST:
            continue
        step = max(_round_down(nearest / 2), 1.0 if whole else 0.0)
        cut = float(f"{round(quantile / step) * step:.12g}")
        if points[0] < cut <= points[-1] and (not cuts or cut > cuts[-1]):
            cuts.append(cut)
    return tuple(cuts)


def _round_up(number: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= number * (1 - 1e-9))


def _round_down(number: float) -> float:
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (5, 2, 1) if step * power <= number * (1 + 1e-9))
