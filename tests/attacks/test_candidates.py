"""Which classes people may be in, found along a tree of prefixes: as trying each class with each person, in little memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.attacks.several.coverage import Covering
from sfumato.attacks.tables import candidates

COLUMNS = st.integers(1, 3)


@st.composite
def lookups(draw: st.DrawFn) -> tuple[list[np.ndarray], list[set[tuple[int, int]]], list[np.ndarray]]:
    columns, people, classes = draw(COLUMNS), draw(st.integers(0, 8)), draw(st.integers(1, 8))
    numbers = st.integers(0, 4)
    values = [np.array(draw(st.lists(numbers, min_size=people, max_size=people)), dtype=np.int64) for _ in range(columns)]
    shown = [np.array(draw(st.lists(numbers, min_size=classes, max_size=classes)), dtype=np.int64) for _ in range(columns)]
    return values, [draw(st.sets(st.tuples(numbers, st.integers(0, 6)), max_size=20)) for _ in range(columns)], shown


@given(lookup=lookups(), most=st.sampled_from([1, 5, candidates.MOST_PAIRS]), batch=st.sampled_from([1, 3, candidates.BATCH]))
def test_pairs_are_those_of_trying_every_class_with_every_person(
    lookup: tuple[list[np.ndarray], list[set[tuple[int, int]]], list[np.ndarray]], most: int, batch: int
) -> None:
    values, covers, shown = lookup
    coverings = [
        Covering.from_pairs(np.array([v for v, _ in pairs], dtype=np.int64), np.array([t for _, t in pairs], dtype=np.int64), 5)
        for pairs in covers
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "MOST_PAIRS", most)
        patch.setattr(candidates, "BATCH", batch)
        batches = list(candidates.matching(values, coverings, shown))
    pairs = [pair for person, klass in batches for pair in zip(person.tolist(), klass.tolist(), strict=True)]
    assert all(one <= other for (one, _), (other, _) in pairwise(pairs))
    assert sorted(pairs) == [
        (person, klass)
        for person in range(values[0].size)
        for klass in range(shown[0].size)
        if all((value[person], text[klass]) in pairs for value, text, pairs in zip(values, shown, covers, strict=True))
    ]


def test_no_step_looks_at_more_pairs_than_it_may_where_every_value_lies_in_many_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a partition: each value lies in hundreds of them, and following those took 17 GB for 50,000 people."""
    people, ranges, most = 2_000, 300, 50_000
    covering = Covering.from_pairs(np.repeat(np.arange(10), ranges), np.tile(np.arange(ranges), 10), 10)
    values = [np.arange(people, dtype=np.int64) % 10] * 3
    shown = [np.arange(ranges, dtype=np.int64)] * 3  # one class for each range
    monkeypatch.setattr(candidates, "MOST_PAIRS", most)
    sizes: list[int] = []
    taken = candidates._Step.taken

    def watched(step: candidates._Step, value: np.ndarray, person: np.ndarray, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(step.size(value, node))
        return taken(step, value, person, node)

    monkeypatch.setattr(candidates._Step, "taken", watched)
    assert sum(person.size for person, _ in candidates.matching(values, [covering] * 3, shown)) == people * ranges
    assert max(sizes) <= most
