"""Recoding the sets of one class until every combination of a few items is shared by enough records.

Combinations are counted by size, from single items upward. The rarest one that too few records share is mended by
the cheapest step: one of its items is deleted, or generalised along the taxonomy until enough records share the
combination. A step changes an item in the whole class, and no step makes another combination rarer. Terrovitis,
Mamoulis, Kalnis, "Privacy-preserving anonymization of set-valued data", PVLDB 1(1), 2008 (Apriori anonymisation).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from sfumato.core.errors import Unsupported

#: An item: which set-valued column, and which node among its items and their generalisations.
Item = tuple[int, int]
Combination = tuple[Item, ...]

MAX_COMBINATIONS = 20_000_000


@dataclass(frozen=True, eq=False)
class ItemTree:
    """The items of a column as nodes: label and loss of each, the node of each original item, the node above each.

    A node without an entry in `above` can only be deleted; so can those right below the root, which says nothing.
    """

    labels: Sequence[str] = field(repr=False)
    loss: Sequence[float] = field(repr=False)
    leaf: Mapping[str, int] = field(repr=False)
    above: Mapping[int, int] = field(repr=False)

    def ancestors(self, node: int) -> Iterator[int]:
        """The nodes above a node that may be shown, from the lowest on."""
        while node in self.above:
            node = self.above[node]
            yield node


@dataclass(frozen=True)
class Step:
    """These items become `target`, or are deleted where there is none; `cost` is the loss it adds, in items of records."""

    cost: float
    target: Item | None
    sources: Combination


class ClassItems:
    """The sets of one class while they are recoded: `shown[b]` are the items that `records[b]` records show."""

    def __init__(
        self, baskets: Sequence[frozenset[Item]], records: Sequence[int], trees: Sequence[ItemTree], *, generalise: bool
    ) -> None:
        self.shown = [set(basket) for basket in baskets]
        self.records = records
        self.trees = trees
        self.generalise = generalise
        self.holders: dict[Item, set[int]] = {}
        for number, basket in enumerate(baskets):
            for item in basket:
                self.holders.setdefault(item, set()).add(number)
        # how many occurrences in the original sets a shown item stands for, and which items they were
        self.weight = {item: self._count(holders) for item, holders in self.holders.items()}
        self.stands_for: dict[Item, list[Item]] = {item: [item] for item in self.holders}

    def recoded(self) -> dict[Item, Item]:
        """What every original item became; those that were deleted are not listed."""
        return {item: shown for shown, items in self.stands_for.items() for item in items}

    def enforce(self, k: int, items: int) -> None:
        """Every combination of 1 to `items` items of each column that some record shows is shared by at least `k`."""
        for size in range(1, items * len(self.trees) + 1):
            supports = self._supports(range(len(self.shown)), size, items)
            if not supports:
                return
            rare = {combination: count for combination, count in supports.items() if count < k}
            while rare:
                step = self._mend(min(rare, key=lambda combination: (rare[combination], combination)), k)
                self._take(step)
                gone = set(step.sources)
                rare = {combination: count for combination, count in rare.items() if gone.isdisjoint(combination)}
                if step.target is not None:
                    fresh = self._supports(self.holders[step.target], size, items, step.target)
                    rare |= {combination: count for combination, count in fresh.items() if count < k}

    def enforce_whole(self, failing: Callable[[list[list[int]]], list[bool]]) -> None:
        """Records that show the same sets keep the promises; `failing` says which groups of baskets do not.

        Without any item all records of the class show the same, so this ends.
        """
        while self.holders:
            groups: dict[Combination, list[int]] = {}
            for number, basket in enumerate(self.shown):
                groups.setdefault(tuple(sorted(basket)), []).append(number)
            verdicts = failing(list(groups.values()))
            bad = [key for key, fails in zip(groups, verdicts, strict=True) if fails]
            if not bad:
                return
            worst = min(bad, key=lambda key: (self._count(groups[key]), key))
            steps = [step for item in (worst or self.holders) for step in self._steps(item)]
            self._take(min(steps, key=_by_cost))

    def _mend(self, combination: Combination, k: int) -> Step:
        """The cheapest step after which the combination is gone or shared by at least `k` records."""
        steps = []
        for item in combination:
            for step in self._steps(item):
                if step.target is None or self._support_after(combination, step) >= k:
                    steps.append(step)
        return min(steps, key=_by_cost)

    def _steps(self, item: Item) -> Iterator[Step]:
        column, node = item
        tree = self.trees[column]
        yield Step(self.weight[item] * (1.0 - tree.loss[node]), None, (item,))
        for ancestor in tree.ancestors(node) if self.generalise else ():
            sources = tuple(
                sorted(
                    other for other in self.holders if other[0] == column and ancestor in (other[1], *tree.ancestors(other[1]))
                )
            )
            cost = sum(self.weight[source] * (tree.loss[ancestor] - tree.loss[source[1]]) for source in sources)
            yield Step(cost, (column, ancestor), sources)

    def _support_after(self, combination: Combination, step: Step) -> int:
        baskets = set().union(*(self.holders[source] for source in step.sources))
        for item in combination:
            if item not in step.sources:
                baskets &= self.holders[item]
        return self._count(baskets)

    def _take(self, step: Step) -> None:
        for source in step.sources:
            weight, items = self.weight.pop(source), self.stands_for.pop(source)
            for basket in self.holders.pop(source):
                self.shown[basket].discard(source)
                if step.target is not None:
                    self.shown[basket].add(step.target)
                    self.holders.setdefault(step.target, set()).add(basket)
            if step.target is not None:
                self.weight[step.target] = self.weight.get(step.target, 0) + weight
                self.stands_for.setdefault(step.target, []).extend(items)

    def _count(self, baskets: Iterable[int]) -> int:
        return sum(self.records[basket] for basket in baskets)

    def _supports(self, baskets: Iterable[int], size: int, items: int, holding: Item | None = None) -> Counter[Combination]:
        """Records per combination of this size, with at most `items` items of each column, in these baskets."""
        chosen = list(baskets)
        if sum(math.comb(len(self.shown[basket]), size) for basket in chosen) > MAX_COMBINATIONS:
            raise Unsupported(
                f"the sets of one class have more than {MAX_COMBINATIONS:,} combinations of {size} items. Assume fewer items in "
                "the adversary's knowledge, or generalise the items before."
            )
        supports: Counter[Combination] = Counter()
        for basket in chosen:
            for combination in combinations(sorted(self.shown[basket]), size):
                if (holding is None or holding in combination) and _within(combination, items):
                    supports[combination] += self.records[basket]
        return supports


def _within(combination: Combination, items: int) -> bool:
    """True when no column has more than so many items in the combination."""
    if len(combination) <= items:
        return True
    return max(Counter(column for column, _ in combination).values()) <= items


def _by_cost(step: Step) -> tuple[float, bool, Combination]:
    return step.cost, step.target is not None, step.sources
