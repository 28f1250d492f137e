"""Exact choices with multiplicities: index i with probability proportional to counts[i]·exp(-rate·penalties[i]).

A uniform number is drawn bit by bit and compared with cumulative weights that are known between two whole numbers; when
it falls too near to a border to tell, more bits are drawn and the weights are computed more precisely. No floating-point
number is involved. McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from sfumato.core.declared import require
from sfumato.core.randomness import Randomness, below
from sfumato.kernels.sampling.thresholds import exp_bracket

_BITS = 64


def choose(counts: Sequence[int], penalties: Sequence[int], rate: Fraction, source: Randomness) -> int:
    """Index i with probability proportional to counts[i]·exp(-rate·penalties[i]), exactly; a count of 0 is never chosen."""
    require(len(counts) == len(penalties) and any(counts), "there must be something to choose from")
    least = min(penalty for count, penalty in zip(counts, penalties, strict=True) if count)
    drawn, bits = 0, 0
    while True:
        drawn, bits = (drawn << _BITS) | below(source, 1 << _BITS), bits + _BITS
        low, high = _cumulative(counts, penalties, least, rate, bits)
        # The uniform number lies in [drawn, drawn + 1)/2^bits, its place in the total between these two.
        first, last = drawn * low[-1], (drawn + 1) * high[-1]
        index = bisect_right(low, first >> bits)
        if index < len(low) and (index == 0 or high[index - 1] << bits <= first) and last <= low[index] << bits:
            return index


def _cumulative(
    counts: Sequence[int], penalties: Sequence[int], least: int, rate: Fraction, bits: int
) -> tuple[list[int], list[int]]:
    cache: dict[int, tuple[int, int]] = {}
    far = least + math.ceil(bits / rate)
    lows, highs = [], []
    for count, penalty in zip(counts, penalties, strict=True):
        if not count or penalty >= far:  # e^(-bits) is below 2^(-bits)
            low, high = 0, 1
        elif penalty in cache:
            low, high = cache[penalty]
        else:
            low, high = cache[penalty] = exp_bracket((penalty - least) * rate, bits)
        lows.append(count * max(low, 0))
        highs.append(count * high)
    return list(accumulate(lows)), list(accumulate(highs))
