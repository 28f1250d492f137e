"""Distances between the distributions of original and masked columns: Hellinger and Kullback–Leibler.

Categories are compared value by value, numbers over ranges cut at quantiles of the original; a missing value is a value of
its own. Marginals by default, pairs of columns on request. Kullback, Leibler, "On information and sufficiency", Annals of
Mathematical Statistics 22, 1951; use for masked data: Gomatam, Karr, "Distortion measures for categorical data swapping",
NISS technical report 131, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.ranges import Positive
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.measures.parameters import Bins, ComparedColumns

Real = NDArray[np.float64]
Int = NDArray[np.int64]
#: A distance of two arrays of counts over the same cells.
Distance = Callable[[Real, Real], float]


@dataclass(frozen=True)
class Hellinger(Measure[Microdata, Compared]):
    """Mean Hellinger distance of the columns' distributions, √(½ Σ (√p − √q)²), in [0, 1].

    The `columns` are compared; `bins` is the number of ranges a column of numbers is cut into; `pairs` compares the joint
    distribution of every two columns as well and takes the mean of both. Rows need not correspond.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.1, columns=("age", "income")).apply(people, seed=1).result
    >>> Hellinger(("age", "sex")).score(people, masked).parts["sex"]
    0.0
    """

    columns: ComparedColumns = None
    bins: Bins = 10
    pairs: Annotated[bool, "the joint distribution of every two columns is compared as well"] = False
    key: ClassVar[str] = "hellinger"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The mean distance; parts per column and, where asked for, of all pairs."""
        left, right, _ = compared(original, released, self.columns)
        value, parts = _mean_distance(left, right, self.bins, self.pairs, hellinger)
        what = "columns and pairs of columns" if self.pairs else "columns"
        return Score(self.key, value, "lower", f"Hellinger distance of the distributions of {what}", parts)


@dataclass(frozen=True)
class KullbackLeibler(Measure[Microdata, Compared]):
    """Mean divergence Σ p log₂(p/q) of the masked distribution q from the original p, in bits; not bounded.

    A value that the masked table no longer shows would cost infinitely much, so `smoothing` records are added, on both
    sides, to every cell that occurs on either. `columns`, `bins` and `pairs` as for `Hellinger`.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> KullbackLeibler(("age", "sex")).score(people, people).value
    0.0
    """

    columns: ComparedColumns = None
    bins: Bins = 10
    pairs: Annotated[bool, "the joint distribution of every two columns is compared as well"] = False
    smoothing: Annotated[Positive, "records added to every cell"] = 0.5
    key: ClassVar[str] = "kullback_leibler"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The mean divergence; parts per column and, where asked for, of all pairs."""
        left, right, _ = compared(original, released, self.columns)

        def distance(p: Real, q: Real) -> float:
            return kullback_leibler(p, q, self.smoothing)

        value, parts = _mean_distance(left, right, self.bins, self.pairs, distance)
        meaning = "bits per record lost by taking the masked distribution for the original one"
        return Score(self.key, value, "lower", meaning, parts)


def hellinger(first: Real, second: Real) -> float:
    """Hellinger distance of two arrays of counts or shares over the same cells."""
    p, q = first / first.sum(), second / second.sum()
    return min(1.0, float(np.sqrt(0.5 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum())))


def kullback_leibler(first: Real, second: Real, smoothing: float) -> float:
    """Divergence of the second from the first in bits, with that many records added to every cell occurring in either."""
    occurs = (first > 0) | (second > 0)
    p, q = first[occurs] + smoothing, second[occurs] + smoothing
    p, q = p / p.sum(), q / q.sum()
    return max(0.0, float((p * np.log2(p / q)).sum()))


@dataclass(frozen=True)
class Cells:
    """A column as cells on both sides: 0 for a missing value, then one for each value or range."""

    original: Int
    masked: Int
    count: int

    @classmethod
    def of(cls, original: NumberColumn | CategoryColumn, masked: NumberColumn | CategoryColumn, bins: int) -> Cells:
        """Categories by code, numbers by range."""
        if isinstance(original, NumberColumn) and isinstance(masked, NumberColumn):
            cuts = range_cuts(original.values[original.known], bins)
            return cls(_ranges(original.values, cuts), _ranges(masked.values, cuts), cuts.size + 2)
        if isinstance(original, CategoryColumn) and isinstance(masked, CategoryColumn):
            left, right = (column.codes.astype(np.int64) + 1 for column in (original, masked))
            return cls(left, right, len(original.labels) + 1)
        raise Unsupported(f"column '{original.name}' holds numbers on one side and categories on the other")

    def joined(self, other: Cells) -> Cells:
        """The cells of two columns together."""
        left = self.original * other.count + other.original
        right = self.masked * other.count + other.masked
        return Cells(left, right, self.count * other.count)

    def counts(self) -> tuple[Real, Real]:
        """Records per cell on both sides; only cells that occur where there may be very many."""
        left, right, count = self.original, self.masked, self.count
        if count > 4 * (left.size + right.size) + 4096:
            _, places = np.unique(np.concatenate([left, right]), return_inverse=True)
            left, right, count = places[: left.size], places[left.size :], int(places.max()) + 1
        first, second = (np.bincount(side, minlength=count).astype(np.float64) for side in (left, right))
        return first, second


def range_cuts(present: Real, bins: int) -> Real:
    """Where ranges begin: at quantiles, moved halfway to the next lower value, so that rounding and a little noise do not carry
    a value over the edge; a value frequent enough for a range is one by itself."""
    values = np.unique(present)
    between = values[:-1] + np.diff(values) / 2
    if values.size <= bins:
        return between
    quantiles, times = np.unique(np.quantile(present, np.arange(1, bins) / bins), return_counts=True)
    starts = np.searchsorted(values, quantiles, side="left")
    ends = np.searchsorted(values, quantiles[times > 1], side="right")
    inside = np.unique(np.concatenate([starts, ends]))
    cuts: Real = between[inside[(inside > 0) & (inside < values.size)] - 1]
    return cuts


def mean_over_pairs(cells: list[Cells], distance: Distance, counts: Callable[[int, int], bool] = lambda i, j: True) -> float:
    """Mean distance of the joint distributions of the wanted pairs of columns; 0 where there is none."""
    chosen = [(a, b) for (i, a), (j, b) in combinations(enumerate(cells), 2) if counts(i, j)]
    return float(np.mean([distance(*a.joined(b).counts()) for a, b in chosen])) if chosen else 0.0


def _mean_distance(
    left: Records, right: Records, bins: int, pairs: bool, distance: Distance
) -> tuple[float, MappingProxyType[str, float]]:
    cells = [Cells.of(a, b, bins) for a, b in zip(left.columns, right.columns, strict=True)]
    parts = {name: distance(*each.counts()) for name, each in zip(left.names, cells, strict=True)}
    value = float(np.mean(list(parts.values())))
    if pairs and len(cells) > 1:
        together = mean_over_pairs(cells, distance)
        parts = {**parts, "all columns": value, "all pairs": together}
        value = (value + together) / 2
    return value, MappingProxyType(parts)


def _ranges(values: Real, cuts: Real) -> Int:
    ranges = np.searchsorted(cuts, values, side="right") + 1
    return np.where(np.isnan(values), 0, ranges).astype(np.int64)
