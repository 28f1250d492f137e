"""Log-linear models of a contingency table: fitted by iterative proportional fitting, with their error and a check.

The counts of the cells are independent Poisson variables whose logarithms add up from terms of the margins: single columns
(main effects) or pairs of columns (all two-way interactions). Deming, Stephan, "On a least squares adjustment of a sampled
frequency table when the expected marginal totals are known", Annals of Mathematical Statistics 11(4), 1940.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
#: The columns of each margin that a model keeps.
Margins: TypeAlias = Sequence[tuple[int, ...]]

_MOST_ROUNDS = 500
_NEAR = 1e-6  # of the total: how far a fitted margin may be off


def main_effects(columns: int) -> Margins:
    """Every column by itself."""
    return [(column,) for column in range(columns)]


def two_way(columns: int) -> Margins:
    """Every pair of columns."""
    return list(combinations(range(columns), 2)) if columns > 1 else main_effects(columns)


def fitted_counts(counts: Real, margins: Margins) -> Real:
    """The expected counts with the same margins as these; single columns are fitted at once."""
    total = float(counts.sum())
    fit = np.full(counts.shape, total / counts.size)
    kept = [(margin, _sum(counts, margin)) for margin in margins]
    for _ in range(_MOST_ROUNDS):
        off = 0.0
        for margin, wanted in kept:
            shown = _sum(fit, margin)
            off = max(off, float(np.abs(shown - wanted).max()))
            fit *= np.divide(wanted, shown, out=np.zeros_like(wanted), where=shown > 0.0)
        if off <= _NEAR * total:
            break
    return fit


def variance_of(gradient: Real, expected: Real, margins: Margins) -> float:
    """The variance of Σ gradient · log(fitted count), to first order: gᵀX(XᵀWX)⁻¹Xᵀg with the expected counts in W, which is the
    squared length of W⁻¹g projected onto the model."""
    goal = np.divide(gradient, expected, out=np.zeros_like(gradient), where=expected > 0.0)
    return float((expected * projected(goal, expected, margins) ** 2).sum())


def log_variances(expected: Real, margins: Margins, cells: NDArray[np.int64]) -> Real:
    """The variance of the logarithm of the fitted count of these cells (flat), to first order.

    Of main effects Σ 1/n_i − (m − 1)/n with the margins n_i of m columns and the total n. Of pairs the same by inclusion and
    exclusion, Σ 1/n_ij − (m − 2) Σ 1/n_i + (m − 1)(m − 2)/2n, which is exact where the fit is a product of margins, and at least
    that of the rarest pair."""
    places, columns = np.unravel_index(cells, expected.shape), expected.ndim

    def inverse(margin: tuple[int, ...]) -> Real:
        shown = _sum(expected, margin)
        return np.asarray(1.0 / shown[tuple(places[axis] if axis in margin else 0 for axis in range(columns))])

    total = float(expected.sum())
    single = np.sum([inverse((axis,)) for axis in range(columns)], axis=0)
    if all(len(margin) == 1 for margin in margins):
        return np.asarray(single - (columns - 1) / total)
    pairs = np.array([inverse(margin) for margin in margins])
    together = pairs.sum(axis=0) - (columns - 2) * single + (columns - 1) * (columns - 2) / (2.0 * total)
    return np.asarray(np.maximum(together, pairs.max(axis=0)))


def projected(goal: Real, expected: Real, margins: Margins) -> Real:
    """The nearest sum of terms of the margins, cells weighing as much as is expected in them: weighted means over each margin are
    taken away, one after the other, until nothing of them is left (as the fit does with ratios)."""
    rest = goal.copy()
    weights = [(margin, _sum(expected, margin)) for margin in margins]
    whole = before = float((expected * rest**2).sum())
    for _ in range(_MOST_ROUNDS):
        for margin, weight in weights:
            rest -= np.divide(_sum(expected * rest, margin), weight, out=np.zeros_like(weight), where=weight > 0.0)
        left = float((expected * rest**2).sum())
        if before - left <= 1e-5 * (whole - left):
            break
        before = left
    return goal - rest


def _sum(cells: Real, margin: tuple[int, ...]) -> Real:
    """The margin of a table, shaped to stand beside it."""
    return np.asarray(cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in margin), keepdims=True))
