"""Intervals of means, variances, ratios and other expressions: where what the bounded data says lies, around what is shown.

What the noise took away is put back, at fixed points of its law: the measurements less each possible noise are the tables that
the answer may come from, and the statistic is computed again for each of them. An interval is the middle part of these values,
and a margin reaches to its farther end. For a ratio that is Fieller's interval, which covers at its confidence whatever the
data; the argument, and what holds for variances and other expressions, is in docs/theory/margins.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from sfumato.dp.sql.margins.noise_points import noise_points, points_for
from sfumato.dp.sql.margins.propagation import noisy_parts
from sfumato.dp.sql.margins.reach import LEVELS, Reach
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.measuring.statistic import Statistic
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.language import computed
from sfumato.dp.sql.operators.windows import WindowValues
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.grouping import KEY

Floats = NDArray[np.float64]

#: Points times groups that are computed with at a time.
AT_ONCE = 2**18


@dataclass(frozen=True)
class NoisyQuantiles:
    """The values and reaches of a quantile, group by group."""

    values: Sequence[float]
    reaches: Sequence[Reach]


class Possible:
    """What the statistics of some groups may be without the noise, at each point of its law; the first is what is shown."""

    def __init__(
        self,
        question: Question,
        price: Price,
        noisy: Mapping[str, Floats],
        quantiles: Mapping[str, NoisyQuantiles],
        windows: Mapping[str, WindowValues] | None = None,
    ) -> None:
        self.question, self.price, self.noisy, self.quantiles = question, price, noisy, quantiles
        self.windows = windows or {}
        self.law = next(iter(price.noises.values())).law

    def distances(
        self, node: exp.Expression, places: Sequence[int], keys: Sequence[Sequence[object]], levels: Sequence[float]
    ) -> tuple[Floats, Floats, Floats]:
        """A mean, a spread or a ratio of sums in the groups at these places, and how far below and above it the true one may be.

        One column per level, then one for certain; infinite where it may be anywhere.
        """
        count = points_for(max(map(len, self.noisy.values()), default=0))  # measured, not shown: LIMIT changes no margin
        step = max(AT_ONCE // count, 1)
        chunks = [
            self._chunk(node, places[start : start + step], keys[start : start + step], count, levels)
            for start in range(0, len(places), step)
        ]
        shown, below, above = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        return shown, below, above

    def _chunk(
        self, node: exp.Expression, places: Sequence[int], keys: Sequence[Sequence[object]], count: int, levels: Sequence[float]
    ) -> tuple[Floats, Floats, Floats]:
        columns = self._columns(noisy_parts(node), np.asarray(places, dtype=np.int64), count)
        others = {KEY + str(place): numbers([group[place] for group in keys]) for place in range(len(self.question.keys))}
        with np.errstate(all="ignore"):
            variants = [computed(node, each | others) for each in columns]
            possible = [np.broadcast_to(values, (len(places), count + 1)) for values in variants if values is not None]
            shown = possible[0][:, :1]
            statistics = self.question.statistics
            tails = min((statistics[text].tails for text in noisy_parts(node)), default=1.0)
            left = [int(tails * (1 - level) / 2 * count) for level in levels]
            thin = np.array([level > LEVELS[-1] for level in levels])
            sides = []
            for reach, most in zip(point_distances(possible, left), self._most(node, places, shown, count, left), strict=True):
                distance = np.pad(np.where(thin, np.inf, reach), ((0, 0), (0, 1)), constant_values=np.inf)
                side = np.minimum(distance, np.where([*thin, False], most[:, -1:], most))
                sides.append(np.where(np.isnan(side), np.inf, side))
        return shown, sides[0], sides[1]

    def _most(
        self, node: exp.Expression, places: Sequence[int], shown: Floats, count: int, left: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """How far below and above a statistic by itself may be, at each level and for certain, by its declared bounds.

        Infinite for everything else.
        """
        name = node.name if isinstance(node, exp.Column) else ""
        statistic = self.question.statistics.get(name.removeprefix(PLACEHOLDER)) if name.startswith(PLACEHOLDER) else None
        shape = (len(shown), len(left) + 1)
        if statistic is None or statistic.ends is None or statistic.count is None:
            return np.full(shape, np.inf), np.full(shape, np.inf)
        low, high = (np.full(shape, end) for end in statistic.ends)
        if statistic.squares is not None:
            # The variance of a sample is the larger the fewer rows there are.
            points = np.sort(noise_points([self.price.noises[statistic.count]], count)[0])
            fewest = self.noisy[statistic.count][np.asarray(places), None] - points[[-1 - each for each in left]]
            high[:, :-1] = statistic.largest(np.maximum(fewest, statistic.fewest))
        return shown - low, np.maximum(high - shown, 0.0)

    def _columns(self, parts: set[str], places: NDArray[np.int64], count: int) -> list[dict[str, Floats]]:
        """The statistics at every point: once, or as low and as high as they may be where points leave no row."""
        statistics = {text: self.question.statistics[text] for text in self.question.statistics if text in parts}
        names = list(dict.fromkeys(part for statistic in statistics.values() for part in statistic.parts))
        points = noise_points([self.price.noises[name] for name in names], count)
        possible = {
            name: self.noisy[name][places, None] - np.concatenate([[0.0], row]) for name, row in zip(names, points, strict=True)
        }
        forms = {PLACEHOLDER + text: _values(statistic, possible) for text, statistic in statistics.items()}
        variants = max(len(each) for each in forms.values())
        return [{name: each[min(number, len(each) - 1)] for name, each in forms.items()} for number in range(variants)]


def _values(statistic: Statistic, possible: Mapping[str, Floats]) -> tuple[Floats, ...]:
    """The statistic at every point. Where no row would be left it may be anything: at its low and at its high end."""
    values, ends = statistic.possible(possible), statistic.ends
    if ends is None or statistic.count is None:
        return (values,)
    empty = (possible[statistic.count] < statistic.fewest) | np.isnan(values)
    empty[:, 0] = False
    if not empty.any():
        return (values,)
    return tuple(np.where(empty, end, values) for end in ends)


def point_distances(possible: Sequence[Floats], left: Sequence[int]) -> tuple[Floats, Floats]:
    """For each group and level, which leaves out so many points: how far below and above what is shown the others end.

    A point that may have several values counts at its lowest for the low end and at its highest for the high one; one without a
    value may be anywhere, and counts on both sides.
    """
    count = possible[0].shape[1] - 1
    away = [(values[:, 1:] - values[:, :1]).astype(np.float32) for values in possible]
    lowest, highest = away[0], away[0]
    for other in away[1:]:
        lowest, highest = np.minimum(lowest, other), np.maximum(highest, other)
    lost = np.isnan(lowest)
    if lost.any():
        lowest, highest = np.where(lost, -np.inf, lowest), np.where(lost, np.inf, highest)
    alike = len(away) == 1 and not lost.any()
    lowest = np.sort(lowest, axis=1)
    highest = lowest if alike else np.sort(highest, axis=1)
    return _outward(-lowest[:, left]), _outward(highest[:, [count - 1 - each for each in left]])


def _outward(distances: NDArray[np.float32]) -> Floats:
    """Single precision may have rounded towards what is shown: the next number is as far as the end, or beyond it."""
    return np.where(distances > 0, np.nextafter(distances, np.float32(np.inf)), np.float32(0)).astype(np.float64)


def reaches(shown: Floats, below: Floats, above: Floats) -> list[Reach | None]:
    """The distances of each group as a reach; None where nothing is shown, or neither end is known at the lowest level."""
    # What is surer is no nearer.
    sides = [np.maximum.accumulate(np.where(np.isnan(side), np.inf, side), axis=1).tolist() for side in (below, above)]
    finite = np.isfinite(shown[:, 0]).tolist()
    return [_reach(*ends) if is_finite else None for is_finite, *ends in zip(finite, *sides, strict=True)]


def _reach(below: Sequence[float], above: Sequence[float]) -> Reach | None:
    """None where neither end is known at the lowest level."""
    if not math.isfinite(below[0]) and not math.isfinite(above[0]):
        return None
    low, high = (tuple(end if math.isfinite(end) else None for end in side) for side in (below, above))
    return Reach(low, high)


def numbers(values: Sequence[object]) -> Floats:
    """Cells as numbers, one row each; what is none is not a number."""
    return np.array([[float(value) if isinstance(value, (bool, int, float)) else math.nan] for value in values])
