"""Which classes of a release a person may be in, given the raw values an adversary knows.

Classes are arranged as a tree of prefixes, one quasi-identifier per depth; people descend it along the texts
that cover their values. With one level per attribute everybody follows a single path, so a million people
cost about as much as a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.several.coverage import Covering, covering
from sfumato.attacks.tables.classes import Ids, ReleasedClasses
from sfumato.attacks.tables.meaning import meanings
from sfumato.core.errors import InputError

#: People who descend together; bounds the memory of a step.
BATCH = 65_536


def matching(values: Sequence[Ids], coverings: Sequence[Covering], shown: Sequence[Ids]) -> Iterator[tuple[Ids, Ids]]:
    """Batches of pairs (person, class) that agree in every column, ordered by person.

    `values[a][p]` is person p's value in column a, `coverings[a]` says which texts cover it, `shown[a][c]` is
    the text of class c.
    """
    people = values[0].size if values else 0
    prefixes, last = _prefix_tree(shown)
    order = np.argsort(last, kind="stable")
    begin = np.searchsorted(last[order], np.arange(int(last.max()) + 2 if last.size else 1))
    for start in range(0, people, BATCH):
        person = np.arange(start, min(start + BATCH, people), dtype=np.int64)
        node = np.zeros(person.size, dtype=np.int64)
        for column, (keys, width) in enumerate(prefixes):
            person, label, node = _expand(coverings[column], values[column], person, node)
            key = node * width + label
            place = np.minimum(np.searchsorted(keys, key), max(keys.size - 1, 0))
            match = (keys[place] == key) & (label < width) if keys.size else np.zeros(key.size, dtype=np.bool_)
            person, node = person[match], place[match]
        counts = begin[node + 1] - begin[node]
        yield np.repeat(person, counts), order[_runs(begin[node], counts)]


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


def _expand(texts: Covering, values: Ids, person: Ids, node: Ids) -> tuple[Ids, Ids, Ids]:
    """One entry per person and text that covers the person's value."""
    begin = texts.offsets[values[person]]
    counts = texts.offsets[values[person] + 1] - begin
    return np.repeat(person, counts), texts.labels[_runs(begin, counts)], np.repeat(node, counts)


def _runs(begin: NDArray[np.int64], counts: NDArray[np.int64]) -> Ids:
    """begin[0], begin[0] + 1, … (counts[0] of them), then begin[1], …"""
    total = int(counts.sum())
    skipped = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(begin, counts) + np.arange(total, dtype=np.int64) - skipped
