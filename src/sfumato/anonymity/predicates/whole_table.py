"""Promises about all classes together, at one node of a lattice: which classes have to go.

Classes below a size are suppressed, and the size is the smallest that suffices. All classes of a size are treated alike, so
that the order of rows does not matter. What must go says nothing about less general nodes: such classes have no bound and exclude
no node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import TOLERANCE
from sfumato.core.guarantees.risk import AverageRisk, UniquenessByModel, WholeTableGuarantee

Int = NDArray[np.int64]
NO_BOUND = -1


def small_classes_out(promises: Sequence[WholeTableGuarantee], sizes: Int, need: Int) -> Int:
    """`need` with the classes that have to go marked; the average risk first, which only falls when single records go."""
    kept = (need == 0) & (sizes > 0)
    for promise in promises:
        if isinstance(promise, AverageRisk):
            kept &= sizes >= _least_size(promise.risk, sizes[kept])
    for promise in promises:
        if isinstance(promise, UniquenessByModel):
            singles = int((sizes[kept] == 1).sum())
            if promise.measured_of(singles, int(sizes[kept].sum())) > promise.share + TOLERANCE:
                kept &= sizes > 1
    return np.where((need == 0) & (sizes > 0) & ~kept, NO_BOUND, need)


def _least_size(risk: float, sizes: Int) -> int:
    """The smallest size from which on the classes have at most `risk` classes per record on average."""
    different, counts = np.unique(sizes, return_counts=True)
    classes, records = np.cumsum(counts[::-1])[::-1], np.cumsum((different * counts)[::-1])[::-1]
    enough = np.flatnonzero(classes <= (risk + TOLERANCE) * records)
    if enough.size:
        return int(different[enough[0]])
    return int(different[-1]) + 1 if different.size else 1
