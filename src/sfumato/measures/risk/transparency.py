"""What the published method gives away: which released record the adversary who knows it takes for a person's.

Against each kind of mask the linkage that uses its parameters: windows of ranks, clusters that intersect, the likelihood of noise, the
transition matrix. `attacks` runs them with an outside register, `WorstCase` with the whole original. Torra, "Data privacy:
foundations, new developments and the big data challenge", Springer 2017, chapter 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import MissingColumn, Unsupported
from sfumato.data.column_types import CodedText
from sfumato.data.records import CategoryColumn, NumberColumn, Records, paired
from sfumato.data.schema import Schema
from sfumato.kernels import rank_windows
from sfumato.kernels.likely_records import closer_relative, intersections, likeliest
from sfumato.kernels.linkage import Metric, PointTree
from sfumato.kernels.linkage_tree import CATEGORY, SQUARED

Real = NDArray[np.float64]
Int = NDArray[np.int64]

#: Records over which a posterior is normalised; those further away hardly weigh.
_WEIGHED = 32
#: What a record costs that the law of the noise cannot have made.
_IMPOSSIBLE = 1e12
_MOST_CATEGORIES = 2_000


@dataclass(frozen=True, eq=False)
class Sides:
    """People with true values and the released table; `truth[i]` is the row of person i in it, -1 where there is none.

    `names` maps columns of the release to columns of the people."""

    people: pa.Table = field(repr=False)
    released: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    truth: Int = field(repr=False)
    names: Mapping[str, str]

    def records(self, columns: Sequence[str]) -> tuple[Records, Records]:
        """Both sides over the same columns, with the same labels."""
        held = pa.table({name: self.people.column(self.names[name]) for name in columns})
        return paired(Records.of(held, self.schema, columns), Records.of(self.released, self.schema, columns))

    def shared(self, columns: Sequence[str], what: str) -> tuple[str, ...]:
        """Those of the columns that both sides have."""
        found = tuple(name for name in columns if name in self.names and name in self.released.column_names)
        if not found:
            raise MissingColumn(f"{what}: the people's table holds none of the columns that were masked")
        return found

    def split(self, strata: Sequence[str]) -> Iterator[tuple[Int, Int, Sides]]:
        """People and released rows of each stratum, which the mask left as it was."""
        missing = [name for name in strata if name not in self.names]
        if missing:
            raise MissingColumn(f"the mask worked within strata, and the people's table has no column for {', '.join(missing)}")
        ours, theirs = np.zeros(self.people.num_rows, dtype=np.int64), np.zeros(self.released.num_rows, dtype=np.int64)
        for name in strata:
            joined = pa.chunked_array([_texts(self.people.column(self.names[name])), _texts(self.released.column(name))])
            codes = CodedText.of(joined).codes.astype(np.int64) + 1
            both = np.concatenate([ours, theirs]) * (int(codes.max(initial=0)) + 1) + codes
            both = np.unique(both, return_inverse=True)[1].reshape(-1)
            ours, theirs = both[: ours.size], both[ours.size :]
        place = np.full(self.released.num_rows + 1, -1, dtype=np.int64)
        for stratum in np.unique(theirs).tolist():
            people, rows = np.flatnonzero(ours == stratum), np.flatnonzero(theirs == stratum)
            place[rows] = np.arange(rows.size)
            truth = np.where(np.isin(self.truth[people], rows), place[self.truth[people]], -1)
            yield people, rows, replace(self, people=self.people.take(people), released=self.released.take(rows), truth=truth)


@dataclass(frozen=True, eq=False)
class Picked:
    """Per person: the chance that the adversary picks the own record, how many candidates there are, whether the own record is
    one of them, and where a law gives it, how likely the adversary thinks it is."""

    credit: Real
    candidates: Int
    found: NDArray[np.bool_]
    posterior: Real | None = None

    @property
    def rate(self) -> float:
        """The expected share of people whose record is picked."""
        return float(self.credit.mean()) if self.credit.size else 0.0


def by_stratum(sides: Sides, strata: Sequence[str] | None, pick: Callable[[Sides], Picked]) -> Picked:
    """Pick within each stratum, where the mask had strata."""
    if not strata:
        return pick(sides)
    people = sides.people.num_rows
    credit, candidates, found = np.zeros(people), np.zeros(people, dtype=np.int64), np.zeros(people, dtype=np.bool_)
    posterior = np.zeros(people)
    told = False
    for rows, _, part in sides.split(strata):
        if rows.size:
            one = pick(part)
            credit[rows], candidates[rows], found[rows] = one.credit, one.candidates, one.found
            if one.posterior is not None:
                posterior[rows], told = one.posterior, True
    return Picked(credit, candidates, found, posterior if told else None)


def pick_by_windows(sides: Sides, reach: Mapping[str, int]) -> Picked:
    """Rank swapping: records within `reach` ranks of the person's value, in every column."""
    people, released = sides.records(tuple(reach))
    orders, places, known, low, high = [], [], [], [], []
    for ours, theirs in zip(people.columns, released.columns, strict=True):
        held, shown = _numbers(ours), _numbers(theirs)
        order, place, count = rank_windows.ranked(shown)
        first, last = rank_windows.windows(held, shown, reach[ours.name])
        orders.append(order)
        places.append(place)
        known.append(count)
        low.append(first)
        high.append(last)
    count, found = rank_windows.candidates(
        np.array(orders), np.array(places), np.array(known), _columns(low), _columns(high), np.ascontiguousarray(sides.truth)
    )
    inside = found > 0
    return Picked(np.where(inside, 1.0 / np.maximum(count, 1), 0.0), count, inside)


def pick_by_clusters(sides: Sides, groups: Sequence[Sequence[str]], nearest: int = 1) -> Picked:
    """Microaggregation: members of the clusters nearest to the person, in every group of columns."""
    clusters, near = [], []
    for group in groups:
        people, released = sides.records(group)
        held, shown, metric = _points(people, released)
        centres, of_record = np.unique(shown, axis=0, return_inverse=True)
        clusters.append(of_record.reshape(-1).astype(np.int64))
        sums, positions = PointTree(centres, metric).closest(held, min(nearest + 8, centres.shape[0]))
        # equally near clusters are all near
        limit = sums[:, min(nearest, sums.shape[1]) - 1 : min(nearest, sums.shape[1])]
        near.append(np.where((sums <= limit * (1 + 1e-9) + 1e-15) & (positions >= 0), positions, -1))
    count, found = intersections(_columns(clusters), near, sides.truth)
    inside = found > 0
    return Picked(np.where(inside, 1.0 / np.maximum(count, 1), 0.0), count, inside)


def pick_by_noise(sides: Sides, columns: Sequence[str], told: Mapping[str, Any]) -> Picked:
    """Noise: the record with the largest density of the noise that would have made it from the person's values."""
    people, released = sides.records(columns)
    held, shown = people.matrix(), released.matrix()
    if held.shape[1] != len(columns):
        raise Unsupported("the likelihood of noise is about numbers, and a masked column holds categories")
    if told["noise"] == "multiplicative":
        return _pick_by_factors(sides.truth, held, shown, float(told["factor_variance"]), str(told["method"].get("law", "normal")))
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


def windows_told(told: Mapping[str, Any]) -> dict[str, int]:
    """The published window of each column; the widest where strata differ."""
    window = told["window"]
    parts = window["by stratum"] if isinstance(window, Mapping) and set(window) == {"by stratum"} else [window]
    found: dict[str, int] = {}
    for part in parts:
        for name, ranks in part.items():
            found[name] = max(found.get(name, 0), int(ranks))
    return found


def steps_told(transparency: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is told about each mask of a combination, or about the one."""
    if "steps" not in transparency:
        return [transparency] if transparency else []
    return [step for told in transparency["steps"] for step in steps_told(told)]


def strata_told(told: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns within whose values a mask worked."""
    return tuple(told.get("method", {}).get("strata") or ())


def picked_by_method(sides: Sides, told: Mapping[str, Any]) -> tuple[str, Picked] | None:
    """The attack that fits what is told about one mask, with its name; None where no attack does."""
    strata = strata_told(told)
    if "window" in told:
        reach = {name: ranks for name, ranks in windows_told(told).items() if name in sides.names}
        return ("rank window", by_stratum(sides, strata, lambda part: pick_by_windows(part, reach))) if reach else None
    if "attribute_groups" in told:
        groups = [[name for name in group if name in sides.names] for group in told["attribute_groups"]]
        held = [group for group in groups if group]
        return ("cluster intersection", by_stratum(sides, strata, lambda part: pick_by_clusters(part, held))) if held else None
    if "noise" in told:
        columns = [name for name in told["masked_columns"] if name in sides.names]
        return ("noise likelihood", by_stratum(sides, strata, lambda part: pick_by_noise(part, columns, told))) if columns else None
    if "transitions" in told and not (isinstance(told["transitions"], Mapping) and "by stratum" in told["transitions"]):
        return "transition posterior", by_stratum(sides, strata, lambda part: pick_by_transitions(part, told["transitions"]))
    return None


def _pick_by_factors(truth: Int, held: Real, shown: Real, variance: float, law: str) -> Picked:
    if law == "lognormal":
        spread = math.log1p(variance)
        width = held.shape[1]
        kinds = np.repeat(np.array([SQUARED, CATEGORY], dtype=np.int64), width)
        metric = Metric(kinds, np.repeat([1.0, _IMPOSSIBLE], width), np.repeat([2.0, 0.0], width))
        sides = []
        for values, shift in ((held, -spread / 2), (shown, 0.0)):
            logs = np.log(np.where(values == 0.0, 1.0, np.abs(values))) + np.where(values == 0.0, 0.0, shift)
            sides.append(np.hstack([logs / math.sqrt(spread), np.sign(values)]))
        return _pick_nearest(truth, sides[0], sides[1], metric)
    deviation = np.nanstd(shown, axis=0) + 1e-300
    size = np.maximum(np.abs(held) * math.sqrt(variance), deviation * 1e-9)
    scales = np.where(np.isnan(held), 0.0, 1.0 / size)
    points = np.where(np.isnan(shown), np.nanmean(shown, axis=0), shown)
    closer, tied = closer_relative(
        np.ascontiguousarray(np.nan_to_num(held)), np.ascontiguousarray(points), np.ascontiguousarray(scales), truth
    )
    best = (closer == 0) & (tied > 0)
    return Picked(np.where(best, 1.0 / np.maximum(tied, 1), 0.0), np.maximum(tied, 1), best)


def _pick_nearest(truth: Int, held: Real, shown: Real, metric: Metric) -> Picked:
    """The nearest record, when half the squared distance is the negative logarithm of the density."""
    tree = PointTree(shown, metric)
    there = np.flatnonzero(truth >= 0)
    own = metric.sums(held[there], shown[truth[there]])
    closer, tied = tree.ranked(held[there], own)
    credit, posterior = np.zeros(truth.size), np.zeros(truth.size)
    credit[there] = np.where(closer, 0.0, 1.0 / np.maximum(tied, 1))
    sums, _ = tree.closest(held[there], min(_WEIGHED, max(shown.shape[0], 1)))
    least = np.minimum(sums[:, 0], own)
    mass = np.exp(-(sums - least[:, None]) / 2).sum(axis=1) + np.where(own > sums[:, -1], np.exp(-(own - least) / 2), 0.0)
    posterior[there] = np.exp(-(own - least) / 2) / mass
    candidates = np.ones(truth.size, dtype=np.int64)
    candidates[there] = np.maximum(tied, 1)
    return Picked(credit, candidates, credit > 0, posterior)


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


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
