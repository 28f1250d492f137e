"""Support reduction: one item of an itemset out of the baskets with the fewest frequent items, as often as it takes and no more.

Oliveira, Zaïane, "Privacy preserving frequent itemset mining", CRPIT 14, 2002; Verykios et al., "Association rule hiding", IEEE
Transactions on Knowledge and Data Engineering 16(4), 2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from sfumato.data.transactions import Int
from sfumato.rules.hiding.base import Hiding, Task, Working


@dataclass(frozen=True)
class SupportReduction(Hiding):
    """Lower the support of every itemset on the list below the threshold: its `victim`, the most or the least frequent of its
    items, leaves the baskets that have them all and the fewest other frequent items. Fast on any number of baskets."""

    victim: Annotated[Literal["most frequent", "least frequent"], "which item of an itemset leaves its baskets"] = "most frequent"

    def hide(self, working: Working, task: Task) -> dict[str, object]:
        removals = 0
        at_stake = frequent_items(working, task.minimum)
        for codes in sorted(task.unions, key=lambda codes: -working.support(codes)):
            rows = np.flatnonzero(working.having_all(codes))
            too_many = rows.size - task.minimum + 1
            if too_many <= 0:
                continue
            pick = max if self.victim == "most frequent" else min
            code = pick(codes, key=lambda each: working.support((each,)))
            shortest = rows[np.argsort(at_stake[rows], kind="stable")][:too_many]
            working.remove(np.sort(shortest), code)
            at_stake[shortest] -= 1
            removals += too_many
        return {"steps": removals}


def frequent_items(working: Working, minimum: int) -> Int:
    """How many frequent items each basket has: the more there are, the more frequent itemsets a removal touches."""
    if not working.removed.size:
        return working.sizes.copy()
    frequent = working.transactions.supports() >= minimum
    return np.bincount(working.owner, frequent[working.transactions.codes], len(working.transactions)).astype(np.int64)
