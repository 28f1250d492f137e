"""How far a window over noisy groups may be off: sums, means and single groups by the law of a sum of noises, others unknown.

The noise of each group is drawn by itself. So a sum over k groups of what noise moves by the same amount in each has k
independent noises, whichever groups they are; that needs that no noise chose the groups or their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.dp.sql.margins.expected_error import lattice_steps, linear_change, linear_margin
from sfumato.dp.sql.margins.images import certain, is_linear
from sfumato.dp.sql.margins.propagation import NoiseChange, Smooth, noisy_parts, number_of
from sfumato.dp.sql.measuring.noise import Price, errors_in_sum_margin
from sfumato.dp.sql.operators.base import Cell
from sfumato.dp.sql.operators.box import Box, Floats
from sfumato.dp.sql.operators.windows import WindowColumn

if TYPE_CHECKING:
    from sfumato.dp.sql.margins.expressions import Possible

#: What an end that is no whole number may be off, as a share: steps are known to 12 digits.
_LAST_DIGITS = 1e-11


def window_box(possible: Possible, text: str, places: Sequence[int], levels: Sequence[float]) -> Box:
    """A window as it is shown, then between its ends at each level, then for certain."""
    window, held = possible.question.windows[text], possible.windows[text]
    shown = numbers_of(held.values[place] for place in places)
    return _around(possible, window, shown, [held.counts[place] for place in places], levels)


def share_box(possible: Possible, texts: tuple[str, str], places: Sequence[int], levels: Sequence[float]) -> Box:
    """A sum of some groups over that of all, both of numbers that are not below 0: as it is shown, at each level, for certain.

    With a the sum of some groups and b that of the others, a / (a + b) rises with a and falls with b: its ends follow from
    theirs, each of which holds at half of what the confidence leaves over.
    """
    part, whole = (possible.windows[text] for text in texts)
    window = possible.question.windows[texts[1]]
    surer = [1 - (1 - level) / 2 for level in levels]
    part_sums = window_box(possible, texts[0], places, surer)
    totals = numbers_of(whole.values[place] for place in places)
    others = [whole.counts[place] - part.counts[place] for place in places]
    rest = _around(possible, window, totals - part_sums.low[:, :1], others, surer)
    shown = part_sums.low[:, :1] / totals
    low, high = (
        part_sums.low[:, 1:] / (part_sums.low + rest.high)[:, 1:],
        part_sums.high[:, 1:] / (part_sums.high + rest.low)[:, 1:],
    )
    low, high = np.where(np.isnan(low), 0.0, low), np.where(np.isnan(high), 1.0, high)
    first = Box.exactly_or_missing(shown, ~np.isfinite(shown))
    lost = np.hstack([first.lost, (part_sums.low + rest.low)[:, 1:] <= 0])
    return Box.of(np.hstack([first.low, low]), np.hstack([first.high, high]), lost)


def numbers_of(cells: Iterable[Cell]) -> Floats:
    """Cells as a column of numbers."""
    return np.array([[math.nan if (number := number_of(cell)) is None else number] for cell in cells])


def _around(possible: Possible, window: WindowColumn, shown: Floats, counts: Sequence[int], levels: Sequence[float]) -> Box:
    """What a window shows of so many groups each, then between its ends at each level, then for certain."""
    distances = np.full((len(counts), len(levels) + 1), np.inf)
    for row, count in enumerate(counts):
        distances[row] = _distances(possible, window, count, levels)
    whole = (shown == np.rint(shown)) & (distances == np.rint(distances))
    distances = np.where(whole | (distances == 0), distances, distances + _LAST_DIGITS * (np.abs(shown) + distances))
    ends = Box.of(shown - distances, shown + distances)
    bounds = None if window.argument is None or window.function.makes != "sum" else certain(possible.question, window.argument)
    if bounds is not None and np.all(bounds.low >= 0) and np.all(np.isfinite(distances[:, :1])):
        ends = ends.within(Box.of(np.zeros((1, 1)), np.full((1, 1), np.inf)))
    return Box.of(np.hstack([shown, ends.low]), np.hstack([shown, ends.high]), np.isnan(shown))


def _distances(possible: Possible, window: WindowColumn, count: int, levels: Sequence[float]) -> Floats:
    question, price = possible.question, possible.price
    unknown = np.full(len(levels) + 1, np.inf)
    chosen = window.chooses or question.having is not None or price.threshold is not None
    if chosen or window.function.makes in ("extreme", "place"):
        return unknown
    if window.argument is None or window.function.makes == "count" and is_linear(question, window.argument):
        return np.zeros(len(levels) + 1)  # the number of groups, of which all have a value
    if not is_linear(question, window.argument):
        return unknown
    if count == 0:
        return np.zeros(len(levels) + 1) if window.default is None or not noisy_parts(window.default) else unknown
    change = linear_change(question, price, Smooth(window.argument))
    if change is None:
        return unknown
    share = 1 / count if window.function.makes == "mean" else 1.0
    return np.array([*(share * _sum_margin(price, change, count, level) for level in levels), np.inf])


def _sum_margin(price: Price, change: NoiseChange, count: int, confidence: float) -> float:
    """The margin of a sum over so many groups of an expression that noise moves so far in each."""
    if count == 1:
        return linear_margin(price, change, confidence)
    law = next(iter(price.noises.values())).law
    step = max(lattice_steps(price, change).values(), default=0.0)
    return math.sqrt(count) * change.deviation * errors_in_sum_margin(law, confidence) + step / 2
