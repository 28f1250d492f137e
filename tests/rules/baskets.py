"""Random baskets, and a plain count of everything in them."""

from __future__ import annotations

from itertools import combinations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import sfumato as sf

SEED_BASKETS = (("a", "b", "c", "d"), ("a", "b", "c"), ("a", "c", "d"))


@st.composite
def transactions(draw: DrawFn, most: int = 14) -> sf.data.Transactions:
    """Up to so many baskets of up to six items."""
    return sf.data.Transactions.of(draw(st.lists(st.sets(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=most)))


@st.composite
def hiding_tasks(draw: DrawFn) -> tuple[sf.data.Transactions, sf.Hidden]:
    """Baskets, and itemsets of up to four items that occur in them."""
    baskets = draw(transactions().filter(lambda made: made.items))
    itemset = st.sets(st.sampled_from(baskets.items), min_size=1, max_size=4).map(sorted)
    listed = draw(st.lists(itemset, min_size=1, max_size=3))
    return baskets, sf.Hidden(listed, draw(st.integers(1, 5)))


def counted(baskets: sf.data.Transactions, minimum: int) -> dict[tuple[str, ...], int]:
    """Every itemset of every basket, counted one by one."""
    counts: dict[tuple[str, ...], int] = {}
    for basket in baskets.baskets():
        for size in range(1, len(basket) + 1):
            for itemset in combinations(basket, size):
                counts[itemset] = counts.get(itemset, 0) + 1
    return {itemset: count for itemset, count in counts.items() if count >= minimum}
