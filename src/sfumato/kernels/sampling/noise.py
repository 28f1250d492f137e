"""Exact samples of integer noise from a byte source: Bernoulli(e^(-x)), geometric, discrete Laplace, discrete Gaussian.

Parameters are rational and every decision compares uniform integers with integers, so that the law is exactly the
stated one: no floating-point number is involved (docs/theory/exact-noise.md). Functions that end in `_one` draw a
Python integer of any size; the others draw arrays, in bulk. What is drawn depends on the bytes of the source and on
the arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.randomness import Randomness
from sfumato.kernels.sampling.choice import permute_and_flip, select_by_exponent, uniform_below
from sfumato.kernels.sampling.inversion import discrete_laplace_block, geometric_block
from sfumato.kernels.sampling.rejection import discrete_gaussian_block
from sfumato.kernels.sampling.scalar import (
    bernoulli,
    bernoulli_exp,
    discrete_gaussian_one,
    discrete_laplace_one,
    geometric_one,
    rational,
)

__all__ = [
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_gaussian_one",
    "discrete_laplace",
    "discrete_laplace_one",
    "geometric",
    "geometric_one",
    "permute_and_flip",
    "select_by_exponent",
    "uniform_below",
]

WIDEST = Fraction(1 << 48)  # from this scale on, arrays hold Python integers: 64 bits might not do
_NARROWEST = Fraction(1, 1 << 50)  # below this standard deviation the bulk path would need wider products
_FEW = 64  # that many draws one by one cost about as much as the tables of a new scale
_BLOCK = 1 << 16

_One = Callable[[Fraction, Randomness], int]
_Block = Callable[[Fraction, int, Randomness], NDArray[np.int64]]


def geometric(scale: Fraction, count: int, source: Randomness) -> NDArray[np.int64]:
    """That many independent draws of `geometric_one`; Python integers (dtype object) from a scale of 2^48 on."""
    scale = rational(scale, "the scale")
    require(scale > 0, "the scale must be above 0")
    return _draws(scale, count, source, geometric_one, geometric_block, wide=scale >= WIDEST)


def discrete_laplace(scale: Fraction, count: int, source: Randomness) -> NDArray[np.int64]:
    """That many independent draws of `discrete_laplace_one`; Python integers (dtype object) from a scale of 2^48 on."""
    scale = rational(scale, "the scale")
    require(scale > 0, "the scale must be above 0")
    return _draws(scale, count, source, discrete_laplace_one, discrete_laplace_block, wide=scale >= WIDEST)


def discrete_gaussian(variance: Fraction, count: int, source: Randomness) -> NDArray[np.int64]:
    """That many independent draws of `discrete_gaussian_one`; Python integers (dtype object) from a variance of 2^96 on."""
    variance = rational(variance, "the variance")
    require(variance > 0, "the variance must be above 0")
    few = count if variance < _NARROWEST**2 else _FEW
    return _draws(variance, count, source, discrete_gaussian_one, discrete_gaussian_block, wide=variance >= WIDEST**2, few=few)


def _draws(
    parameter: Fraction, count: int, source: Randomness, one: _One, block: _Block, *, wide: bool, few: int = _FEW
) -> NDArray[np.int64]:
    require(count >= 0, "the number of draws must not be negative")
    if wide or count <= few:
        return np.array([one(parameter, source) for _ in range(count)], dtype=object if wide else np.int64)
    drawn = np.empty(count, dtype=np.int64)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        drawn[start:stop] = block(parameter, stop - start, source)
    return drawn
