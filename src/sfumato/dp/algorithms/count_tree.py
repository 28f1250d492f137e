"""A tree of noisy counts over ordered leaves, made consistent, from which every rank and quantile can be read.

Count the leaves, then groups of `branching` leaves, then groups of those, until at most `branching` nodes are left;
add integer noise to every node; combine what the levels say about the same leaves by least squares.
Hay, Rastogi, Miklau, Suciu, "Boosting the accuracy of differentially private histograms through consistency",
PVLDB 2010; Qardaji, Yang, Li, "Understanding hierarchical methods for differentially private histograms", PVLDB 2013.

The functions here take leaf counts that somebody has computed (an engine, a table) and know nothing of records: the
caller declares the leaves without looking at the data, bounds what one unit adds to the leaves, and sets the noise by
`tree_sensitivity`. Everything after the noise is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.randomness import Randomness

Law = Literal["laplace", "gaussian"]
Counts = NDArray[np.int64]
Reals = NDArray[np.float64]

#: With this many children a million leaves take five levels; the rank error is flat between 8 and 32.
BRANCHING = 16


def level_sizes(leaf_count: int, branching: int = BRANCHING) -> tuple[int, ...]:
    """The number of nodes of every measured level, the top first and the leaves last.

    The root is not measured: the level below it already tells the total.

    >>> level_sizes(1000, 16)
    (4, 63, 1000)
    """
    require(leaf_count >= 1, "a tree needs at least one leaf")
    require(branching >= 2, "branching is at least 2")
    sizes = [leaf_count]
    while sizes[-1] > branching:
        sizes.append(-(-sizes[-1] // branching))
    return tuple(reversed(sizes))


def tree_sensitivity(leaf_count: int, branching: int = BRANCHING, rows: int = 1) -> tuple[int, int]:
    """(L1, squared L2) of all measured counts when a unit comes or goes that owns at most `rows` rows.

    Every row lies in one node of each level; in the worst case all rows of a unit lie in the same nodes. Replacing one
    unit by another doubles the first and, with all rows moved, doubles the second.

    >>> tree_sensitivity(1000, 16, rows=2)
    (6, 12)
    """
    require(rows >= 1, "rows is at least 1")
    levels = len(level_sizes(leaf_count, branching))
    return levels * rows, levels * rows**2


def tree_counts(leaf_counts: Counts, branching: int = BRANCHING) -> tuple[Counts, ...]:
    """The exact counts of all levels, the top first: what noise is added to. Not for release.

    >>> [level.tolist() for level in tree_counts(np.array([1, 2, 3, 4, 5]), 2)]
    [[10, 5], [3, 7, 5], [1, 2, 3, 4, 5]]
    """
    level = np.asarray(leaf_counts, dtype=np.int64)
    levels = [level]
    for _ in level_sizes(len(level), branching)[1:]:
        level = np.add.reduceat(level, np.arange(0, len(level), branching))
        levels.append(level)
    return tuple(reversed(levels))


@dataclass(frozen=True)
class CountTree:
    """Noisy counts that agree with each other: every node is the sum of its children.

    `levels` holds the consistent estimates, the top first; they are unbiased, not whole and may be negative.
    `deviation` is the standard deviation of the noise that was added to each node, known before the draw.
    `ranks` are the estimated numbers of rows below each leaf boundary (one more than leaves), made to ascend.
    `noisy` is what was drawn, from which all of it follows again.
    """

    branching: int
    levels: tuple[Reals, ...]
    deviation: float
    ranks: Reals = field(repr=False)
    noisy: tuple[Counts | Reals, ...] = field(default=(), repr=False)

    @property
    def leaves(self) -> Reals:
        """The consistent leaf counts."""
        return self.levels[-1]

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return float(self.levels[0].sum())


def noisy_tree(leaf_counts: Counts, branching: int, scale_or_variance: Fraction, law: Law, source: Randomness) -> CountTree:
    """The released tree: integer noise on every node, then the consistent least-squares estimate.

    `scale_or_variance` is the scale of discrete Laplace noise (L1 / ε with the L1 of `tree_sensitivity`) or the
    variance of discrete Gaussian noise (squared L2 / 2ρ).
    """
    exact_levels = tree_counts(leaf_counts, branching)
    sizes = [len(level) for level in exact_levels]
    drawn = np.split(_noise(sum(sizes), scale_or_variance, law, source), np.cumsum(sizes)[:-1])
    noisy = [level + extra for level, extra in zip(exact_levels, drawn, strict=True)]
    return consistent_tree(noisy, branching, node_deviation(scale_or_variance, law))


def consistent_tree(noisy_levels: Sequence[Counts | Reals], branching: int, deviation: float) -> CountTree:
    """The best linear unbiased estimate of all counts from noisy ones of equal variance (post-processing).

    Going up, a node's own count and the sum of its children are averaged by their precision; going down, what a
    parent knows better is shared among its children by their variance. `noisy_levels` has the top first.
    """
    estimates, variances = _upwards([np.asarray(level, dtype=np.float64) for level in noisy_levels], branching)
    for depth in range(1, len(estimates)):
        starts, parents = _family(len(estimates[depth]), branching)
        missing = estimates[depth - 1] - np.add.reduceat(estimates[depth], starts)
        share = variances[depth] / np.add.reduceat(variances[depth], starts)[parents]
        estimates[depth] = estimates[depth] + share * missing[parents]
    return CountTree(branching, tuple(estimates), deviation, _ascending_ranks(estimates[-1]), tuple(noisy_levels))


def quantile(tree: CountTree, q: float) -> float:
    """Where the q-quantile lies, in leaves: 2.5 is the middle of the third leaf. 0 where the tree counts nothing.

    Map it to a value with the leaves' edges (`edges[i] + (position - i) * width`).
    """
    require(0 <= q <= 1, "a quantile lies between 0 and 1")
    ranks = tree.ranks
    total = float(ranks[-1])
    if total <= 0:
        return 0.0
    target = q * total
    leaf = int(np.clip(np.searchsorted(ranks, target, side="left") - 1, 0, len(ranks) - 2))
    start, inside = float(ranks[leaf]), float(ranks[leaf + 1] - ranks[leaf])
    return float(leaf + min(max((target - start) / inside, 0.0), 1.0)) if inside > 0 else float(leaf)


def range_count(tree: CountTree, start: int, stop: int) -> float:
    """The estimated number of rows in the leaves start, …, stop - 1."""
    require(0 <= start <= stop <= len(tree.leaves), "the range lies within the leaves")
    return float(tree.leaves[start:stop].sum())


def node_deviation(scale_or_variance: Fraction, law: Law) -> float:
    """The standard deviation of one node's noise: exact for Laplace, an upper bound for Gaussian."""
    if law == "gaussian":
        return math.sqrt(scale_or_variance)
    half = float(1 / (2 * scale_or_variance))
    return 1 / (math.sqrt(2) * math.sinh(half)) if half < 700 else 0.0


def rank_deviation(leaf_count: int, branching: int, scale_or_variance: Fraction, law: Law) -> float:
    """The largest standard deviation, over all leaf boundaries, of the estimated number of rows below it.

    Divided by the number of rows this is how far, in probability, a quantile's rank may be off; it is known before the
    data are looked at. Making ranks ascend can only lower the largest error.
    """
    variances, _ = _boundary_moments(leaf_count, branching)
    return node_deviation(scale_or_variance, law) * math.sqrt(float(variances.max()))


def quantile_rank_deviation(leaf_count: int, branching: int, q: float, scale_or_variance: Fraction, law: Law) -> float:
    """The largest standard deviation, over all leaf boundaries, of the estimated rank less q times the estimated total.

    That difference decides on which side of a boundary the q-quantile is put; before ranks are made to ascend.
    """
    return float(boundary_deviations(leaf_count, branching, q, scale_or_variance, law).max())


def boundary_deviations(leaf_count: int, branching: int, q: float, scale_or_variance: Fraction, law: Law) -> Reals:
    """The standard deviation, at each leaf boundary, of the estimated rank less q times the estimated total."""
    require(0 <= q <= 1, "a quantile lies between 0 and 1")
    variances, with_total = _boundary_moments(leaf_count, branching)
    differences = variances - 2 * q * with_total + q**2 * variances[-1]
    deviations: Reals = node_deviation(scale_or_variance, law) * np.sqrt(np.maximum(differences, 0.0))
    return deviations


@lru_cache(maxsize=64)
def _boundary_moments(leaf_count: int, branching: int) -> tuple[Reals, Reals]:
    """Of the estimated number of rows below each leaf boundary: its variance, and its covariance with the total.

    Where one node's noise has variance 1. The last boundary has all rows below it.
    """
    unit = [np.zeros(size) for size in level_sizes(leaf_count, branching)]
    _, variances = _upwards(unit, branching)
    total = float(variances[0].sum())
    # For each node: variance of the estimated rank left of it, of its own estimate, and their covariance, level by level;
    # `shared` is the covariance of its own estimate with the total, which a parent hands on to its children by their share.
    left, own, both, shared = np.zeros(1), np.array([total]), np.zeros(1), np.array([total])
    for variance in variances:
        starts, parents = _family(len(variance), branching) if len(variance) > len(variances[0]) else _root(len(variance))
        family = np.add.reduceat(variance, starts)[parents]
        share = variance / family
        running = np.cumsum(share) - share
        before = running - running[starts][parents]
        left, own, both, shared = (
            left[parents] + before**2 * own[parents] + 2 * before * both[parents] + family * before * (1 - before),
            variance - share**2 * family + share**2 * own[parents],
            share * both[parents] + before * share * (own[parents] - family),
            share * shared[parents],
        )
    return np.append(left, total), np.concatenate([np.zeros(1), np.cumsum(shared)])


def _noise(count: int, amount: Fraction, law: Law, source: Randomness) -> Counts:
    from sfumato.kernels.sampling.noise import discrete_gaussian, discrete_laplace

    require(law in ("laplace", "gaussian"), "law is laplace or gaussian")
    return (discrete_laplace if law == "laplace" else discrete_gaussian)(amount, count, source)


def _upwards(levels: list[Reals], branching: int) -> tuple[list[Reals], list[Reals]]:
    """Each node estimated from its own subtree, and the estimates' variances where one node's noise has variance 1."""
    estimates, variances = list(levels), [np.ones(len(level)) for level in levels]
    for depth in range(len(levels) - 2, -1, -1):
        starts, _ = _family(len(levels[depth + 1]), branching)
        below = np.add.reduceat(estimates[depth + 1], starts)
        spread = np.add.reduceat(variances[depth + 1], starts)
        weight = spread / (1 + spread)
        estimates[depth] = weight * levels[depth] + (1 - weight) * below
        variances[depth] = weight
    return estimates, variances


def _family(size: int, branching: int) -> tuple[Counts, Counts]:
    """Where each family of siblings starts, and the parent of each node."""
    nodes = np.arange(size, dtype=np.int64)
    return nodes[::branching], nodes // branching


def _root(size: int) -> tuple[Counts, Counts]:
    return np.zeros(1, dtype=np.int64), np.zeros(size, dtype=np.int64)


def _ascending_ranks(leaves: Reals) -> Reals:
    """Running totals made monotone: midway between the least ascending sequence above and the largest below."""
    ranks = np.concatenate([np.zeros(1), np.cumsum(leaves)])
    above = np.maximum.accumulate(ranks)
    below = np.minimum.accumulate(ranks[::-1])[::-1]
    middle = np.clip((above + below) / 2, 0.0, max(float(ranks[-1]), 0.0))
    middle[0], middle[-1] = 0.0, max(float(ranks[-1]), 0.0)
    return middle
