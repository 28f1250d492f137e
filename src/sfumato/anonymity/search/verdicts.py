"""What a look at a node of a lattice says."""

from __future__ import annotations

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
