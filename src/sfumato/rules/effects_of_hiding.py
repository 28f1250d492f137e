"""Side effects of hiding: what should be hidden and is not, what was lost, what came into being, and how much was changed.

Oliveira, Zaïane, "Privacy preserving frequent itemset mining", CRPIT 14, 2002 (hiding failure, misses cost, dissimilarity);
Verykios et al., "Association rule hiding", IEEE Transactions on Knowledge and Data Engineering 16(4), 2004 (lost, ghost rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from sfumato.core.errors import InputError
from sfumato.core.guarantees.hidden import Hidden, Itemset
from sfumato.data.transactions import Transactions
from sfumato.rules.mining import mine


@dataclass(frozen=True)
class SideEffects:
    """What hiding did beside hiding, in numbers and without a name of an item.

    `itemsets` and `rules` are those that were frequent or strong before and need not be hidden; of them `lost_itemsets` and
    `lost_rules` are not any more. `ghost_itemsets` and `ghost_rules` are so now and were not. `hiding_failures` of `listed` are
    still derived. `dissimilarity` is the sum of changes of item supports, as a share of all entries.
    """

    listed: int
    hiding_failures: int
    itemsets: int
    lost_itemsets: int
    ghost_itemsets: int
    rules: int
    lost_rules: int
    ghost_rules: int
    items_removed: int
    items_added: int
    baskets_changed: int
    dissimilarity: float

    @property
    def hiding_failure(self) -> float:
        """The share of the list that is still derived."""
        return self.hiding_failures / self.listed

    @property
    def lost_share(self) -> float:
        """The share of the itemsets that need not be hidden and were lost."""
        return self.lost_itemsets / self.itemsets if self.itemsets else 0.0

    @property
    def lost_rules_share(self) -> float:
        """The share of the rules that need not be hidden and were lost."""
        return self.lost_rules / self.rules if self.rules else 0.0

    def to_mapping(self) -> dict[str, float]:
        """Plain data, ready for JSON."""
        shares = {"hiding_failure": self.hiding_failure, "lost_share": self.lost_share, "lost_rules_share": self.lost_rules_share}
        return {**asdict(self), **shares}


def side_effects(
    original: Transactions,
    changed: Transactions,
    hidden: Hidden,
    *,
    longest: int | None = None,
    longest_consequent: int = 1,
    most: int = 1_000_000,
) -> SideEffects:
    """Mine baskets before and after hiding at the thresholds of the guarantee, and compare; both in the same order. Without a
    confidence no rules are counted."""
    if len(original) != len(changed):
        raise InputError(
            f"the original has {len(original):,} baskets and the changed ones are {len(changed):,}; pass both in the same order"
        )
    before, after = (mine(each, hidden.support, longest=longest, most=most) for each in (original, changed))
    was, remains = before.by_name(), after.by_name()
    unions = [tuple(sorted(left + right)) for left, right in hidden.rules]
    open_sets = {itemset for itemset in was if not _covers(itemset, hidden.itemsets)}
    strong: list[dict[tuple[Itemset, Itemset], float]] = [{}, {}]
    if hidden.confidence is not None:
        strong = [
            {rule.sides: rule.confidence for rule in each.rules(hidden.confidence, longest_consequent)}
            for each in (before, after)
        ]
    listed_rules = set(hidden.rules)
    open_rules = {sides for sides in strong[0] if sides not in listed_rules and not _covers(sides[0] + sides[1], hidden.itemsets)}
    failures = sum(itemset in remains for itemset in hidden.itemsets)
    failures += sum(_is_strong(sides, union, remains, hidden) for sides, union in zip(hidden.rules, unions, strict=True))
    removed, added, touched = _differences(original, changed)
    return SideEffects(
        listed=len(hidden.itemsets) + len(hidden.rules),
        hiding_failures=failures,
        itemsets=len(open_sets),
        lost_itemsets=sum(itemset not in remains for itemset in open_sets),
        ghost_itemsets=sum(itemset not in was for itemset in remains),
        rules=len(open_rules),
        lost_rules=sum(sides not in strong[1] for sides in open_rules),
        ghost_rules=sum(sides not in strong[0] for sides in strong[1]),
        items_removed=removed,
        items_added=added,
        baskets_changed=touched,
        dissimilarity=_dissimilarity(original, changed),
    )


def _covers(itemset: Itemset, listed: tuple[Itemset, ...]) -> bool:
    """Whether all items of something on the list are among these: then it cannot stay either."""
    return any(set(each) <= set(itemset) for each in listed)


def _is_strong(sides: tuple[Itemset, Itemset], union: Itemset, supports: Mapping[Itemset, int], hidden: Hidden) -> bool:
    whole = supports.get(union, 0)
    return bool(whole) and whole / supports[sides[0]] >= (hidden.confidence or 1)


def _differences(original: Transactions, changed: Transactions) -> tuple[int, int, int]:
    """Entries that are gone, entries that are new, and baskets with either."""
    names = sorted({*original.items, *changed.items})
    place_of = {name: place for place, name in enumerate(names)}
    keys = []
    for each in (original, changed):
        now = np.fromiter((place_of[name] for name in each.items), np.int64, len(each.items))
        codes = now[each.codes] if each.codes.size else each.codes.astype(np.int64)
        keys.append(each.basket_of_entry * max(len(names), 1) + codes)
    gone, new = (np.setdiff1d(one, other, assume_unique=True) for one, other in (keys, reversed(keys)))
    touched = np.unique(np.concatenate([gone, new]) // max(len(names), 1))
    return int(gone.size), int(new.size), int(touched.size)


def _dissimilarity(original: Transactions, changed: Transactions) -> float:
    counts = [dict(zip(each.items, each.supports().tolist(), strict=True)) for each in (original, changed)]
    apart = sum(abs(counts[0].get(name, 0) - counts[1].get(name, 0)) for name in {*counts[0], *counts[1]})
    return float(apart / original.codes.size) if original.codes.size else 0.0
