"""Records as points for clustering, and clusters as centroids: numbers, ordered categories, categories with or without a
hierarchy.

Numbers are standardised, ordered categories become their place between 0 and 1, categories differ by the share of levels
of their hierarchy at which they differ (0 or 1 without one). Domingo-Ferrer, Torra, "Ordinal, continuous and
heterogeneous k-anonymity through microaggregation", Data Mining and Knowledge Discovery 11(2), 2005; Martínez, Sánchez,
Valls, "Semantic adaptive microaggregation of categorical microdata", Computers & Security 31(5), 2012.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.hierarchy_builders import build
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records, magnitude
from sfumato.data.schema import Column
from sfumato.kernels.microaggregation.live import Space, central_codes

Int = NDArray[np.int64]
Int32 = NDArray[np.int32]
Real = NDArray[np.float64]
CategoryCentroid = Literal["mode", "ancestor"]

#: Squares of larger numbers, summed over records, may overflow.
_LARGEST_AS_IT_IS = 1e140


class ClusteredRecords:
    """Records as points in a `space`, and the values that stand for clusters of them.

    A missing cell lies at its column's mean (median, central category) when distances are measured, and has no weight in a
    centroid.
    """

    def __init__(self, records: Records, people: Microdata, *, standardise: bool = True) -> None:
        self._records = records
        self._trees = {column.name: hierarchy_of(column, people) for column in records.categories if not column.ordered}
        numbers = [_numbers(column, standardise) for column in records.columns if column.kind != "category"]
        levels, codes = [], []
        for column in records.categories:
            if column.name in self._trees:
                tree = self._levels(column, root=False)
                known_codes = column.codes[column.known]
                central = (
                    central_codes(known_codes, tree, np.zeros(known_codes.size, dtype=np.int64), 1) if known_codes.size else [0]
                )
                codes.append(np.where(column.known, column.codes, central[0]).astype(np.int32))
                levels.append(tree)
        joined = np.stack(numbers, axis=1) if numbers else np.zeros((records.size, 0))
        coded = np.stack(codes) if codes else np.zeros((0, records.size), dtype=np.int32)
        self.space = Space(np.ascontiguousarray(joined), np.ascontiguousarray(coded), tuple(levels))

    def centroids(self, labels: Int, category: CategoryCentroid = "mode") -> dict[str, Real | Int32 | pa.Array]:
        """Column by column the value of each record's cluster: means, medians of ordered categories, central categories or
        their lowest common ancestors."""
        count = int(labels.max()) + 1 if labels.size else 0
        centroids: dict[str, Any] = {}
        for column in self._records.columns:
            present = column.known
            if isinstance(column, NumberColumn):
                centroids[column.name] = means_of_clusters(column.values, present, labels, count)[labels]
            elif column.ordered:
                centroids[column.name] = _medians(column.codes, present, labels, count)[labels]
            elif category == "mode":
                centroids[column.name] = self._central(column, labels, count)[labels]
            else:
                centroids[column.name] = self._ancestors(column, labels, count)
        return centroids

    def _levels(self, column: CategoryColumn, *, root: bool) -> Int32:
        """The nodes above each label, level by level."""
        tree = self._trees[column.name]
        leaves = [tree.index[label] for label in column.labels]
        nodes = tree.node_of[:, leaves]
        trimmed = nodes[:-1] if not root and tree.has_root and tree.height else nodes
        return np.ascontiguousarray(trimmed)

    def _central(self, column: CategoryColumn, labels: Int, count: int) -> Int32:
        tree = self._levels(column, root=False)
        chosen = np.full(count, self._overall(column, tree), dtype=np.int32)
        present, dense = np.unique(labels[column.known], return_inverse=True)
        chosen[present] = central_codes(column.codes[column.known], tree, dense.reshape(-1), present.size)
        return chosen

    def _overall(self, column: CategoryColumn, tree: Int32) -> int:
        codes = column.codes[column.known]
        return int(central_codes(codes, tree, np.zeros(codes.size, dtype=np.int64), 1)[0]) if codes.size else -1

    def _ancestors(self, column: CategoryColumn, labels: Int, count: int) -> pa.Array:
        tree = self._trees[column.name]
        levels = self._levels(column, root=True)
        has_value = column.known
        nodes = np.full(count, -1, dtype=np.int64)
        order = np.argsort(labels[has_value], kind="stable")
        ranked = labels[has_value][order]
        present, starts = np.unique(ranked, return_index=True)
        for level in levels[::-1]:  # from the root downward: the lowest level at which all agree is kept
            above = level[column.codes[has_value][order]]
            low, high = np.minimum.reduceat(above, starts), np.maximum.reduceat(above, starts)
            nodes[present] = np.where(low == high, low, nodes[present])
        texts = [ROOT if node < 0 else tree.labels[node] for node in range(-1, len(tree.labels))]
        return pa.DictionaryArray.from_arrays(pa.array((nodes + 1)[labels]), pa.array(texts, pa.string())).cast(pa.string())


def hierarchy_of(column: CategoryColumn, people: Microdata) -> Hierarchy:
    """The hierarchy that the schema gives the column, or the flat one."""
    described = people.schema.columns.get(column.name, Column())
    counts = np.bincount(column.codes[column.known], minlength=len(column.labels)).tolist()
    return build(column.name, described, list(column.labels), counts, folder=people.schema.folder)


def _numbers(column: NumberColumn | CategoryColumn, standardise: bool) -> Real:
    if isinstance(column, CategoryColumn):
        ranks = np.where(column.known, column.codes, np.nan) / max(len(column.labels) - 1, 1)
        middle = float(np.median(ranks[column.known])) if column.known.any() else 0.0
        return np.where(column.known, ranks, middle)
    values, present = column.values, column.known
    if not present.any():
        return np.zeros(values.size)
    if standardise:
        values = values / magnitude(values)
    elif magnitude(values) > _LARGEST_AS_IT_IS:
        raise Unsupported(
            f"column '{column.name}' has numbers so large that squares of their distances cannot be computed; "
            "use standardise=True"
        )
    mean = float(values[present].mean())
    if not standardise:
        # taking a whole number off keeps whole numbers whole, and with them their ties
        shift = float(np.rint(mean))
        return np.where(present, values - shift, mean - shift)
    spread = float(values[present].std())
    return np.where(present, values - mean, 0.0) / (spread if spread > 0.0 else 1.0)


def means_of_clusters(values: Real, present: NDArray[np.bool_], labels: Int, count: int) -> Real:
    """The mean of the known values of each cluster; of all of them where a cluster has none."""
    unit = magnitude(values)
    chosen, of = values[present] / unit, labels[present]
    sizes = np.bincount(of, minlength=count)
    means = np.bincount(of, weights=chosen, minlength=count) / np.maximum(sizes, 1)
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, of, chosen)
    np.maximum.at(high, of, chosen)
    # a mean of equal values may miss them by the last bit, which would turn their order round
    overall = float(chosen.mean()) if chosen.size else 0.0
    bounded: Real = np.where(sizes > 0, np.minimum(np.maximum(means, low), high), overall) * unit
    return bounded


def _medians(codes: Int32, has_value: NDArray[np.bool_], labels: Int, count: int) -> Int32:
    overall = int(np.sort(codes[has_value])[(np.count_nonzero(has_value) - 1) // 2]) if has_value.any() else -1
    medians = np.full(count, overall, dtype=np.int32)
    order = np.lexsort((codes[has_value], labels[has_value]))
    present, sizes = np.unique(labels[has_value], return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if sizes.size else sizes
    medians[present] = codes[has_value][order][starts + (sizes - 1) // 2]
    return medians
