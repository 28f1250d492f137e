"""Distance to the closest record: do released rows lie suspiciously near to original people?

Needs no knowledge of which row came from whom, so it also judges synthetic data, which are not automatically safe. A released
row is too close when its nearest original is nearer than the originals usually are to each other. Park, Mohammadi, Gorde,
Jajodia, Park, Kim, "Data synthesis based on generative adversarial networks", PVLDB 11(10), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.params import require
from sfumato.core.view import Measure, Score
from sfumato.data.masked import as_masked, sides
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records
from sfumato.kernels.linkage import PointTree
from sfumato.measures.risk.interval import wilson
from sfumato.measures.risk.spaces import DISTANCES, Distance, space_of

Real = NDArray[np.float64]

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NearestRecord(Measure):
    """Share of released rows that lie nearer to some original than `quantile` of the originals lie to their nearest other
    original.

    Rows drawn anew from the same population reach `quantile` (the part "baseline"); copies reach 1, unless the originals
    themselves have twins. Distances at the threshold count in the proportion that makes the baseline exact. Parts: the share
    of exact copies, the threshold, the median distances of released rows and of originals, and the 95 % interval.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> NearestRecord().score(people, people).parts["exact copies"]
    1.0
    """

    quantile: float = 0.05
    distance: Distance = "auto"
    columns: tuple[str, ...] | None = None
    key: ClassVar[str] = "nearest_record"
    masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require(0 < self.quantile < 1, "NearestRecord: quantile must lie between 0 and 1")
        require(self.distance in DISTANCES, f"NearestRecord: distance must be one of {', '.join(DISTANCES)}")

    def score(self, original: Microdata, released: Any) -> Score:
        """The share."""
        left, right = sides(original, as_masked(released, original), self.columns)
        if left.size < 2:
            raise InputError("the distance between originals needs at least two original records")
        space = space_of(left, right, self.distance)
        tree = PointTree(space.original, space.metric)
        apart = np.sqrt if space.metric.root else np.asarray
        among = apart(tree.closest(space.original[tree.order], 2)[0][:, 1])
        found = apart(tree.closest(space.released)[0][:, 0])
        close, threshold = too_close(found, among, self.quantile)
        low, high = wilson(float(close.sum()), right.size)
        parts = {
            "baseline": self.quantile,
            "exact copies": float(_copies(_as_numbers(left), _as_numbers(right)).mean()),
            "interval low": low,
            "interval high": high,
            "median distance": float(np.median(found)),
            "median distance among originals": float(np.median(among)),
            "threshold": threshold,
        }
        meaning = "share of released rows nearer to an original than originals usually are to each other"
        return Score(self.key, float(close.mean()), "lower", meaning, MappingProxyType(parts))


def too_close(found: Real, among: Real, quantile: float) -> tuple[Real, float]:
    """Per released row 1 where it is nearer than the quantile of distances among originals; at the quantile itself the share
    that lets the originals reach the quantile exactly."""
    threshold = float(np.quantile(among, quantile, method="inverted_cdf"))
    slack = _TOLERANCE * threshold
    below = float(np.mean(among < threshold - slack))
    level = float(np.mean(np.abs(among - threshold) <= slack))
    share = min(max((quantile - below) / level, 0.0), 1.0)
    close = np.where(found < threshold - slack, 1.0, np.where(np.abs(found - threshold) <= slack, share, 0.0))
    return close, threshold


def _as_numbers(records: Records) -> Real:
    """All columns as numbers, codes for categories; missing values equal each other."""
    columns = [
        column.values if isinstance(column, NumberColumn) else column.codes.astype(np.float64) for column in records.columns
    ]
    matrix: Real = np.nan_to_num(np.column_stack(columns), nan=-np.finfo(np.float64).max)
    return matrix + 0.0  # no negative zero


def _copies(original: Real, released: Real) -> NDArray[np.bool_]:
    """Which released rows occur among the originals, value for value."""
    row = np.dtype((np.void, original.dtype.itemsize * original.shape[1]))
    ours = np.ascontiguousarray(original).view(row).ravel()
    theirs = np.ascontiguousarray(released).view(row).ravel()
    return np.asarray(np.isin(theirs, np.unique(ours)), dtype=np.bool_)
