"""Sparse ratings: which record has which item, with a rating and a date where there are any; and what is known of people.

Entries lie sorted by item, so that all holders of an item are one slice: a target with a few known items touches those
slices only, whatever the number of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from sfumato.attacks.outputs.numeric_input import Real
from sfumato.attacks.tables.classes import Ids
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError
from sfumato.core.ranges import Whole


@dataclass(frozen=True, eq=False)
class Ratings(Declared):
    """A release of sparse records: entry e says that record `record[e]` has item `item[e]`, rated `rating[e]` on day
    `date[e]` (None: not published; NaN: this one is not). Records and items are numbered from 0; `records` counts those
    without any entry too. An item counts once per record: of several entries the last is kept. `support`, per item, is
    how many records have it, where these entries are only a part of the release; by default it is counted."""

    record: Annotated[Any, "the record of each entry"] = field(repr=False)
    item: Annotated[Any, "the item of each entry"] = field(repr=False)
    rating: Annotated[Any, "the rating of each entry, NaN where it is missing"] = field(default=None, repr=False)
    date: Annotated[Any, "the day of each entry, NaN where it is missing"] = field(default=None, repr=False)
    records: Annotated[int, Whole(at_least=0), "how many records there are, at the least"] = 0
    support: Annotated[Any, "how many records have each item; counted where left out"] = field(default=None, repr=False)
    _starts: Ids = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        record, item = _numbered(self.record, "record"), _numbered(self.item, "item")
        if record.size != item.size:
            raise InputError("Ratings: each entry needs a record and an item")
        measured = [_measured(values, name, record.size) for values, name in ((self.rating, "rating"), (self.date, "date"))]
        order = _last_of_each(item, record)
        sorted_items = item[order]
        items = int(sorted_items[-1]) + 1 if sorted_items.size else 0
        support = None if self.support is None else _numbered(self.support, "support")
        if support is not None and support.size < items:
            raise InputError(f"Ratings: the support of {items:,} items is needed, {support.size:,} are given")
        set_ = object.__setattr__  # the constructor of a frozen value stores what it has sorted
        set_(self, "record", record[order])
        set_(self, "item", sorted_items)
        set_(self, "rating", None if measured[0] is None else measured[0][order])
        set_(self, "date", None if measured[1] is None else measured[1][order])
        set_(self, "records", max(self.records, int(record.max()) + 1 if record.size else 0))
        set_(self, "support", support)
        set_(self, "_starts", np.searchsorted(sorted_items, np.arange(items + 1)).astype(np.int64))
        if not self.records:
            raise InputError("Ratings: there is no record to attack")

    def holding(self, item: int) -> tuple[Ids, Real | None, Real | None]:
        """The records that have an item, and their ratings and dates."""
        inside = 0 <= item < self._starts.size - 1
        part = slice(int(self._starts[item]), int(self._starts[item + 1])) if inside else slice(0, 0)
        rating = None if self.rating is None else self.rating[part]
        date = None if self.date is None else self.date[part]
        return self.record[part], rating, date

    def support_of(self, item: int) -> int:
        """How many records have an item."""
        if self.support is not None:
            return int(self.support[item]) if 0 <= item < self.support.size else 0
        return int(self._starts[item + 1] - self._starts[item]) if 0 <= item < self._starts.size - 1 else 0


@dataclass(frozen=True, eq=False)
class KnownItems(Declared):
    """What the adversary knows of people: entry e says that target `target[e]` has item `item[e]`, rated about `rating[e]`
    about day `date[e]` (None or NaN: not known). Targets are numbered from 0. `truth`, the record of each target in the
    release or -1 for none, is not the adversary's: it scores the attack."""

    target: Annotated[Any, "the target of each entry"] = field(repr=False)
    item: Annotated[Any, "the item of each entry"] = field(repr=False)
    rating: Annotated[Any, "the rating of each entry, NaN where it is missing"] = field(default=None, repr=False)
    date: Annotated[Any, "the day of each entry, NaN where it is missing"] = field(default=None, repr=False)
    truth: Annotated[Any, "the record of each target, -1 for none, to score the attack"] = field(default=None, repr=False)
    _starts: Ids = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        target, item = _numbered(self.target, "target"), _numbered(self.item, "item")
        if target.size != item.size or not target.size:
            raise InputError("KnownItems: each entry needs a target and an item, and there must be one")
        measured = [_measured(values, name, target.size) for values, name in ((self.rating, "rating"), (self.date, "date"))]
        order = _last_of_each(target, item)
        truth = None if self.truth is None else _numbered(self.truth, "truth", lowest=-1)
        targets = int(target.max()) + 1
        if truth is not None and truth.size < targets:
            raise InputError(f"KnownItems: the truth of {targets:,} targets is needed, {truth.size:,} are given")
        set_ = object.__setattr__
        set_(self, "target", target[order])
        set_(self, "item", item[order])
        set_(self, "rating", np.full(order.size, np.nan) if measured[0] is None else measured[0][order])
        set_(self, "date", np.full(order.size, np.nan) if measured[1] is None else measured[1][order])
        set_(self, "truth", truth)
        count = targets if truth is None else truth.size
        set_(self, "_starts", np.searchsorted(target[order], np.arange(count + 1)).astype(np.int64))

    @property
    def size(self) -> int:
        """How many items are known in all."""
        return int(self.item.size)

    def of(self, target: int) -> Iterator[tuple[int, float, float]]:
        """The known items of a target, each with its rating and day, NaN where these are not known."""
        if not 0 <= target < self._starts.size - 1:
            raise InputError("KnownItems: there is no target of that number")
        part = slice(int(self._starts[target]), int(self._starts[target + 1]))
        return zip(self.item[part].tolist(), self.rating[part].tolist(), self.date[part].tolist(), strict=True)


def _last_of_each(first: Ids, second: Ids) -> Ids:
    """The entries in order of both numbers, of equal ones only the last."""
    order = np.lexsort((second, first))
    kept = np.ones(order.size, dtype=np.bool_)
    kept[:-1] = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    return order[kept].astype(np.int64)


def _numbered(entries: Any, what: str, lowest: int = 0) -> Ids:
    try:
        numbers = np.asarray(entries)
    except ValueError:  # the reason would repeat what was given
        raise InputError(f"{what}: a sequence of whole numbers is needed") from None
    if numbers.ndim != 1 or (numbers.size and not np.issubdtype(numbers.dtype, np.integer)):
        raise InputError(f"{what}: a sequence of whole numbers is needed")
    if numbers.size and int(numbers.min()) < lowest:
        raise InputError(f"{what}: numbers start at {lowest}")
    return numbers.astype(np.int64)


def _measured(entries: Any, what: str, size: int) -> Real | None:
    if entries is None:
        return None
    try:
        numbers = np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):  # the reason would repeat a value
        raise InputError(f"{what}: numbers are needed (days as numbers too), NaN where one is missing") from None
    if numbers.shape != (size,) or np.isinf(numbers).any():
        raise InputError(f"{what}: a finite number, or NaN, is needed for each of the {size:,} entries")
    return numbers
