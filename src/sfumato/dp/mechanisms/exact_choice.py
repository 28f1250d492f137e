"""Exact choices with multiplicities: index i with probability proportional to counts[i]·exp(-exponents[i]).

A uniform number is drawn bit by bit and compared with cumulative weights that are known between two whole numbers; when
it falls too near to a border to tell, more bits are drawn and the weights are computed more precisely. No floating-point
number is involved. McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from sfumato.core.params import require
from sfumato.core.randomness import Randomness, below
from sfumato.kernels.sampling_thresholds import exp_bracket

_BITS = 128


def choose(counts: Sequence[int], exponents: Sequence[Fraction], source: Randomness) -> int:
    """An index, drawn exactly; counts of 0 are never chosen."""
    require(len(counts) == len(exponents) and any(counts), "there must be something to choose from")
    least = min(exponent for count, exponent in zip(counts, exponents, strict=True) if count)
    drawn, bits = 0, 0
    while True:
        drawn, bits = (drawn << _BITS) | below(source, 1 << _BITS), bits + _BITS
        low, high = _cumulative(counts, exponents, least, bits)
        # The uniform number lies in [drawn, drawn + 1)/2^bits, its place in the total between these two.
        first, last = drawn * low[-1], (drawn + 1) * high[-1]
        index = bisect_right(low, first >> bits)
        if index < len(low) and (index == 0 or high[index - 1] << bits <= first) and last <= low[index] << bits:
            return index


def _cumulative(counts: Sequence[int], exponents: Sequence[Fraction], least: Fraction, bits: int) -> tuple[list[int], list[int]]:
    known: dict[Fraction, tuple[int, int]] = {}
    lows, highs = [], []
    for count, exponent in zip(counts, exponents, strict=True):
        if count and exponent not in known:
            known[exponent] = exp_bracket(exponent - least, bits)
        low, high = known[exponent] if count else (0, 0)
        lows.append(count * max(low, 0))
        highs.append(count * high)
    return list(accumulate(lows)), list(accumulate(highs))
