"""The law of the noise in one column of an answer, and its errors by group: by that law, or by what the noise may have been."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from sfumato.dp.sql.aggregates import PLACEHOLDER
from sfumato.dp.sql.expected_error import lattice_steps, linear_change
from sfumato.dp.sql.grouping import KEY
from sfumato.dp.sql.margins import Possible
from sfumato.dp.sql.noise import Price
from sfumato.dp.sql.operators import Cell
from sfumato.dp.sql.propagation import MovedStatistics, decided, noisy_parts, smooth
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reach import ColumnLaw, OneNoise, Reach, SumOfNoises

#: The keys of a group.
Group = Sequence[Cell]
#: The standard error of a cell and its reach; no reach where margins follow from the error by the law of the noise.
CellError = tuple[float | None, Reach | None]

NO_ERROR: CellError = (None, None)


def column_law(question: Question, price: Price, expression: exp.Expression) -> ColumnLaw:
    """How margins follow from errors: by the law of one noise, or by that of a sum of noises."""
    general = next(iter(price.noises.values())).law
    if isinstance(expression, exp.Column) and expression.name.startswith(PLACEHOLDER):
        statistic = question.statistics[expression.name.removeprefix(PLACEHOLDER)]
        noise = price.noises[statistic.parts[0]]
        if statistic.linear:
            return OneNoise(noise.law, noise.amount, noise.step)
    smoothed = smooth(expression) if noisy_parts(expression) else None
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
    moved = _moved(question, price, possible)
    shapes: dict[tuple[int, ...], list[int]] = {}
    for row, place in enumerate(places):
        branches = moved.branches(node, place, {KEY + str(number): value for number, value in enumerate(keys[row])})
        if branches is not None:
            shapes.setdefault(branches, []).append(row)
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
    smoothed = smooth(node)
    if smoothed is None:
        return [NO_ERROR] * len(places)
    text = smoothed.node.name.removeprefix(PLACEHOLDER) if isinstance(smoothed.node, exp.Column) else ""
    if text in possible.quantiles:
        reaches = possible.quantiles[text].reaches
        return [_seen(reaches[place], smoothed.direction, possible.law) for place in places]
    change = linear_change(question, price, smoothed)
    if change is not None:
        return [(change.error(smoothed.grid), None)] * len(places)
    return [_seen(reach, smoothed.direction, possible.law) for reach in possible.reaches(smoothed, places, keys)]


def _seen(reach: Reach | None, direction: int, law: str) -> CellError:
    return NO_ERROR if reach is None else (reach.standard_error(law), reach.seen_through(direction))


def _moved(question: Question, price: Price, possible: Possible) -> MovedStatistics:
    deviations = {name: noise.deviation for name, noise in price.noises.items()}
    quantiles = {
        text: (quantile.values, [reach.standard_error(possible.law) or 0.0 for reach in quantile.reaches])
        for text, quantile in possible.quantiles.items()
    }
    return MovedStatistics(question.statistics, possible.noisy, deviations, quantiles)
