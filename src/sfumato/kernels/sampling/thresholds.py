"""Binary digits of exp(-x) and of what is made of it, certified: the integers that random words are compared with.

A threshold is floor(2^bits · p) for a probability p. It is computed from a lower and an upper bound of p in whole
numbers, with growing precision until both have the same floor. Every p here is irrational (a rational function of
e^(-x) that is not constant, x a rational other than 0: Lindemann), so the floors agree in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

_SPARE = 64  # digits beyond those asked for, in the first attempt
_GUARD = 16
_SMALL = 8  # the series is summed for arguments below 2^-8


def exp_bracket(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Whole numbers around 2^precision · e^(-exponent), a few units apart, for any exponent of at least 0."""
    if exponent == 0:
        return 1 << precision, 1 << precision
    if exponent >= precision:
        return 0, 1  # e^(-precision) is below 2^(-precision)
    squarings = (exponent.numerator // exponent.denominator).bit_length() + _SMALL
    inner = precision + squarings + _GUARD
    argument = (exponent.numerator << (inner - squarings)) // exponent.denominator
    total = term = 1 << inner
    terms = 0
    while term:
        terms += 1
        term = ((term * argument) >> inner) // terms
        total += -term if terms % 2 else term
    # each term and the argument are rounded down by less than two units; the rest of the series is below the last term
    low, high = total - 2 * terms - 6, total + 2 * terms + 6
    for _ in range(squarings):
        low, high = (low * low) >> inner, ((high * high) >> inner) + 1
    return low >> (inner - precision), (high >> (inner - precision)) + 1


def exp_threshold(exponent: Fraction, bits: int) -> int:
    """floor(2^bits · e^(-exponent)); not remembered, because an exponent may come from data."""

    def floors(precision: int) -> tuple[list[int], list[int]]:
        low, high = exp_bracket(exponent, precision)
        return [low >> (precision - bits)], [high >> (precision - bits)]

    return _agreed(floors, bits + _SPARE)[0]


@lru_cache(maxsize=256)
def negative_thresholds(exponent: Fraction, bits: int) -> tuple[int, ...]:
    """floor(2^bits · 1/(1 + e^exponent)): the chance that a discrete Laplace variable is below 0."""

    def floors(precision: int) -> tuple[list[int], list[int]]:
        low, high = exp_bracket(exponent, precision)
        one = 1 << precision
        return [(low << bits) // (one + low)], [(high << bits) // (one + high)]  # r / (1 + r) grows with r

    return tuple(_agreed(floors, bits + _SPARE))


@lru_cache(maxsize=256)
def geometric_thresholds(exponent: Fraction, count: int, bits: int) -> tuple[int, ...]:
    """floor(2^bits · P(K < i)) for i from 1 to `count`, where P(K >= i) = e^(-i·exponent)."""

    def floors(precision: int) -> tuple[list[int], list[int]]:
        lows, highs = _powers(exponent, count, precision)
        one, drop = 1 << precision, precision - bits
        # a power is above its lower bound, never equal to it: without that unit a tiny power would take ages to tell from 0
        return [(one - high) >> drop for high in highs], [(one - low - 1) >> drop for low in lows]

    return tuple(_agreed(floors, bits + _SPARE))


@lru_cache(maxsize=256)
def digit_thresholds(exponent: Fraction, base: int, bits: int) -> tuple[int, ...]:
    """floor(2^bits · P(D < i)) for i from 1 to base - 1, where D in [0, base) has mass proportional to e^(-D·exponent)."""

    def floors(precision: int) -> tuple[list[int], list[int]]:
        lows, highs = _powers(exponent, base, precision)
        one = 1 << precision
        least, most = one - highs.pop(), one - lows.pop()
        last = (1 << bits) - 1  # every cumulative probability of the list is below 1
        high_floors = [min(((one - low) << bits) // least, last) for low in lows]
        return [((one - high) << bits) // most for high in highs], high_floors

    # for a small exponent both sides of the fraction are small, and as many leading digits are lost
    return tuple(_agreed(floors, bits + _SPARE + (exponent.denominator // exponent.numerator).bit_length()))


def _powers(exponent: Fraction, count: int, precision: int) -> tuple[list[int], list[int]]:
    """Bounds of 2^precision · e^(-i·exponent) for i from 1 to `count`."""
    low, high = exp_bracket(exponent, precision)
    lows, highs = [low], [high]
    for _ in range(count - 1):
        lows.append((lows[-1] * low) >> precision)
        highs.append(((highs[-1] * high) >> precision) + 1)
    return lows, highs


def _agreed(floors: Callable[[int], tuple[list[int], list[int]]], precision: int) -> list[int]:
    while True:
        low, high = floors(precision)
        if low == high:
            return low
        precision *= 2
