"""The experiment of the textbooks: run a mechanism many times on a database and on a neighbour, and look at both histograms.

Values with a probability of their own are counted apart; where the exact law is given, each bin is compared with it.
Dwork, Roth, "The algorithmic foundations of differential privacy", Foundations and Trends 9, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.progress import Progress, silent
from sfumato.dp.refute.densities import Density

_HEAVY = 0.01
_LEAST_EXPECTED = 5.0


@dataclass(frozen=True, eq=False)
class OutputHistogram:
    """Counts of outputs on two neighbours over the same bins and atoms; bins do not count the atoms inside them."""

    edges: NDArray[np.float64] = field(repr=False)
    atoms: tuple[float, ...]
    counts: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)
    atom_counts: tuple[NDArray[np.int64], NDArray[np.int64]] = field(repr=False)
    runs: int
    laws: tuple[Density, Density] | None = field(default=None, repr=False)

    def shares(self, which: int) -> NDArray[np.float64]:
        """The share of runs in each bin on the first (0) or second (1) neighbour."""
        return self.counts[which] / self.runs

    def atom_shares(self, which: int) -> NDArray[np.float64]:
        """The share of runs at each atom."""
        return self.atom_counts[which] / self.runs

    def expected(self, which: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The probabilities of the bins and of the atoms by the exact law; what lies beyond counts to the outer bins."""
        require(self.laws is not None, "give the exact laws to compare with")
        law = self.laws[which]  # type: ignore[index]
        edges = [-math.inf, *self.edges[1:-1].tolist(), math.inf]
        inside = [law.between(low, high) for low, high in zip(edges, edges[1:], strict=False)]
        return np.array(inside), np.array([law.at(point) for point in self.atoms])

    def p_value(self, which: int) -> float:
        """The chance of counts at least this far from the exact law (chi-square, sparse bins put together)."""
        from scipy.stats import chi2

        bins, atoms = self.expected(which)
        expected = np.concatenate((bins, atoms)) * self.runs
        observed = np.concatenate((self.counts[which], self.atom_counts[which])).astype(np.float64)
        sparse = expected < _LEAST_EXPECTED
        if sparse.any():
            expected = np.append(expected[~sparse], expected[sparse].sum())
            observed = np.append(observed[~sparse], observed[sparse].sum())
        if (observed[expected == 0] > 0).any():
            return 0.0
        observed, expected = observed[expected > 0], expected[expected > 0]
        return float(chi2.sf(float(((observed - expected) ** 2 / expected).sum()), max(len(observed) - 1, 1)))


def output_histogram(
    mechanism: Callable[..., Any] | Any,  # anybody's code, or a mechanism
    first: Any,  # a database, as the mechanism takes it
    second: Any,  # and its neighbour
    *,
    runs: int = 10_000,
    bins: int = 40,
    laws: Sequence[Density] | None = None,
    vectorised: bool = False,
    progress: Progress = silent,
) -> OutputHistogram:
    """Run `mechanism(database)` that many times on each of two neighbours and count the outputs, which are numbers.

    `laws` are the exact laws of the two, for comparison. A mechanism with a method `answer` is run through it.
    """
    draw = getattr(mechanism, "answer", mechanism)
    require(callable(draw), "the mechanism is a function of a database, or has a method 'answer'")
    require(runs >= 100 and 2 <= bins <= 1000, "runs is at least 100, bins lies between 2 and 1000")
    require(laws is None or len(laws) == 2, "laws are the exact laws on the first and on the second database")
    drawn = []
    for place, database in enumerate((first, second)):
        progress("drawing", place, 2)
        outputs = draw(database, runs) if vectorised else [draw(database) for _ in range(runs)]
        drawn.append(np.array([float(output) for output in outputs], dtype=np.float64))
        require(bool(np.isfinite(drawn[-1]).all()) and len(drawn[-1]) == runs, "outputs of this experiment are finite numbers")
    atoms = _atoms(drawn, laws)
    rest = [values[~np.isin(values, atoms)] for values in drawn]
    edges = _edges(drawn, rest, bins)
    return OutputHistogram(
        edges,
        tuple(atoms),
        _both([np.histogram(values, edges)[0] for values in rest]),
        _both([np.array([int((values == atom).sum()) for atom in atoms], dtype=np.int64) for values in drawn]),
        runs,
        None if laws is None else (laws[0], laws[1]),
    )


def _both(counts: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return counts[0].astype(np.int64), counts[1].astype(np.int64)


def _atoms(drawn: list[NDArray[np.float64]], laws: Sequence[Density] | None) -> list[float]:
    """The atoms of the laws; without laws, values that come up in a hundredth of the runs."""
    if laws is not None:
        return sorted({float(point) for law in laws for point, _ in law.atoms})
    atoms: set[float] = set()
    for values in drawn:
        different, counts = np.unique(values, return_counts=True)
        atoms |= set(different[counts >= max(_HEAVY * len(values), 2)].tolist())
    return sorted(atoms)


def _edges(drawn: list[NDArray[np.float64]], rest: list[NDArray[np.float64]], bins: int) -> NDArray[np.float64]:
    pooled = np.concatenate(rest)
    pooled = pooled if pooled.size else np.concatenate(drawn)
    low, high = float(pooled.min()), float(pooled.max())
    return np.linspace(low, high if high > low else low + 1, bins + 1)
