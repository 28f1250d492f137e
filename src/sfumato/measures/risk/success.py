"""Rates of success, and how sure they are: the 95 % interval that every attack and every linkage reports.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22(158), 1927.
"""

from __future__ import annotations

import math

#: Quantile of the standard normal distribution that leaves 2.5 % on each side.
_Z = 1.959963984540054


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """The 95 % interval of a rate; `successes` may be an expected number. Without trials nothing is known:
    (0, 1)."""
    if trials <= 0:
        return (0.0, 1.0)
    rate = min(max(successes / trials, 0.0), 1.0)
    square = _Z * _Z / trials
    centre = (rate + square / 2) / (1 + square)
    half = _Z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials)) / (1 + square)
    low = 0.0 if rate == 0.0 else max(centre - half, 0.0)
    high = 1.0 if rate == 1.0 else min(centre + half, 1.0)
    return (low, high)


def share(part: float, whole: float) -> float:
    """`part / whole`, 0 when there is nothing."""
    return float(part) / float(whole) if whole else 0.0
