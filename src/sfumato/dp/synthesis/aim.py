"""AIM: synthetic data from marginals that are chosen one by one, where the model so far is most wrong.

Each round chooses a marginal by the exponential mechanism (how wrong the model is there, less what its noise would
cost), measures it and fits again; when a round hardly moved the model, the next ones get four times the budget.
McKenna, Mullins, Sheldon, Miklau, "AIM: an adaptive and iterative mechanism for differentially private synthetic data",
PVLDB 15(11), 2022.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.ranges import Whole
from sfumato.dp.synthesis.base import Synthesis, TrainedModel, Work
from sfumato.dp.synthesis.budget import (
    MarginalReach,
    Purse,
    choice_cost,
    choice_parameter,
    choose,
    noise_cost,
    noisy_counts,
    variance_for,
)
from sfumato.dp.synthesis.drawing import draw
from sfumato.dp.synthesis.estimation import Fitted, Measured, NoisyMarginal, add, fit
from sfumato.dp.synthesis.junction_tree import Columns, cells, model_cells
from sfumato.dp.synthesis.marginals import STEP, in_steps, marginals, misfit

_MEASURING = Fraction(9, 10)  # of a round's budget; the rest chooses
_ROUNDS_PER_COLUMN = 4
_CLOSENESS = math.sqrt(2 / math.pi)  # the mean absolute value of a Gaussian of deviation 1
_MOST_CANDIDATES = 3_000
_FEWEST_DRAWN, _MOST_DRAWN = 20_000, 200_000


@dataclass(frozen=True, kw_only=True)
class Aim(Synthesis):
    """A synthetic table whose marginals of up to `degree` columns are as right as the budget allows.

    `marginal_cells` is the largest marginal that counts, `max_cells` the size of the model: a larger one can hold more
    dependencies and takes longer. Where more than 3,000 marginals would be candidates, the degree is lowered.
    """

    max_cells: Annotated[int, Whole(at_least=1, at_most=100_000_000), "the cells of the model, at most"] = 125_000
    degree: Annotated[int, Whole(at_least=1, at_most=5), "the columns of a marginal, at most"] = 3
    marginal_cells: Annotated[int, Whole(at_least=1, at_most=10_000_000), "the cells of a marginal that counts, at most"] = 10_000

    def _first_variance(self, columns: int, reach: MarginalReach) -> Fraction:
        if columns == 1:
            return variance_for(self.budget, reach)
        return variance_for(_MEASURING * self.budget / (_ROUNDS_PER_COLUMN * columns), reach)

    def _made(self, work: Work) -> TrainedModel:
        rounds = _Rounds(work, self._first_variance(len(work.sizes), work.reach))
        for column in range(len(work.sizes)):
            rounds.measure((column,))
        rounds.refit()
        candidates = self._candidates(work.sizes)
        if len(work.sizes) > 1:
            counts = dict(work.records.marginals(candidates))
            room = _Room(candidates, work.sizes, self.max_cells)
            while not rounds.over:
                rounds.next(counts, room)
        return TrainedModel(rounds.finished(), tuple(rounds.trail))

    def _looked_at(self, sizes: Sequence[int]) -> list[Columns]:
        return self._candidates(sizes)

    def _candidates(self, sizes: Sequence[int]) -> list[Columns]:
        """The marginals that may be measured; every column's own is among them, whatever its size."""
        places = range(len(sizes))
        degree = min(self.degree, len(sizes))
        while degree > 2 and sum(math.comb(len(sizes), size) for size in range(1, degree + 1)) > _MOST_CANDIDATES:
            degree -= 1
        wider = [columns for size in range(2, degree + 1) for columns in combinations(places, size)]
        return [(place,) for place in places] + [one for one in wider if cells(one, sizes) <= self.marginal_cells]

    def _argument(self) -> str:
        return (
            "marginals chosen by the exponential mechanism and measured with discrete Gaussian noise; the costs of all rounds "
            "add up to at most rho under adaptive composition (Bun, Steinke 2016), and the model sees only what was measured"
        )


class _Room:
    """Which candidates the model has room for, remembered as long as its cliques stay the same."""

    def __init__(self, candidates: list[Columns], sizes: Sequence[int], max_cells: int) -> None:
        self.candidates, self.sizes, self.max_cells = candidates, sizes, max_cells
        self._cliques: tuple[Columns, ...] = ()
        self._needed: dict[Columns, int] = {}

    def open(self, fitted: Fitted, share: float) -> list[Columns]:
        """Candidates that keep the model within that share of its largest size, or that it holds already."""
        if fitted.model.tree.cliques != self._cliques:
            self._cliques, self._needed = fitted.model.tree.cliques, {}
            sets = [set(clique) for clique in self._cliques]
            for columns in self.candidates:
                held = any(clique.issuperset(columns) for clique in sets)
                self._needed[columns] = 0 if held else self._with(columns)
        return [columns for columns in self.candidates if self._needed[columns] <= share * self.max_cells]

    def _with(self, columns: Columns) -> int:
        if cells(columns, self.sizes) > self.max_cells:
            return cells(columns, self.sizes)
        return model_cells([*self._cliques, columns], self.sizes)


class _Rounds:
    """The state between rounds: what was measured, the model, and what the next round may cost."""

    def __init__(self, work: Work, variance: Fraction) -> None:
        self.work = work
        self.purse: Purse = work.purse
        self.variance = variance
        self.epsilon = choice_parameter(noise_cost(variance, work.reach) * (1 - _MEASURING) / _MEASURING)
        self.measured: Measured = {}
        self.trail: list[NoisyMarginal] = []
        self.fitted: Fitted | None = None
        self.over = False

    def measure(self, columns: Columns) -> None:
        """Noisy counts of these columns, paid for and kept."""
        work = self.work
        counts = work.records.marginal(columns)
        noisy = noisy_counts(counts, self.variance, work.reach, self.purse, work.source)
        self.trail.append(NoisyMarginal(columns, noisy, float(self.variance)))
        add(self.measured, self.trail[-1])
        work.progress("choosing and measuring", int(1000 * self.purse.spent / self.purse.rho), 1000)

    def refit(self) -> Fitted:
        """The model of everything measured so far."""
        self.fitted = fit(self.measured, self.work.sizes, start=self.fitted)
        return self.fitted

    def next(self, counts: dict[Columns, NDArray[np.int64]], room: _Room) -> None:
        """One round: choose, measure, fit, and settle what the next one may cost."""
        fitted = self.fitted or self.refit()
        self._settle()
        share = float((self.purse.spent + self._cost()) / self.purse.rho)
        modelled = self._modelled(fitted, room.open(fitted, share))
        noise = _CLOSENESS * math.sqrt(self.variance)
        scores = [misfit(counts[columns], table) - in_steps(noise * table.size) for columns, table in modelled.items()]
        work = self.work
        chosen = list(modelled)[choose(scores, STEP, self.epsilon, work.reach, self.purse, work.source)]
        self.measure(chosen)
        now = self.refit().counts(chosen)
        assert now is not None  # noqa: S101  (what was measured is in one clique)
        if float(np.abs(now - modelled[chosen]).sum()) <= noise * now.size:
            self.variance, self.epsilon = self.variance / 4, self.epsilon * 2

    def finished(self) -> Fitted:
        """The last model, fitted closely."""
        return fit(self.measured, self.work.sizes, start=self.fitted, passes=300, tolerance=1e-4)

    def _cost(self) -> Fraction:
        return noise_cost(self.variance, self.work.reach) + choice_cost(self.epsilon)

    def _settle(self) -> None:
        """When less than two rounds are left, one takes it all."""
        left = self.purse.left
        if left < 2 * self._cost():
            self.variance = variance_for(_MEASURING * left, self.work.reach)
            self.epsilon = choice_parameter((1 - _MEASURING) * left)
            self.over = True

    def _modelled(self, fitted: Fitted, candidates: list[Columns]) -> dict[Columns, NDArray[np.float64]]:
        """The model's counts: exact inside a clique, otherwise those of records drawn from the model."""
        held = {columns: fitted.counts(columns) for columns in candidates}
        modelled = {columns: table for columns, table in held.items() if table is not None}
        others = [columns for columns, table in held.items() if table is None]
        if others:
            rows = min(max(round(2 * fitted.total), _FEWEST_DRAWN), _MOST_DRAWN)
            drawn = draw(fitted, rows, self.work.source)
            weight = fitted.total / rows
            modelled |= {columns: np.asarray(table * weight) for columns, table in marginals(drawn, others, self.work.sizes)}
        return modelled
