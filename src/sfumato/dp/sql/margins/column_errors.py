"""The law of the noise in one column of an answer, and its errors by group: by that law, or by what the noise may have been."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from sqlglot import exp

from sfumato.dp.sql.margins.expected_error import lattice_steps, linear_change, linear_margin
from sfumato.dp.sql.margins.expressions import Possible, numbers, reaches
from sfumato.dp.sql.margins.images import (
    as_divisor,
    certain,
    image,
    is_linear,
    is_share,
    of_whole,
    parts_of,
    plain,
    selects,
    steady,
    sum_of_whole,
)
from sfumato.dp.sql.margins.propagation import Smooth, bends, decided, noisy_parts, smooth, taken
from sfumato.dp.sql.margins.reach import LEVELS, ColumnLaw, OneNoise, Reach, SumOfNoises, distance_at
from sfumato.dp.sql.margins.shares import share_distances
from sfumato.dp.sql.margins.window_errors import share_box, window_box
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.measuring.statistic import Statistic
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.base import Cell
from sfumato.dp.sql.operators.box import Box, Floats, Truths, divided
from sfumato.dp.sql.operators.language import computed, evaluate
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.grouping import KEY

#: The keys of a group.
Group = Sequence[Cell]
#: The standard error of a cell and its reach; no reach where margins follow from the error by the law of the noise.
CellError = tuple[float | None, Reach | None]

NO_ERROR: CellError = (None, None)
#: As sure as one can be.
_CERTAIN = math.nextafter(1.0, 0.0)
#: The share of what the confidence leaves over that Fieller's interval of a ratio takes.
_OF_RATIO = 0.9
#: What an end that is no whole number may be off, as a share: steps are known to 12 digits.
_LAST_DIGITS = 1e-11


def column_law(question: Question, price: Price, expression: exp.Expression) -> ColumnLaw:
    """How margins follow from errors: by the law of one noise, or by that of a sum of noises."""
    general = next(iter(price.noises.values())).law
    named = isinstance(expression, exp.Column) and expression.name.removeprefix(PLACEHOLDER) in question.statistics
    if named:
        statistic = question.statistics[expression.name.removeprefix(PLACEHOLDER)]
        noise = price.noises[statistic.parts[0]]
        if statistic.linear:
            return OneNoise(noise.law, noise.amount, noise.step)
    smoothed = smooth(expression, steady(question)) if noisy_parts(expression) else None
    if smoothed is None:
        return SumOfNoises(general)
    change = linear_change(question, price, smoothed)
    steps = {} if change is None else lattice_steps(price, change)
    if len(steps) == 1 and smoothed.grid is None and not smoothed.roundings:
        ((name, step),) = steps.items()
        noise = price.noises[name]
        return OneNoise(noise.law, noise.amount, Fraction(step))
    return SumOfNoises(general, max(steps.values()) / 2 if steps else None, smoothed.grid)


def column_errors(
    question: Question,
    price: Price,
    node: exp.Expression,
    possible: Possible,
    places: Sequence[int],
    keys: Sequence[Group],
) -> list[CellError]:
    """The errors of a column in the groups at these places, which have these keys."""
    if not noisy_parts(node):
        return [NO_ERROR] * len(places)
    if node.find(exp.Case) is None:
        return _of_one_shape(question, price, node, possible, places, keys)
    shapes: dict[tuple[int, ...], list[int]] = {}
    for row, group in enumerate(keys):
        shapes.setdefault(taken(node, _placed(group)), []).append(row)
    cells = [NO_ERROR] * len(places)
    for branches, rows in shapes.items():
        shape = decided(node, iter(branches))
        if not noisy_parts(shape):
            continue
        errors = _of_one_shape(question, price, shape, possible, [places[row] for row in rows], [keys[row] for row in rows])
        for row, error in zip(rows, errors, strict=True):
            cells[row] = error
    return cells


def _of_one_shape(
    question: Question,
    price: Price,
    node: exp.Expression,
    possible: Possible,
    places: Sequence[int],
    keys: Sequence[Group],
) -> list[CellError]:
    smoothed = None if bends(node) or selects(question, price, node) else smooth(node, steady(question))
    change = None if smoothed is None or smoothed.roundings else linear_change(question, price, smoothed)
    error = None if smoothed is None or change is None else change.error(smoothed.grid)
    if error is not None and smoothed is not None and smoothed.grid is None:
        return [(error, None)] * len(places)
    group_reaches = Images(possible).reaches(node, places, keys) if places else []
    if error is not None:
        # The error is that of the noise and of a rounding; the ends are rounded themselves, which is nearer.
        return [(error, reach) for reach in group_reaches]
    return [NO_ERROR if reach is None else (reach.standard_error(possible.law), reach) for reach in group_reaches]


def _placed(group: Group) -> dict[str, Cell]:
    return {KEY + str(number): value for number, value in enumerate(group)}


class Images:
    """The reach of any expression in the groups of an answer."""

    def __init__(self, possible: Possible) -> None:
        self.possible, self.question, self.price = possible, possible.question, possible.price

    def reaches(self, node: exp.Expression, places: Sequence[int], keys: Sequence[Group]) -> list[Reach | None]:
        """How far below and above what is shown the expression may lie in the groups at these places."""
        node = plain(node)
        parts = parts_of(self.question, self.price, node)
        levels = [1 - (1 - level) / len(parts) for level in LEVELS]
        with np.errstate(all="ignore"):
            boxes = {part: self._box(part, places, keys, levels) for part in parts}
            ends = self._image(node, boxes, places, keys, {})
            if ends is None:
                return [None] * len(places)
            shape = (len(places), len(LEVELS) + 2)
            low, high = np.broadcast_to(ends.low, shape), np.broadcast_to(ends.high, shape)
            shown = np.where(low[:, :1] == high[:, :1], low[:, :1], np.nan)
            below, above = np.maximum(shown - low[:, 1:], 0.0), np.maximum(high[:, 1:] - shown, 0.0)
            # A difference is rounded: around what is shown the distances reach both ends.
            below = np.where(shown - below > low[:, 1:], np.nextafter(below, np.inf), below)
            above = np.where(shown + above < high[:, 1:], np.nextafter(above, np.inf), above)
        return reaches(shown, below, above)

    def _image(
        self,
        node: exp.Expression,
        boxes: Mapping[exp.Expression, Box],
        places: Sequence[int],
        keys: Sequence[Group],
        alone: dict[exp.Expression, Box | None],
    ) -> Box | None:
        """`alone` remembers where a divisor lies when nothing else has to hold with it."""

        def divisor(node: exp.Expression, part: exp.Expression, box: Box) -> Box:
            if is_linear(self.question, part):
                return self._as_divisor(node, part, box)
            if part not in alone:
                # The parts of the whole are surer than any end that is computed; those of the divisor are taken at the surest.
                inside = parts_of(self.question, self.price, part)
                surest = {each: self._box(each, places, keys, LEVELS[-1:]) for each in inside}
                alone[part] = self._image(part, surest, places, keys, alone)
            return as_divisor(self.question, node, part, box, alone[part])

        return image(node, boxes, lambda part: _exact(part, keys), divisor, self._of_whole)

    def _of_whole(self, node: exp.Expression, box: Box) -> Box:
        """A part of a whole lies between nothing and all of it, wherever anything is known of it."""
        largest = of_whole(self.question, self.price, node)
        if largest is None:
            return box
        ends = box.within(Box.of(np.zeros((1, 1)), np.full((1, 1), largest)))
        bounded = np.isfinite(box.low) | np.isfinite(box.high)
        bounded[:, 0] = False  # what is shown stays
        return Box(np.where(bounded, ends.low, box.low), np.where(bounded, ends.high, box.high), box.lost)

    def _box(self, part: exp.Expression, places: Sequence[int], keys: Sequence[Group], levels: Sequence[float]) -> Box:
        """A part as it is shown, then between its ends at each level, then for certain."""
        if isinstance(part, exp.Column) and part.name.removeprefix(PLACEHOLDER) in self.possible.windows:
            return window_box(self.possible, part.name.removeprefix(PLACEHOLDER), places, levels)
        if (texts := sum_of_whole(self.question, self.price, part)) is not None:
            factor = of_whole(self.question, self.price, part) or 1.0
            return share_box(self.possible, texts, places, levels).rising(lambda ends: factor * ends)
        if not noisy_parts(part):
            exact = _exact(part, keys)
            wide = np.zeros((len(places), len(levels) + 2), dtype=np.bool_)
            return Box(exact.low + wide, exact.high + wide, exact.lost | wide)
        if isinstance(part, exp.Div) and not is_linear(self.question, part):
            return self._ratio(part, places, keys, levels)
        shown, below, above = self._distances(part, places, keys, levels)
        lost = np.hstack([np.zeros_like(shown, dtype=np.bool_), self._lost(part, places, keys, levels)])
        ends, possible = Box.of(shown - below, shown + above), certain(self.question, part)
        if possible is not None:
            ends = ends.within(possible)
        return Box.of(np.hstack([shown, ends.low]), np.hstack([shown, ends.high]), lost)

    def _ratio(self, part: exp.Div, places: Sequence[int], keys: Sequence[Group], levels: Sequence[float]) -> Box:
        """A ratio of sums: Fieller's interval inside the image of both, which takes a little of the confidence."""

        def divisor(surer: Sequence[float]) -> Box:
            return self._as_divisor(part, part.expression, self._box(part.expression, places, keys, surer))

        rest = [1 - (1 - level) * (1 - _OF_RATIO) / 2 for level in levels]
        around = divided(self._box(part.this, places, keys, rest), divisor(rest))
        shown, below, above = self._distances(part, places, keys, [1 - (1 - level) * _OF_RATIO for level in levels])
        shown = np.where(np.isfinite(shown), shown, np.nan)
        low, high = np.fmax(shown - below, around.low[:, 1:]), np.fmin(shown + above, around.high[:, 1:])
        ended = np.isfinite(around.low[:, 1:]) | np.isfinite(around.high[:, 1:])
        low, high = np.where(ended, np.fmin(low, high), -np.inf), np.where(ended, np.fmax(low, high), np.inf)
        # A quotient that is shown as missing is no number, of which a default takes the place.
        first = Box.exactly_or_missing(shown, np.isnan(shown))
        lost = np.hstack([first.lost, divisor(levels).lost[:, 1:]])
        return self._of_whole(part, Box.of(np.hstack([first.low, low]), np.hstack([first.high, high]), lost))

    def _as_divisor(self, node: exp.Expression, part: exp.Expression, box: Box) -> Box:
        return as_divisor(self.question, node, part, box)

    def _lost(self, part: exp.Expression, places: Sequence[int], keys: Sequence[Group], levels: Sequence[float]) -> Truths:
        """Where a part may have no value, at each level and then for certain: too few rows.

        That takes no share of the confidence: either there is a value, to which the ends apply, or there is none, and then this
        says so at the confidence. Nothing is known of the rows of a quantile.
        """
        if is_linear(self.question, part):
            return np.zeros((len(places), len(levels) + 1), dtype=np.bool_)
        lost = np.ones((len(places), len(levels) + 1), dtype=np.bool_)
        if selects(self.question, self.price, part):
            return lost
        statistic = self.question.statistics[part.name.removeprefix(PLACEHOLDER)]
        if statistic.count is not None:
            rows = self.possible.noisy[statistic.count][np.asarray(places, dtype=np.int64), None]
            margins = [self.price.noises[statistic.count].margin(level) for level in levels]
            lost[:, :-1] = rows - margins < statistic.fewest
        return lost

    def _distances(
        self, part: exp.Expression, places: Sequence[int], keys: Sequence[Group], levels: Sequence[float]
    ) -> tuple[Floats, Floats, Floats]:
        text = part.name.removeprefix(PLACEHOLDER) if isinstance(part, exp.Column) else ""
        if text in self.possible.quantiles:
            return self._quantile(text, places, levels)
        if is_share(self.question, self.price, part):
            return share_distances(self.possible, part, places, keys, levels)
        if not is_linear(self.question, part):
            return self.possible.distances(part, places, keys, levels)
        shown = self._shown(part, places, keys)
        if selects(self.question, self.price, part):
            return shown, *self._selected(shown, levels)
        change = linear_change(self.question, self.price, Smooth(part))
        margins = [math.inf if change is None else linear_margin(self.price, change, level) for level in levels]
        distances = np.broadcast_to([*margins, np.inf], (len(places), len(levels) + 1))
        whole = (shown == np.rint(shown)) & (distances == np.rint(distances))
        distances = np.where(whole, distances, distances + _LAST_DIGITS * (np.abs(shown) + distances))
        return shown, distances, distances

    def _shown(self, part: exp.Expression, places: Sequence[int], keys: Sequence[Group]) -> Floats:
        columns = {KEY + str(place): numbers([group[place] for group in keys]) for place in range(len(self.question.keys))}
        for text in noisy_parts(part):
            statistic: Statistic = self.question.statistics[text]
            columns[PLACEHOLDER + text] = statistic.value(self.possible.noisy)[np.asarray(places, dtype=np.int64), None]
        shown = computed(part, columns)
        return np.full((len(places), 1), np.nan) if shown is None else np.broadcast_to(shown, (len(places), 1))

    def _selected(self, shown: Floats, levels: Sequence[float]) -> tuple[Floats, Floats]:
        """The number of units of a group that is shown because this number passed the threshold.

        Given that, a group of any size up to the threshold is shown with the same numbers, so that the low end is 1 unless the
        number is clear of the threshold; then it is at most twice as likely to be too high as it is without selection.
        """
        noise, least = self.price.noises[self.price.units or ""], self.price.threshold or 0
        below = np.empty((len(shown), len(levels) + 1))
        above = np.full_like(below, np.inf)
        below[:] = shown - 1
        for place, level in enumerate(levels):
            low = shown[:, 0] - noise.margin(1 - (1 - level) / 2)
            below[:, place] = np.where(low > least, shown[:, 0] - low, below[:, place])
            above[:, place] = noise.margin(level)
        return below, above

    def _quantile(self, text: str, places: Sequence[int], levels: Sequence[float]) -> tuple[Floats, Floats, Floats]:
        quantile = self.possible.quantiles[text]
        shown = np.array([[quantile.values[place]] for place in places])
        sides = []
        for side in ("below", "above"):
            curves = [getattr(quantile.reaches[place], side) for place in places]
            distances = [[distance_at(curve, level) for level in (*levels, _CERTAIN)] for curve in curves]
            sides.append(np.array([[np.inf if each is None else each for each in row] for row in distances]))
        return shown, sides[0], sides[1]


def _exact(node: exp.Expression, keys: Sequence[Group]) -> Box:
    """What is computed from keys and constants alone."""
    rows: Sequence[Mapping[str, Cell]] = [{}]
    if node.find(exp.Column) is not None:
        rows = [_placed(group) for group in keys]
    values = [evaluate(node, row) for row in rows]
    return Box.exactly_or_missing(numbers(values), np.array([[value is None] for value in values]))
