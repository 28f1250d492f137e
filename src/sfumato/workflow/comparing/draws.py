"""What several draws of a method say: where a new draw lies, and whether two methods can be told apart.

A published mask is a new draw, so an error bar is the 95 % interval of one more draw: t · s · √(1 + 1/r) to either side of the
mean of r draws. Two methods are compared by Welch's test of their mean balances, at 5 %. Welch, "The generalization of Student's
problem when several different population variances are involved", Biometrika 34, 1947.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

#: The chance with which two methods with the same mean balance are told apart.
LEVEL = 0.05
#: Balances this close are the same number.
_ROUNDING = 1e-12


def margin(draws: Sequence[float]) -> float | None:
    """How far from the mean a new draw lies with 95 %; None after a single draw, which says nothing about others."""
    if len(draws) < 2:
        return None
    from scipy.special import stdtrit

    quantile = float(stdtrit(len(draws) - 1, 1 - LEVEL / 2))
    return quantile * statistics.stdev(draws) * math.sqrt(1 + 1 / len(draws))


def widened(draws: int) -> float:
    """How many times as wide the interval of a new draw is for so few draws as it would be for very many."""
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(draws - 1, 1 - LEVEL / 2) * math.sqrt(1 + 1 / draws) / ndtri(1 - LEVEL / 2))


def told_apart(first: Sequence[float], second: Sequence[float]) -> bool | None:
    """Whether the means of two series of draws differ by more than the draws vary; None where either is a single draw."""
    if len(first) < 2 or len(second) < 2:
        return None
    from scipy.special import stdtr

    gap = abs(statistics.fmean(first) - statistics.fmean(second))
    shares = [statistics.variance(draws) / len(draws) for draws in (first, second)]
    total = sum(shares)
    if math.sqrt(total) <= _ROUNDING:  # neither draws anything
        return gap > _ROUNDING
    freedom = total**2 / sum(share**2 / (len(draws) - 1) for share, draws in zip(shares, (first, second), strict=True))
    return bool(2 * stdtr(freedom, -gap / math.sqrt(total)) < LEVEL)
