"""What a look at a node of a lattice says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]


@dataclass(frozen=True)
class NodeVerdict:
    """What is known about a node: records that it suppresses and the loss they add, a lower bound of both for every node
    below it, how many classes it keeps, and how much less another choice of suppressed classes may lose."""

    suppressed: int
    penalty: float
    least_suppressed: int
    least_penalty: float
    kept: int
    slack: float = 0.0


@dataclass(frozen=True, eq=False)
class ColumnVerdict:
    """What is known about a node (without penalties), what suppression adds to the loss of each column there, and what it adds
    at least at every node below."""

    verdict: NodeVerdict
    added: Real = field(repr=False)
    least_added: Real = field(repr=False)


@dataclass(frozen=True, eq=False)
class NodeVerdicts:
    """What is known about many nodes, as arrays: row i of `levels` is a node, the other fields are those of its `NodeVerdict`."""

    levels: NDArray[np.int64]
    suppressed: NDArray[np.int64]
    penalty: Real
    least_suppressed: NDArray[np.int64]
    least_penalty: Real
    kept: NDArray[np.int64]

    def each(self) -> Iterator[tuple[tuple[int, ...], NodeVerdict]]:
        """The nodes one by one."""
        fields = (self.suppressed, self.penalty, self.least_suppressed, self.least_penalty, self.kept)
        for node, *numbers in zip(self.levels.tolist(), *(each.tolist() for each in fields), strict=True):
            yield tuple(node), NodeVerdict(*numbers)
