"""Mean from a noisy histogram: sum of count times midpoint, divided by the sum of counts.

Post-processing of a private histogram, so nothing more is spent; the buckets must cover the domain, and wide buckets make
it coarse where many make it noisy. Dwork, Roth, "The algorithmic foundations of differential privacy", 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.calibrated import Stated
from sfumato.dp.mechanisms.noise.errors import BoundedError
from sfumato.dp.mechanisms.statistics.histogram import EDGES, Histogram
from sfumato.dp.mechanisms.statistics.records import Records, numbers
from sfumato.dp.ranges import Epsilon, PublicSize


@dataclass(frozen=True)
class HistogramMean(Stated[Records, float]):
    """The mean of records, from a noisy histogram with declared `edges`.

    ε-private (`epsilon`) by post-processing. Records outside the edges are clamped into the first or last bucket. When the noisy
    total is not positive, the middle of the domain is answered. `size` is a public guess of the number of records, for
    stating the error alone.
    """

    edges: Annotated[tuple[Number, ...], EDGES, "where buckets begin and end, declared by the owner"]
    epsilon: Epsilon
    size: PublicSize = None

    @cached_property
    def histogram(self) -> Histogram:
        """The histogram that is measured."""
        return Histogram(edges=self.edges, epsilon=self.epsilon, neighbours=self.neighbours, unit=self.unit)

    @cached_property
    def midpoints(self) -> tuple[Fraction, ...]:
        """The middle of each bucket."""
        return midpoints(self.edges)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> BoundedError:
        """Half the widest bucket from taking midpoints; the noise through the guess of the size, else the whole domain.

        While the noisy total is at least n/2, the noise moves the mean by at most 2/n times the sum of the noises
        weighted by their distances from it, at most the domain's width.
        """
        edges = [float(edge) for edge in self.edges]
        width, coarse = edges[-1] - edges[0], max(b - a for a, b in zip(edges, edges[1:], strict=False)) / 2
        if self.size is None:
            return BoundedError.of(width, width)
        one, buckets = self.histogram.error().deviation, len(edges) - 1
        noise = 2 * width * one * math.sqrt(buckets) / self.size
        rare = min(1.0, 4 * buckets * one**2 / self.size**2)  # Chebyshev: the total noise beyond n/2
        return BoundedError.of(math.sqrt(noise**2 + width**2 * rare) + coarse, width)

    def answer(self, value: Records, randomness: Randomness | None = None) -> float:
        low, high = float(self.edges[0]), float(self.edges[-1])
        inside = np.clip(np.nan_to_num(numbers(value), nan=low, posinf=high, neginf=low), low, np.nextafter(high, low))
        return mean_from_histogram(self.histogram.answer(inside, randomness), self.midpoints)


def midpoints(edges: Sequence[Number]) -> tuple[Fraction, ...]:
    """The middle of each half-open bucket [edge, next edge)."""
    exact_edges = [Fraction(edge) for edge in edges]
    return tuple((low + high) / 2 for low, high in zip(exact_edges, exact_edges[1:], strict=False))


def mean_from_histogram(counts: Sequence[Any] | NDArray[Any], centres: Sequence[Any]) -> float:  # numbers of any type
    """sum c·m / sum c, held inside the midpoints; their middle when the counts do not sum to a positive number."""
    weights, points = [float(count) for count in counts], [float(centre) for centre in centres]
    total = math.fsum(weights)
    if total <= 0:
        return (points[0] + points[-1]) / 2
    mean = math.fsum(weight * point for weight, point in zip(weights, points, strict=True)) / total
    return min(max(mean, points[0]), points[-1])
