"""Margins of means, variances, ratios and other expressions: how far what the bounded data says may be from what is shown.

What the noise took away is put back, at fixed points of its law: the measurements less each possible noise are the tables that
the answer may come from, and the statistic is computed again for each of them. A margin reaches as far as the farther end of
the middle part of these values. For a ratio that is Fieller's interval, which covers at its confidence whatever the data; the
argument, and what holds for other expressions, is in docs/theory/margins.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sfumato.dp.sql.aggregates import PLACEHOLDER
from sfumato.dp.sql.arrays import computed
from sfumato.dp.sql.grouping import KEY
from sfumato.dp.sql.noise import Price, errors_in_sum_margin
from sfumato.dp.sql.noise_points import noise_points, points_for
from sfumato.dp.sql.propagation import Smooth, noisy_parts
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.statistics import Statistic

Floats = NDArray[np.float64]

#: The confidences at which an answer keeps its margins; those between are read off a curve through them.
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
#: Points times groups that are computed with at a time.
_AT_ONCE = 2**18

#: A margin at each of the levels, then the one that holds for certain (by declared bounds); None where it may be anything, and
#: instead of the whole where it may be at all of them.
Curve = tuple[float | None, ...] | None


def margin_at(curve: Curve, confidence: float) -> float | None:
    """The margin of a curve at any confidence: straight in the logarithm of what is left over, which Laplace noise is exactly.

    Above the last level nothing is guessed: the margin is the one that holds for certain, or there is none.

    >>> margin_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9, 50.0), 0.95)
    3.0
    >>> margin_at((0.7, 1.6, 2.3, 3.0, 3.9, 4.6, 5.3, 6.9, 50.0), 0.9999)
    50.0
    """
    if curve is None:
        return None
    places = [0.0, *(-math.log(1 - level) for level in LEVELS)]
    margins = [0.0, *(math.inf if margin is None else margin for margin in curve[: len(LEVELS)])]
    wanted = -math.log(1 - confidence)
    above = next((number for number, place in enumerate(places) if wanted <= place * (1 + 1e-12)), None)
    if above is None:
        return curve[len(LEVELS)] if len(curve) > len(LEVELS) else None
    if not math.isfinite(margins[above]):
        return None
    share = (wanted - places[above - 1]) / (places[above] - places[above - 1])
    return margins[above - 1] + share * (margins[above] - margins[above - 1]) if share != 1.0 else margins[above]


def standard_error(curve: Curve, law: str) -> float | None:
    """The deviation of the noise that would have this margin."""
    known = margin_at(curve, 0.95)
    return None if known is None else known / errors_in_sum_margin(law, 0.95)


@dataclass(frozen=True)
class NoisyQuantiles:
    """The values and margins of a quantile, group by group."""

    values: Sequence[float]
    curves: Sequence[Curve]


class Possible:
    """What the statistics of some groups may be without the noise, at each point of its law; the first is what is shown."""

    def __init__(
        self, question: Question, price: Price, noisy: Mapping[str, Floats], quantiles: Mapping[str, NoisyQuantiles]
    ) -> None:
        self.question, self.price, self.noisy, self.quantiles = question, price, noisy, quantiles
        self.law = next(iter(price.noises.values())).law

    def curves(self, made: Smooth, places: Sequence[int], keys: Sequence[Sequence[object]]) -> list[Curve]:
        """The margins of an expression in the groups at these places."""
        count = points_for(max(map(len, self.noisy.values()), default=0))  # measured, not shown: LIMIT changes no margin
        step = max(_AT_ONCE // count, 1)
        found: list[Curve] = []
        for start in range(0, len(places), step):
            found.extend(self._chunk(made, places[start : start + step], keys[start : start + step], count))
        return found

    def _chunk(self, made: Smooth, places: Sequence[int], keys: Sequence[Sequence[object]], count: int) -> list[Curve]:
        columns = self._columns(noisy_parts(made.node), np.asarray(places, dtype=np.int64), count)
        for number in range(len(self.question.keys)):
            columns[KEY + str(number)] = np.array([[_number(group[number])] for group in keys])
        columns |= {name: np.zeros((1, 1)) for name in made.roundings}
        with np.errstate(all="ignore"):
            values = computed(made.node, columns)
            if values is None:
                return [None] * len(places)
            values = np.broadcast_to(values, (len(places), count + 1))
            slack = np.zeros((len(places), len(LEVELS)))
            for name, sizes in self._apart(made, places).items():
                slack = slack + _change(made.node, columns, name, sizes)
            certain = self._certain(made, values[:, :1])
            reaches = np.concatenate([np.minimum(_reaches(values), certain) + slack, certain], axis=1)
        # What is surer is no nearer.
        reaches = np.maximum.accumulate(np.where(np.isnan(reaches), np.inf, reaches), axis=1)
        known = np.isfinite(reaches[:, 0]) & np.isfinite(values[:, 0])
        return [_curve(row) if told else None for told, row in zip(known.tolist(), reaches.tolist(), strict=True)]

    def _certain(self, made: Smooth, shown: Floats) -> Floats:
        """How far a statistic by itself may be at all, by what the declared bounds allow; infinite for everything else."""
        name = made.node.name if isinstance(made.node, exp.Column) else ""
        statistic = self.question.statistics.get(name.removeprefix(PLACEHOLDER)) if name.startswith(PLACEHOLDER) else None
        if statistic is None or statistic.ends is None:
            return np.full_like(shown, np.inf)
        low, high = statistic.ends
        return np.maximum(shown - low, high - shown)

    def _columns(self, parts: set[str], places: NDArray[np.int64], count: int) -> dict[str, Floats]:
        statistics = {text: self.question.statistics[text] for text in self.question.statistics if text in parts}
        flat = {text: statistic for text, statistic in statistics.items() if statistic.tree is None}
        names = list(dict.fromkeys(part for statistic in flat.values() for part in statistic.parts))
        possible: dict[str, Floats] = {}
        if names:
            points = noise_points([self.price.noises[name] for name in names], count)
            for name, row in zip(names, points, strict=True):
                possible[name] = self.noisy[name][places, None] - np.concatenate([[0.0], row])
        columns = {PLACEHOLDER + text: _values(statistic, possible) for text, statistic in flat.items()}
        for text in parts & self.quantiles.keys():
            columns[PLACEHOLDER + text] = np.array([self.quantiles[text].values[place] for place in places])[:, None]
        return columns

    def _apart(self, made: Smooth, places: Sequence[int]) -> dict[str, Floats]:
        """What may be off by itself, by how much at each level: roundings, and quantiles, which no single noise moves."""
        sizes = {name: np.full((len(places), len(LEVELS)), size) for name, size in made.roundings.items()}
        for text in noisy_parts(made.node) & self.quantiles.keys():
            curves = [self.quantiles[text].curves[place] for place in places]
            known = [(np.nan,) * len(LEVELS) if curve is None else curve[: len(LEVELS)] for curve in curves]
            sizes[PLACEHOLDER + text] = np.array(known, dtype=np.float64)
        return sizes


def _change(node: exp.Expression, columns: Mapping[str, Floats], name: str, sizes: Floats) -> Floats:
    """How far an expression moves, at each level, when one of its columns is off by so much."""
    shown = {column: values[:, :1] for column, values in columns.items()}
    present = computed(node, shown)
    changes = []
    for sign in (1.0, -1.0):
        moved = computed(
            node, {**shown, name: np.concatenate([shown[name] + 0 * sizes[:, :1], shown[name] + sign * sizes], axis=1)}
        )
        if moved is not None and present is not None:
            changes.append(np.abs(np.broadcast_to(moved, (len(sizes), sizes.shape[1] + 1))[:, 1:] - present))
    return np.max(changes, axis=0) if changes else np.full_like(sizes, np.nan)


def _values(statistic: Statistic, possible: Mapping[str, Floats]) -> Floats:
    """The statistic at every point; where no row would be left it may be anything, and so is at the farther end."""
    values = statistic.value(possible)
    ends = statistic.ends
    if ends is None or statistic.count is None:
        return values
    shown = values[:, :1]
    farther = np.where(shown - ends[0] > ends[1] - shown, *ends)
    empty = possible[statistic.count] < statistic.fewest
    empty[:, 0] = False
    return np.where(empty, farther, values)


def _reaches(values: Floats) -> Floats:
    """For each group and level: how far the farther end of the middle part lies from what is shown."""
    count = values.shape[1] - 1
    away = (values[:, 1:] - values[:, :1]).astype(np.float32)
    lost = np.isnan(away)
    below, above = away, away
    if lost.any():
        # A point without a value may be anywhere: it counts on both sides.
        below, above = np.where(lost, -np.inf, away), np.where(lost, np.inf, away)
    below, above = (np.sort(below, axis=1), np.sort(above, axis=1)) if lost.any() else (np.sort(away, axis=1),) * 2
    left = [int((1 - level) / 2 * count) for level in LEVELS]
    ends = [np.maximum(above[:, count - 1 - k], -below[:, k]) for k in left]
    reaches = np.maximum(np.stack(ends, axis=1), np.float32(0))
    # Single precision may have rounded towards what is shown: the next number is as far as the end, or beyond it.
    outward: Floats = np.where(reaches > 0, np.nextafter(reaches, np.float32(np.inf)), reaches).astype(np.float64)
    return outward


def _curve(reaches: Sequence[float]) -> Curve:
    return tuple(reach if math.isfinite(reach) else None for reach in reaches)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (bool, int, float)) else math.nan
