"""Which raw values a released text may stand for, and which released texts may stand for the same raw value.

A text is a hierarchy node (its leaves), a range made by partitioning (its bounds), the root `*` (everything),
or itself. Answers are sparse: for each value the texts that cover it, as offsets into one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.tables.classes import Ids
from sfumato.attacks.tables.meaning import TextMeaning
from sfumato.data.texts.values import as_numbers


@dataclass(frozen=True, eq=False)
class Covering:
    """For value v the texts `labels[offsets[v]:offsets[v + 1]]` may stand for it."""

    offsets: Ids = field(repr=False)
    labels: Ids = field(repr=False)

    @classmethod
    def from_pairs(cls, value: Ids, label: Ids, values: int) -> Covering:
        """From pairs in any order, repeated ones counted once."""
        width = int(label.max()) + 1 if label.size else 1
        pairs = np.unique(value * width + label)
        counts = np.bincount(pairs // width, minlength=values)
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), pairs % width)


def covering(stand_for: Sequence[TextMeaning], values: Sequence[str | None]) -> Covering:
    """For each raw value the texts that cover it."""
    index = {value: i for i, value in enumerate(values)}
    numbers = _numbers(values)
    covered: list[tuple[Ids, int]] = []
    for label, meaning in enumerate(stand_for):
        covered.append((_covered(meaning, index, numbers), label))
    return _pairs(covered, len(values))


def overlapping(first: Sequence[TextMeaning], second: Sequence[TextMeaning]) -> Covering:
    """For each text of the first release the texts of the second that may stand for the same raw value."""
    universe: dict[str | None, None] = {}
    for meaning in (*first, *second):
        universe.update(dict.fromkeys(meaning.leaves))
    values = list(universe)
    below = covering(second, values)
    index = {value: i for i, value in enumerate(values)}
    numbers = _numbers(values)
    everything = np.array([i for i, meaning in enumerate(second) if meaning.everything], dtype=np.int64)
    covered: list[tuple[Ids, int]] = []
    for label, meaning in enumerate(first):
        if meaning.everything:
            matched = np.arange(len(second), dtype=np.int64)
        else:
            leaves = _covered(meaning, index, numbers)
            parts = [below.labels[below.offsets[leaf] : below.offsets[leaf + 1]] for leaf in leaves.tolist()]
            parts.append(everything)
            parts.append(np.array(_meeting(meaning, second), dtype=np.int64))
            matched = np.unique(np.concatenate(parts))
        covered.append((matched, label))
    swapped = [(np.full(matched.size, label, dtype=np.int64), matched) for matched, label in covered]
    first_ids = np.concatenate([pair[0] for pair in swapped]) if swapped else np.zeros(0, dtype=np.int64)
    second_ids = np.concatenate([pair[1] for pair in swapped]) if swapped else np.zeros(0, dtype=np.int64)
    return Covering.from_pairs(first_ids, second_ids, len(first))


def containing(first: Sequence[TextMeaning], second: Sequence[TextMeaning]) -> Covering:
    """For each text of the first release the texts of the second that stand for everything it stands for."""
    values = list(dict.fromkeys(leaf for meaning in (*first, *second) for leaf in meaning.leaves))
    index = {value: i for i, value in enumerate(values)}
    numbers = _numbers(values)
    wide = [set(_covered(meaning, index, numbers).tolist()) for meaning in second]
    pairs = [
        (one, other)
        for one, meaning in enumerate(first)
        for other, around in enumerate(second)
        if _contains(around, wide[other], meaning, {index[leaf] for leaf in meaning.leaves})
    ]
    contained = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Covering.from_pairs(contained[:, 0], contained[:, 1], len(first))


def _contains(around: TextMeaning, covered: set[int], inner: TextMeaning, leaves: set[int]) -> bool:
    if around.everything or inner.everything:
        return around.everything
    if inner.bounds is not None:
        return around.bounds is not None and around.bounds[0] <= inner.bounds[0] and inner.bounds[1] <= around.bounds[1]
    return leaves <= covered


def _numbers(values: Sequence[str | None]) -> NDArray[np.float64]:
    """Each value as a number, NaN where it is none."""
    whole = as_numbers(values)
    if whole is not None:
        return np.array(whole)
    return np.array([(as_numbers([value]) or [float("nan")])[0] for value in values])


def _covered(meaning: TextMeaning, index: dict[str | None, int], numbers: NDArray[np.float64]) -> Ids:
    if meaning.everything:
        return np.arange(len(index), dtype=np.int64)
    if meaning.bounds is not None:
        low, high = meaning.bounds
        return np.flatnonzero((numbers >= low) & (numbers < high)).astype(np.int64)
    places = {index[leaf] for leaf in meaning.leaves if leaf in index}
    if meaning.mask is not None:
        places |= {place for value, place in index.items() if meaning.fits(value)}
    return np.array(sorted(places), dtype=np.int64)


def _meeting(meaning: TextMeaning, others: Sequence[TextMeaning]) -> list[int]:
    """Ranges and masks that meet without a listed value; a range and a mask are taken to meet."""
    if meaning.bounds is None and meaning.mask is None:
        return []
    return [i for i, other in enumerate(others) if _meet(meaning, other)]


def _meet(one: TextMeaning, other: TextMeaning) -> bool:
    if one.bounds is not None and other.bounds is not None:
        return one.bounds[0] < other.bounds[1] and other.bounds[0] < one.bounds[1]
    if one.mask is not None and other.mask is not None:
        return one.may_share_a_text(other)
    kinds = (
        one.bounds is not None or other.bounds is not None,
        one.mask is not None or other.mask is not None,
    )
    return all(kinds)


def _pairs(covered: Iterable[tuple[Ids, int]], values: int) -> Covering:
    kept = list(covered)
    value = np.concatenate([ids for ids, _ in kept]) if kept else np.zeros(0, dtype=np.int64)
    label = np.concatenate([np.full(ids.size, name, dtype=np.int64) for ids, name in kept]) if kept else value
    return Covering.from_pairs(value, label, values)
