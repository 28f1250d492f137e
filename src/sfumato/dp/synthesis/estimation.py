"""From noisy marginals to a model: the distribution of largest entropy that agrees with them as far as their noise allows.

Entropy minus the squared misfit in units of the noise has a smooth dual: the likelihood of a log-linear model with a
quadratic penalty on its potentials, so that what the noise could have made is drawn back to the simpler model. It is
minimised by a limited-memory quasi-Newton method. Dudík, Phillips, Schapire, "Maximum entropy density estimation with
generalized regularization", JMLR 8, 2007; Liu, Nocedal, Mathematical Programming 45, 1989.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.synthesis.graphical_model import Beliefs, GraphicalModel, Table, others
from sfumato.dp.synthesis.junction_tree import Columns

Vector = NDArray[np.float64]

#: How strongly potentials are drawn to 0, in units of the noise's variance per record.
SHRINK = 0.01
_MEMORY = 8
_LEAST_CURVATURE = 1e-6
_RECORDS = 0.2  # nor is the model fitted closer than to a fraction of one record


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Noisy counts of some columns, and the variance of their noise."""

    columns: Columns
    counts: Table
    variance: float

    def with_another(self, other: NoisyMarginal) -> NoisyMarginal:
        """Two measurements of the same columns as one, weighted by precision."""
        first, second = 1 / self.variance, 1 / other.variance
        return NoisyMarginal(self.columns, (self.counts * first + other.counts * second) / (first + second), 1 / (first + second))


Measured = dict[Columns, NoisyMarginal]


def add(measured: Measured, new: NoisyMarginal) -> None:
    """Keep a measurement beside the others."""
    earlier = measured.get(new.columns)
    measured[new.columns] = new if earlier is None else earlier.with_another(new)


def estimated_total(measured: Measured) -> float:
    """The number of records, from the sums of all measured marginals weighted by precision; at least one."""
    weights = [1 / (entry.counts.size * entry.variance) for entry in measured.values()]
    sums = [float(entry.counts.sum()) for entry in measured.values()]
    return max(float(np.dot(weights, sums) / sum(weights)), 1.0)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with its potentials and its calibrated tables."""

    model: GraphicalModel
    potentials: Mapping[Columns, Table]
    beliefs: Beliefs
    total: float

    def counts(self, columns: Columns) -> Table | None:
        """The expected counts of these columns, where one clique holds them all."""
        place = self.model.tree.holding(columns, self.model.sizes)
        if place is None:
            return None
        return np.asarray(self.beliefs.cliques[place].sum(axis=others(columns, self.model.tree.cliques[place])) * self.total)


def fit(
    measured: Measured, sizes: Sequence[int], *, start: Fitted | None = None, passes: int = 60, tolerance: float = 1e-3
) -> Fitted:
    """The model of all measurements; `start` is an earlier one to begin from.

    `passes` bounds the steps; `tolerance` is the sum of absolute gradient entries, in shares of all records, at which
    it is good enough.
    """
    total = estimated_total(measured)
    problem = _Dual(GraphicalModel(sizes, list(measured)), measured, total)
    first = problem.joined({} if start is None else start.potentials)
    minimum = _minimised(problem, first, passes, max(tolerance, _RECORDS / total))
    return Fitted(problem.model, problem.split(minimum.place), minimum.beliefs, total)


@dataclass(frozen=True, eq=False)
class _Point:
    """A place, the dual's value and gradient there, the size of the second derivatives, and the model's tables."""

    place: Vector
    value: float
    gradient: Vector
    curvature: Vector
    beliefs: Beliefs


class _Dual:
    """The function to minimise, of all potentials in one vector."""

    def __init__(self, model: GraphicalModel, measured: Measured, total: float) -> None:
        self.model = model
        self.shapes = {columns: measured[columns].counts.shape for columns in model.sets}
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()]).tolist()
        self.spans = dict(zip(model.sets, zip([0, *ends[:-1]], ends, strict=True), strict=True))
        self.target = self.joined({columns: measured[columns].counts / total for columns in model.sets})
        self.penalty = self.joined(
            {columns: np.full(self.shapes[columns], SHRINK * measured[columns].variance / total) for columns in model.sets}
        )

    def joined(self, tables: Mapping[Columns, Table]) -> Vector:
        """Tables as one vector, zero where there is none."""
        parts = [tables.get(columns, np.zeros(self.shapes[columns])).reshape(-1) for columns in self.model.sets]
        return np.concatenate(parts)

    def split(self, vector: Vector) -> dict[Columns, Table]:
        """The vector as tables."""
        return {columns: vector[start:stop].reshape(self.shapes[columns]) for columns, (start, stop) in self.spans.items()}

    def at(self, place: Vector) -> _Point:
        """Everything about one place, by one run of belief propagation."""
        beliefs = self.model.beliefs(self.split(place))
        expected = self.joined(self.model.marginals(beliefs))
        drawn_back = self.penalty * place
        value = beliefs.log_normaliser - float(place @ self.target) + float(place @ drawn_back) / 2
        curvature = expected * (1 - expected) + self.penalty + _LEAST_CURVATURE
        return _Point(place, value, expected - self.target + drawn_back, curvature, beliefs)


def _minimised(dual: _Dual, first: Vector, passes: int, tolerance: float) -> _Point:
    now = dual.at(first)
    pairs: list[tuple[Vector, Vector]] = []
    for _ in range(passes):
        if float(np.abs(now.gradient).sum()) <= tolerance:
            break
        direction = -_scaled_gradient(now, pairs)
        slope = float(direction @ now.gradient)
        if slope >= 0:
            pairs, direction = [], -now.gradient / now.curvature
            slope = float(direction @ now.gradient)
        step = 1.0
        after = dual.at(now.place + direction)
        while not after.value <= now.value + 1e-4 * step * slope and step > 1e-6:
            step *= 0.4
            after = dual.at(now.place + step * direction)
        if not after.value < now.value:  # not even a short step helps: as good as the arithmetic allows
            break
        moved, bent = after.place - now.place, after.gradient - now.gradient
        if float(moved @ bent) > 1e-14:
            pairs = [*pairs[1 - _MEMORY :], (moved, bent)]
        now = after
    return now


def _scaled_gradient(now: _Point, pairs: list[tuple[Vector, Vector]]) -> Vector:
    """The gradient times an approximation of the inverse second derivatives, from the last few steps."""
    scaled = now.gradient.copy()
    parts = []
    for moved, bent in reversed(pairs):
        part = float(moved @ scaled) / float(moved @ bent)
        parts.append(part)
        scaled -= part * bent
    scaled /= now.curvature
    if pairs:
        moved, bent = pairs[-1]
        scaled *= float(moved @ bent) / float(bent @ (bent / now.curvature))
    else:
        scaled *= 0.3  # curvatures of different potentials overlap: begin with a careful step
    for (moved, bent), part in zip(pairs, reversed(parts), strict=True):
        scaled += moved * (part - float(bent @ scaled) / float(moved @ bent))
    return scaled
