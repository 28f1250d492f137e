"""Clamping-down mean: (sum + Laplace noise) / n, clamped, with a fixed law for an empty table.

Dividing by the exact number of records tells it, so this is for the relation in which it is public: one record replaced.
Records are clamped first; without that one record moves the sum by any amount.
Li, Lyu, Su, Yang, "Differential privacy: from theory to practice", Morgan & Claypool 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Annotated

import numpy as np

from sfumato.core.guarantees.loss import Neighbours, PureDP
from sfumato.core.randomness import Randomness, below
from sfumato.dp.mechanisms.calibrated import source_of
from sfumato.dp.mechanisms.grid import plain_scale
from sfumato.dp.mechanisms.noise.errors import LaplaceError
from sfumato.dp.mechanisms.noise.laws import Law, clamped_laplace_law
from sfumato.dp.mechanisms.statistics.clamped import Clamped
from sfumato.dp.mechanisms.statistics.records import PLACES, Records, places
from sfumato.kernels.sampling.noise import bernoulli_exp, discrete_laplace_one


@dataclass(frozen=True)
class ClampingDownMean(Clamped[float]):
    """A mean between `lower` and `upper` of clamped records whose number is public.

    ε-private when one record is replaced. When one is added or removed, the same formula leaks up to ln((n+1)/n) + εn/(n+1)
    and is refused: `NoisyAverage` is made for that relation. So are records that are not clamped (`clamp_records=False`).
    """

    clamp_records: Annotated[bool, "whether records are clamped, without which no noise would hide one"] = True

    neighbours: Annotated[Neighbours, "which databases are neighbours"] = field(default="replace", kw_only=True)

    def coherent(self) -> Iterable[str]:
        yield from super().coherent()
        if self.neighbours != "replace":
            yield (
                "the clamping-down mean divides by the exact number of records, which tells it when a record comes or goes: for"
                " neighbours='add_remove' use NoisyAverage (noisy sum divided by noisy count)"
            )
        if not self.clamp_records:
            yield (
                "without clamping, one record can move the sum by any amount and no noise hides it: records are always clamped"
                " to [lower, upper]"
            )

    @cached_property
    def _units(self) -> Fraction:
        """The scale of the noise on the sum, in places of a record: the whole width over ε."""
        return plain_scale(PLACES / Fraction(self.epsilon))

    def scale(self, size: int) -> float:
        """The scale of the noise on the mean of that many records."""
        return float(self._units / PLACES * (Fraction(self.upper) - Fraction(self.lower)) / size)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> LaplaceError:
        """For any public number of records of at least one; `error_for` says it for a number that is known."""
        return self.error_for(1)

    def error_for(self, size: int) -> LaplaceError:
        """For a public number of records, of at least one."""
        width = float(Fraction(self.upper) - Fraction(self.lower))
        return LaplaceError.clamped(float(self._units), width / PLACES / size, width)

    def law(self, value: Records) -> Law:
        """The law of the answer, with its masses at both borders."""
        values, low, high = self._places(value), float(self.lower), float(self.upper)
        if not values.size:
            return empty_law(float(self.epsilon), low, high)
        mean = float(
            Fraction(self.lower)
            + Fraction(int(values.sum()), PLACES * values.size) * (Fraction(self.upper) - Fraction(self.lower))
        )
        return clamped_laplace_law(mean, self.scale(values.size), low, high)

    def answer(self, value: Records, randomness: Randomness | None = None) -> float:
        source, values = source_of(randomness), self._places(value)
        if values.size:
            share = Fraction(int(values.sum()) + discrete_laplace_one(self._units, source), PLACES * values.size)
        elif bernoulli_exp(Fraction(self.epsilon) / 2, source):
            share = Fraction(below(source, 2))
        else:
            share = Fraction(below(source, PLACES + 1), PLACES)
        inside = min(max(share, Fraction(0)), Fraction(1))
        return float(Fraction(self.lower) + inside * (Fraction(self.upper) - Fraction(self.lower)))

    def _places(self, records: Records) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return places(records, Fraction(self.lower), Fraction(self.upper))


def empty_law(epsilon: float, lower: float, upper: float) -> Law:
    """Without records: both borders with probability exp(-ε/2)/2, uniform in between."""
    border, width = math.exp(-epsilon / 2) / 2, upper - lower
    inside = 1 - 2 * border
    return Law(
        lambda x: inside / width if lower < x < upper else 0.0,
        lambda x: 0.0 if x < lower else 1.0 if x >= upper else border + inside * (x - lower) / width,
        MappingProxyType({lower: border, upper: border}),
    )
