"""Interval disclosure: how often the original value lies close to its masked value.

An intruder who links correctly, or needs no link because the file is his own, learns the original up to an interval around the
masked value; the share of values inside is averaged over widths of 1 to 10 % and over the columns of numbers. Domingo-Ferrer,
Torra, "A quantitative comparison of disclosure control methods for microdata", in: Confidentiality, disclosure and data
access, North-Holland 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.linked import owners_of, with_assumption
from sfumato.measures.risk.success import LeftOut

Real = NDArray[np.float64]
Version = Literal["rank", "deviation"]
IntervalVersion = Annotated[Version, "what the width of an interval is measured in: ranks, or the standard deviation"]

WIDTHS = tuple(range(1, 11))


@dataclass(frozen=True)
class IntervalDisclosure(Measure[Microdata, Compared]):
    """Share of original values in the interval around their masked value, averaged over widths w = 1 … 10 % and columns.

    `version="rank"`: the interval spans the masked values whose rank differs by at most w % of the records (equal values
    share all their ranks). `version="deviation"`: w % of the original's standard deviation to either side. What is missing in the
    original cannot be disclosed and is not counted; what is missing in the masked file discloses nothing.
    `columns` of categories are left out; parts give every other one. The floor is exact: the share of all pairs of an original
    and a masked value that lie as close, which is large where a column has few values.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> IntervalDisclosure(columns=("age", "income")).score(people, people).value
    1.0
    """

    version: IntervalVersion = "rank"
    columns: ComparedColumns = None
    key: ClassVar[str] = "interval_disclosure"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The mean share."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        disclosed = disclosed_intervals(left, right, self.version)
        if not disclosed.by_column:
            raise Unsupported("interval disclosure is about numbers, and no column with known numbers is compared")
        meaning = "share of original numbers that lie close to their masked value, over widths of 1 to 10 %"
        meaning = with_assumption(meaning, released)
        owner = owners_of(masked)
        return Score(
            self.key,
            disclosed.value,
            "lower",
            meaning,
            MappingProxyType(disclosed.by_column),
            floor=disclosed.floor,
            interval=disclosed_interval(left, right, self.version, owner, disclosed.value),
        )


@dataclass(frozen=True, eq=False)
class Disclosed:
    """The share of each column of numbers, averaged over the widths, and what random pairings reach on average."""

    by_column: dict[str, float]
    floors: dict[str, float]

    @property
    def value(self) -> float:
        """The mean over columns; 0 without any."""
        return float(np.mean(list(self.by_column.values()))) if self.by_column else 0.0

    @property
    def floor(self) -> float:
        """What chance gives."""
        return float(np.mean(list(self.floors.values()))) if self.floors else 0.0


def disclosed_intervals(original: Records, masked: Records, version: Version = "rank") -> Disclosed:
    """Every column of numbers; columns without a known original value are left out."""
    by_column, floors = {}, {}
    inside = _within_ranks if version == "rank" else _within_deviation
    for ours, theirs in zip(original.numbers, masked.numbers, strict=True):
        present = int(ours.known.sum())
        if present:
            hits, pairs = inside(ours.values, theirs.values)
            by_column[ours.name] = float(hits.sum() / (len(WIDTHS) * present))
            # a known original meets every row equally often
            floors[ours.name] = pairs / (len(WIDTHS) * present * original.size)
    return Disclosed(by_column, floors)


def disclosed_interval(
    original: Records,
    masked: Records,
    version: Version,
    owner: NDArray[np.int64] | None,
    value: float,
    weight: float = 1.0,
    rest: Real | None = None,
) -> tuple[float, float]:
    """The interval of `weight` times the disclosure plus the mean of `rest` over the records, by leaving out groups of people:
    without them ranks are others, which matters where many values are equal."""
    left_out = LeftOut.of(original.size, owner)
    rates, floors = [], []
    for rows in left_out.each():
        without = disclosed_intervals(original.take(rows), masked.take(rows), version)
        rates.append(weight * without.value + (float(rest[rows].mean()) if rest is not None and rows.size else 0.0))
        floors.append(weight * without.floor)
    # two people whose values were swapped are as far from their own: both are disclosed, or neither
    return left_out.interval(value, rates, floors, together=2 if version == "deviation" else 1)


def _within_ranks(original: Real, masked: Real) -> tuple[Real, float]:
    """Per record the number of widths whose rank interval holds the original, and how many pairs of an original and a masked
    value and widths there are whose interval does."""
    hits = np.zeros(original.size)
    shown = ~np.isnan(masked)
    ranked, times = np.unique(masked[shown], return_counts=True)
    if not ranked.size:
        return hits, 0.0
    ends = np.cumsum(times)
    place = np.searchsorted(ranked, masked[shown])
    truth = original[shown]
    # by the different masked values: how many originals lie below each, and up to each
    ordered = np.sort(original[~np.isnan(original)])
    below, up_to = (np.searchsorted(ordered, ranked, side=side) for side in ("left", "right"))
    rows, pairs = int(ends[-1]), 0.0
    for width in WIDTHS:
        steps = width * rows // 100
        low = np.searchsorted(ends, np.maximum(ends - times - steps, 0), side="right")
        high = np.searchsorted(ends, np.minimum(ends - 1 + steps, rows - 1), side="right")
        hits[shown] += (ranked[low][place] <= truth) & (truth <= ranked[high][place])
        pairs += float(times @ (up_to[high] - below[low]))
    return hits, pairs


def _within_deviation(original: Real, masked: Real) -> tuple[Real, float]:
    """As by ranks, for intervals in deviations of the original."""
    present = original[~np.isnan(original)]
    span = float(np.abs(present).max()) or 1.0  # no square overflows
    reach = float(np.std(present / span)) / 100.0
    with np.errstate(over="ignore"):  # a masked value that is infinitely far in this unit is in no interval
        shown, truth = masked / span, original / span
        gap = np.abs(truth - shown)
    ordered = np.sort(present / span)
    asked, times = np.unique(shown[~np.isnan(shown)], return_counts=True)
    hits, pairs = np.zeros(original.size), 0.0
    for width in WIDTHS:
        hits += gap <= width * reach
        low = np.searchsorted(ordered, asked - width * reach, side="left")
        pairs += float(times @ (np.searchsorted(ordered, asked + width * reach, side="right") - low))
    return hits, pairs
