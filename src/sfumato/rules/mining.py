"""Mining: frequent, closed and maximal itemsets, and rules with support, confidence and lift.

An itemset is frequent where enough baskets have all its items; closed where every larger one is in fewer baskets; maximal where
no larger one is frequent. A rule A → C holds with the confidence supp(A ∪ C)/supp(A); its lift compares that with supp(C).
Agrawal, Srikant, "Fast algorithms for mining association rules", VLDB 1994; Zaki, "Scalable algorithms for association mining",
IEEE Transactions on Knowledge and Data Engineering 12(3), 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from sfumato.core.declared import Declared
from sfumato.core.errors import InputError
from sfumato.core.guarantees.hidden import SUPPORT, Itemset, least_count
from sfumato.core.ranges import Number, Whole
from sfumato.data.transactions import Int, Transactions

if TYPE_CHECKING:
    import pyarrow as pa

Coded = tuple[int, ...]
#: Pairs are counted beforehand for at most so many frequent items: their counts are a square of numbers.
_MOST_PAIRED = 4096


@dataclass(frozen=True)
class Rule:
    """Whoever has the antecedent has the consequent as well: in `support` baskets, with this confidence and lift."""

    antecedent: Itemset
    consequent: Itemset
    support: int
    confidence: float
    lift: float

    @property
    def sides(self) -> tuple[Itemset, Itemset]:
        """Antecedent and consequent."""
        return self.antecedent, self.consequent


@dataclass(frozen=True, eq=False)
class Itemsets:
    """Itemsets with the number of baskets that each is in, larger ones after smaller ones, in the order of their items."""

    sets: tuple[Coded, ...] = field(repr=False)
    supports: Int = field(repr=False)
    items: tuple[str, ...] = field(repr=False)
    baskets: int
    minimum: int
    kind: str = "frequent"

    def __len__(self) -> int:
        return len(self.sets)

    def __iter__(self) -> Iterator[tuple[Itemset, int]]:
        for codes, support in zip(self.sets, self.supports.tolist(), strict=True):
            yield self.names(codes), support

    def __repr__(self) -> str:
        return f"Itemsets({len(self):,} {self.kind}, in {self.minimum:,} of {self.baskets:,} baskets or more)"

    def names(self, codes: Coded) -> Itemset:
        """The items of an itemset by name."""
        return tuple(self.items[code] for code in codes)

    @cached_property
    def support_of(self) -> dict[Coded, int]:
        """The number of baskets by the codes of the itemset."""
        return dict(zip(self.sets, self.supports.tolist(), strict=True))

    def by_name(self) -> dict[Itemset, int]:
        """The number of baskets by the items of the itemset."""
        return dict(self)

    def to_arrow(self) -> pa.Table:
        """A table of itemsets, with the number of baskets and their share."""
        import pyarrow as pa

        shares = self.supports / max(self.baskets, 1)
        listed = [list(itemset) for itemset, _ in self]
        return pa.table({"itemset": pa.array(listed, pa.list_(pa.string())), "baskets": self.supports, "support": shares})

    def rules(self, confidence: float, longest_consequent: int = 1) -> list[Rule]:
        """The rules that their itemsets carry with at least this confidence, of at most so many items in the consequent;
        the strongest first. They take all frequent itemsets, and not the closed or maximal ones alone."""
        if self.kind != "frequent":
            raise InputError(f'rules take the frequent itemsets; these are the {self.kind} ones. Mine with kind="frequent"')
        listed = [
            Rule(self.names(left), self.names(right), whole, whole / of_left, whole * self.baskets / (of_left * of_right))
            for left, right, whole, of_left, of_right in strong(self.support_of, confidence, longest_consequent)
        ]
        return sorted(listed, key=lambda rule: (-rule.confidence, -rule.support, rule.sides))


def strong(
    support_of: dict[Coded, int], confidence: float, longest_consequent: int
) -> Iterator[tuple[Coded, Coded, int, int, int]]:
    """Both sides of every rule of at least this confidence, with the baskets of both, of the left one and of the right one. What
    fails with a consequent fails with every larger one."""
    share = Fraction(repr(float(confidence)))
    numerator, denominator = share.numerator, share.denominator
    for codes, whole in support_of.items():
        if len(codes) < 2:
            continue
        consequents: list[Coded] = [(code,) for code in codes]
        for size in range(1, min(longest_consequent, len(codes) - 1) + 1):
            kept = []
            for right in consequents:
                left = tuple(code for code in codes if code not in right)
                of_left = support_of[left]
                if whole * denominator >= numerator * of_left:
                    kept.append(right)
                    yield left, right, whole, of_left, support_of[right]
            if size < min(longest_consequent, len(codes) - 1):
                consequents = _one_longer(kept)


def _one_longer(sets: list[Coded]) -> list[Coded]:
    """The sets of which all subsets with one item less are among these."""
    there = set(sets)
    longer = ((*left, right[-1]) for place, left in enumerate(sets) for right in sets[place + 1 :] if left[:-1] == right[:-1])
    return [each for each in longer if all(each[:i] + each[i + 1 :] in there for i in range(len(each)))]


@dataclass(frozen=True)
class Mining(Declared):
    """How baskets are mined: `support` from which on an itemset is frequent (a share below 1, or a number of baskets), `kind` of
    itemsets, at most `longest` items in each, and at most `most` itemsets, beyond which the support has to be raised."""

    support: Annotated[float, SUPPORT, "from which support on an itemset is frequent"]
    kind: Annotated[Literal["frequent", "closed", "maximal"], "which of the frequent itemsets"] = "frequent"
    longest: Annotated[int | None, Whole(at_least=1), "the items of an itemset, at the most"] = None
    most: Annotated[int, Whole(at_least=1), "the itemsets that are listed, at the most"] = 1_000_000

    def run(self, transactions: Transactions) -> Itemsets:
        """Mine some baskets."""
        minimum = least_count(self.support, len(transactions))
        sets, supports = frequent(transactions, minimum, self.longest, self.most)
        if self.kind != "frequent":
            kept = closed(sets, supports) if self.kind == "closed" else maximal(sets)
            sets, supports = [sets[place] for place in kept], supports[kept]
        return Itemsets(tuple(sets), supports, transactions.items, len(transactions), minimum, self.kind)


def mine(
    transactions: Transactions,
    support: float,
    *,
    kind: Literal["frequent", "closed", "maximal"] = "frequent",
    longest: int | None = None,
    most: int = 1_000_000,
) -> Itemsets:
    """The itemsets that are in `support` of the baskets: a share below 1, or a number of baskets.

    >>> mine(Transactions.of([["a", "b"], ["a", "b", "c"], ["c"]]), 2).by_name()
    {('a',): 2, ('b',): 2, ('c',): 2, ('a', 'b'): 2}
    """
    return Mining(support, kind, longest, most).run(transactions)


@dataclass(frozen=True)
class _Strength(Declared):
    """What makes a rule strong: its `confidence`, and the `longest_consequent` that is looked at."""

    confidence: Annotated[float, Number(above=0, at_most=1), "the confidence of a rule, at the least"]
    longest_consequent: Annotated[int, Whole(at_least=1), "the items of a consequent, at the most"]


def rules(
    transactions: Transactions,
    support: float,
    confidence: float,
    *,
    longest: int | None = None,
    longest_consequent: int = 1,
    most: int = 1_000_000,
) -> list[Rule]:
    """The rules with at least this support and confidence, the strongest first."""
    _Strength(confidence, longest_consequent)
    return mine(transactions, support, longest=longest, most=most).rules(confidence, longest_consequent)


def frequent(
    transactions: Transactions, minimum: int, longest: int | None = None, most: int = 1_000_000
) -> tuple[list[Coded], Int]:
    """Every itemset that is in at least `minimum` baskets, as ascending codes, and the number of its baskets."""
    from sfumato.kernels.itemsets import frequent_sets, pair_counts, tid_bits

    supports = transactions.supports()
    chosen = np.flatnonzero(supports >= minimum)
    chosen = chosen[np.argsort(supports[chosen], kind="stable")]  # the rarest first: their baskets are the fewest
    if chosen.size > most:
        raise _too_many(most)
    number = np.full(len(transactions.items), -1, dtype=np.int32)
    number[chosen] = np.arange(chosen.size)
    codes = number[transactions.codes] if transactions.codes.size else transactions.codes
    kept = codes >= 0
    before = np.concatenate([[0], np.cumsum(kept)])
    starts, codes = before[transactions.starts], np.ascontiguousarray(codes[kept])
    bits = tid_bits(starts, codes, chosen.size)
    pairs = pair_counts(starts, codes, chosen.size) if chosen.size <= _MOST_PAIRED else np.zeros((0, 0), np.int64)
    longest = chosen.size + 1 if longest is None else longest
    parents, last, counts, complete = frequent_sets(bits, pairs, minimum, longest, most)
    if not complete:
        raise _too_many(most)
    sets: list[Coded] = []
    for parent, item in zip(parents.tolist(), chosen[last].tolist(), strict=True):
        sets.append((*sets[parent], item) if parent >= 0 else (item,))
    sets = [tuple(sorted(each)) for each in sets]
    order = sorted(range(len(sets)), key=lambda place: (len(sets[place]), sets[place]))
    return [sets[place] for place in order], counts[order] if order else counts


def _too_many(most: int) -> InputError:
    return InputError(f"more than {most:,} itemsets are frequent: raise the support, or `most` if the memory is there")


def closed(sets: list[Coded], supports: Int) -> Int:
    """The places of the itemsets of which every larger one is in fewer baskets."""
    place_of = {each: place for place, each in enumerate(sets)}
    kept = np.ones(len(sets), dtype=bool)
    for place, each in enumerate(sets):
        for part in _one_shorter(each):
            below = place_of[part]
            if supports[below] == supports[place]:
                kept[below] = False
    return np.flatnonzero(kept)


def maximal(sets: list[Coded]) -> Int:
    """The places of the itemsets of which no larger one is frequent."""
    place_of = {each: place for place, each in enumerate(sets)}
    kept = np.ones(len(sets), dtype=bool)
    kept[[place_of[part] for each in sets for part in _one_shorter(each)]] = False
    return np.flatnonzero(kept)


def _one_shorter(codes: Coded) -> Iterator[Coded]:
    if len(codes) > 1:
        for place in range(len(codes)):
            yield codes[:place] + codes[place + 1 :]
