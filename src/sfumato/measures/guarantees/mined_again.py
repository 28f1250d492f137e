"""Frequent itemsets a second time, plainly: level by level over the baskets of each itemset, as sorted lists.

It shares no code with the miner that is fast, and judges what that one reached. Agrawal, Srikant, "Fast algorithms for mining
association rules", VLDB 1994 (the levels); what is hidden: Verykios et al., "Association rule hiding", IEEE Transactions on
Knowledge and Data Engineering 16(4), 2004.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from sfumato.core.guarantees.hidden import Hidden, Itemset


@dataclass(frozen=True)
class StillDerived:
    """How many of the hidden itemsets and rules are derived from some baskets all the same, and of how many."""

    itemsets: int
    rules: int
    listed: int

    @property
    def failures(self) -> int:
        """Both together."""
        return self.itemsets + self.rules

    @property
    def share(self) -> float:
        """The share of the list that is derived."""
        return self.failures / self.listed


def baskets_of_items(baskets: Iterable[Sequence[str]], among: Iterable[str] | None = None) -> tuple[dict[str, list[int]], int]:
    """The numbers of the baskets that each item is in, ascending, of some items or of all; and how many baskets there are."""
    wanted = None if among is None else set(among)
    lists: dict[str, list[int]] = {item: [] for item in wanted or ()}
    count = 0
    for number, basket in enumerate(baskets):
        count += 1
        for item in basket:
            if wanted is None:
                lists.setdefault(item, []).append(number)
            elif item in wanted:
                lists[item].append(number)
    return lists, count


def mined(lists: dict[str, list[int]], minimum: int, among: Iterable[str] | None = None) -> dict[Itemset, int]:
    """Every itemset that is in at least `minimum` baskets, with their number, of these items or of all."""
    chosen = sorted(lists if among is None else set(among))
    level: dict[Itemset, list[int]] = {(item,): lists.get(item, []) for item in chosen if len(lists.get(item, [])) >= minimum}
    supports = {itemset: len(numbers) for itemset, numbers in level.items()}
    while level:
        following: dict[Itemset, list[int]] = {}
        ordered = sorted(level)
        for place, left in enumerate(ordered):
            for right in ordered[place + 1 :]:
                if left[:-1] != right[:-1]:
                    break
                candidate = (*left, right[-1])
                if any(part not in level for part in combinations(candidate, len(left))):
                    continue
                both = _in_both(level[left], level[right])
                if len(both) >= minimum:
                    following[candidate] = both
        supports |= {itemset: len(numbers) for itemset, numbers in following.items()}
        level = following
    return supports


def _in_both(left: list[int], right: list[int]) -> list[int]:
    """The numbers in both of two ascending lists."""
    others = set(right)
    return [number for number in left if number in others]


def still_derived(baskets: Iterable[Sequence[str]], guarantee: Hidden) -> StillDerived:
    """Mine some baskets again at the promised thresholds, among the items of each itemset and rule that is to be hidden."""
    unions = [(*antecedent, *consequent) for antecedent, consequent in guarantee.rules]
    lists, count = baskets_of_items(baskets, {item for itemset in (*guarantee.itemsets, *unions) for item in itemset})
    minimum = guarantee.minimum(count)
    itemsets = sum(itemset in mined(lists, minimum, itemset) for itemset in guarantee.itemsets)
    rules = 0
    for (antecedent, _), union in zip(guarantee.rules, unions, strict=True):
        frequent = mined(lists, minimum, union)
        whole = frequent.get(tuple(sorted(union)), 0)
        threshold = Fraction(repr(float(guarantee.confidence or 1)))
        rules += bool(whole) and Fraction(whole, frequent[antecedent]) >= threshold
    return StillDerived(itemsets, rules, len(guarantee.itemsets) + len(guarantee.rules))
