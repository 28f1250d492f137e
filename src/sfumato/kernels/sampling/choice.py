"""Exact choices: a uniform integer, an index with probability proportional to e^(-exponent), permute-and-flip.

Only differences of exponents matter, so the smallest is taken from all: the best candidate is accepted for certain.
McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007; McKenna, Sheldon, "Permute-and-flip",
NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.randomness import Randomness, below, permutation
from sfumato.core.randomness import words as long_words
from sfumato.kernels.sampling.inversion import BITS, words
from sfumato.kernels.sampling.rejection import FAR, PLACES, decide, enclose
from sfumato.kernels.sampling.scalar import bernoulli_exp, rational

Int = NDArray[np.int64]

_FEW = 64
_ROUND = 1 << 14


def uniform_below(bound: int, count: int, source: Randomness) -> Int:
    """Independent uniform integers in [0, bound), by rejection; the bound is at most 2^63."""
    require(count >= 0, "the number of draws must not be negative")
    require(1 <= bound <= 1 << 63, "the bound of uniform integers lies between 1 and 2^63")
    width = (bound - 1).bit_length()
    drawn = np.zeros(count, dtype=np.int64)
    filled = 0
    while width and filled < count:
        expected = ((count - filled) << width) // bound
        block = (long_words(source, expected + expected // 16 + 8) >> np.uint64(64 - width)).astype(np.int64)
        kept = block[block < bound] if bound < 1 << 63 else block
        kept = kept[: count - filled]
        drawn[filled : filled + kept.size] = kept
        filled += kept.size
    return drawn


def select_by_exponent(exponents: Sequence[Fraction], source: Randomness) -> int:
    """Index i with probability proportional to e^(-exponents[i]).

    A uniform index is accepted with the chance of its exponent; the number of trials depends on the exponents.
    """
    excess = _above_the_least(exponents)
    if len(excess) < _FEW:
        while True:
            index = below(source, len(excess))
            if bernoulli_exp(excess[index], source):
                return index
    low, high = _enclosures(excess)
    while True:
        trials = uniform_below(len(excess), min(_ROUND, len(excess)), source)
        for index in _accepted(trials, excess, low, high, source):
            return index


def permute_and_flip(exponents: Sequence[Fraction], source: Randomness) -> int:
    """The first index of a uniform permutation that is accepted with the chance e^(-(exponents[i] - smallest))."""
    excess = _above_the_least(exponents)
    order = permutation(source, len(excess))
    if len(excess) < _FEW:
        return next(int(index) for index in order if bernoulli_exp(excess[index], source))
    low, high = _enclosures(excess)
    return next(_accepted(order, excess, low, high, source))  # the smallest exponent is accepted for certain


def _above_the_least(exponents: Sequence[Fraction]) -> list[Fraction]:
    require(len(exponents) > 0, "there must be something to choose from")
    exact = [rational(exponent, "an exponent") for exponent in exponents]
    least = min(exact)
    return [exponent - least for exponent in exact] if least else exact


def _enclosures(exponents: Sequence[Fraction]) -> tuple[Int, Int]:
    """Bounds of 2^32·e^(-x) for each exponent."""
    far = (FAR + 1) << PLACES
    scaled = [min((exponent.numerator << PLACES) // exponent.denominator, far) for exponent in exponents]
    low, high = enclose(np.array(scaled, dtype=np.int64), 1)
    low[[index for index, exponent in enumerate(exponents) if exponent == 0]] = 1 << BITS
    return low, high


def _accepted(trials: Int, exponents: Sequence[Fraction], low: Int, high: Int, source: Randomness) -> Iterator[int]:
    """The trials that are accepted, in their order; what is not asked for is not decided."""
    drawn = words(trials.size, BITS, source).astype(np.int64)
    settled = drawn < low[trials]
    for place in np.flatnonzero(drawn < high[trials]):
        index = int(trials[place])
        if settled[place] or decide(int(drawn[place]), exponents[index], source):
            yield index
