"""Truncated geometric mechanism: geometric noise on the ranks of a finite ordered domain.

Either what falls outside is gathered at the borders, which costs exactly ε per step, or every row of the channel is
divided by its sum, whose normaliser leaks: then the loss that is reported is the true, larger one.
Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms", STOC 2009.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

from sfumato.core.errors import ParameterError
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness, below
from sfumato.core.ranges import Count, Each, Instance
from sfumato.dp.accounting.enclosure import Enclosure
from sfumato.dp.mechanisms.calibrated import Stated, source_of
from sfumato.dp.mechanisms.grid import real_of
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.ranges import PART, Epsilon
from sfumato.kernels.sampling.noise import bernoulli, discrete_laplace_one

Entry: TypeAlias = int | float | str


@dataclass(frozen=True)
class TruncatedGeometric(Stated[Entry, Entry]):
    """An entry of an ordered `domain`, moved by y ranks with probability proportional to α^|y|.

    α is `ratio`, or exp(-ε/S) with `epsilon` for a value whose rank one unit moves by at most `sensitivity` ranks. With
    `form="accumulated"` the loss is exactly that ε; with `form="renormalised"` it is larger, and `loss()` says by how
    much. Where the entries are numbers that rise (or fall), any number counts as the next entry that is not above it, and
    one outside as the nearer end; NaN and None count as the first entry. In other domains what is no entry is refused:
    the query must answer entries alone.

    >>> TruncatedGeometric((30, 40, 50), ratio="1/2", form="renormalised").law(40)
    {30: Fraction(1, 4), 40: Fraction(1, 2), 50: Fraction(1, 4)}
    """

    domain: Annotated[
        tuple[Entry, ...],
        Each(Instance(object), at_least=2, different=True, what="at least two different entries"),
        "the answers in their order, declared by the owner",
    ]
    epsilon: Epsilon | None = None
    ratio: Annotated[Number | None, PART, "the ratio of probabilities one rank apart"] = None
    sensitivity: Annotated[Count, "how many ranks one unit moves the value by, at most"] = 1
    form: Annotated[Literal["accumulated", "renormalised"], "where the probability of ranks outside goes"] = "accumulated"

    def coherent(self) -> Iterable[str]:
        if (self.epsilon is None) == (self.ratio is None):
            yield "give epsilon, or the ratio of probabilities one rank apart"

    @cached_property
    def _reach(self) -> int:
        """The ranks one unit can move a value by."""
        return min(self.sensitivity, len(self.domain) - 1)

    @cached_property
    def _exponent(self) -> Fraction:
        """ε per rank, when it was given."""
        return Fraction(self.epsilon or 0) / self._reach

    def loss(self) -> PureDP:
        if self.form == "accumulated":
            return self._pure(exact(self.epsilon, "epsilon") if self.epsilon is not None else self._enclosed_loss.up())
        return self._pure(self._enclosed_loss.up())

    @cached_property
    def _enclosed_loss(self) -> Enclosure:
        """The loss from the ratio: that of the shift, and for rows divided by their sums that of the normalisers too."""
        alpha = Enclosure.of(Fraction(self.ratio)) if self.ratio is not None else Enclosure.of(-self._exponent).exp()
        shift = -alpha.ln() * self._reach
        if self.form == "accumulated":
            return shift
        last = len(self.domain) - 1
        near, far = _power(alpha, self._reach + 1), _power(alpha, last - self._reach + 1)
        sums = (alpha + 1 - near - far) / (1 - _power(alpha, last + 1))
        return shift + sums.ln()

    def law(self, value: Entry) -> dict[Entry, Fraction | float]:
        """The probability of every entry; exact fractions where a ratio was given."""
        alpha: Any = Fraction(self.ratio) if self.ratio is not None else math.exp(-float(self._exponent))
        rank, last = self._rank(value), len(self.domain) - 1
        weights = [alpha ** abs(place - rank) for place in range(last + 1)]
        if self.form == "renormalised":
            total = sum(weights)
            return {entry: weight / total for entry, weight in zip(self.domain, weights, strict=True)}
        weights = [weight * (1 - alpha) / (1 + alpha) for weight in weights]
        weights[0] = alpha**rank / (1 + alpha)
        weights[last] = alpha ** (last - rank) / (1 + alpha)
        return dict(zip(self.domain, weights, strict=True))

    def error(self) -> BoundedError:
        """In ranks: the deviation of the noise, which clamping only makes smaller; the largest bias is at a border."""
        alpha = float(Fraction(self.ratio)) if self.ratio is not None else math.exp(-float(self._exponent))
        last = len(self.domain) - 1
        if self.form == "accumulated":
            bias = alpha / (1 - alpha * alpha) * (1 - alpha**last)
            return BoundedError(min(math.sqrt(2 * alpha) / (1 - alpha), last), bias, "other", True, last)
        weights = [alpha**place for place in range(last + 1)]
        mean, square = (sum(w * place**power for place, w in enumerate(weights)) / sum(weights) for power in (1, 2))
        return BoundedError(math.sqrt(square), mean, "other", True, last)

    def answer(self, value: Entry, randomness: Randomness | None = None) -> Entry:
        source, rank, last = source_of(randomness), self._rank(value), len(self.domain) - 1
        while True:
            moved = rank + self._noise(source)
            if self.form == "accumulated":
                return self.domain[max(0, min(last, moved))]
            if 0 <= moved <= last:
                return self.domain[moved]

    def _noise(self, source: Randomness) -> int:
        if self.ratio is None:
            return discrete_laplace_one(1 / self._exponent, source)
        while True:
            negative, magnitude = bool(below(source, 2)), 0
            while magnitude < len(self.domain) and bernoulli(Fraction(self.ratio), source):
                magnitude += 1
            if not (negative and magnitude == 0):
                return -magnitude if negative else magnitude

    def _rank(self, value: Entry) -> int:
        if self._rising is None:
            if not isinstance(value, Hashable) or value not in self._ranks:
                raise ParameterError(
                    "the query answered something that is not in the declared domain, which has no numbers to compare it with. "
                    "Let the query answer entries of the domain alone"
                )
            return self._ranks[value]
        rising, last = self._rising, len(self.domain) - 1
        number = real_of(value)  # type: ignore[arg-type]
        if isinstance(number, float) and math.isnan(number):
            return 0
        # The largest entry that is not above it; moving a number never moves this rank further than it moves the number.
        place = max(0, bisect_right(rising, number) - 1)
        return place if self._ascending else last - place

    @cached_property
    def _ranks(self) -> dict[Entry, int]:
        return {entry: rank for rank, entry in enumerate(self.domain)}

    @cached_property
    def _ascending(self) -> bool:
        return bool(real_of(self.domain[0]) < real_of(self.domain[-1]))  # type: ignore[arg-type]

    @cached_property
    def _rising(self) -> list[Fraction | float] | None:
        """The entries as rising numbers, where they are numbers that rise or fall."""
        if not all(isinstance(entry, int | float | Fraction) for entry in self.domain):
            return None
        values = [real_of(entry) for entry in self.domain]  # type: ignore[arg-type]
        values = values if values[0] < values[-1] else values[::-1]
        return values if all(one < two for one, two in pairwise(values)) else None


def _power(base: Enclosure, exponent: int) -> Enclosure:
    return (base.ln() * exponent).exp()
