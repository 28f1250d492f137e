"""A log-linear model of a table: one potential per measured marginal, marginals exactly by belief propagation.

Two passes over a junction tree, sums of exponentials kept as logarithms.
McKenna, Sheldon, Miklau, "Graphical-model based estimation and inference for differential privacy", ICML 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.dp.synthesis.junction_tree import Columns, JunctionTree, junction_tree

Table = NDArray[np.float64]
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Beliefs:
    """The joint probabilities of each clique's columns, and the logarithm of the normaliser."""

    tree: JunctionTree
    cliques: tuple[Table, ...]
    log_normaliser: float


def shaped(columns: Columns, clique: Columns, sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape in which a table of `columns` is spread over `clique`."""
    return tuple(sizes[column] if column in columns else 1 for column in clique)


def others(columns: Columns, clique: Columns) -> tuple[int, ...]:
    """The axes of the clique's table to sum over in order to keep `columns`."""
    return tuple(axis for axis, column in enumerate(clique) if column not in columns)


class GraphicalModel:
    """The shape of a model: sizes of the columns, the sets with a potential, and the junction tree that holds them."""

    def __init__(self, sizes: Sequence[int], sets: Sequence[Columns]) -> None:
        self.sizes = tuple(sizes)
        self.sets = tuple(sets)
        self.tree = junction_tree(self.sets, self.sizes)
        self._places = tuple(self._holder(columns) for columns in self.sets)

    def _holder(self, columns: Columns) -> int:
        place = self.tree.holding(columns, self.sizes)
        assert place is not None  # noqa: S101  (the tree was made from these sets)
        return place

    def beliefs(self, potentials: Mapping[Columns, Table]) -> Beliefs:
        """Calibrated: neighbouring cliques agree on what they share."""
        tree, sizes = self.tree, self.sizes
        scores: list[Table] = [np.zeros([sizes[column] for column in clique]) for clique in tree.cliques]
        for columns, place in zip(self.sets, self._places, strict=True):
            scores[place] += potentials[columns].reshape(shaped(columns, tree.cliques[place], sizes))
        upward: list[Table] = [np.zeros(())] * len(scores)
        for place in range(len(scores) - 1, 0, -1):
            clique, separator, above = tree.cliques[place], tree.separators[place], tree.parents[place]
            upward[place] = _log_sum(scores[place], others(separator, clique))
            scores[above] += upward[place].reshape(shaped(separator, tree.cliques[above], sizes))
        top = float(scores[0].max())
        root = np.exp(scores[0] - top)
        total = float(root.sum())
        log_normaliser = top + float(np.log(total))
        beliefs: list[Table] = [root / total]
        for place in range(1, len(scores)):
            clique, separator, above = tree.cliques[place], tree.separators[place], tree.parents[place]
            shared = beliefs[above].sum(axis=others(separator, tree.cliques[above]))
            change = np.log(np.maximum(shared, _TINY)) - upward[place]
            beliefs.append(np.exp(scores[place] + change.reshape(shaped(separator, clique, sizes))))
        return Beliefs(tree, tuple(beliefs), log_normaliser)

    def marginals(self, beliefs: Beliefs) -> dict[Columns, Table]:
        """The model's marginal of each set with a potential."""
        return {
            columns: beliefs.cliques[place].sum(axis=others(columns, self.tree.cliques[place]))
            for columns, place in zip(self.sets, self._places, strict=True)
        }


def _log_sum(scores: Table, axes: tuple[int, ...]) -> Table:
    top = float(scores.max())
    return np.asarray(np.log(np.maximum(np.exp(scores - top).sum(axis=axes), _TINY)) + top)
