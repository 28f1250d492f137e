"""Exact laws to hold samplers against: mass functions as fractions with a bound, and sources that try every byte."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

DIGITS = 60
ERROR = Fraction(1, 10 ** (DIGITS - 10))


class Unfinished(Exception):
    """The draw asked for more than this path holds."""


class Path:
    """A source that plays given bytes and counts how many were asked for in vain."""

    private = False
    description = "every byte string in turn"

    def __init__(self, played: bytes) -> None:
        self.played = played
        self.used = 0
        self.asked = 0

    def bytes(self, count: int) -> bytes:
        self.asked = self.used + count
        if self.asked > len(self.played):
            raise Unfinished
        taken = self.played[self.used : self.asked]
        self.used = self.asked
        return taken


def masses_over_bytes(draw: Callable[[Path], Hashable], depth: int) -> tuple[dict[Hashable, Fraction], Fraction]:
    """The probability of each outcome over all byte strings of at most `depth`, and what was not settled by then."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    unsettled = Fraction(0)
    waiting = [b""]
    while waiting:
        played = waiting.pop()
        path = Path(played)
        try:
            outcome = draw(path)
        except Unfinished:
            more = path.asked - len(played)
            if path.asked > depth:
                unsettled += Fraction(1, 256 ** len(played))
            else:
                waiting += [played + bytes(tail) for tail in itertools.product(range(256), repeat=more)]
            continue
        assert path.used == len(played)
        found[outcome] += Fraction(1, 256**path.used)
    return dict(found), unsettled


class Again(Exception):
    """A rejected trial: the sampler starts anew, with the same law."""


class Choices:
    """Stands in for building blocks whose law is known: tries everything they can give, with its exact chance.

    `starts` names the block that begins a trial; when it is asked a second time, the first trial was rejected.
    """

    def __init__(self, taken: tuple[int, ...], starts: str = "") -> None:
        self.taken = taken
        self.starts = starts
        self.used = 0
        self.trials = 0
        self.mass = Fraction(1)
        self.next: list[Fraction] = []

    def below(self, source: object, bound: int) -> int:
        self._begin("below")
        return self._choose([Fraction(1, bound)] * bound)

    def accept(self, numerator: int, denominator: int, source: object) -> bool:
        chance = exp(Fraction(numerator, denominator))
        return self._choose([1 - chance, chance]) == 1

    def geometric(self, scale: Fraction, source: object) -> int:
        return self._choose(_geometric_masses(scale))

    def laplace(self, scale: Fraction, source: object) -> int:
        self._begin("laplace")
        masses = _laplace_masses(scale)
        return self._choose(masses) - len(masses) // 2

    def _begin(self, block: str) -> None:
        self.trials += block == self.starts
        if self.trials > 1:
            raise Again

    def _choose(self, chances: list[Fraction]) -> int:
        if self.used == len(self.taken):
            self.next = chances
            raise Unfinished
        chosen = self.taken[self.used]
        self.used += 1
        self.mass *= chances[chosen]
        return chosen


def masses_over_choices(
    draw: Callable[[Choices], Hashable], limit: Fraction, starts: str = ""
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """The probability of each outcome given that its trial is not rejected; paths rarer than `limit` stay unsettled."""
    found: dict[Hashable, Fraction] = defaultdict(Fraction)
    unsettled = rejected = Fraction(0)
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        choices = Choices(waiting.pop(), starts)
        try:
            outcome = draw(choices)
        except Unfinished:
            if choices.mass < limit:
                unsettled += choices.mass
            else:
                unsettled += choices.mass * (1 - sum(choices.next))  # what the block's own list leaves out
                waiting += [(*choices.taken, value) for value, chance in enumerate(choices.next) if chance]
        except Again:
            rejected += choices.mass
        else:
            found[outcome] += choices.mass
    return {outcome: mass / (1 - rejected) for outcome, mass in found.items()}, unsettled / (1 - rejected)


@lru_cache
def _geometric_masses(scale: Fraction) -> list[Fraction]:
    mass = geometric_mass(scale)
    return [mass(k) for k in range(int(25 * scale) + 10)]


@lru_cache
def _laplace_masses(scale: Fraction) -> list[Fraction]:
    mass, reach = laplace_mass(scale), int(25 * scale) + 10
    return [mass(x) for x in range(-reach, reach + 1)]


@lru_cache(maxsize=100_000)
def exp(exponent: Fraction) -> Fraction:
    """e^(-exponent) to fifty places, by the decimal module, which shares no code with the samplers."""
    if exponent > 150:
        return Fraction(0)
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction((-(Decimal(exponent.numerator) / Decimal(exponent.denominator))).exp())


def bernoulli_exp_mass(exponent: Fraction) -> Callable[[int], Fraction]:
    return lambda outcome: exp(exponent) if outcome else 1 - exp(exponent)


def geometric_mass(scale: Fraction) -> Callable[[int], Fraction]:
    step = exp(1 / scale)
    return lambda k: (1 - step) * exp(k / scale) if k >= 0 else Fraction(0)


def laplace_mass(scale: Fraction) -> Callable[[int], Fraction]:
    step = exp(1 / scale)
    return lambda x: (1 - step) / (1 + step) * exp(abs(x) / scale)


def gaussian_mass(variance: Fraction) -> Callable[[int], Fraction]:
    reach = int(17 * float(variance) ** 0.5) + 17  # what lies beyond is below 10^-60
    total = 1 + 2 * sum(exp(Fraction(x * x) / (2 * variance)) for x in range(1, reach + 1))
    return lambda x: exp(Fraction(x * x) / (2 * variance)) / total


def cells(lowest: int, mass: Callable[[int], Fraction], expected: float, count: int) -> Iterator[tuple[int, float]]:
    """Upper ends of neighbouring cells that hold at least `expected` of `count` draws each, and their probability."""
    held = Fraction(0)
    left = Fraction(1)
    x = lowest
    while left * count > 2 * expected:
        held += mass(x)
        if held * count >= expected:
            left -= held
            yield x, float(held)
            held = Fraction(0)
        x += 1


def chi_square_p_value(drawn: np.ndarray, mass: Callable[[int], Fraction], lowest: int, expected: float = 50.0) -> float:
    """How likely a chi-square statistic as large as this is when the draws have the law `mass`."""
    from scipy import stats

    limits = list(cells(lowest, mass, expected, drawn.size))
    ends = np.array([end for end, _ in limits])
    chances = np.array([chance for _, chance in limits])
    # the first cell also takes what lies below it, the last what lies above
    observed = np.bincount(np.searchsorted(ends, drawn, side="left"), minlength=ends.size + 1)
    chances = np.append(chances, 1 - chances.sum())
    return float(stats.chisquare(observed, chances / chances.sum() * drawn.size).pvalue)
