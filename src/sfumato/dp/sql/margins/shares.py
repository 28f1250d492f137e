"""Intervals of shares: a number of a group over the sum of a window that the group is in, by what the noise may have been.

The noise of the group is in both; that of the other groups is a sum of independent noises. Putting both back at fixed points of
their laws gives the totals and shares that the answer may come from: Fieller's interval, see docs/theory/margins.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sqlglot import exp

from sfumato.dp.sql.margins.expressions import AT_ONCE, Floats, Possible, numbers, point_distances
from sfumato.dp.sql.margins.noise_points import noise_points, points_for, points_of_sums
from sfumato.dp.sql.margins.propagation import noisy_parts
from sfumato.dp.sql.margins.reach import LEVELS
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.language import computed
from sfumato.dp.sql.reading.grouping import KEY


def share_distances(
    possible: Possible, share: exp.Expression, places: Sequence[int], keys: Sequence[Sequence[object]], levels: Sequence[float]
) -> tuple[Floats, Floats, Floats]:
    """A share in the groups at these places, and how far below and above it the true one may be: a column per level, then one for
    certain, in which nothing is known."""
    held = possible.windows[share.expression.name.removeprefix(PLACEHOLDER)]
    shown = np.full((len(places), 1), np.nan)
    sides = [np.full((len(places), len(levels) + 1), np.inf) for _ in ("below", "above")]
    count = points_for(max(map(len, possible.noisy.values()), default=0))
    step = max(AT_ONCE // count, 1)
    rows_of: dict[int, list[int]] = {}
    for row, place in enumerate(places):
        rows_of.setdefault(held.counts[place], []).append(row)
    chunks = [(members, rows[start : start + step]) for members, rows in rows_of.items() for start in range(0, len(rows), step)]
    for members, rows in chunks:
        there = [places[row] for row in rows]
        values = _shares(possible, share, there, [keys[row] for row in rows], members, count)
        shown[rows] = values[:, :1]
        left = [int((1 - level) / 2 * count) for level in levels]
        thin = np.array([level > LEVELS[-1] for level in levels])
        for side, distances in zip(sides, point_distances([values], left), strict=True):
            side[np.ix_(rows, range(len(levels)))] = np.where(thin, np.inf, distances)
    return shown, sides[0], sides[1]


def _shares(
    possible: Possible, share: exp.Expression, places: Sequence[int], keys: Sequence[Sequence[object]], members: int, count: int
) -> Floats:
    """The share of each group as it is shown, then at each point; missing where the total might have been zero."""
    question = possible.question
    text = share.expression.name.removeprefix(PLACEHOLDER)
    argument = question.windows[text].argument or share.this
    statistics = {each: question.statistics[each] for each in sorted(noisy_parts(share.this) | noisy_parts(argument))}
    names = list(dict.fromkeys(part for statistic in statistics.values() for part in statistic.parts))
    noises = [possible.price.noises[name] for name in names]
    own, others = noise_points(noises, count), points_of_sums(noises, members - 1, count, len(names))
    columns = {KEY + str(place): numbers([group[place] for group in keys]) for place in range(len(question.keys))}
    place_numbers = np.asarray(places, dtype=np.int64)

    def moved(node: exp.Expression, points: Floats) -> Floats:
        noisy = {
            name: possible.noisy[name][place_numbers, None] - np.concatenate([[0.0], row])
            for name, row in zip(names, points, strict=True)
        }
        values: Mapping[str, Floats] = {PLACEHOLDER + each: held.value(noisy) for each, held in statistics.items()}
        result = computed(node, {**columns, **values})
        shape = (len(places), count + 1)
        return np.full(shape, np.nan) if result is None else np.broadcast_to(result, shape)

    total = numbers([possible.windows[text].values[place] for place in places])
    first, second = moved(argument, own), moved(argument, others)
    totals = total + (first - first[:, :1]) + (second - second[:, :1])
    return moved(share.this, own) / np.where(np.sign(totals) == np.sign(totals[:, :1]), totals, np.nan)
