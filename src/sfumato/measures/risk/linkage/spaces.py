"""The space in which an intruder compares records: both files as matrices, and how their coordinates differ.

Euclidean: every column scaled by the original's deviation. Mahalanobis: correlated columns count once (whitened by the
original's covariance). Gower: numbers by their range, categories equal or not; it takes any mixture. A value that is missing on
either side differs by what two records drawn at random differ by on average, so it speaks neither for nor against a link.
Gower, "A general coefficient of similarity and some of its properties", Biometrics 27(4), 1971; Mahalanobis, "On the
generalized distance in statistics", Proceedings of the National Institute of Sciences of India 2, 1936.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.linkage.points import Metric
from sfumato.kernels.linkage.tree import ABSOLUTE, CATEGORY, SQUARED

Real = NDArray[np.float64]

#: `auto` is Euclidean for numbers and Gower as soon as there is a category.
Distance = Literal["auto", "euclidean", "mahalanobis", "gower"]
LinkageDistance = Annotated[Distance, "how far two records are apart; Gower's as soon as there are categories where it is 'auto'"]

#: What two independent values of a column scaled to deviation 1 differ by on average, squared.
_NEUTRAL_SQUARE = 2.0
#: Columns are a combination of each other when a correlation matrix has an eigenvalue below this.
_SINGULAR = 1e-10
#: The farthest a released value can be, in units of the original; its square is still a number.
_FAR = 1e100


@dataclass(frozen=True, eq=False)
class LinkageSpace:
    """Original and released records as points; a column that is constant in the original tells nothing and has no coordinate."""

    original: Real = field(repr=False)
    released: Real = field(repr=False)
    metric: Metric = field(repr=False)
    distance: str


def space_of(original: Records, released: Records, distance: Distance = "auto") -> LinkageSpace:
    """Both files in one space; scales come from the original, which the intruder holds."""
    if not original.size or not released.size:
        raise InputError("there are no records to link: the original or the released table is empty")
    if distance == "auto":
        distance = "gower" if any(column.kind == "category" for column in original.columns) else "euclidean"
    if distance == "mahalanobis":
        return _whitened(original, released)
    left, right, kinds, costs, neutral = [], [], [], [], []
    for ours, theirs in zip(original.columns, released.columns, strict=True):
        a, b = _numbers(ours), _numbers(theirs)
        if isinstance(ours, CategoryColumn) and not ours.ordered:
            apart = _unequal_share(a)
            if apart == 0.0:
                continue
            kinds.append(CATEGORY)
            # in the Euclidean space two random categories differ by as much as two random numbers
            costs.append(1.0 if distance == "gower" else _NEUTRAL_SQUARE / apart)
            neutral.append(apart if distance == "gower" else _NEUTRAL_SQUARE)
        else:
            scaled = _scaled(a, b, distance)
            if scaled is None:
                continue
            a, b = scaled
            kinds.append(ABSOLUTE if distance == "gower" else SQUARED)
            costs.append(1.0)
            neutral.append(_mean_difference(a) if distance == "gower" else _NEUTRAL_SQUARE)
        left.append(a)
        right.append(b)
    metric = Metric(np.array(kinds, dtype=np.int64), np.array(costs), np.array(neutral), root=distance == "euclidean")
    return LinkageSpace(_side_by_side(left, original.size), _side_by_side(right, released.size), metric, distance)


def _whitened(original: Records, released: Records) -> LinkageSpace:
    if any(isinstance(column, CategoryColumn) and not column.ordered for column in original.columns):
        raise Unsupported("the Mahalanobis distance is about numbers, and there are categories: use distance='gower'")
    left, right = [], []
    for ours, theirs in zip(original.columns, released.columns, strict=True):
        a, b = _numbers(ours), _numbers(theirs)
        scaled = _scaled(a, b, "euclidean")
        if scaled is None:
            raise Unsupported(
                f"the Mahalanobis distance needs columns that vary, and '{ours.name}' is constant: leave it out with columns="
            )
        # a missing value stands at the mean, where it adds nothing to any covariance
        left.append(np.nan_to_num(scaled[0], nan=0.0))
        right.append(np.nan_to_num(scaled[1], nan=0.0))
    a, b = _side_by_side(left, original.size), _side_by_side(right, released.size)
    correlation = a.T @ a / original.size
    values, vectors = np.linalg.eigh(correlation)
    if values[0] < _SINGULAR * values[-1]:
        raise Unsupported(
            "the Mahalanobis distance needs a covariance that can be inverted, and here a column is a combination of others (or "
            "there are fewer records than columns): leave columns out with columns=, or use distance='euclidean'"
        )
    whiten = vectors / np.sqrt(values)
    return LinkageSpace(a @ whiten, b @ whiten, Metric.euclidean(a.shape[1]), "mahalanobis")


def _numbers(column: NumberColumn | CategoryColumn) -> Real:
    if isinstance(column, NumberColumn):
        return column.values
    return np.where(column.codes >= 0, column.codes, np.nan).astype(np.float64)


def _scaled(original: Real, released: Real, distance: str) -> tuple[Real, Real] | None:
    """Both sides in the unit of the original, about its centre; nothing where the original is constant."""
    top = float(np.max(np.abs(original), where=~np.isnan(original), initial=0.0))
    with np.errstate(over="ignore"):  # what is infinitely far in this unit is brought back to the farthest there is
        if top and not 1.0 / _FAR < top < _FAR:
            original, released = original / top, released / top
        centre, scale = _centre_and_scale(original, distance)
        if scale == 0.0:
            return None
        return (original - centre) / scale, np.clip((released - centre) / scale, -_FAR, _FAR)


def _centre_and_scale(values: Real, distance: str) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    if not present.size:
        return 0.0, 0.0
    low, high = float(present.min()), float(present.max())
    if low == high:
        return 0.0, 0.0
    if distance == "gower":
        return low, high - low
    # scaled by the range first, so that no square overflows
    return float(present.mean()), float(np.std((present - low) / (high - low)) * (high - low))


def _mean_difference(scaled: Real) -> float:
    """The mean absolute difference of two values drawn independently."""
    present = np.sort(scaled[~np.isnan(scaled)])
    ranks = 2.0 * np.arange(present.size) - present.size + 1.0
    return float(2.0 * (ranks @ present) / present.size**2)


def _unequal_share(codes: Real) -> float:
    """How often two categories drawn independently are different."""
    present = codes[~np.isnan(codes)].astype(np.int64)
    if not present.size:
        return 0.0
    shares = np.bincount(present) / present.size
    return float(1.0 - shares @ shares) if np.count_nonzero(shares) > 1 else 0.0


def _side_by_side(columns: list[Real], rows: int) -> Real:
    matrix = np.empty((rows, len(columns)))
    for position, column in enumerate(columns):
        matrix[:, position] = column
    return matrix
