"""Distance to the closest record: do released rows lie suspiciously near to original people?

Needs no knowledge of which row came from whom, so it also judges synthetic data, which are not automatically safe. A released
row is too close when its nearest original is nearer than the originals usually are to each other. Park, Mohammadi, Gorde,
Jajodia, Park, Kim, "Data synthesis based on generative adversarial networks", PVLDB 11(10), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.ranges import Probability
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, as_masked, sides
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records
from sfumato.kernels.linkage.points import PointTree
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.spaces import LinkageDistance, space_of
from sfumato.measures.risk.success import mean_interval

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NearestRecord(Measure[Microdata, Compared]):
    """Share of released rows that point at a person: copies of an original, or nearer to one than originals usually are to
    each other.

    A copy counts as 1/(originals it equals), so an unmasked table reaches what linkage reaches. Another row counts when its
    nearest original is nearer than `quantile` of the originals are to their nearest other one. The floor is what the
    originals reach when each is taken as a released row and compared with the others, so what new people from the same
    population would reach. `distance` and `columns` as in `DistanceLinkage`. Parts: the share of exact copies, the threshold
    and the median distances.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> NearestRecord().score(people, people).parts["exact copies"]
    1.0
    """

    quantile: Annotated[Probability, "the share of originals whose distance to the nearest other one makes the threshold"] = 0.05
    distance: LinkageDistance = "auto"
    columns: ComparedColumns = None
    key: ClassVar[str] = "nearest_record"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The share."""
        left, right = sides(original, as_masked(released, original), self.columns)
        if left.size < 2:
            raise InputError("the distance between originals needs at least two original records")
        space = space_of(left, right, self.distance)
        tree = PointTree(space.original, space.metric)
        among = _to_others(space.original, tree)
        distances = space.metric.distances(tree.closest(space.released)[0][:, 0])
        threshold = float(np.quantile(among, self.quantile, method="inverted_cdf"))
        twins, copied = _equal_originals(left, right)
        credits = pointing(distances, copied, threshold)
        parts = {
            "exact copies": float(np.mean(copied > 0)),
            "median distance": float(np.median(distances)),
            "median distance among originals": float(np.median(among)),
            "threshold": threshold,
        }
        meaning = "share of released rows that are copies of a person or nearer to one than people are to each other"
        return Score(
            self.key,
            min(float(credits.mean()), 1.0),
            "lower",
            meaning,
            MappingProxyType(parts),
            floor=min(float(pointing(among, twins - 1, threshold).mean()), 1.0),
            interval=mean_interval(credits),
        )


def pointing(distances: Real, equal: Int, threshold: float) -> Real:
    """Per row how surely it points at a person: 1/(originals it equals) for a copy, else 1 below the threshold."""
    return np.where(equal > 0, 1.0 / np.maximum(equal, 1), (distances < threshold * (1.0 - _TOLERANCE)).astype(np.float64))


def _to_others(points: Real, tree: PointTree) -> Real:
    """From each point the distance to the nearest other one (in the order of the rows)."""
    sums, near = tree.closest(points[tree.order], 2)
    others = np.where(near[:, 0] == tree.order, sums[:, 1], sums[:, 0])
    distances = np.empty(others.size)
    distances[tree.order] = tree.metric.distances(others)
    return distances


def _equal_originals(original: Records, released: Records) -> tuple[Int, Int]:
    """How many originals each original and each released row equals, value for value (missing values equal each other)."""
    both = np.vstack([_as_numbers(original), _as_numbers(released)])
    rows = np.ascontiguousarray(both).view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).ravel()
    _, place = np.unique(rows, return_inverse=True)
    counts = np.bincount(place[: original.size], minlength=int(place.max()) + 1)
    return counts[place[: original.size]], counts[place[original.size :]]


def _as_numbers(records: Records) -> Real:
    columns = [
        column.values if isinstance(column, NumberColumn) else column.codes.astype(np.float64) for column in records.columns
    ]
    matrix: Real = np.nan_to_num(np.column_stack(columns), nan=-np.finfo(np.float64).max)
    return matrix + 0.0  # no negative zero
