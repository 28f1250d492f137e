"""Border-based hiding: each removal goes where the other frequent itemsets can spare it.

Every frequent itemset that is not to be hidden can lose some baskets before it falls below the threshold. A removal costs more,
the less is left to those that it touches; the cheapest removals are made first, in rounds, and costs are counted anew after each.
Sun, Yu, "A border-based approach for hiding sensitive frequent itemsets", ICDM 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from sfumato.core.ranges import Number, Whole
from sfumato.rules.hiding.base import Coded, Hiding, Task, Working
from sfumato.rules.mining import frequent

Real = NDArray[np.float32]
#: Baskets times itemsets that are looked at together; beyond it the itemsets nearest to the border are.
_MOST_CELLS = 100_000_000


@dataclass(frozen=True)
class BorderBased(Hiding):
    """Lower the support of every itemset on the list with few losses among the other frequent itemsets: those that stand just
    above the threshold, on the border, are spared before the others. `rounds` says how often costs are counted anew for an
    itemset, `steepness` how much more a basket costs the closer to the border an itemset is, and `most` how many frequent
    itemsets are looked after."""

    rounds: Annotated[int, Whole(at_least=1, at_most=10_000), "how often costs are counted anew"] = 8
    steepness: Annotated[float, Number(above=0, at_most=8), "the power of what is left above the threshold"] = 1.0
    most: Annotated[int, Whole(at_least=1), "the frequent itemsets that are looked after, at the most"] = 100_000

    def hide(self, working: Working, task: Task) -> dict[str, object]:
        sets, supports = frequent(working.transactions, task.minimum, most=self.most)
        listed = [set(codes) for codes in task.unions]
        kept = [place for place, codes in enumerate(sets) if not any(each <= set(codes) for each in listed)]
        others = Others([sets[place] for place in kept], (supports[kept] - task.minimum).astype(np.float64))
        steps = 0
        for codes in sorted(task.unions, key=lambda codes: (working.support(codes), codes)):
            steps += self._hide_one(working, codes, task.minimum, others)
        return {"steps": steps, "itemsets_looked_after": len(others.sets)}

    def _hide_one(self, working: Working, codes: Coded, minimum: int, others: Others) -> int:
        rows = np.flatnonzero(working.having_all(codes))
        total = left = max(int(rows.size) - minimum + 1, 0)
        if not total:
            return 0
        touched = others.near_the_border(codes, total, _MOST_CELLS // rows.size)
        holds = _holds(working, rows, [others.sets[place] for place in touched.tolist()])
        with_item = np.array([[code in others.sets[place] for code in codes] for place in touched.tolist()], dtype=bool)
        with_item = with_item.reshape(touched.size, len(codes))
        spare, open_rows = others.spare[touched], np.arange(rows.size)
        victims = np.full(rows.size, -1)
        round_size = max(-(-total // self.rounds), 1)
        while left:
            cost = np.where(spare < 0, 0.0, 1.0 / (spare.clip(0) + 1.0) ** self.steepness)
            costs = holds[open_rows] @ (with_item * cost[:, None]).astype(np.float32)
            best, size = costs.argmin(axis=1), min(round_size, left)
            least = costs[np.arange(best.size), best]
            order = np.argsort(least, kind="stable")
            chosen, order = order[:size], np.sort(order[size:])
            for place in range(len(codes)):
                of_item = open_rows[chosen[best[chosen] == place]]
                victims[of_item] = place
                spare -= np.where(with_item[:, place], holds[of_item].sum(axis=0), 0.0)
            open_rows = open_rows[order]
            left -= size
        others.spare[touched] = spare
        for place, code in enumerate(codes):
            working.remove(rows[victims == place], code)
        return total


@dataclass(frozen=True, eq=False)
class Others:
    """The frequent itemsets that are not to be hidden, and how many baskets each can lose."""

    sets: list[Coded]
    spare: NDArray[np.float64]

    def near_the_border(self, codes: Coded, removals: int, most: int) -> NDArray[np.int64]:
        """The places of those that so many removals of these items can bring below the threshold, at most so many."""
        wanted = set(codes)
        places = [
            place
            for place, (each, spare) in enumerate(zip(self.sets, self.spare.tolist(), strict=True))
            if 0 <= spare < removals and not wanted.isdisjoint(each)
        ]
        nearest = sorted(places, key=lambda place: self.spare[place])[: max(most, 1)]
        return np.array(sorted(nearest), dtype=np.int64)


def _holds(working: Working, rows: NDArray[np.int64], sets: list[Coded]) -> Real:
    """Which of these baskets have which of these itemsets."""
    holds = np.ones((len(sets), rows.size), dtype=bool)
    columns = {code: working.having(code)[rows] for code in {code for each in sets for code in each}}
    for place, each in enumerate(sets):
        for code in each:
            holds[place] &= columns[code]
    return np.ascontiguousarray(holds.T).astype(np.float32)
