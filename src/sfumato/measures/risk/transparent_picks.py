"""Which released record the adversary who knows the method takes for a person's: one linkage for each kind of mask.

Windows of ranks against rank swapping, clusters that intersect against microaggregation, the likelihood of the noise, the
transition matrix of PRAM. Torra, "Data privacy: foundations, new developments and the big data challenge", Springer 2017; Nin,
Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, Unsupported
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels import rank_windows
from sfumato.kernels.likely_records import intersections, likeliest
from sfumato.kernels.linkage import Metric, PointTree
from sfumato.kernels.linkage_tree import CATEGORY, SQUARED
from sfumato.measures.risk.sides import Picked, Sides

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: Records over which a posterior is normalised; those further away hardly weigh.
_WEIGHED = 24
#: What a record costs that the law of the noise cannot have made.
_IMPOSSIBLE = 1e6
#: Logarithms of densities further below the largest one than this are taken as if they were here.
_DEEPEST = 700.0
_MOST_CATEGORIES = 2_000
#: Clusters beyond those asked for that are looked at because they may be as near.
_TIED = 3


def pick_by_windows(sides: Sides, reach: Mapping[str, int]) -> Picked:
    """Rank swapping: records within `reach` ranks of the person's value, in every column."""
    narrowest_first = sorted(reach, key=reach.__getitem__)
    people, released = sides.records(narrowest_first)
    # in the order of the column that is walked most, neighbours in rank are neighbours in memory
    order = np.argsort(_numbers(released.columns[0]), kind="stable")
    place = np.empty(order.size + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(order.size), -1
    ranks, intervals = [], []
    for ours, theirs in zip(people.columns, released.columns, strict=True):
        shown = _numbers(theirs)[order]
        ranks.append(rank_windows.ranked(shown))
        intervals.append(rank_windows.windows(_numbers(ours), shown, reach[ours.name]))
    count, found = rank_windows.candidates(
        np.array([rank[0] for rank in ranks]),
        np.array([rank[1] for rank in ranks]),
        np.array([rank[2] for rank in ranks], dtype=np.int64),
        _columns([low for low, _ in intervals]),
        _columns([high for _, high in intervals]),
        place[sides.truth],
    )
    inside = found > 0
    return Picked(np.where(inside, 1.0 / np.maximum(count, 1), 0.0), count, inside)


def pick_by_clusters(sides: Sides, groups: Sequence[Sequence[str]], nearest: int = 1) -> Picked:
    """Microaggregation: members of the clusters nearest to the person, in every group of columns; where these have no member
    in common, the nearest record."""
    clusters, near = [], []
    for group in groups:
        held, shown, metric = _points(*sides.records(group))
        centres, of_record = np.unique(shown, axis=0, return_inverse=True)
        clusters.append(of_record.reshape(-1).astype(np.int64))
        sums, positions = PointTree(centres, metric).closest(held, min(nearest + _TIED, centres.shape[0]))
        wanted = min(nearest, sums.shape[1])
        # equally near clusters are all near
        equal = (sums <= sums[:, wanted - 1 : wanted] * (1 + 1e-9) + 1e-15) & (positions >= 0)
        near.append(np.where(equal, positions, -1)[:, : max(int(equal.sum(axis=1).max(initial=1)), 1)])
    count, found = intersections(_columns(clusters), near, sides.truth)
    inside = found > 0
    credit = np.where(inside, 1.0 / np.maximum(count, 1), 0.0)
    lost = np.flatnonzero((count == 0) & (sides.truth >= 0))
    if lost.size:
        held, shown, metric = _points(*sides.records([name for group in groups for name in group]))
        own = metric.sums(held[lost], shown[sides.truth[lost]])
        closer, tied = PointTree(shown, metric).ranked(held[lost], own)
        credit[lost] = np.where(closer, 0.0, 1.0 / np.maximum(tied, 1))
    return Picked(credit, count, inside)


def pick_by_noise(sides: Sides, columns: Sequence[str], told: Mapping[str, Any]) -> Picked:
    """Noise: the record with the largest density of the noise that would have made it from the person's values."""
    people, released = sides.records(columns)
    held, shown = people.matrix(), released.matrix()
    if held.shape[1] != len(columns):
        raise Unsupported("the likelihood of noise is about numbers, and a masked column holds categories")
    if told["noise"] == "multiplicative":
        return _pick_by_factors(sides.truth, held, shown, float(told["factor_variance"]))
    ratio, scale = float(told["noise_variance_ratio"]), float(told.get("scaled_by", 1.0))
    centre = np.nanmean(shown, axis=0)
    shown = np.where(np.isnan(shown), 0.0, shown - centre)
    held = np.where(np.isnan(held), 0.0, (held - centre) * scale)
    covariance = np.atleast_2d(np.cov(shown, rowvar=False)) * ratio / (1.0 + ratio)
    if told["noise"] == "independent":
        covariance = np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance)
    whiten = vectors / np.sqrt(np.maximum(values, max(float(values[-1]), 1e-300) * 1e-9))
    return _pick_nearest(sides.truth, held @ whiten, shown @ whiten, Metric.euclidean(len(columns)))


def pick_by_transitions(sides: Sides, transitions: Mapping[str, Mapping[str, Any]]) -> Picked:
    """PRAM: the record whose categories the matrices make most likely from the person's."""
    laws, ours, theirs = [], [], []
    for name, law in transitions.items():
        columns = _columns_of(name, sides)
        if columns is None:
            continue
        people, released = sides.records(columns)
        held, shown = _joint_texts(people), _joint_texts(released)
        matrix, inputs, outputs = transition_matrix(law, [*held, *shown])
        laws.append(matrix)
        ours.append(np.array([inputs.get(text, -1) for text in held], dtype=np.int64))
        theirs.append(np.array([outputs.get(text, -1) for text in shown], dtype=np.int64))
    if not laws:
        raise MissingColumn("PRAM: the people's table holds none of the columns that were masked")
    credit, posterior, ties = likeliest(laws, _columns(ours), _columns(theirs), sides.truth)
    return Picked(credit, ties, credit > 0, posterior)


def transition_matrix(
    law: Mapping[str, Any], labels: Sequence[tuple[str | None, ...]]
) -> tuple[Real, dict[tuple[str | None, ...], int], dict[tuple[str | None, ...], int]]:
    """The published matrix with its inputs and outputs; a law of very many categories is written out over those seen."""
    if "matrix" in law:
        inputs = {_as_key(label): position for position, label in enumerate(law["labels"])}
        outputs = {_as_key(label): position for position, label in enumerate(law["outputs"])}
        return np.array(law["matrix"], dtype=np.float64), inputs, outputs
    seen = {label: position for position, label in enumerate(dict.fromkeys(label for label in labels if label != (None,)))}
    if len(seen) > _MOST_CATEGORIES:
        raise Unsupported(f"PRAM: the posterior is computed for up to {_MOST_CATEGORIES:,} categories of a column")
    stay, suppress, size = float(law["stay"]), float(law.get("suppress", 0.0)), len(seen)
    matrix = np.full((size, size), (1.0 - suppress) * (1.0 - stay) / max(int(law["categories"]) - 1, 1))
    np.fill_diagonal(matrix, (1.0 - suppress) * stay)
    if ("*",) in seen:
        matrix[:, seen[("*",)]] += suppress
    return matrix, seen, seen


def _pick_by_factors(truth: Int, held: Real, shown: Real, variance: float) -> Picked:
    """Factors add up as logarithms, taken as normal with the variance that log-normal factors of this variance have."""
    spread, width = math.log1p(variance), held.shape[1]
    kinds = np.repeat(np.array([SQUARED, CATEGORY], dtype=np.int64), width)  # a factor changes neither a sign nor a zero
    metric = Metric(kinds, np.repeat([1.0, _IMPOSSIBLE], width), np.repeat([2.0, 0.0], width))
    sides = []
    for values, shift in ((held, -spread / 2), (shown, 0.0)):
        logs = np.log(np.where(values == 0.0, 1.0, np.abs(values))) + np.where(values == 0.0, 0.0, shift)
        sides.append(np.hstack([logs / math.sqrt(spread), np.sign(values)]))
    return _pick_nearest(truth, sides[0], sides[1], metric)


def _pick_nearest(truth: Int, held: Real, shown: Real, metric: Metric) -> Picked:
    """The record with the largest posterior, when half the squared distance is the negative logarithm of the noise's density.

    A record that many people may have become says little about each of them: the posterior of a record is the density divided by
    its sum over the people of the register and, for those who are not in it, a normal law fitted to the release. The
    logarithm of that sum is one more coordinate, so that the largest posterior is a nearest point.
    """
    commonness = _log_commonness(held, shown, metric)
    commonness = np.maximum(commonness, commonness.max() - _DEEPEST)
    lift = np.sqrt(2.0 * (commonness - commonness.min()))
    wider = Metric(np.append(metric.kinds, SQUARED), np.append(metric.costs, 1.0), np.append(metric.neutral, 0.0))
    asked, points = np.column_stack([held, np.zeros(truth.size)]), np.column_stack([shown, lift])
    tree = PointTree(points, wider)
    there = np.flatnonzero(truth >= 0)
    there = there[np.argsort(_place_in(tree)[truth[there]], kind="stable")]  # neighbours one after the other
    own = wider.sums(asked[there], points[truth[there]])
    closer, tied = tree.ranked(asked[there], own)
    credit, posterior = np.zeros(truth.size), np.zeros(truth.size)
    credit[there] = np.where(closer, 0.0, 1.0 / np.maximum(tied, 1))
    sums, _ = tree.closest(asked[there], min(_WEIGHED, shown.shape[0]))
    least = np.minimum(sums[:, 0], own)
    mass = np.exp(-(sums - least[:, None]) / 2).sum(axis=1) + np.where(own > sums[:, -1], np.exp(-(own - least) / 2), 0.0)
    posterior[there] = np.exp(-(own - least) / 2) / mass
    candidates = np.ones(truth.size, dtype=np.int64)
    candidates[there] = np.maximum(tied, 1)
    return Picked(credit, candidates, credit > 0, posterior)


def _log_commonness(held: Real, shown: Real, metric: Metric) -> Real:
    """Per record the logarithm of how likely it is to come from anybody, up to a constant."""
    people, records = held.shape[0], shown.shape[0]
    order = PointTree(shown, metric).order
    sums, _ = PointTree(held, metric).closest(shown[order], min(_WEIGHED, people))
    least = sums[:, 0]
    known = np.empty(records)
    known[order] = np.log(np.exp(-(sums - least[:, None]) / 2).sum(axis=1)) - least / 2
    if records <= people:
        return known
    numbers = metric.kinds == SQUARED
    points = np.nan_to_num(shown[:, numbers] - np.nanmean(shown[:, numbers], axis=0))
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(points, rowvar=False)))
    values = np.maximum(values, 1.0)  # a record spreads at least as far as its noise
    fitted = -(((points @ vectors) ** 2 / values).sum(axis=1) + np.log(values).sum()) / 2
    return np.asarray(np.logaddexp(known, np.log(records - people) + fitted))


def _place_in(tree: PointTree) -> Int:
    place = np.empty(tree.size, dtype=np.int64)
    place[tree.order] = np.arange(tree.size)
    return place


def _points(people: Records, released: Records) -> tuple[Real, Real, Metric]:
    """Both sides in units of the released deviations; categories equal or not."""
    left, right, kinds = [], [], []
    for ours, theirs in zip(people.columns, released.columns, strict=True):
        held, shown = _numbers(ours), _numbers(theirs)
        category = ours.kind == "category"
        spread = 1.0 if category else float(np.nanstd(shown)) or 1.0
        left.append(held / spread)
        right.append(np.where(np.isnan(shown), -1.0 if category else np.nanmean(shown) if shown.size else 0.0, shown) / spread)
        kinds.append(CATEGORY if category else SQUARED)
    width = len(kinds)
    return _columns(left), _columns(right), Metric(np.array(kinds, dtype=np.int64), np.ones(width), np.ones(width))


def _numbers(column: NumberColumn | CategoryColumn) -> Real:
    if isinstance(column, NumberColumn):
        return column.values
    return np.where(column.codes < 0, np.nan, column.codes).astype(np.float64)


def _columns(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.ascontiguousarray(np.column_stack(parts))


def _columns_of(name: str, sides: Sides) -> tuple[str, ...] | None:
    """The columns behind a published law: one, or several that changed together."""
    columns = (name,) if name in sides.released.column_names else tuple(name.split(" × "))
    return columns if all(column in sides.names for column in columns) else None


def _joint_texts(records: Records) -> list[tuple[str | None, ...]]:
    columns = []
    for column in records.columns:
        if isinstance(column, NumberColumn):
            raise Unsupported(f"PRAM changes categories, and column '{column.name}' holds numbers")
        labels: tuple[str | None, ...] = (*column.labels, None)
        columns.append([labels[code] for code in column.codes.tolist()])
    return list(zip(*columns, strict=True))


def _as_key(label: Any) -> tuple[str | None, ...]:
    return tuple(label) if isinstance(label, (list, tuple)) else (label,)
