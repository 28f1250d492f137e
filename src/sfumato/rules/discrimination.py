"""Discriminating rules: a protected attribute makes an unfavourable decision more likely than it is without it.

For a rule A, B → C with protected items A and a decision C, the extended lift is conf(A, B → C)/conf(B → C). Pedreschi, Ruggieri,
Turini, "Discrimination-aware data mining", KDD 2008.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError
from sfumato.core.guarantees.hidden import Hidden
from sfumato.core.ranges import Number
from sfumato.data.transactions import Transactions
from sfumato.rules.mining import Rule, mine


@dataclass(frozen=True)
class DiscriminatingRule:
    """A rule from a protected item to a decision, the confidence of the same rule without the protected items, and how many times
    the first is the second."""

    rule: Rule
    without: float
    extended_lift: float


@dataclass(frozen=True)
class _Limit(Declared):
    """`alpha`, from which on a rule discriminates."""

    alpha: Annotated[float, Number(at_least=1), "the extended lift of a discriminating rule, at the least"]


def discriminating(
    transactions: Transactions,
    protected: Iterable[str],
    decisions: Iterable[str],
    support: float,
    confidence: float,
    *,
    alpha: float = 1.25,
    longest: int | None = 4,
) -> list[DiscriminatingRule]:
    """The rules of this support and confidence that lead from a protected item to a decision, and do so at least `alpha` times as
    often as without it; the strongest first. Transactions of columns have items such as `sex=female`.

    >>> people = [["sex=f", "credit=no"], ["sex=f", "credit=no"], ["sex=m", "credit=yes"], ["sex=m", "credit=no"]]
    >>> [each.extended_lift for each in discriminating(Transactions.of(people), ["sex=f"], ["credit=no"], 2, 0.8)]
    [1.3333333333333333]
    """
    _Limit(alpha)
    guarded, outcomes = set(protected), set(decisions)
    both = guarded & outcomes
    unknown = len((guarded | outcomes) - set(transactions.items))
    if both or unknown:
        raise InputError(
            f"protected and decisions: {len(both):,} items are among both, {unknown:,} are in no basket; name "
            "different items that occur"
        )
    itemsets = mine(transactions, support, longest=longest)
    supports = {**itemsets.by_name(), (): len(transactions)}
    kept = []
    for rule in itemsets.rules(confidence):
        if not guarded.isdisjoint(rule.antecedent) and outcomes.issuperset(rule.consequent):
            context = tuple(item for item in rule.antecedent if item not in guarded)
            without = supports[tuple(sorted(context + rule.consequent))] / supports[context]
            if rule.confidence >= alpha * without:
                kept.append(DiscriminatingRule(rule, without, rule.confidence / without))
    return sorted(kept, key=lambda each: (-each.extended_lift, each.rule.sides))


def without_discrimination(rules: Iterable[DiscriminatingRule], support: float, confidence: float) -> Hidden:
    """The guarantee that none of these rules is derived from what is published."""
    return Hidden((), support, confidence, tuple(each.rule.sides for each in rules))
