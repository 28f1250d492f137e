"""MST: synthetic data from the marginals of single columns and of the pairs on a maximum spanning tree.

Measure every column, then connect columns by pairs, one at a time and by noisy choice, each time a pair on which the
counts are far from independence; measure those pairs, fit a tree-shaped model and draw.
McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and general approach to differentially private synthetic
data", Journal of Privacy and Confidentiality 11(3), 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Annotated

import numpy as np

from sfumato.core.ranges import Whole
from sfumato.dp.synthesis.base import Synthesis, TrainedModel, Work
from sfumato.dp.synthesis.budget import MarginalReach, choice_parameter, choose, noisy_counts, variance_for
from sfumato.dp.synthesis.estimation import Fitted, Measured, NoisyMarginal, add, fit
from sfumato.dp.synthesis.junction_tree import Columns, cells
from sfumato.dp.synthesis.marginals import STEP, misfit


@dataclass(frozen=True, kw_only=True)
class Mst(Synthesis):
    """A synthetic table whose pairs of columns follow a privately chosen spanning tree.

    A third of ρ measures single columns, a third chooses the pairs, a third measures them. `max_cells` is the largest
    pair that is considered; columns that only larger pairs would connect stay independent. Fast and robust for wide
    tables; dependencies of three columns are kept only as far as pairs imply them.
    """

    max_cells: Annotated[
        int, Whole(at_least=1, at_most=100_000_000), "the cells of a pair of columns that is considered, at most"
    ] = 100_000

    def _first_variance(self, columns: int, reach: MarginalReach) -> Fraction:
        # a single column has no pairs to pay for
        return variance_for(self.budget / (columns * (1 if columns == 1 else 3)), reach)

    def _pairs(self, sizes: Sequence[int]) -> list[Columns]:
        return [pair for pair in combinations(range(len(sizes)), 2) if cells(pair, sizes) <= self.max_cells]

    def _looked_at(self, sizes: Sequence[int]) -> list[Columns]:
        return [*((place,) for place in range(len(sizes))), *self._pairs(sizes)]

    def _made(self, work: Work) -> TrainedModel:
        sizes = work.sizes
        measured: Measured = {}
        trail: list[NoisyMarginal] = []

        def measure(columns: Columns, variance: Fraction) -> None:
            noisy = noisy_counts(work.records.marginal(columns), variance, work.reach, work.purse, work.source)
            trail.append(NoisyMarginal(columns, noisy, float(variance)))
            add(measured, trail[-1])

        pairs = self._pairs(sizes)
        edges = _forest_edges(pairs, len(sizes))
        steps = len(sizes) + 2 * edges
        first = self._first_variance(len(sizes), work.reach)
        for column in range(len(sizes)):
            work.progress("measuring columns", column, steps)
            measure((column,), first)
        fitted = fit(measured, sizes)
        if edges:
            part = self.budget / (3 * edges)
            tree = self._tree(work, pairs, edges, fitted, choice_parameter(part), steps)
            for place, pair in enumerate(tree):
                work.progress("measuring pairs", len(sizes) + edges + place, steps)
                measure(pair, variance_for(part, work.reach))
            fitted = fit(measured, sizes, passes=300, tolerance=1e-4)
        return TrainedModel(fitted, tuple(trail))

    def _tree(self, work: Work, pairs: list[Columns], edges: int, alone: Fitted, epsilon: Fraction, steps: int) -> list[Columns]:
        """Pairs that connect, chosen one after another; `alone` is the model in which columns are independent."""
        scores = {}
        for pair in pairs:
            first, second = alone.counts(pair[:1]), alone.counts(pair[1:])
            assert first is not None and second is not None  # noqa: S101  (every column is measured)
            scores[pair] = misfit(work.records.marginal(pair), np.outer(first, second) / alone.total)
        parts = list(range(len(work.sizes)))
        chosen: list[Columns] = []
        for place in range(edges):
            work.progress("choosing pairs", len(work.sizes) + place, steps)
            open_pairs: list[Columns] = [pair for pair in pairs if parts[pair[0]] != parts[pair[1]]]
            ranked = [scores[pair] for pair in open_pairs]
            pair = open_pairs[choose(ranked, STEP, epsilon, work.reach, work.purse, work.source)]
            parts = [parts[pair[0]] if part == parts[pair[1]] else part for part in parts]
            chosen.append(pair)
        return chosen

    def _argument(self) -> str:
        return (
            "counts of single columns and pairs with discrete Gaussian noise, pairs chosen by the exponential mechanism; "
            "costs add up to at most rho (Bun, Steinke 2016), and drawing from the fitted model looks at nothing else"
        )


def _forest_edges(pairs: list[Columns], columns: int) -> int:
    """How many edges a spanning forest over these pairs has."""
    parts = list(range(columns))
    for first, second in pairs:
        kept, gone = parts[first], parts[second]
        parts = [kept if part == gone else part for part in parts]
    return columns - len(set(parts))
