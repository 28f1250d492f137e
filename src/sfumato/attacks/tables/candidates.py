"""Which classes of a release a person may be in, given the raw values an adversary knows.

Classes are arranged as a tree of prefixes, one quasi-identifier per depth; people descend it along the texts
that cover their values, or along the children of where they are, whichever are fewer. With one level per attribute everybody
follows a single path, so a million people cost about as much as a join; where a value lies in many ranges (every cut of a
partition makes others) the few children of a prefix bound the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.several.coverage import Covering, covering
from sfumato.attacks.tables.classes import Ids, ReleasedClasses
from sfumato.attacks.tables.meaning import meanings
from sfumato.core.errors import InputError

#: People who descend together, and pairs of a person and a prefix that a step may look at; more people than that would need
#: descend in halves. Both bound the memory of a step.
BATCH = 65_536
MOST_PAIRS = 8_000_000


def matching(values: Sequence[Ids], coverings: Sequence[Covering], shown: Sequence[Ids]) -> Iterator[tuple[Ids, Ids]]:
    """Batches of pairs (person, class) that agree in every column, ordered by person.

    `values[a][p]` is person p's value in column a, `coverings[a]` says which texts cover it, `shown[a][c]` is
    the text of class c.
    """
    people = values[0].size if values else 0
    prefixes, last = _prefix_tree(shown)
    order = np.argsort(last, kind="stable")
    begin = np.searchsorted(last[order], np.arange(int(last.max()) + 2 if last.size else 1))
    steps = [_Step.of(keys, width, texts) for (keys, width), texts in zip(prefixes, coverings, strict=True)]
    waiting = [(start, min(start + BATCH, people)) for start in range(0, people, BATCH)][::-1]
    while waiting:
        start, stop = waiting.pop()
        person = np.arange(start, stop, dtype=np.int64)
        node = np.zeros(person.size, dtype=np.int64)
        for step, column in zip(steps, values, strict=True):
            if stop - start > 1 and step.size(column[person], node) > MOST_PAIRS:
                waiting += [((start + stop) // 2, stop), (start, (start + stop) // 2)]
                break
            person, node = step.taken(column[person], person, node)
        else:
            counts = begin[node + 1] - begin[node]
            yield np.repeat(person, counts), order[_runs(begin[node], counts)]


@dataclass(frozen=True, eq=False)
class _Step:
    """From the prefixes of one depth to those of the next: `keys` are `parent * width + label`, sorted, and `pairs` are
    `value * width + label` of the labels that stand for a value, sorted too."""

    keys: Ids = field(repr=False)
    width: int
    pairs: Ids = field(repr=False)
    offsets: Ids = field(repr=False)

    @classmethod
    def of(cls, keys: Ids, width: int, texts: Covering) -> _Step:
        """Texts that no class shows are left out."""
        value = np.repeat(np.arange(texts.offsets.size - 1, dtype=np.int64), np.diff(texts.offsets))
        occurs = texts.labels < width
        pairs = value[occurs] * width + texts.labels[occurs]
        offsets = np.searchsorted(pairs, np.arange(texts.offsets.size, dtype=np.int64) * width)
        return cls(keys, width, pairs, offsets)

    def size(self, value: Ids, node: Ids) -> int:
        """How many pairs the step looks at."""
        return int(np.minimum(self._texts(value), self._children(node)[1]).sum())

    def taken(self, value: Ids, person: Ids, node: Ids) -> tuple[Ids, Ids]:
        """Who gets where, ordered by person."""
        texts, (first, children) = self._texts(value), self._children(node)
        by_text = texts <= children
        some, others = np.flatnonzero(by_text), np.flatnonzero(~by_text)
        pair = _runs(self.offsets[value[some]], texts[some])
        one = _kept(
            np.repeat(some, texts[some]),
            np.repeat(node[some], texts[some]) * self.width + self.pairs[pair] % self.width,
            self.keys,
        )
        child = _runs(first[others], children[others])
        who = np.repeat(others, children[others])
        fits = _found(value[who] * self.width + self.keys[child] % self.width, self.pairs)[1]
        who, place = np.concatenate([one[0], who[fits]]), np.concatenate([one[1], child[fits]])
        if some.size and others.size:
            in_order = np.argsort(who, kind="stable")
            who, place = who[in_order], place[in_order]
        return person[who], place

    def _texts(self, value: Ids) -> Ids:
        counts: Ids = self.offsets[value + 1] - self.offsets[value]
        return counts

    def _children(self, node: Ids) -> tuple[Ids, Ids]:
        first = np.searchsorted(self.keys, node * self.width)
        return first, np.searchsorted(self.keys, (node + 1) * self.width) - first


def known_columns(classes: ReleasedClasses, names: Sequence[str]) -> list[int]:
    """The positions of the quasi-identifiers that the adversary knows."""
    return [position for position, name in enumerate(classes.quasi) if name in names]


def target_classes(classes: ReleasedClasses, target: Mapping[str, str | None]) -> Ids:
    """The classes a single person may be in."""
    columns = known_columns(classes, list(target))
    unknown = sorted(set(target) - {classes.quasi[column] for column in columns})
    if unknown or not columns:
        raise InputError(
            f"a target is described by quasi-identifiers of the release: {', '.join(classes.quasi) or 'none'}"
            + (f"; not by {', '.join(unknown)}" if unknown else "")
        )
    coverings = [covering(meanings(classes, column), [target[classes.quasi[column]]]) for column in columns]
    here = np.zeros(1, dtype=np.int64)
    pairs = matching([here] * len(columns), coverings, [classes.shown[column] for column in columns])
    return np.unique(np.concatenate([matched for _, matched in pairs]))


def _prefix_tree(shown: Sequence[Ids]) -> tuple[list[tuple[Ids, int]], Ids]:
    """Per depth the sorted keys `parent * width + label` and the width; and the last node of every class."""
    node = np.zeros(shown[0].size if shown else 0, dtype=np.int64)
    levels: list[tuple[Ids, int]] = []
    for labels in shown:
        width = int(labels.max()) + 1 if labels.size else 1
        keys, inverse = np.unique(node * width + labels, return_inverse=True)
        levels.append((keys, width))
        node = inverse.reshape(-1).astype(np.int64)
    return levels, node


def _found(keys: Ids, among: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """Where each key stands among sorted ones, and whether it does."""
    if not among.size:
        return np.zeros(keys.size, dtype=np.int64), np.zeros(keys.size, dtype=np.bool_)
    place = np.minimum(np.searchsorted(among, keys), among.size - 1)
    return place, among[place] == keys


def _kept(who: Ids, keys: Ids, among: Ids) -> tuple[Ids, Ids]:
    place, match = _found(keys, among)
    return who[match], place[match]


def _runs(begin: NDArray[np.int64], counts: NDArray[np.int64]) -> Ids:
    """begin[0], begin[0] + 1, … (counts[0] of them), then begin[1], …"""
    total = int(counts.sum())
    skipped = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(begin, counts) + np.arange(total, dtype=np.int64) - skipped
