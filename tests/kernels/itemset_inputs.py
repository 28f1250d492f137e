"""Random baskets for the kernels that count itemsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from sfumato.kernels.itemsets import pair_counts, tid_bits


@st.composite
def coded(draw: DrawFn) -> tuple[Any, ...]:
    """Where baskets start, their items in order, and how many items there are; more baskets than a word has bits."""
    items = draw(st.integers(1, 6))
    baskets = draw(st.lists(st.sets(st.integers(0, items - 1)), max_size=9)) * draw(st.sampled_from((1, 9)))
    starts = np.concatenate([[0], np.cumsum([len(basket) for basket in baskets])]).astype(np.int64)
    codes = np.array([code for basket in baskets for code in sorted(basket)], dtype=np.int32)
    return starts, codes, items


@st.composite
def frequent(draw: DrawFn) -> tuple[Any, ...]:
    """Items with their baskets, the counts of pairs or none, a threshold, and how many itemsets there may be."""
    starts, codes, items = draw(coded())
    pairs = pair_counts.twin(starts, codes, items) if draw(st.booleans()) else np.zeros((0, 0), np.int64)
    bits = tid_bits.twin(starts, codes, items)
    return bits, pairs, draw(st.integers(1, 12)), draw(st.integers(1, 6)), draw(st.sampled_from((items + 3, 10_000)))
