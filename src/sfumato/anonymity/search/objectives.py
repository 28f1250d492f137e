"""Objectives of the lattice search: how the losses of the columns become one number, and what suppressing costs.

A column loses ℓ of a record that is kept and 1 of one that is suppressed. With the preference p for generalising, a kept record
costs g·ℓ and a suppressed one ℓ + s·(1 − ℓ), where g = min(1, 2·(1 − p)) and s = min(1, 2·p): at 0.5 both count alike, at 0 a
suppressed record costs no more than a generalised one, at 1 generalising costs nothing. The aggregates grow with every column's
loss, so a lower bound of each column's loss gives one of the aggregate (docs/theory/border-sweep.md). The weights of generalising
and suppressing and the aggregates are those of Prasser, Kohlmayer, Lautenschläger, Kuhn, "ARX: a comprehensive tool for
anonymizing biomedical data", AMIA 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.data.class_table import ClassTable

Real = NDArray[np.float64]
Aggregate = Literal["mean", "sum", "geometric_mean", "maximum", "rank"]
Measured = Literal["loss", "precision"]
ALIKE = 0.5


@dataclass(frozen=True, eq=False)
class Objective:
    """What a lattice search makes small: an `aggregate` of the columns' losses, each weighed by its importance.

    `weights` add up to 1. `mean` is Σ w·L; `sum` and `maximum` are those of the losses times the number of columns times w, so
    that equal weights leave the losses as they are, and equal maxima are told apart by the mean; `geometric_mean` is
    Π (1 + L)^w − 1; `rank` compares the largest weighed loss first, then the next, and so on.
    """

    aggregate: Aggregate
    prefer_generalising: float
    measured: Measured
    weights: Real = field(repr=False)

    @property
    def usual(self) -> bool:
        """Whether this is the mean loss, for which the search has faster ways."""
        return self.aggregate == "mean" and self.prefer_generalising == ALIKE and self.measured == "loss"

    @property
    def of_kept(self) -> float:
        """What a unit of loss of a kept record costs."""
        return min(1.0, 2.0 * (1.0 - self.prefer_generalising))

    @property
    def of_suppressed(self) -> float:
        """How much of what is left to lose a suppressed record costs."""
        return min(1.0, 2.0 * self.prefer_generalising)

    def added(self, loss: Real) -> Real:
        """What suppressing adds to the cost of a record with this loss; never negative, and falling with the loss."""
        return np.asarray(loss + self.of_suppressed * (1.0 - loss) - self.of_kept * loss)

    def over(self, columns: Sequence[Real]) -> Real:
        """The aggregate over arrays of the columns' losses, one per column, of one shape or of shapes that broadcast.

        Of `rank` this is the first number that is compared.
        """
        many = len(columns)
        if self.aggregate == "geometric_mean":
            grown = (np.exp(w * np.log1p(part)) for w, part in zip(self.weights, columns, strict=True))
            return np.asarray(reduce(np.multiply, grown) - 1.0)
        scale = 1 if self.aggregate == "mean" else many
        weighed = (scale * float(w) * part for w, part in zip(self.weights, columns, strict=True))
        return np.asarray(reduce(np.maximum if self.aggregate in ("maximum", "rank") else np.add, weighed))

    def of_all_nodes(self, levels: Sequence[Real]) -> Real:
        """The aggregate of every combination of one entry per column."""
        many = len(levels)
        return np.ascontiguousarray(
            self.over([part.reshape([-1 if i == a else 1 for i in range(many)]) for a, part in enumerate(levels)])
        )

    def of_one(self, losses: Real) -> float:
        """The aggregate of one node's losses by column."""
        return float(self.over(list(losses)))

    def ties(self, losses: Real) -> tuple[float, ...]:
        """What decides between nodes of the same aggregate: of `rank` all losses from the largest down, of `maximum` the mean."""
        if self.aggregate == "maximum":
            return (round(float(self.weights @ losses), 10),)
        if self.aggregate != "rank":
            return ()
        return tuple(np.round(np.sort(losses.size * self.weights * losses)[::-1], 10).tolist())


def level_losses(table: ClassTable, measured: Measured) -> list[list[Real]]:
    """Per attribute and level the loss of every hierarchy node: the share of the domain below it, or of levels climbed."""
    if measured == "loss":
        return [[tree.loss] * (tree.height + 1) for tree in table.hierarchies]
    shares = []
    for name, tree in zip(table.quasi, table.hierarchies, strict=True):
        limits = table.limits.get(name)
        least, height = (0, tree.height) if limits is None else (limits.least, limits.tree.height)
        shares.append([np.full(len(tree.labels), (level + least) / max(height, 1)) for level in range(tree.height + 1)])
    return shares
