"""Texts as keywords: which unit has which, each unit's own kept apart.

A keyword is a word of the text, an item of a set, or the whole text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.data.texts.values import texts
from sfumato.dp.algorithms.contributions import Bounding, keep_per_unit, random_keys
from sfumato.dp.algorithms.declared_values import Codes, distinct_values

Split = Literal["value", "words"]


@dataclass(frozen=True)
class Mentions:
    """One entry per keyword that a row mentions: `unit[i]` mentions `keywords[code[i]]`, at the `place` by time and text."""

    keywords: tuple[str, ...]
    code: Codes
    unit: Codes
    place: Codes

    def distinct(self) -> Mentions:
        """Each keyword of a unit once, where it is mentioned first."""
        order = np.lexsort([self.place, self.code, self.unit])
        unit, code = self.unit[order], self.code[order]
        first = np.ones(order.size, dtype=np.bool_)
        first[1:] = (unit[1:] != unit[:-1]) | (code[1:] != code[:-1])
        return self._at(np.sort(order[first]))

    def bounded(self, limit: int, method: Bounding, randomness: Randomness) -> Mentions:
        """At most that many mentions of each unit: random ones, or the first."""
        key: NDArray[np.generic] = random_keys(self.code.size, randomness) if method == "sample" else self.place
        return self._at(keep_per_unit(self.unit, limit, key))

    def counts(self) -> NDArray[np.int64]:
        """How often each keyword is mentioned."""
        return np.bincount(self.code, minlength=len(self.keywords)).astype(np.int64)

    def _at(self, kept: Codes) -> Mentions:
        return Mentions(self.keywords, self.code[kept], self.unit[kept], self.place[kept])


def mentions(
    column: pa.ChunkedArray,
    units: Codes,
    order: Codes | None,
    split: Split | None,
    separator: str | None,
    domain: tuple[str, ...] | None,
) -> Mentions:
    """The keywords of all rows that have a unit; with a domain, only those in it.

    `order` gives each row its rank in time, else rows count in their order. Different texts are split once.
    """
    values, text_of_row = distinct_values(column)
    place: dict[str, int] = {word: code for code, word in enumerate(domain or ())}
    parts: list[list[int]] = []
    for text in texts(values):
        words = _words(text, split, separator)
        if domain is None:
            parts.append([place.setdefault(word, len(place)) for word in words])
        else:
            parts.append([place[word] for word in words if word in place])
    lengths = np.array([len(part) for part in parts] + [0], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    flat = np.array([code for part in parts for code in part], dtype=np.int64)
    # A code of -1, a missing text, takes the last length, which is 0.
    rows = np.flatnonzero(units >= 0)
    count = lengths[text_of_row[rows]]
    row = np.repeat(rows, count)
    within = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    code = flat[starts[text_of_row[row]] + within]
    rank = order[row] if order is not None else row
    # By time, then by place in the text, then by the keyword itself: neither storage nor anybody else's keywords decide.
    by_text = np.empty(len(place), dtype=np.int64)
    by_text[sorted(range(len(place)), key=list(place).__getitem__)] = np.arange(len(place))
    last = by_text[code]
    position = np.empty(row.size, dtype=np.int64)
    position[np.lexsort([last, within, rank])] = np.arange(row.size)
    return Mentions(tuple(place), code, units[row], position)


def _words(text: str | None, split: Split | None, separator: str | None) -> list[str]:
    if text is None:
        return []
    if separator is not None:
        return [item.strip() for item in text.split(separator) if item.strip()]
    return text.split() if split == "words" else [text.strip()] if text.strip() else []
