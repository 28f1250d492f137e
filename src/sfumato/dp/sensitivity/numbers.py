"""Sensitivities of numbers from values in declared bounds: sum, mean, extremes, median, and the parts of a variance."""

from __future__ import annotations

from fractions import Fraction

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import Neighbours
from sfumato.dp.sensitivity.base import Sensitivity


def total(lower: Number, upper: Number, neighbours: Neighbours = "add_remove", *, unit: str = "record") -> Sensitivity:
    """The sum of values clamped to [lower, upper]: max(|lower|, |upper|) for one added or removed, the width for one replaced."""
    low, high = _bounds(lower, upper)
    if neighbours == "replace":
        return Sensitivity.of(high - low, neighbours, unit=unit, why="one value may move from one bound to the other")
    return Sensitivity.of(max(abs(low), abs(high)), neighbours, unit=unit, why="one value adds at most its largest magnitude")


def sum_of_squares(lower: Number, upper: Number, neighbours: Neighbours = "add_remove", *, unit: str = "record") -> Sensitivity:
    """The sum of squares of values clamped to [lower, upper]."""
    low, high = _bounds(lower, upper)
    most, least = max(low**2, high**2), Fraction(0) if low <= 0 <= high else min(low**2, high**2)
    change = most if neighbours == "add_remove" else most - least
    return Sensitivity.of(change, neighbours, unit=unit, why="the largest change of one square")


def minimum(lower: Number, upper: Number, neighbours: Neighbours = "replace", *, unit: str = "record") -> Sensitivity:
    """The smallest value: the whole width, when all others lie at the upper bound."""
    return _whole_width(lower, upper, neighbours, unit, "all other values may lie at the opposite bound")


def maximum(lower: Number, upper: Number, neighbours: Neighbours = "replace", *, unit: str = "record") -> Sensitivity:
    """The largest value: the whole width, when all others lie at the lower bound."""
    return _whole_width(lower, upper, neighbours, unit, "all other values may lie at the opposite bound")


def median(lower: Number, upper: Number, neighbours: Neighbours = "replace", *, unit: str = "record") -> Sensitivity:
    """The middle value: the whole width, when the others are divided equally between the bounds."""
    return _whole_width(lower, upper, neighbours, unit, "half of the other values may lie at each bound")


def mean(
    lower: Number, upper: Number, min_size: int = 1, neighbours: Neighbours = "replace", *, unit: str = "record"
) -> Sensitivity:
    """The mean: the width divided by the size of the larger of two neighbours, which is public under `replace`.

    `min_size` is that size: with it as the smallest size of any table, (upper - lower)/min_size is exact under `replace`
    and a safe bound under `add_remove`, where the larger neighbour has at least one record more.
    """
    low, high = _bounds(lower, upper)
    require(isinstance(min_size, int) and min_size >= 1, "min_size is a whole number of at least 1")
    return Sensitivity.of(
        (high - low) / min_size, neighbours, unit=unit, why=f"one of at least {min_size} values may move by the width"
    )


def truncated_mean(
    lower: Number,
    upper: Number,
    bounds: tuple[Number, Number],
    min_size: int = 1,
    neighbours: Neighbours = "replace",
    *,
    unit: str = "record",
) -> Sensitivity:
    """A mean of values in `bounds`, clamped to [lower, upper]: the smaller of the mean's sensitivity and the width."""
    low, high = _bounds(lower, upper)
    wide = mean(bounds[0], bounds[1], min_size, neighbours, unit=unit)
    return Sensitivity.of(
        min(wide.l1, high - low), neighbours, unit=unit, why="the smaller of the mean's change and the interval"
    )


def _whole_width(lower: Number, upper: Number, neighbours: Neighbours, unit: str, why: str) -> Sensitivity:
    low, high = _bounds(lower, upper)
    return Sensitivity.of(high - low, neighbours, unit=unit, why=why)


def _bounds(lower: Number, upper: Number) -> tuple[Fraction, Fraction]:
    low, high = exact(lower, "lower"), exact(upper, "upper")
    require(low <= high, "lower must not exceed upper: they are bounds declared by the owner, not taken from the data")
    return low, high
