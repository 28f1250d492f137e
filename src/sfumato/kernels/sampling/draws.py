"""Draws for masks and simulations: uniform, normal and whole numbers from a byte source, in bulk.

The bytes come from an AES-CTR stream keyed by the source, so that nobody can run the generator backwards from what was
published, and a seed gives the same draws under every version of NumPy. These are floating-point draws: nothing that
claims differential privacy may use them (`kernels.sampling.noise` is for that).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.randomness import Randomness, StreamRandomness, permutation, words

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_UNIT = 2.0**-53


class Draws:
    """A stream of draws; two with the same seeded source give the same numbers."""

    def __init__(self, source: Randomness) -> None:
        self._stream = StreamRandomness(source.bytes(32).hex())

    def uniform(self, *shape: int) -> Real:
        """Uniform numbers of [0, 1), multiples of 2^-53."""
        count = int(np.prod(shape)) if shape else 1
        drawn = (words(self._stream, count) >> np.uint64(11)).astype(np.float64)
        drawn *= _UNIT
        return drawn.reshape(shape)

    def normal(self, *shape: int) -> Real:
        """Standard normal numbers, by inversion of uniform numbers that lie strictly between 0 and 1."""
        from scipy.special import ndtri

        drawn = self.uniform(*shape)
        drawn += _UNIT / 2
        return np.asarray(ndtri(drawn, out=drawn))

    def below(self, bounds: Int) -> Int:
        """A uniform whole number of [0, bound) for each bound (at most 2^31; the bias is below 2^-32)."""
        limits = np.asarray(bounds, dtype=np.int64)
        require(bool(np.all(limits >= 1) and np.all(limits <= 1 << 31)), "bounds of whole numbers lie between 1 and 2^31")
        high = (words(self._stream, limits.size) >> np.uint64(32)).astype(np.uint64)
        numbers: Int = ((high * limits.reshape(-1).astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
        return numbers.reshape(limits.shape)

    def permutation(self, count: int) -> Int:
        """A uniform order of range(count)."""
        return permutation(self._stream, count)

    def sample(self, count: int, size: int) -> Int:
        """That many different whole numbers below count, in random order."""
        require(0 <= size <= count, "a sample without replacement cannot be larger than what it is drawn from")
        return self.permutation(count)[:size]

    def weighted(self, weights: Real, size: int) -> Int:
        """Positions with probability proportional to their weight, with replacement."""
        totals = np.cumsum(weights, dtype=np.float64)
        require(bool(totals.size and totals[-1] > 0), "weights must not be negative nor all zero")
        places = np.searchsorted(totals, self.uniform(size) * totals[-1], side="right")
        positions: Int = np.minimum(places, totals.size - 1).astype(np.int64)
        return positions

    def key(self) -> str:
        """A seed with the full strength of the stream, for another stream of draws."""
        return self._stream.bytes(32).hex()

    def seed(self) -> int:
        """A seed for a library that draws by itself (a tree, a mixture model)."""
        return int.from_bytes(self._stream.bytes(4), "big") >> 1
