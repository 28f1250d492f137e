"""A quantile read from a tree of noisy counts, and the values that its noise does not rule out.

Whether a leaf holds the quantile depends on the ranks of its two ends alone, and of each noisy rank the deviation is known. The
leaves that neither rank rules out, from the first to the last, hold the quantile at the confidence; see docs/theory/margins.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.algorithms.count_tree import CountTree, boundary_deviations, quantile, rank_deviation
from sfumato.dp.sql.margins.reach import LEVELS, Reach
from sfumato.dp.sql.measuring.measurement import BRANCHING, CLEAR_OF_ENDS
from sfumato.dp.sql.measuring.noise import Noise, errors_in_sum_margin
from sfumato.dp.sql.measuring.statistic import Statistic
from sfumato.dp.sql.operators.base import Cell

Floats = NDArray[np.float64]

#: The first and the last row are looked for in the middle of their rank.
_HALF_A_ROW = 0.5


def clear_of_ends(deviation: float) -> float:
    """How many rows MIN and MAX keep clear of the ends, by the largest deviation of a rank; half a row without noise."""
    return max(CLEAR_OF_ENDS * deviation, _HALF_A_ROW)


def quantile_of(statistic: Statistic, tree: CountTree, noise: Noise) -> tuple[Cell, Reach]:
    """The value at a rank, and how far below and above it the true one may lie.

    The smallest and largest value cannot be distinguished from noise; what is reported is where about so many rows lie beyond
    as the noise of a rank amounts to, and half a row where that is nothing.
    """
    if statistic.low is None or statistic.high is None or statistic.rank is None:
        raise ValueError("a quantile has bounds and a rank")
    low, leaves = float(statistic.low), len(tree.leaves)
    width = float(statistic.high - statistic.low) / leaves
    total, rank = float(tree.ranks[-1]), float(statistic.rank)
    clear = _HALF_A_ROW
    if rank in (0.0, 1.0):
        clear = clear_of_ends(rank_deviation(leaves, BRANCHING, noise.amount, noise.law))
    clear = min(clear, total / 2)
    share = min(max(rank * total, clear), total - clear) / total if total > 0 else 0.5
    position = quantile(tree, share) if total > 0 else leaves / 2
    value = low + position * width
    shown: Cell = int(min(max(math.floor(value), low), float(statistic.high) - 1)) if statistic.whole else value
    first, last = _not_ruled_out(tree, rank, noise)
    # For certain it is in one of the leaves.
    first, last = np.append(first, 0.0), np.append(last, leaves - 1.0)
    lowest = low + first * width
    highest = low + (last if statistic.whole else last + 1) * width
    below, above = (np.maximum.accumulate(np.maximum(side, 0.0)) for side in (shown - lowest, highest - shown))
    return shown, Reach(tuple(below.tolist()), tuple(above.tolist()))


def _not_ruled_out(tree: CountTree, rank: float, noise: Noise) -> tuple[Floats, Floats]:
    """The first and the last leaf, at each level, that may hold the quantile; all leaves where noise rules out every one."""
    ranks = np.concatenate([np.zeros(1), np.cumsum(tree.leaves)])
    deviations = boundary_deviations(len(tree.leaves), BRANCHING, rank, noise.amount, noise.law)
    beyond = ranks - rank * ranks[-1]
    tiny = 1e-6 * max(1.0, abs(float(ranks[-1])))
    # The row at a rank above 0 lies beyond the lower end of its leaf; the first row is the one that is below the upper end.
    lower_at_most = tiny if rank == 0 else -1.0 + tiny if rank == 1 else -tiny
    upper_at_least = 1.0 - tiny if rank == 0 else -tiny
    leaves = len(tree.leaves)
    first, last = np.zeros(len(LEVELS)), np.full(len(LEVELS), float(leaves - 1))
    for place, level in enumerate(LEVELS):
        slack = errors_in_sum_margin(noise.law, level) * deviations
        possible = np.flatnonzero((beyond[:-1] <= lower_at_most + slack[:-1]) & (beyond[1:] >= upper_at_least - slack[1:]))
        if len(possible):
            first[place], last[place] = possible[0], possible[-1]
    return first, last
