"""How far each column of an answer may be off, stated before anything is measured, from query, schema and loss alone.

Counts, sums and their linear combinations have the same margin whatever the data. Means, ratios and other expressions have
one for groups of so many rows whose values lie in the middle of their bounds, to first order. A quantile has one in rows:
between how many ranks its value lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlglot import exp

from sfumato.core.declared import require_confidence
from sfumato.core.errors import Unsupported
from sfumato.core.texts import rounded_up
from sfumato.dp.algorithms.count_tree import quantile_rank_deviation, rank_deviation
from sfumato.dp.sql.margins.images import as_divisor, image, is_linear, parts_of, plain, selects, steady
from sfumato.dp.sql.margins.propagation import MovedStatistics, NoiseChange, Smooth, noisy_parts, number_of, smooth
from sfumato.dp.sql.margins.quantiles import clear_of_ends
from sfumato.dp.sql.margins.reach import on_grid
from sfumato.dp.sql.measuring.measurement import BRANCHING, QueryMeasurement
from sfumato.dp.sql.measuring.noise import Noise, Price, errors_in_sum_margin
from sfumato.dp.sql.measuring.statistic import Statistic
from sfumato.dp.sql.operators.aggregates import PLACEHOLDER
from sfumato.dp.sql.operators.box import Box
from sfumato.dp.sql.operators.language import check, evaluate
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.grouping import KEY, AnswerColumn, placeholder_kind

#: Group sizes for which the error of means, spreads and ratios is stated.
SIZES = (100, 1_000, 10_000)

#: Why a column has no margin.
_TEXT = "it is computed from noisy numbers and may differ from what the data says"
_JUMPS = "its error depends on the answer: CASE, MOD and the like jump where noise changes what they look at"
_QUANTILES = "its error depends on the answer: how far apart the values around a quantile lie"
_KEYS = "its error depends on the answer: it is multiplied with a key of the group"
_UNDEFINED = "its error depends on the answer: it has no value for groups in the middle of their bounds"

_WINDOW = "it is computed over several groups, and the answer says how far it may be off where that is known"

#: What the margin of a number leaves out by which groups are chosen.
_CHOSEN = "of all groups; one that is shown near the threshold may have far fewer"


@dataclass(frozen=True)
class ColumnNote:
    """One column of the answer: how far it is expected to be off at the confidence.

    `margin` is None where it depends on the data; `per_rows` then gives it for groups of that many rows. A quantile has a
    `rank_margin` instead: its value lies, to the nearest `resolution`, between the values that many ranks lower and higher.
    It is an upper bound. `note` says why there is no margin where there is none, or what a margin leaves out.
    """

    name: str
    what: str
    margin: float | None
    per_rows: Mapping[int, float] = field(default_factory=dict)
    rank_margin: int | None = None
    resolution: float | None = None
    note: str = ""

    def sentence(self, confidence: float) -> str:
        """The note in words."""
        sure = f"at {confidence * 100:.10g}%"
        if self.margin is not None:
            return f"{self.name}: within ±{rounded_up(self.margin, 4)} {sure}" + (f", {self.note}" if self.note else "")
        if self.rank_margin is not None:
            nearest = "" if self.resolution is None else f", then to the nearest {self.resolution:,.4g}"
            return f"{self.name}: within ±{self.rank_margin:,} rows of its rank {sure}{nearest}"
        if self.per_rows:
            shown = ", ".join(f"±{margin:,.4g} for {rows:,} rows" for rows, margin in self.per_rows.items())
            return f"{self.name}: about {shown} per group {sure}"
        return f"{self.name}: {self.note}"


def column_notes(question: Question, price: Price, confidence: float, sizes: Sequence[int] = SIZES) -> tuple[ColumnNote, ...]:
    """A note for each column that has noise in it."""
    expected = _Expected(question, price, confidence, sizes)
    return tuple(expected.note(column) for column in question.shown if noisy_parts(column.expression))


def reaches(
    question: Question, price: Price, confidence: float, rows: int | None, within: float | None, rank_within: float | None
) -> bool:
    """True when every number is within ±`within`, in groups of `rows` rows, and each quantile within ±`rank_within` ranks.

    A number of which neither can be promised is refused: a loss that leaves it out would promise too much.
    """
    require_confidence(confidence)
    notes = column_notes(question, price, confidence, () if rows is None else (rows,))
    ranks = [note.rank_margin for note in notes if note.rank_margin is not None]
    if rank_within is not None and not ranks:
        raise Unsupported("rank_within is about quantiles, and the query shows none; say within=…")
    if within is None:
        return max(ranks) <= (rank_within or 0)
    margins = [_promised(note, rows) for note in notes if note.rank_margin is None and note.what not in ("string", "boolean")]
    if ranks and rank_within is None:
        raise Unsupported(
            "how far a quantile is off in value depends on the data: say rank_within=50, how many rows it may be off its rank"
        )
    if not margins:
        raise Unsupported("the query shows no number that within=… could be about")
    return max(margins) <= within and (rank_within is None or max(ranks) <= rank_within)


def _promised(note: ColumnNote, rows: int | None) -> float:
    if note.margin is not None:
        return note.margin
    if rows is not None and rows in note.per_rows:
        return note.per_rows[rows]
    if note.note:
        raise Unsupported(
            f"no loss can be told for the column '{note.name[:60]}': {note.note}. Ask for its parts, or with a loss, and look at "
            "the errors"
        )
    raise Unsupported(
        "the error of a mean, variance or ratio depends on the group's size: say rows=1000, the rows you expect in a group"
    )


def rank_margin(statistic: Statistic, leaves: int, noise: Noise, confidence: float) -> int:
    """The value of a quantile lies within so many ranks of the one asked for, at the confidence; an upper bound.

    The tree puts a quantile beyond a leaf boundary when the boundary's noisy rank falls short of the wanted one; of that
    difference the deviation is known exactly. Making ranks ascend lets noise at other boundaries in: on the tables that are
    hardest (no value between the ends) by at most 1.5 - 0.8 · confidence deviations, found by simulation for up to 4,096
    leaves and both laws.
    """
    rank = float(statistic.rank or 0)
    deviation = quantile_rank_deviation(leaves, BRANCHING, rank, noise.amount, noise.law)
    reach = deviation * (errors_in_sum_margin(noise.law, confidence) + 1.5 - 0.8 * confidence)
    if rank in (0.0, 1.0):
        reach += clear_of_ends(rank_deviation(leaves, BRANCHING, noise.amount, noise.law))
    return math.ceil(reach - 1e-9)


def linear_change(question: Question, price: Price, smoothed: Smooth) -> NoiseChange | None:
    """How far noise moves an expression, where that is the same whatever the data; None where it is not."""
    if not is_linear(question, smoothed.node):
        return None
    keys = {KEY + str(number): 1.0 for number in range(len(question.keys))}
    return _moved(question, price, (0,), 1.0).change(smoothed, 0, keys)


def lattice_steps(price: Price, change: NoiseChange) -> dict[str, float]:
    """What one step of each measurement adds to the expression."""
    deviations = {name: price.noises[name].deviation for name in change.parts}
    # Differences of binary fractions are off in their last digits.
    return {name: float(f"{part / deviations[name]:.12g}") for name, part in change.parts.items() if deviations[name] > 0}


def linear_margin(price: Price, change: NoiseChange, confidence: float) -> float:
    """Noise moves a sum of counts and sums by at most this, at the confidence."""
    steps = lattice_steps(price, change)
    if len(steps) == 1:
        ((name, step),) = steps.items()
        noise = price.noises[name]
        return noise.margin(confidence) / float(noise.step) * step
    law = next(iter(price.noises.values())).law
    # Half of the largest step, because whole numbers of steps leave gaps that the law of a sum does not know.
    return change.deviation * errors_in_sum_margin(law, confidence) + max(steps.values(), default=0.0) / 2


class _Expected:
    """What is known of a question's errors beforehand."""

    def __init__(self, question: Question, price: Price, confidence: float, sizes: Sequence[int]) -> None:
        self.question, self.price, self.confidence, self.sizes = question, price, confidence, sizes
        self.law = next(iter(price.noises.values())).law

    def note(self, column: AnswerColumn) -> ColumnNote:
        """How far one column may be off."""
        node = column.expression
        if any(text in self.question.windows for text in noisy_parts(node)):
            return ColumnNote(column.name, "window", None, note=_WINDOW)
        what = self._statistic(node.name).function if isinstance(node, exp.Column) else "expression"
        chosen = _CHOSEN if selects(self.question, self.price, node) else ""
        if isinstance(node, exp.Column) and self._statistic(node.name).linear:
            noise = self.price.noises[self._statistic(node.name).parts[0]]
            return ColumnNote(column.name, what, noise.margin(self.confidence), note=chosen)
        kind = check(node, lambda name: placeholder_kind(self.question.keys, name))
        if kind in ("string", "boolean", "date"):
            return ColumnNote(column.name, kind, None, note=_TEXT)
        smoothed = smooth(node, steady(self.question))
        if smoothed is None:
            return ColumnNote(column.name, what, None, note=_JUMPS)
        if isinstance(smoothed.node, exp.Column) and self._statistic(smoothed.node.name).tree is not None:
            return self._quantile(column.name, what, self._statistic(smoothed.node.name), smoothed.grid)
        if any(self.question.statistics[text].tree is not None for text in noisy_parts(smoothed.node)):
            return ColumnNote(column.name, what, None, note=_QUANTILES)
        change = linear_change(self.question, self.price, smoothed)
        if change is not None:
            return ColumnNote(column.name, what, self._linear_margin(change, smoothed), note=chosen)
        if any(part.name.startswith(KEY) for part in node.find_all(exp.Column)):
            return ColumnNote(column.name, what, None, note=_KEYS)
        margins = self._per_rows(node)
        return ColumnNote(column.name, what, None, margins, note=_UNDEFINED if self.sizes and not margins else "")

    def _statistic(self, name: str) -> Statistic:
        return self.question.statistics[name.removeprefix(PLACEHOLDER)]

    def _quantile(self, name: str, what: str, statistic: Statistic, grid: float | None) -> ColumnNote:
        leaves = next(m.leaves for m in self.question.measurements if m.name == statistic.tree)
        margin = rank_margin(statistic, leaves, self.price.noises[statistic.tree or ""], self.confidence)
        width = 0.0 if statistic.low is None or statistic.high is None else float(statistic.high - statistic.low) / leaves
        return ColumnNote(name, what, None, rank_margin=margin, resolution=max(width, grid or 0.0))

    def _linear_margin(self, change: NoiseChange, smoothed: Smooth) -> float:
        return on_grid(linear_margin(self.price, change, self.confidence) + sum(change.roundings), smoothed.grid)

    def _per_rows(self, node: exp.Expression) -> dict[int, float]:
        """Between which ends the noisy number lies when each of its parts is as far off as noise may bring it."""
        node = plain(node)
        parts = parts_of(self.question, self.price, node)
        sure = 1 - (1 - self.confidence) / len(parts)
        margins: dict[int, float] = {}
        # Every row meets every condition; where an expression has no value then (what is left over is divided by), half do.
        for share in (1.0, 0.5):
            moved = _moved(self.question, self.price, self.sizes, share)
            for place, rows in enumerate(self.sizes):
                boxes = {part: self._box(part, moved, place, sure) for part in parts}
                with np.errstate(all="ignore"):
                    ends = image(node, boxes, _constant, self._as_divisor)
                if ends is None or rows in margins:
                    continue
                (shown, low), (top, high) = ends.low[0].tolist(), ends.high[0].tolist()
                margin = max(high - shown, shown - low)
                if shown == top and math.isfinite(margin):
                    margins[rows] = margin
        return dict(sorted(margins.items()))

    def _box(self, part: exp.Expression, moved: MovedStatistics, place: int, sure: float) -> Box:
        """A part of the expression as it would be without noise, and as far off as noise may bring it."""
        value, change = number_of(evaluate(part, moved.row(place, {}))), moved.change(Smooth(part), place, {})
        if value is None or change is None or isinstance(part, exp.Div) and not self._ends(part):
            return Box.exactly(np.full((1, 2), np.nan))
        if is_linear(self.question, part):
            margin = linear_margin(self.price, change, sure)
        else:
            margin = change.deviation * errors_in_sum_margin(self.law, sure)
        return Box.of(np.array([[value, value - margin]]), np.array([[value, value + margin]]))

    def _ends(self, ratio: exp.Div) -> bool:
        """True for a ratio whose interval ends somewhere, as far as the question says."""
        divisor = self._as_divisor(ratio, ratio.expression, Box.exactly(np.ones((1, 2))))
        return bool(np.isfinite(divisor.low[0, 1]))

    def _as_divisor(self, node: exp.Expression, part: exp.Expression, box: Box) -> Box:
        return as_divisor(self.question, node, part, box)


def _constant(node: exp.Expression) -> Box:
    value = number_of(evaluate(node, {}))
    return Box.exactly(np.array([[math.nan if value is None else value]]))


def _moved(question: Question, price: Price, sizes: Sequence[int], share: float) -> MovedStatistics:
    """The statistics of groups of so many rows whose values lie in the middle of their bounds."""
    flat = [m for m in question.measurements if m.kind != "tree"]
    noisy = {m.name: np.array([rows * _per_row(m, share) for rows in sizes], dtype=np.float64) for m in flat}
    deviations = {m.name: price.noises[m.name].deviation for m in flat}
    return MovedStatistics(question.statistics, noisy, deviations)


def _per_row(measurement: QueryMeasurement, share: float) -> float:
    worth = float(measurement.middle) if measurement.kind == "sum" else 1.0
    return worth if measurement.where is None else worth * share
