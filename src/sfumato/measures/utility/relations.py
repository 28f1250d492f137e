"""Relations between columns: how strongly each two of them belong together, and how much of that masking changed.

Two columns with an order have Spearman's rank correlation; two without have Cramér's V; of one of each, the correlation ratio
says how far the groups differ in the other's ranks. V and the ratio are 0 on average where nothing binds the columns: Bergsma, "A
bias-correction for Cramér's V and Tschuprow's T", Journal of the Korean Statistical Society 42(3), 2013; Kelley, "An unbiased
correlation ratio measure", PNAS 21(9), 1935.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.data.records import CategoryColumn, NumberColumn, Records

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: A relation counts from this many deviations of chance, 1/√n for a correlation.
_DEVIATIONS = 3.0
#: Labels beyond the most frequent ones are one label.
_MOST_LABELS = 50
_ROUNDING = 1e-12


def moved_relations(original: Records, masked: Records) -> float:
    """Σ|r − r′| / Σ max(|r|, |r′|), at most 1, over the pairs of columns of which r or r′ is beyond what chance gives among as
    many records; 0 where no pair is."""
    labels = {i: _listed(column) for i, column in _named(original)}
    before, after = (Relations.of(side, labels) for side in (original, masked))
    strength = np.maximum(np.abs(before.strength), np.abs(after.strength))
    related = (np.abs(before.strength) > before.by_chance) | (np.abs(after.strength) > after.by_chance)
    largest = float(strength[related].sum())
    moved = float(np.abs(before.strength - after.strength)[related].sum())
    return min(moved / largest, 1.0) if moved > _ROUNDING * largest else 0.0


@dataclass(frozen=True, eq=False)
class Relations:
    """For each pair of columns (i < j) its strength, and the strength up to which it may be chance."""

    strength: Real
    by_chance: Real

    @classmethod
    def of(cls, records: Records, labels: Mapping[int, Int]) -> Relations:
        """By the kinds of each pair; `labels` gives for a column of categories without order the group of each code."""
        columns = records.columns
        groups = {i: _groups(column, labels[i]) for i, column in _named(records)}
        ordered = [i for i in range(len(columns)) if i not in groups]
        ranks = np.column_stack([_ranks(columns[i]) for i in ordered]) if ordered else np.empty((records.size, 0))
        strength = np.zeros((len(columns), len(columns)))
        by_chance = np.full_like(strength, np.inf)
        strength[np.ix_(ordered, ordered)], by_chance[np.ix_(ordered, ordered)] = _correlations(ranks)
        for i, codes in groups.items():
            for place, j in enumerate(ordered):
                first, second = min(i, j), max(i, j)
                strength[first, second], by_chance[first, second] = _correlation_ratio(codes, ranks[:, place])
            for j in (j for j in groups if j > i):
                strength[i, j], by_chance[i, j] = _cramers_v(codes, groups[j])
        above = np.triu_indices(len(columns), 1)
        return cls(strength[above], by_chance[above])


def _named(records: Records) -> list[tuple[int, CategoryColumn]]:
    """The columns of categories without order."""
    return [(i, column) for i, column in enumerate(records.columns) if isinstance(column, CategoryColumn) and not column.ordered]


def _listed(column: CategoryColumn) -> Int:
    """The group of each code: one for each frequent label of the original, and one for all others."""
    counts = np.bincount(column.codes[column.known], minlength=len(column.labels))
    place = np.empty(counts.size, dtype=np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(counts.size)
    return np.minimum(place, _MOST_LABELS)


def _groups(column: CategoryColumn, labels: Int) -> Int:
    """The group of each record; -1 where it is not known."""
    return np.where(column.known, labels[column.codes], -1) if labels.size else np.full(column.codes.size, -1)


def _ranks(column: NumberColumn | CategoryColumn) -> Real:
    """Ranks from −½ to ½, the same for equal values; NaN where nothing is known."""
    ranks = np.full(column.known.size, np.nan)
    values = (column.values if isinstance(column, NumberColumn) else column.codes)[column.known]
    if values.size:
        _, place, times = np.unique(values, return_inverse=True, return_counts=True)
        ranks[column.known] = ((np.cumsum(times) - (times + 1) / 2) / values.size - 0.5)[place.reshape(-1)]
    return ranks


def _correlations(ranks: Real) -> tuple[Real, Real]:
    """Of every two columns over the records in which both are present; 0 where one of them does not vary."""
    present = ~np.isnan(ranks)
    values, there = np.where(present, ranks, 0.0), present.astype(np.float64)
    both = there.T @ there
    counted = np.maximum(both, 1.0)
    sums = values.T @ there  # of column i where j is present
    spread = np.maximum((values**2).T @ there - sums**2 / counted, 0.0)
    scale = np.sqrt(spread * spread.T)
    together = values.T @ values - sums * sums.T / counted
    varies = scale > 1e-9 * counted
    strength = np.where(varies, together / np.where(varies, scale, 1.0), 0.0)
    return np.clip(strength, -1.0, 1.0), _DEVIATIONS / np.sqrt(counted)


def _correlation_ratio(codes: Int, ranks: Real) -> tuple[float, float]:
    """η of ranks by groups, 1 − (n − 1)/(n − k) · (share within groups) under the root."""
    present = (codes >= 0) & ~np.isnan(ranks)
    groups, values = codes[present], ranks[present]
    times = np.bincount(groups)
    count, filled = int(groups.size), int(np.count_nonzero(times))
    if filled < 2 or count <= filled:
        return 0.0, np.inf
    values = values - values.mean()
    total = float(values @ values)
    if total <= 1e-9 * count:
        return 0.0, _by_chance(count, filled - 1, 1)
    between = float((np.bincount(groups, values) ** 2 / np.maximum(times, 1)).sum()) / total
    square = 1.0 - (1.0 - between) * (count - 1) / (count - filled)
    return float(np.sqrt(min(max(square, 0.0), 1.0))), _by_chance(count, filled - 1, 1)


def _cramers_v(first: Int, second: Int) -> tuple[float, float]:
    """V with its bias taken away."""
    present = (first >= 0) & (second >= 0)
    a, b, count = first[present], second[present], int(present.sum())
    if count < 2:
        return 0.0, np.inf
    width = int(b.max()) + 1
    table = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    r, c = int(np.count_nonzero(rows)), int(np.count_nonzero(columns))
    if min(r, c) < 2:
        return 0.0, _by_chance(count, max(r, c, 2) - 1, 1)
    expected = np.outer(rows, columns) / count
    phi = float((table[expected > 0] ** 2 / expected[expected > 0]).sum()) / count - 1.0
    free = (r - 1) * (c - 1)
    least = min(r - (r - 1) ** 2 / (count - 1), c - (c - 1) ** 2 / (count - 1)) - 1.0
    square = max(phi - free / (count - 1), 0.0) / least if least > 0 else 0.0
    return float(np.sqrt(min(square, 1.0))), _by_chance(count, free, min(r, c) - 1)


def _by_chance(count: int, free: int, scale: int) -> float:
    """What a squared strength reaches by chance: about √(2 · degrees of freedom)/(n · scale) per deviation."""
    return float(np.sqrt(max(_DEVIATIONS**2, _DEVIATIONS * np.sqrt(2.0 * free) / scale) / count))
