"""Guessing what was hidden: itemsets that were lowered just below the threshold stand there, and few others do.

Methods of hiding stop as soon as an itemset is not frequent. Somebody who knows the threshold lists the itemsets that are one
basket short of it although all their parts are frequent, and guesses first those that are in far fewer baskets than their parts
suggest. Sun, Yu, "A border-based approach for hiding sensitive frequent itemsets", ICDM 2005 (the border).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar

from sfumato.attacks.adversary import only
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.guarantees.hidden import Hidden, Itemset, RuleSides, least_count
from sfumato.core.ranges import Whole
from sfumato.core.texts import percent
from sfumato.core.view import Attack, AttackResult, View
from sfumato.data.transactions import Transactions
from sfumato.data.transactions_lists import ItemsetList
from sfumato.measures.risk.success import share, wilson
from sfumato.rules.mining import mine


@dataclass(frozen=True)
class Guesses:
    """What an adversary guesses, the likeliest first, and how many itemsets or rules could be meant as far as everybody knows:
    those that are not derived, although all their parts are frequent."""

    itemsets: tuple[Itemset, ...]
    rules: tuple[RuleSides, ...]
    possible_itemsets: int
    possible_rules: int


@dataclass(frozen=True)
class GuessHidden(Attack[View[Transactions, object], ItemsetList]):
    """The adversary knows the published baskets and the thresholds of the certificate, and guesses as many itemsets and rules as
    were hidden: those that are at most `window` baskets short of the threshold.

    Success is the share of the list that is guessed. Blind guessing draws as many from all itemsets that are not frequent
    although all their parts are, and from all rules between frequent itemsets that are not strong. Knowledge is the owner's list
    (`itemsets`), which scores the guesses and is not used for them.
    """

    window: Annotated[int, Whole(at_least=1), "how many baskets an itemset is short of the threshold, at the most"] = 1

    needs: ClassVar[tuple[str, ...]] = ("itemsets",)
    knows_the_method: ClassVar[bool] = True
    supposing: ClassVar[str] = ""

    def fits(self, view: View[object, object]) -> bool:
        """Baskets whose certificate promises that something is hidden in them."""
        return isinstance(view.result, Transactions) and _thresholds(view) is not None

    def knowledge_from(self, entries: Mapping[str, object]) -> ItemsetList | None:
        """The owner's list: as such, as a guarantee, or as its file."""
        only(entries, "itemsets")
        listed = entries.get("itemsets")
        if isinstance(listed, Hidden):
            return ItemsetList.of(listed)
        if isinstance(listed, str):
            return ItemsetList.read(listed)
        if listed is not None and not isinstance(listed, ItemsetList):
            raise ParameterError("knowledge: itemsets is the owner's list, the file of it, or sf.Hidden")
        return listed

    def run(self, view: View[Transactions, object], knowledge: ItemsetList | None = None) -> AttackResult:
        """Guess, and count how much of the list was guessed."""
        if knowledge is None:
            raise InputError("GuessHidden needs the owner's list of itemsets to score its guesses: pass it as itemsets")
        guesses = self.guesses(view)
        itemsets, rules = len(knowledge.itemsets), len(knowledge.rules)
        right = len(set(guesses.itemsets[:itemsets]) & set(knowledge.itemsets))
        right += len(set(guesses.rules[:rules]) & set(knowledge.rules))
        blind = _blind(itemsets, guesses.possible_itemsets) + _blind(rules, guesses.possible_rules)
        targets = itemsets + rules
        return AttackResult(
            attack="GuessHidden",
            success=share(right, targets),
            baseline=min(blind / targets, 1.0),
            interval=wilson(right, targets),
            targets=targets,
            finding=(
                f"Of what was hidden, {percent(share(right, targets))} is guessed among the itemsets and rules just below the "
                f"thresholds (itemsets that stand there: {len(guesses.itemsets):,}, rules: {len(guesses.rules):,})."
            ),
            details={"just_below": len(guesses.itemsets) + len(guesses.rules), "right": right},
        )

    def guesses(self, view: View[Transactions, object]) -> Guesses:
        """What is guessed of these baskets, in order."""
        thresholds = _thresholds(view)
        if thresholds is None or not isinstance(view.result, Transactions):
            raise Unsupported("GuessHidden looks at published baskets whose certificate promises that something is hidden")
        baskets, minimum = view.result, least_count(thresholds["support"], len(view.result))
        supports = mine(baskets, max(minimum - self.window, 1)).by_name()
        frequent = {itemset: count for itemset, count in supports.items() if count >= minimum}
        below = [
            itemset
            for itemset, count in supports.items()
            if count < minimum and all(part in frequent for part in combinations(itemset, len(itemset) - 1) if part)
        ]
        below.sort(key=lambda itemset: (-_suggested(itemset, supports, len(baskets)) / supports[itemset], itemset))
        rules, possible = self._rules(frequent, thresholds.get("confidence"))
        border = _border(frequent) + len(baskets.items) - sum(len(itemset) == 1 for itemset in frequent)
        return Guesses(tuple(below), rules, border, possible)

    def _rules(self, frequent: Mapping[Itemset, int], confidence: float | None) -> tuple[tuple[RuleSides, ...], int]:
        """Rules that would be strong with so many more baskets, the most frequent first; and all that are not strong."""
        if confidence is None:
            return (), 0
        short, weak = [], 0
        for whole, count in frequent.items():
            for size in range(1, len(whole)):
                for left in combinations(whole, size):
                    if count < confidence * frequent[left]:
                        weak += 1
                        if count + self.window >= confidence * frequent[left]:
                            short.append((-count, left, tuple(item for item in whole if item not in left)))
        return tuple((left, right) for _, left, right in sorted(short)), weak


def _thresholds(view: View[object, object]) -> Mapping[str, Any] | None:
    claims = view.certificate.get("claims", ())
    return next((claim["parameters"] for claim in claims if claim.get("guarantee") == Hidden.__name__), None)


def _suggested(itemset: Itemset, supports: Mapping[Itemset, int], baskets: int) -> float:
    """In how many baskets the parts of an itemset suggest it to be: as if two items had nothing to do with each other beside the
    rest, for the two that suggest the most."""
    if len(itemset) == 1:
        return 1.0
    estimates = []
    for left, right in combinations(itemset, 2):
        rest = tuple(item for item in itemset if item not in (left, right))
        together = supports[rest] if rest else baskets
        without = [supports[tuple(item for item in itemset if item != each)] for each in (left, right)]
        estimates.append(without[0] * without[1] / together)
    return max(estimates)


def _border(frequent: Mapping[Itemset, int]) -> int:
    """How many itemsets of two items or more are not frequent although all their parts are."""
    by_start: dict[Itemset, list[str]] = {}
    for itemset in sorted(frequent):
        by_start.setdefault(itemset[:-1], []).append(itemset[-1])
    return sum(
        (*start, *pair) not in frequent and all(part in frequent for part in combinations((*start, *pair), len(start) + 1))
        for start, ends in by_start.items()
        for pair in combinations(ends, 2)
    )


def _blind(wanted: int, possible: int) -> float:
    """How many of the wanted are right on average, where as many are drawn from all that are possible."""
    return wanted * min(wanted / possible, 1.0) if possible else 0.0
