"""The formulas once more, in floating point of a hundred digits: what the enclosed and rounded values are held against."""

from __future__ import annotations

from fractions import Fraction

import mpmath

mpmath.mp.dps = 100


def real(value: Fraction | int | str) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def tail(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def gaussian_delta(epsilon: Fraction, sigma: Fraction, sensitivity: Fraction) -> mpmath.mpf:
    mu, loss = real(sensitivity) / real(sigma), real(epsilon)
    return tail(loss / mu - mu / 2) - mpmath.exp(loss) * tail(loss / mu + mu / 2)


def discrete_gaussian_delta(epsilon: Fraction, variance: Fraction, sensitivity: int, reach: int) -> mpmath.mpf:
    """The hockey-stick divergence by its definition: a sum of positive parts over the whole numbers."""

    def weight(k: int) -> mpmath.mpf:
        return mpmath.exp(-real(Fraction(k * k) / (2 * variance)))

    weights = {k: weight(k) for k in range(-reach - sensitivity, reach + sensitivity + 1)}
    growth = mpmath.exp(real(epsilon))
    excess = (max(weights[k] - growth * weights[k - sensitivity], 0) for k in range(-reach, reach + 1))
    return mpmath.fsum(excess) / mpmath.fsum(weights.values())


def zcdp_delta(rho: Fraction, epsilon: Fraction, order: mpmath.mpf) -> mpmath.mpf:
    """δ of ρ-zCDP at ε from one order, by the bound on the expected excess of the privacy loss."""
    above = order - 1
    return mpmath.exp(above * (order * real(rho) - real(epsilon))) / above * (1 - 1 / order) ** order


def smallest_zcdp_delta(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The same at the best order, found by bisection on the derivative of the exponent's logarithm."""
    low, high = mpmath.mpf("1e-12"), mpmath.mpf("1e12")

    def slope(above: mpmath.mpf) -> mpmath.mpf:
        return (2 * above + 1) * real(rho) - real(epsilon) + mpmath.log(above / (1 + above))

    for _ in range(90):  # 24 powers of ten halved so often leave twenty-five digits
        middle = mpmath.sqrt(low * high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return zcdp_delta(rho, epsilon, 1 + low)
