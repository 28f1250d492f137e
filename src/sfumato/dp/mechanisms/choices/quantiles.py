"""Quantiles and median: the exponential mechanism over a declared grid, scored by how far a point's rank is off.

A point c scores -|(1-q)·(records below c) - q·(records above c)|: its largest change is max(q, 1-q) when a record comes or
goes and 1 when one is replaced. Points between the same two records share a score, so the work depends on the
number of records and not on the fineness of the grid. Several quantiles are found by halving: the middle one first,
then the others on either side with the records of that side alone, so that a record takes part in one choice per level.
Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011; Kaplan, Schnapp, Stemmer,
"Differentially private approximate quantiles", ICML 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core import ranges
from sfumato.core.declared import require_confidence
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness, below
from sfumato.core.ranges import Whole
from sfumato.dp.mechanisms.calibrated import Stated, source_of
from sfumato.dp.mechanisms.choices.exact_choice import choose
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.statistics.clamped import Clamped
from sfumato.dp.mechanisms.statistics.records import Records, places
from sfumato.dp.ranges import Bound, Epsilon, Rising, apart

Ranks = NDArray[np.int64]

#: The fineness of the grid of answers.
Points = Annotated[int, Whole(at_least=1, at_most=2**40), "the steps of the grid that answers are among"]


@dataclass(frozen=True)
class Quantiles(Stated[Records, tuple[float, ...]]):
    """Several `quantiles` of records between declared bounds, in rising order, from one budget.

    ε-private (`epsilon`). The answers are among `points` + 1 equally spaced points from `lower` to `upper`; records are
    rounded to them. No bound in the records' unit holds for every table (there may be a gap), so `error()` is the width;
    `rank_error` is what the mechanism promises: how many records lie between the answer and the true quantile.
    """

    quantiles: Annotated[
        tuple[Number, ...],
        Rising(ranges.Number(at_least=0, at_most=1, exact=True), at_least=1, what="numbers from 0 to 1 that rise, at least one"),
        "the shares of the records that lie below the answers",
    ]
    lower: Annotated[Bound, "the lower end of the values, declared by the owner"]
    upper: Annotated[Bound, "the upper end of the values, declared by the owner"]
    epsilon: Epsilon
    points: Points = 2**20

    def coherent(self) -> Iterable[str]:
        yield from apart(self.lower, self.upper)

    @cached_property
    def _levels(self) -> int:
        return len(self.quantiles).bit_length()

    @cached_property
    def _each(self) -> Fraction:
        """ε of one choice. When a record is replaced it may leave one side and join the other: two choices per level."""
        doubled = 2 if self.neighbours == "replace" and self._levels > 1 else 1
        return Fraction(self.epsilon) / (self._levels * doubled)

    @property
    def _alone(self) -> bool:
        """Whether replacing is accounted for in the score instead of by two choices."""
        return self.neighbours == "replace" and self._levels == 1

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        width = float(Fraction(self.upper) - Fraction(self.lower))
        return BoundedError.of(width, width)

    def rank_error(self, confidence: float = 0.95) -> float:
        """How many records lie, at most, between the answer and the true quantile, for all answers together.

        One choice misses by more than unit·(ln points + t) with probability e^-t; misses of the levels above add up.
        """
        require_confidence(confidence)
        unit = 2 * 1.0 / float(self._each)
        each = unit * math.log((self.points + 1) * len(self.quantiles) / (1 - confidence))
        return each * self._levels + self._levels

    def answer(self, value: Records, randomness: Randomness | None = None) -> tuple[float, ...]:
        records = np.sort(places(value, Fraction(self.lower), Fraction(self.upper), self.points).ravel())
        source, width = source_of(randomness), Fraction(self.upper) - Fraction(self.lower)
        ranks = [Fraction(quantile) for quantile in self.quantiles]
        values = self._search(records, ranks, 0, self.points, source)
        return tuple(float(Fraction(self.lower) + place * width / self.points) for place in values)

    def _search(self, records: Ranks, ranks: list[Fraction], first: int, last: int, source: Randomness) -> list[int]:
        """The places of the wanted quantiles of these records, between two places."""
        if not ranks:
            return []
        middle = len(ranks) // 2
        quantile = ranks[middle]
        place = self._choice(records, quantile, first, last, source)
        cut = int(np.searchsorted(records, place, side="left"))
        lesser = [q / quantile for q in ranks[:middle]]
        greater = [(q - quantile) / (1 - quantile) for q in ranks[middle + 1 :]]
        return [
            *self._search(records[:cut], lesser, first, place, source),
            place,
            *self._search(records[cut:], greater, place, last, source),
        ]

    def _choice(self, records: Ranks, quantile: Fraction, first: int, last: int, source: Randomness) -> int:
        """One place between two, by the exponential mechanism; all places in a gap between records have the same score."""
        values, repeats = np.unique(np.clip(records, first, last), return_counts=True)
        starts, counts, scores, lower = [], [], [], 0
        ahead, total = first, len(records)
        top, bottom = quantile.numerator, quantile.denominator
        for value, repeat in zip(values.tolist(), repeats.tolist(), strict=True):
            for start, stop, equal in ((ahead, value, 0), (value, value + 1, repeat)):
                starts.append(start)
                counts.append(stop - start)
                scores.append(abs((bottom - top) * lower - top * (total - lower - equal)))
            lower, ahead = lower + repeat, value + 1
        starts.append(ahead)
        counts.append(last + 1 - ahead)
        scores.append(abs((bottom - top) * lower))
        change = bottom if self._alone else max(top, bottom - top)
        rate = self._each / (2 * change)
        index = choose(counts, scores, rate, source)
        return starts[index] + below(source, counts[index])


@dataclass(frozen=True)
class Median(Clamped[float]):
    """The median of records between declared bounds, on a grid of `points` + 1 points; ε-private.

    See `Quantiles` for the error.
    """

    points: Points = 2**20

    @cached_property
    def _quantiles(self) -> Quantiles:
        return Quantiles(("1/2",), self.lower, self.upper, self.epsilon, self.points, neighbours=self.neighbours, unit=self.unit)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        return self._quantiles.error()

    def rank_error(self, confidence: float = 0.95) -> float:
        """How many records lie, at most, between the answer and the true median."""
        return self._quantiles.rank_error(confidence)

    def answer(self, value: Records, randomness: Randomness | None = None) -> float:
        return self._quantiles.answer(value, randomness)[0]
