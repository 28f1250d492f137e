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
from sfumato.measures.risk.linkage.linked import with_assumption

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
    `columns` of categories are left out; parts give every other one.

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
        left, right = aligned(original, as_masked(released, original), self.columns)
        by_column = disclosed_intervals(left, right, self.version)
        if not by_column:
            raise Unsupported("interval disclosure is about numbers, and no column with known numbers is compared")
        meaning = "share of original numbers that lie close to their masked value, over widths of 1 to 10 %"
        meaning = with_assumption(meaning, released)
        return Score(self.key, float(np.mean(list(by_column.values()))), "lower", meaning, MappingProxyType(by_column))


def disclosed_intervals(original: Records, masked: Records, version: Version = "rank") -> dict[str, float]:
    """The share of each column of numbers, averaged over the widths; columns without a known original value are left out."""
    shares = {}
    for ours, theirs in zip(original.numbers, masked.numbers, strict=True):
        present = ours.known
        if present.any():
            inside = _within_ranks if version == "rank" else _within_deviation
            shares[ours.name] = float(inside(ours.values, theirs.values).sum() / (len(WIDTHS) * int(present.sum())))
    return shares


def _within_ranks(original: Real, masked: Real) -> Real:
    """Per record the number of widths whose rank interval holds the original."""
    hits = np.zeros(original.size)
    shown = ~np.isnan(masked)
    ranked = np.sort(masked[shown])
    if not ranked.size:
        return hits
    first = np.searchsorted(ranked, masked[shown], side="left")
    last = np.searchsorted(ranked, masked[shown], side="right") - 1
    for width in WIDTHS:
        steps = width * ranked.size // 100
        low = ranked[np.maximum(first - steps, 0)]
        high = ranked[np.minimum(last + steps, ranked.size - 1)]
        hits[shown] += (low <= original[shown]) & (original[shown] <= high)
    return hits


def _within_deviation(original: Real, masked: Real) -> Real:
    """Per record the number of widths whose interval, in deviations of the original, holds the original."""
    present = original[~np.isnan(original)]
    span = float(np.abs(present).max()) or 1.0  # no square overflows
    reach = float(np.std(present / span)) / 100.0
    with np.errstate(over="ignore"):  # a masked value that is infinitely far in this unit is in no interval
        gap = np.abs(original / span - masked / span)
    return np.asarray(sum((gap <= width * reach).astype(np.float64) for width in WIDTHS))
