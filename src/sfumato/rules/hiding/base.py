"""Hiding: baskets are changed until nothing on the owner's list is derived from them at the thresholds.

A method says what it did; whether everything is hidden is decided afterwards by code that it does not share
(`measures.guarantees.mined_again`), and what else was changed by `rules.effects_of_hiding`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import Declared, parameters
from sfumato.core.errors import Infeasible, InputError, ParameterError, all_at_once
from sfumato.core.guarantees.hidden import Hidden
from sfumato.core.outcome import Outcome
from sfumato.core.progress import ProgressLike, shown, silent
from sfumato.core.randomness import Randomness, default
from sfumato.data.transactions import Int, Transactions

Coded = tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """What is to be hidden, as codes: itemsets, and rules by their two sides; and the numbers of baskets they come to."""

    itemsets: tuple[Coded, ...] = field(repr=False)
    rules: tuple[tuple[Coded, Coded], ...] = field(repr=False)
    minimum: int
    confidence: Fraction

    @property
    def unions(self) -> tuple[Coded, ...]:
        """Every itemset on the list and the items of every rule on it: whatever loses its support is hidden."""
        return tuple(dict.fromkeys((*self.itemsets, *(tuple(sorted(left + right)) for left, right in self.rules))))


@dataclass(frozen=True, eq=False)
class Working:
    """Baskets while they are changed: what was removed and added so far, and the baskets that have an item."""

    transactions: Transactions = field(repr=False)
    source: Randomness = field(repr=False)
    removed: NDArray[np.bool_] = field(init=False, repr=False)
    owner: Int = field(init=False, repr=False)
    sizes: Int = field(init=False, repr=False)
    added: list[tuple[int, int]] = field(default_factory=list, init=False, repr=False)
    _entries: dict[int, Int] = field(default_factory=dict, init=False, repr=False)
    _having: dict[int, NDArray[np.bool_]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        fields = {
            "removed": np.zeros(self.transactions.codes.size, dtype=bool),
            "owner": self.transactions.basket_of_entry,
            "sizes": self.transactions.lengths,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def having(self, code: int) -> NDArray[np.bool_]:
        """Which baskets have an item now."""
        if code not in self._having:
            entries = np.flatnonzero(self.transactions.codes == code)
            present = np.zeros(len(self.transactions), dtype=bool)
            present[self.owner[entries]] = True
            self._entries[code], self._having[code] = entries, present
        return self._having[code]

    def having_all(self, codes: Sequence[int]) -> NDArray[np.bool_]:
        """Which baskets have all these items now."""
        both = np.ones(len(self.transactions), dtype=bool)
        for code in codes:
            both &= self.having(code)
        return both

    def support(self, codes: Sequence[int]) -> int:
        """In how many baskets all these items are now."""
        return int(self.having_all(codes).sum())

    def remove(self, baskets: Int, code: int) -> None:
        """Take an item out of some baskets that have it."""
        present = self.having(code)
        entries = self._entries[code]
        self.removed[entries[np.searchsorted(self.owner[entries], baskets)]] = True
        present[baskets] = False
        self.sizes[baskets] -= 1

    def add(self, baskets: Int, code: int) -> None:
        """Put an item into some baskets that do not have it, and never had."""
        self.having(code)[baskets] = True
        self.added.extend((int(basket), code) for basket in baskets)
        self.sizes[baskets] += 1

    def changed(self) -> Transactions:
        """The baskets as they are now."""
        return self.transactions.edited(self.removed, self.added)


class Hiding(Declared, ABC):
    """A method of hiding: `run(transactions, hidden)` changes baskets until what is on the list is not derived from them."""

    #: Whether it needs rules, and hides no itemset as such.
    of_rules: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The public name of the method."""
        return type(self).__name__

    @property
    def only_removes(self) -> bool:
        """Whether it takes items out of baskets and puts none in: then no itemset becomes frequent that was not."""
        return True

    @abstractmethod
    def hide(self, working: Working, task: Task) -> dict[str, object]:
        """Change the baskets; what is worth telling about it, without what is on the list."""

    def run(
        self,
        transactions: Transactions,
        hidden: Hidden,
        *,
        seed: int | str | None = None,
        progress: ProgressLike = silent,
    ) -> Outcome[Transactions]:
        """Hide what the guarantee lists; the outcome is published by `sf.publish`. A seed marks a demonstration."""
        task = self.task(transactions, hidden)
        source = default(seed)
        working = Working(transactions, source)
        with shown(progress) as receiver:
            receiver("hiding", 0, 1)
            details = self.hide(working, task)
            receiver("hiding", 1, 1)
        left = [codes for codes in task.itemsets if working.support(codes) >= task.minimum]
        strong = [sides for sides in task.rules if _derived(working, task, *sides)]
        if left or strong:
            raise Infeasible(
                f"{self.name} cannot hide {len(left) + len(strong):,} of {len(task.itemsets) + len(task.rules):,} itemsets and "
                "rules with these baskets; SupportReduction always can"
            )
        facts = {"randomness": source.description, "private": source.private}
        method = {"name": self.name, **parameters(self)}
        return Outcome(working.changed(), (hidden,), method, {**details, **facts})

    def task(self, transactions: Transactions, hidden: Hidden) -> Task:
        """What is to be hidden in these baskets; every fault of it at once."""
        if not isinstance(hidden, Hidden):
            raise ParameterError("pass what is to be hidden as sf.Hidden(itemsets, support)")
        itemsets = [transactions.itemset(each) for each in hidden.itemsets]
        rules = [tuple(transactions.itemset(side) for side in sides) for sides in hidden.rules]
        unknown = sum(each is None for each in itemsets) + sum(None in sides for sides in rules)
        faults = []
        if unknown:
            faults.append(
                f"{unknown:,} of {len(itemsets) + len(rules):,} itemsets and rules name an item that no basket has; correct or "
                "leave them out"
            )
        minimum = hidden.minimum(len(transactions))
        if self.of_rules and hidden.itemsets:
            faults.append(f"{self.name} lowers the confidence of rules alone; hide itemsets with SupportReduction")
        all_at_once(InputError, "what is to be hidden", faults)
        return Task(
            tuple(each for each in itemsets if each is not None),
            tuple((left, right) for left, right in rules if left is not None and right is not None),
            minimum,
            Fraction(repr(float(hidden.confidence or 1))),
        )


def _derived(working: Working, task: Task, left: Coded, right: Coded) -> bool:
    """Whether a rule still has the support and the confidence."""
    whole = working.support(left + right)
    return whole >= task.minimum and Fraction(whole, working.support(left)) >= task.confidence
