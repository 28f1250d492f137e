"""Choosing ε by the risk of identification: how sure may the best guesser become who is missing from the data?

There are n equally likely worlds, each the public universe without one person, and Laplace noise of scale sensitivity/ε on
a query. The posterior of a world is largest when the answer falls on that world's own value, which makes it
1/Σ exp(−|difference|·ε/sensitivity); the closed form bounds every difference by the largest.
Lee, Clifton, "How much is enough? Choosing ε for differential privacy", ISC 2011.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from sfumato.core import ranges
from sfumato.core.declared import Declared, require
from sfumato.core.errors import Unsupported
from sfumato.core.exact import Number, exact
from sfumato.core.ranges import Each
from sfumato.dp.accounting.enclosure import DIGITS, Enclosure, shortened


@dataclass(frozen=True)
class Worlds(Declared):
    """The query's `values` in the possible worlds, and its `sensitivity` if one person is added to or removed from one."""

    values: Annotated[
        tuple[Fraction, ...],
        Each(ranges.Number(exact=True), at_least=2, what="at least two numbers"),
        "the query's value in each world",
    ]
    sensitivity: Annotated[Fraction, ranges.Number(above=0, exact=True), "the query's largest change by one person"]

    @property
    def spread(self) -> Fraction:
        """The largest difference of the query between two worlds."""
        return max(self.values) - min(self.values)


def mean(values: Sequence[Fraction]) -> Fraction:
    """The mean of some numbers."""
    return sum(values, Fraction(0)) / len(values)


def leave_one_out(universe: Sequence[Number], query: Callable[[Sequence[Fraction]], Fraction] = mean) -> Worlds:
    """The worlds in which exactly one person of a public universe is absent; the query's values must be exact."""
    require(len(universe) >= 3, "a universe has at least three people")
    people = [exact(value, "a value of the universe") for value in universe]
    worlds = [people[:absent] + people[absent + 1 :] for absent in range(len(people))]
    whole, values, change = query(people), [], Fraction(0)
    for world in worlds:
        value = query(world)
        values.append(value)
        fewer = [query(world[:gone] + world[gone + 1 :]) for gone in range(len(world))]
        change = max(change, *(abs(value - other) for other in (whole, *fewer)))
    return Worlds(tuple(values), change)


def identification_risk(worlds: Worlds, epsilon: Number) -> Fraction:
    """The largest posterior probability of a world, rounded up, after any answer with Laplace noise for this ε.

    >>> float(identification_risk(leave_one_out([1, 2, 3, 10]), "0.382939"))
    0.323250079353
    """
    return _largest_posterior(worlds, exact(epsilon, "epsilon")).up()


def epsilon_by_risk(worlds: Worlds, risk: Number) -> Fraction:
    """The largest ε, rounded down, with which no world ever becomes likelier than `risk`; exact, by bisection.

    >>> float(epsilon_by_risk(leave_one_out([1, 2, 3, 10]), "1/3"))
    0.431720119567
    """
    limit = _risk(risk, len(worlds.values))
    certain = Fraction(1, max(1, min(worlds.values.count(value) for value in worlds.values)))
    if certain <= limit:
        raise Unsupported("no epsilon makes a world likelier than this risk, because each value belongs to several worlds")
    low, high = Fraction(0), Fraction(1)
    while _largest_posterior(worlds, high).certainly_at_most(limit):
        low, high = high, high * 2
    while high - low > high / 10**DIGITS / 4:
        middle = (low + high) / 2
        if _largest_posterior(worlds, middle).certainly_at_most(limit):
            low = middle
        else:
            high = middle
    return shortened(low, upward=False)


def epsilon_by_risk_closed(worlds: int, risk: Number, sensitivity: Number, spread: Number) -> Fraction:
    """(sensitivity/spread)·ln((n − 1)·risk/(1 − risk)), rounded down: never above the exact value.

    >>> float(epsilon_by_risk_closed(4, "1/3", "17/6", 3))
    0.382939268768
    """
    require(isinstance(worlds, int) and worlds >= 2, "there are at least two possible worlds")
    limit = _risk(risk, worlds)
    change, width = exact(sensitivity, "sensitivity"), exact(spread, "spread")
    require(change > 0 and width > 0, "sensitivity and spread must be above 0")
    return (Enclosure.of((worlds - 1) * limit / (1 - limit)).ln() * (change / width)).down()


def _largest_posterior(worlds: Worlds, epsilon: Fraction) -> Enclosure:
    require(epsilon >= 0, "epsilon must not be negative")
    rate, largest = epsilon / worlds.sensitivity, Enclosure.of(0)
    for here in set(worlds.values):
        total = Enclosure.of(0)
        for there in worlds.values:
            total = total + Enclosure.of(-abs(here - there) * rate).exp()
        largest = largest.most(1 / total)
    return largest


def _risk(risk: Number, worlds: int) -> Fraction:
    limit = exact(risk, "risk")
    require(
        Fraction(1, worlds) < limit < 1,
        f"risk must lie above 1/{worlds}, the chance of a blind guess, and below 1",
    )
    return limit
