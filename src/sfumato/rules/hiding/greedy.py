"""The greedy heuristic: one item out of one basket at a time, until an itemset is not frequent any more.

While an itemset is frequent: go down to a pair in it, always to the subset with one item less that has the largest support; of
the baskets with the whole itemset take the one where removing an item of the pair changes the fewest pairs; remove from it the
item of the pair that more baskets have. Atallah, Bertino, Elmagarmid, Ibrahim, Verykios, "Disclosure limitation of sensitive
rules", KDEX 1999.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.core.randomness import below
from sfumato.rules.hiding.base import Coded, Hiding, Task, Working


@dataclass(frozen=True)
class GreedyHiding(Hiding):
    """Lower supports by the heuristic of Atallah et al., step by step. A tie between the two items of a pair is decided by
    chance; other ties by the order of items and baskets.

    >>> from sfumato.core.guarantees.hidden import Hidden
    >>> from sfumato.data.transactions import Transactions
    >>> baskets = Transactions.of([list("abcd"), list("abc"), list("acd")])
    >>> GreedyHiding().run(baskets, Hidden([["a", "b", "c"]], 2)).result.support(["a", "b", "c"])
    1
    """

    def hide(self, working: Working, task: Task) -> dict[str, object]:
        steps = sum(self._hide_one(working, codes, task.minimum) for codes in task.unions)
        return {"steps": steps}

    def _hide_one(self, working: Working, codes: Coded, minimum: int) -> int:
        rows = np.flatnonzero(working.having_all(codes))
        if rows.size < minimum:
            return 0
        supports = supports_within(working, codes)
        # A step leaves the other baskets of the itemset as they are, so that their order is known beforehand.
        rows = rows[np.argsort(working.sizes[rows], kind="stable")][: rows.size - minimum + 1]
        if len(codes) == 1:
            working.remove(np.sort(rows), codes[0])
            return int(rows.size)
        victims: dict[int, list[int]] = {code: [] for code in codes}
        for row in rows.tolist():
            victim = victim_of(heaviest_pair(codes, supports), supports, working)
            victims[victim].append(row)
            for subset in supports:
                if victim in subset:
                    supports[subset] -= 1
        for code, chosen in victims.items():
            working.remove(np.sort(np.asarray(chosen, dtype=np.int64)), code)
        return int(rows.size)


def supports_within(working: Working, codes: Coded) -> dict[Coded, int]:
    """The support of each subset of an itemset that the way down to a pair can meet."""
    return {part: working.support(part) for size in range(1, len(codes)) for part in combinations(codes, size)}


def heaviest_pair(codes: Coded, supports: Mapping[Coded, int]) -> Coded:
    """Down from an itemset to a pair, always to the subset *of where one is* with the largest support."""
    while len(codes) > 2:
        codes = max(combinations(codes, len(codes) - 1), key=lambda part: supports[part])
    return codes


def victim_of(pair: Coded, supports: Mapping[Coded, int], working: Working) -> int:
    """The item of a pair that more baskets have; one of them by chance where they are equal."""
    left, right = (supports[(code,)] for code in pair)
    if left == right:
        return pair[below(working.source, 2)]
    return pair[0] if left > right else pair[1]
