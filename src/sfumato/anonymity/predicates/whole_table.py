"""Promises about all classes together, at one node of a lattice: which classes have to go.

As few records as possible are suppressed: the smallest classes go, and no more of them than it takes
(docs/theory/population-models.md). What must go says nothing about less general nodes: such classes have no bound and exclude
no node.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.binomial import likely_at_most
from sfumato.core.guarantees.base import TOLERANCE
from sfumato.core.guarantees.risk import AverageRisk, UniquenessByModel, WholeTableGuarantee

Int = NDArray[np.int64]
Real = NDArray[np.float64]
NO_BOUND = -1


def small_classes_out(promises: Sequence[WholeTableGuarantee], sizes: Int, need: Int, order: Int | None = None) -> Int:
    """`need` with the classes that have to go marked; of equally large ones those that `order` has first."""
    order = np.arange(sizes.size) if order is None else order
    kept = order[(need[order] == 0) & (sizes[order] > 0)]
    kept = kept[np.argsort(sizes[kept], kind="stable")]
    result = need.copy()
    result[kept[: _fewest_out(promises, sizes[kept])]] = NO_BOUND
    return result


def may_cost_less(promises: Sequence[WholeTableGuarantee], sizes: Int, gone: NDArray[np.bool_], costs: Real) -> float:
    """How much less another choice of classes can cost at the most; `gone` is a choice with the fewest records, `costs` is what
    a record costs by class.

    Classes that are large enough for every promise never help, and any choice among the others has at least as many records.
    """
    helps = np.flatnonzero((sizes > 0) & (sizes < max(promise.sufficient_size for promise in promises)))
    cheapest = helps[np.argsort(costs[helps], kind="stable")]
    records = int(sizes[gone].sum())
    before = np.cumsum(sizes[cheapest]) - sizes[cheapest]
    least = float((costs[cheapest] * np.clip(records - before, 0, sizes[cheapest])).sum())
    return max(float((costs * sizes)[gone].sum()) - least, 0.0)


def _fewest_out(promises: Sequence[WholeTableGuarantee], sizes: Int) -> int:
    """How many of these classes have to go, the smallest first; sizes ascend."""
    out = np.arange(sizes.size + 1)
    records = int(sizes.sum()) - np.concatenate([[0], np.cumsum(sizes)])
    least = 0
    for promise in promises:
        if isinstance(promise, AverageRisk):
            least = max(least, int(np.argmax(sizes.size - out <= (promise.risk + TOLERANCE) * records)))
    singles = int(np.searchsorted(sizes, 1, side="right"))
    unique = [promise for promise in promises if isinstance(promise, UniquenessByModel)]
    while True:
        more = max((_singles_out(promise, singles, int(sizes.sum()), least) for promise in unique), default=least)
        if more == least:
            return least
        least = more


def _singles_out(promise: UniquenessByModel, singles: int, records: int, out: int) -> int:
    """How many single records have to go, `out` at the least."""
    while out < singles and promise.measured_of(singles - out, records - out) > promise.share + TOLERANCE:
        # fewer records only lower what is allowed, so no choice in between is enough
        allowed = int((promise.share + TOLERANCE) * (records - out))
        left = bisect_right(
            range(singles - out),
            allowed,
            key=lambda count: likely_at_most(count, promise.sampling_fraction, promise.confidence),
        )
        out = singles - (left - 1)
    return out
