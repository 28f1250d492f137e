"""Which released record the adversary who knows the method takes for a person's: one linkage for each kind of mask.

Windows of ranks against rank swapping, clusters that intersect against microaggregation, the likelihood of the noise, the
transition matrix of PRAM. Torra, "Data privacy: foundations, new developments and the big data challenge", Springer 2017; Nin,
Herranz, Torra, "Rethinking rank swapping to decrease disclosure risk", Data and Knowledge Engineering 64, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.linkage import rank_windows
from sfumato.kernels.linkage.likely_records import intersections, likeliest, log_mass, nearest_own, own_rows
from sfumato.kernels.linkage.points import Metric, PointTree
from sfumato.kernels.linkage.tree import CATEGORY, SQUARED
from sfumato.measures.risk.linkage.sides import Picked, Sides

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: What a record costs that the law of the noise cannot have made, or that differs where nothing was masked.
_IMPOSSIBLE = 1e6
#: Logarithms of densities further below the largest one than this are taken as if they were here.
_DEEPEST = 700.0
_MOST_CATEGORIES = 2_000
#: In units of a column's range: a value further off is as far as one there.
_FARTHEST = 1e12
#: Clusters beyond those asked for that are looked at because they may be as near; with more than the most, a group says nothing.
_TIED, _MOST_TIED = 3, 64
_ENDS: tuple[Literal["left"], Literal["right"]] = ("left", "right")


def pick_by_windows(sides: Sides, reach: Mapping[str, int]) -> Picked:
    """Rank swapping: records within `reach` ranks of the person's value, in every column."""
    reach = dict(reach) | dict.fromkeys(sides.agreeing, 0)  # a value that was not masked has kept its rank
    narrowest_first = sorted(reach, key=reach.__getitem__)
    people, released = sides.records(narrowest_first)
    # in the order of the column that is walked most, neighbours in rank are neighbours in memory
    order = np.argsort(_numbers(released.columns[0]), kind="stable")
    ranks, intervals = [], []
    for ours, theirs in zip(people.columns, released.columns, strict=True):
        shown = _numbers(theirs)[order]
        ranks.append(rank_windows.ranked(shown))
        intervals.append(rank_windows.windows(_numbers(ours), shown, reach[ours.name]))
    count, own = rank_windows.candidates(
        np.array([rank[0] for rank in ranks]),
        np.array([rank[1] for rank in ranks]),
        np.array([rank[2] for rank in ranks], dtype=np.int64),
        _columns([low for low, _ in intervals]),
        _columns([high for _, high in intervals]),
        np.ascontiguousarray(sides.owners[order]),
        sides.mine,
    )
    return Picked(own / np.maximum(count, 1), count, own > 0)


def pick_by_clusters(sides: Sides, groups: Sequence[Sequence[str]], nearest: int = 1) -> Picked:
    """Microaggregation: members of the clusters nearest to the person, in every group of columns of which a value is known;
    where these have no member in common, the nearest record."""
    clusters, near = [], []
    for group in groups:
        held, shown, metric = _points(*sides.records(group))
        centres, of_record = np.unique(shown, axis=0, return_inverse=True)
        clusters.append(of_record.reshape(-1).astype(np.int64))
        near.append(_nearest_clusters(held, PointTree(centres, metric), nearest))
    for held, shown in _agreeing(sides):
        of_record, equal = _equal_values(held, shown)
        clusters.append(of_record)
        near.append(equal)
    count, own = intersections(_columns(clusters), near, sides.owners, sides.mine)
    credit = own / np.maximum(count, 1)
    lost = np.flatnonzero((count == 0) & (sides.truth >= 0))
    if lost.size:
        held, shown, metric = _points(*sides.records([name for group in groups for name in group]))
        credit[lost] = nearest_own(PointTree(shown, metric), shown, held[lost], sides.owners, sides.mine[lost])[0]
    return Picked(credit, count, own > 0)


def _nearest_clusters(held: Real, tree: PointTree, nearest: int) -> Int:
    """The nearest clusters of everybody, equally near ones with them; none where no value of the person is known."""
    count = min(nearest, tree.size)
    near = np.full((held.shape[0], min(nearest + _MOST_TIED, tree.size)), -1, dtype=np.int64)
    asking, width = np.flatnonzero(~np.isnan(held).all(axis=1)), min(nearest + _TIED, near.shape[1])
    while asking.size:
        sums, positions = tree.closest(held[asking], width)
        equal = sums <= sums[:, count - 1 : count] * (1 + 1e-9) + 1e-15
        # where the last one is equally near too there may be more of them
        settled = ~equal[:, -1] if width < tree.size else np.ones(asking.size, dtype=np.bool_)
        near[asking[settled], :width] = np.where(equal, positions, -1)[settled]
        if width == near.shape[1]:
            break
        asking, width = asking[~settled], min(width * 4, near.shape[1])
    return near[:, : max(int((near >= 0).sum(axis=1).max(initial=1)), 1)]


def _equal_values(held: Real, shown: Real) -> tuple[Int, Int]:
    """Released values as clusters, and the clusters a person may be in: the own value, and what is missing."""
    values, of_record = np.unique(np.where(np.isnan(shown), np.inf, shown), return_inverse=True)
    place = np.minimum(np.searchsorted(values, held), values.size - 1)
    own = np.where(values[place] == held, place, -1)
    missing = np.where(np.isnan(held) | np.isfinite(values[-1]), -1, values.size - 1)
    return of_record.reshape(-1).astype(np.int64), np.column_stack([own, missing]).astype(np.int64)


def pick_by_noise(sides: Sides, columns: Sequence[str], facts: Plain) -> Picked:
    """Noise: the record with the largest density of the noise that would have made it from the person's values."""
    people, released = sides.records(columns)
    held, shown = people.matrix(), released.matrix()
    if held.shape[1] != len(columns):
        raise Unsupported("the likelihood of noise is about numbers, and a masked column holds categories")
    if facts["noise"] == "multiplicative":
        return _pick_by_factors(sides, held, shown, float(facts["factor_variance"]))
    ratio, scale = float(facts["noise_variance_ratio"]), float(facts.get("scaled_by", 1.0))
    centre, unit = _centre_and_unit(shown)
    shown = np.where(np.isnan(shown), 0.0, (shown - centre) / unit)
    held = np.clip(np.where(np.isnan(held), 0.0, (held - centre) / unit * scale), -_FARTHEST, _FARTHEST)
    covariance = _covariance(shown) * ratio / (1.0 + ratio)
    if facts["noise"] == "independent":
        covariance = np.diag(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance)
    whiten = vectors / np.sqrt(np.maximum(values, max(float(values[-1]) * 1e-9, 1e-18)))
    return _pick_nearest(sides, held @ whiten, shown @ whiten, Metric.euclidean(len(columns)))


def pick_by_transitions(sides: Sides, transitions: Mapping[str, Plain]) -> Picked:
    """PRAM: the record whose categories the matrices make most likely from the person's."""
    laws, ours, theirs = [], [], []
    for name, law in transitions.items():
        columns = columns_of(name, sides)
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
    held_codes, released_codes, owners, mine = _columns(ours), _columns(theirs), sides.owners, sides.mine
    credit, posterior, ties = np.zeros(mine.size), np.zeros(mine.size), np.zeros(mine.size, dtype=np.int64)
    for who, rows, crowd in _who_agrees(sides):
        parts = likeliest(laws, held_codes[crowd], released_codes[rows], owners[rows], mine[crowd])
        kept = np.searchsorted(crowd, who)
        credit[who], posterior[who], ties[who] = (part[kept] for part in parts)
    return Picked(credit, ties, credit > 0, posterior)


def _who_agrees(sides: Sides) -> Iterator[tuple[Int, Int, Int]]:
    """People, the released rows that agree with them in every column that was not masked, and everybody who might have become
    these rows. Whoever misses one of these values may be behind any row."""
    people, rows = sides.truth.size, sides.released.num_rows
    ours, theirs, unknown = np.zeros(people, dtype=np.int64), np.zeros(rows, dtype=np.int64), np.zeros(people, dtype=np.bool_)
    for held, shown in _agreeing(sides):
        unknown |= np.isnan(held)
        both = np.concatenate([held, shown])
        codes = np.unique(np.where(np.isnan(both), np.inf, both), return_inverse=True)[1].reshape(-1)
        joint = np.concatenate([ours, theirs]) * (int(codes.max(initial=0)) + 1) + codes
        joint = np.unique(joint, return_inverse=True)[1].reshape(-1).astype(np.int64)
        ours, theirs = joint[:people], joint[people:]
    if unknown.any():
        yield np.flatnonzero(unknown), np.arange(rows), np.arange(people)
    ours = np.where(unknown, -1, ours)
    first, second = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
    codes = np.intersect1d(ours, theirs)
    edges = [np.searchsorted(side[order], codes, side=end) for side, order in ((ours, first), (theirs, second)) for end in _ENDS]
    for low, high, begin, stop in zip(*edges, strict=True):
        yield first[low:high], second[begin:stop], first[low:high]


def transition_matrix(
    law: Plain, labels: Sequence[tuple[str | None, ...]]
) -> tuple[Real, dict[tuple[str | None, ...], int], dict[tuple[str | None, ...], int]]:
    """The published matrix with its inputs and outputs; a law of very many categories is written out over those seen."""
    if "matrix" in law:
        inputs = {_as_key(label): position for position, label in enumerate(law["labels"])}
        outputs = {_as_key(label): position for position, label in enumerate(law["outputs"])}
        return np.array(law["matrix"], dtype=np.float64), inputs, outputs
    places = {label: position for position, label in enumerate(dict.fromkeys(label for label in labels if label != (None,)))}
    if len(places) > _MOST_CATEGORIES:
        raise Unsupported(f"PRAM: the posterior is computed for up to {_MOST_CATEGORIES:,} categories of a column")
    stay, suppress, size = float(law["stay"]), float(law.get("suppress", 0.0)), len(places)
    matrix = np.full((size, size), (1.0 - suppress) * (1.0 - stay) / max(int(law["categories"]) - 1, 1))
    np.fill_diagonal(matrix, (1.0 - suppress) * stay)
    if ("*",) in places:
        matrix[:, places[("*",)]] += suppress
    return matrix, places, places


def _pick_by_factors(sides: Sides, held: Real, shown: Real, variance: float) -> Picked:
    """Factors add up as logarithms, taken as normal with the variance that log-normal factors of this variance have."""
    spread, width = math.log1p(variance), held.shape[1]
    kinds = np.repeat(np.array([SQUARED, CATEGORY], dtype=np.int64), width)  # a factor changes neither a sign nor a zero
    metric = Metric(kinds, np.repeat([1.0, _IMPOSSIBLE], width), np.repeat([2.0, 0.0], width))
    both = []
    for values, shift in ((held, -spread / 2), (shown, 0.0)):
        logs = np.log(np.where(values == 0.0, 1.0, np.abs(values))) + np.where(values == 0.0, 0.0, shift)
        both.append(np.hstack([logs / math.sqrt(spread), np.sign(values)]))
    return _pick_nearest(sides, both[0], both[1], metric)


def _pick_nearest(sides: Sides, held: Real, shown: Real, metric: Metric) -> Picked:
    """The record with the largest posterior, when half the squared distance is the negative logarithm of the noise's density.

    A record that many people may have become says little about each of them: the posterior of a record is the density divided by
    its sum over the people of the register and, for those who are not in it, a normal law fitted to the release. The
    logarithm of that sum is one more coordinate, so that the largest posterior is a nearest point.
    """
    equal = _agreeing(sides)
    held, shown = _columns([held, *(one for one, _ in equal)]), _columns([shown, *(other for _, other in equal)])
    many = len(equal)
    metric = Metric(
        np.append(metric.kinds, np.full(many, CATEGORY)),
        np.append(metric.costs, np.full(many, _IMPOSSIBLE)),
        np.append(metric.neutral, np.zeros(many)),
    )
    commonness = _log_commonness(held, shown, metric)
    commonness = np.maximum(commonness, commonness.max() - _DEEPEST)
    lift = np.sqrt(2.0 * (commonness - commonness.min()))
    wider = Metric(np.append(metric.kinds, SQUARED), np.append(metric.costs, 1.0), np.append(metric.neutral, 0.0))
    queries, points = _columns([held, np.zeros(held.shape[0])]), _columns([shown, lift])
    owners, mine = sides.owners, sides.mine
    credit, nearest = nearest_own(PointTree(points, wider), points, queries, owners, mine)
    own = np.full(mine.size, -np.inf)
    for who, rows in own_rows(owners, mine):
        own[who] = np.logaddexp(own[who], -wider.sums(queries[who], points[rows]) / 2)
    return Picked(credit, np.maximum(nearest, 1), credit > 0, np.exp(own - log_mass(queries, points, wider)))


def _log_commonness(held: Real, shown: Real, metric: Metric) -> Real:
    """Per record the logarithm of how likely it is to come from anybody, up to a constant."""
    people, records = held.shape[0], shown.shape[0]
    log_masses = log_mass(shown, held, metric)
    if records <= people:
        return log_masses
    numbers = metric.kinds == SQUARED
    points = shown[:, numbers]
    points = np.nan_to_num(points - _centre_and_unit(points)[0])
    values, vectors = np.linalg.eigh(_covariance(points))
    values = np.maximum(values, 1.0)  # a record spreads at least as far as its noise
    fitted = -(((points @ vectors) ** 2 / values).sum(axis=1) + np.log(values).sum()) / 2
    # and it has values that agree or not as often as they occur in the release
    _, of_record, often = np.unique(np.nan_to_num(shown[:, ~numbers]), axis=0, return_inverse=True, return_counts=True)
    fitted = fitted + np.log(often / records)[of_record.reshape(-1)]
    return np.asarray(np.logaddexp(log_masses, np.log(records - people) + fitted))


def _centre_and_unit(values: Real) -> tuple[Real, Real]:
    """Per column the mean of what is known, and the range as a unit in which no square overflows."""
    centres, units = np.zeros(values.shape[1]), np.ones(values.shape[1])
    for place in range(values.shape[1]):
        present = values[:, place][~np.isnan(values[:, place])]
        if present.size:
            centres[place] = present.mean()
            units[place] = float(present.max() - present.min()) or 1.0
    return centres, units


def _covariance(values: Real) -> Real:
    """The covariance; of a single record nothing, so that only equal values are likely."""
    width = values.shape[1]
    if values.shape[0] < 2:
        return np.zeros((width, width))
    return np.asarray(np.cov(values, rowvar=False)).reshape(width, width)


def _agreeing(sides: Sides) -> list[tuple[Real, Real]]:
    """Both sides of the columns in which the own record agrees with the person, as numbers."""
    people, released = sides.records(sides.agreeing)
    return [(_numbers(ours), _numbers(theirs)) for ours, theirs in zip(people.columns, released.columns, strict=True)]


def _points(people: Records, released: Records) -> tuple[Real, Real, Metric]:
    """Both sides in units of the released deviations; categories equal or not."""
    left, right, kinds = [], [], []
    for ours, theirs in zip(people.columns, released.columns, strict=True):
        held, shown = _numbers(ours), _numbers(theirs)
        category = ours.kind == "category"
        centre, unit = (0.0, 1.0) if category else (float(part[0]) for part in _centre_and_unit(shown[:, None]))
        scaled = np.where(np.isnan(shown), -1.0 if category else 0.0, (shown - centre) / unit)
        spread = 1.0 if category else float(scaled.std()) or 1.0
        left.append(held if category else np.clip((held - centre) / unit / spread, -_FARTHEST, _FARTHEST))
        right.append(scaled / spread)
        kinds.append(CATEGORY if category else SQUARED)
    width = len(kinds)
    return _columns(left), _columns(right), Metric(np.array(kinds, dtype=np.int64), np.ones(width), np.ones(width))


def _numbers(column: NumberColumn | CategoryColumn) -> Real:
    if isinstance(column, NumberColumn):
        return column.values
    return np.where(column.codes < 0, np.nan, column.codes).astype(np.float64)


def _columns(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.ascontiguousarray(np.column_stack(parts))


def columns_of(name: str, sides: Sides) -> tuple[str, ...] | None:
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
