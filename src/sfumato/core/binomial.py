"""Tails of the binomial distribution, never too small: what a model-based promise rests on."""

from __future__ import annotations

import math
from functools import lru_cache

#: Far above the rounding of the terms that are added, far below any confidence that somebody states.
_SLACK = 1e-9
#: More than all that lies twelve deviations and forty successes above the mean (Bernstein's inequality gives less than 10⁻²⁵).
_BEYOND = 1e-25


@lru_cache(maxsize=4096)
def fewest_unlikely(trials: int, chance: float, at_most: float) -> int:
    """The least n for which n or more successes have a probability of at most `at_most`, rounded to the larger side.

    >>> fewest_unlikely(4, 0.1, 0.05)
    3
    """
    if chance >= 1.0:
        return trials + 1
    mean = trials * chance
    reach = mean + 12.0 * math.sqrt(mean * (1.0 - chance)) + 40.0
    n = trials + 1 if reach >= trials else math.ceil(reach)
    tail = 0.0 if n > trials else _BEYOND
    whole, log_yes, log_no = math.lgamma(trials + 1), math.log(chance), math.log1p(-chance)
    while n > 0:
        last = n - 1
        tail += math.exp(
            whole - math.lgamma(last + 1) - math.lgamma(trials - last + 1) + last * log_yes + (trials - last) * log_no
        )
        if tail * (1.0 + _SLACK) > at_most:
            return n
        n = last
    return n


def likely_at_most(trials: int, chance: float, confidence: float) -> int:
    """The least n that is exceeded with a probability of at most 1 − `confidence`, rounded to the larger side.

    >>> likely_at_most(100, 0.1, 0.95)
    15
    """
    return min(max(fewest_unlikely(trials, chance, 1.0 - confidence) - 1, 0), trials)
