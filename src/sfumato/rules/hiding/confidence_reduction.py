"""Confidence reduction: a rule is made weak, and its items may stay as frequent as they are.

Either items of the consequent leave baskets with the whole rule, or items of the antecedent are put into baskets without the
consequent. Verykios, Elmagarmid, Bertino, Saygin, Dasseni, "Association rule hiding", IEEE Transactions on Knowledge and Data
Engineering 16(4), 2004 (algorithms 1.a and 1.b).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sfumato.rules.hiding.base import Coded, Hiding, Task, Working
from sfumato.rules.hiding.support_reduction import frequent_items

#: A pass over all rules can make an earlier one strong again; so many passes at the most.
_MOST_PASSES = 100


@dataclass(frozen=True)
class ConfidenceReduction(Hiding):
    """Lower the confidence of every rule on the list below the threshold, or its support where that takes fewer changes.

    `by` "consequent", an item of the consequent leaves baskets that have the whole rule; by "antecedent", the missing items of
    the antecedent are put into baskets that lack the consequent, which invents entries: itemsets may become frequent.
    """

    by: Annotated[Literal["consequent", "antecedent"], "which side of a rule is changed"] = "consequent"

    of_rules: ClassVar[bool] = True

    @property
    def only_removes(self) -> bool:
        return self.by == "consequent"

    def hide(self, working: Working, task: Task) -> dict[str, object]:
        changes = passes = 0
        while passes < _MOST_PASSES:
            weakened = sum(self._weaken(working, task, left, right) for left, right in task.rules)
            passes += 1
            changes += weakened
            if not weakened:
                break
        return {"steps": changes, "passes": passes}

    def _weaken(self, working: Working, task: Task, left: Coded, right: Coded) -> int:
        """Change as many baskets as it takes; how many."""
        whole, of_left = working.support(left + right), working.support(left)
        if whole < task.minimum or whole < task.confidence * of_left:
            return 0
        if self.by == "antecedent":
            return self._add(working, left, right, math.floor(whole / task.confidence - of_left) + 1)
        wanted = min(math.floor(whole - task.confidence * of_left) + 1, whole - task.minimum + 1)
        rows = np.flatnonzero(working.having_all(left + right))
        rows = rows[np.argsort(frequent_items(working, task.minimum)[rows], kind="stable")][:wanted]
        working.remove(np.sort(rows), max(right, key=lambda code: working.support((code,))))
        return wanted

    def _add(self, working: Working, left: Coded, right: Coded, wanted: int) -> int:
        missing = np.zeros(len(working.transactions), dtype=np.int64)
        for code in left:
            missing += ~working.having(code)
        rows = np.flatnonzero((missing > 0) & ~working.having_all(right))
        rows = np.sort(rows[np.lexsort((working.sizes[rows], missing[rows]))][:wanted])
        for code in left:
            working.add(rows[~working.having(code)[rows]], code)
        return int(rows.size)
