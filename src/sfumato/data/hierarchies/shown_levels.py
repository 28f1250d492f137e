"""Which texts a level of a hierarchy shows, from its description alone: what contradicts it was not generalised so far.

Missing values and `*` may stand at every level, for a record that is not shown. What cannot be told from the description is no
contradiction.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.hierarchy_builders import cut_interval
from sfumato.data.schema import Column, HierarchySpec
from sfumato.data.texts.values import as_numbers, text_of

#: More than any hierarchy has: a value that is masked has a level for each of its characters.
MOST_LEVELS = 1_000_000
#: Between the ends of a range of values that are no numbers.
TO = " … "
#: A group that bears the name of another one has its level added, a few times where that is a name too.
RENAMED = re.compile(r"(?P<text>.*?)(?P<added> \(level (?P<level>[1-9][0-9]{0,4})\))(?P=added){0,7}", re.DOTALL)
_RANKS = re.compile(r"rank ([1-9][0-9]{0,17})–([1-9][0-9]{0,17})")
_INTERVAL = re.compile(r"\[([^,\s]{1,40}), ([^,\s]{1,40})\)")
_DATES = {
    "week": r"\d{1,4}-W(0[1-9]|[1-4]\d|5[0-3])",  # earlier versions did not pad the year
    "month": r"\d{4}-(0[1-9]|1[0-2])",
    "quarter": r"\d{4}-Q[1-4]",
    "year": r"\d{4}",
    "decade": r"\d{3}0s",
    "century": r"(?P<hundreds>\d{2})00–(?P=hundreds)99",
}


class ShownLevel:
    """A level of a column's hierarchy. `folder` is where the file of a tree is looked up.

    >>> ages = Column(hierarchy=HierarchySpec(intervals=(5, 10)))
    >>> [ShownLevel(ages, 1).can_show(text) for text in ("[20, 25)", "[20, 30)", "*")]
    [True, False, True]
    >>> ShownLevel(ages, 4).exists
    False
    """

    def __init__(self, column: Column, level: int, folder: str | Path | None = None) -> None:
        # whole sets are shown or not; what a schema describes are single items
        spec = column.hierarchy if column.items is None else None
        self._spec, self._level = spec or HierarchySpec(flat=True), level
        self._tree = None
        if self._spec.file is not None:
            self._tree = Hierarchy.load(Path(folder or "") / self._spec.file, separator=self._spec.separator, verbatim=True)

    @property
    def exists(self) -> bool:
        """Whether the hierarchy is as high; where nobody can tell, it may be."""
        return self._level <= self._height

    @property
    def _height(self) -> float:
        """The highest level that there can be; without a width a mask is as high as a value is long."""
        spec, tree = self._spec, self._tree
        if tree is not None:  # what is not in it stands below a root, which it may have to get
            return tree.height + (not tree.has_root or tree.height == 0)
        if spec.mask is not None:
            return spec.width or math.inf
        return len(spec.intervals or spec.cut_levels or spec.dates or spec.frequency or ()) + 1

    @cached_property
    def _labels(self) -> set[str | None]:
        """The groups of the level of a tree."""
        tree = self._tree
        return {tree.labels[node] for node in tree.node_of[self._level : self._level + 1].flat} if tree is not None else set()

    @cached_property
    def _finer(self) -> set[str | None]:
        """The values and groups of a tree that belong to a group of this level."""
        tree = self._tree
        below = {tree.labels[node] for node in tree.node_of[: self._level].flat} if tree is not None else set()
        return below - self._labels

    @cached_property
    def _between_cuts(self) -> set[str]:
        """The texts of all intervals between the cuts of the level."""
        levels = self._spec.cut_levels[self._level - 1 : self._level]
        return {cut_interval(number, cuts) for cuts in levels for number in (-math.inf, *cuts)}

    def can_show(self, text: str) -> bool:
        """Whether a value at this level can have the text."""
        spec, level = self._spec, self._level
        if self._tree is not None:
            return self._tree_shows(text)
        if level == 0:
            if spec.kind == "dates":
                return text == ROOT or is_day(text)
            return text == ROOT or spec.kind not in ("intervals", "cuts") or as_numbers([text]) is not None
        if (renamed := RENAMED.fullmatch(text)) is not None and int(renamed["level"]) <= self._height:
            # a group has the lowest of its levels added, and all values are the root's
            if renamed["text"] == ROOT or int(renamed["level"]) <= level:
                text = renamed["text"]
        if text == ROOT:
            return True
        if spec.mask is not None:
            fits = text.endswith(ROOT * level) if spec.mask == "right" else text.startswith(ROOT * level)
            return fits and (not spec.width or len(text) <= spec.width)
        if spec.intervals is not None:
            return level <= len(spec.intervals) and _is_interval(text, spec.intervals[level - 1], spec.origin)
        if spec.cuts is not None:
            return text in self._between_cuts
        if spec.dates is not None:
            return level <= len(spec.dates) and re.fullmatch(_DATES[spec.dates[level - 1]], text, re.ASCII) is not None
        return spec.frequency is not None and level <= len(spec.frequency) and _are_ranks(text)

    def can_show_all(self, texts: Collection[str]) -> bool:
        """Whether a column at this level can have these texts and no others: not all of them are finer groups."""
        finer = self._finer & set(texts)
        hidden = bool(texts) and set(texts) == {ROOT} and not self._may_be_root
        return all(map(self.can_show, texts)) and not hidden and not (finer and finer == set(texts) - {ROOT})

    @property
    def _may_be_root(self) -> bool:
        """Whether all values may be the root's at this level; nobody can tell from the description of masks and of sizes."""
        if self._tree is not None:
            return ROOT in self._labels
        return self._spec.mask is not None or self._spec.frequency is not None or self._level >= self._height

    def _tree_shows(self, text: str) -> bool:
        """A value that is in no group is shown as it is, even if it bears the name of one, unless all values are shown alike."""
        if text == ROOT or self._level == 0 or self._tree is None:
            return True
        renamed = RENAMED.fullmatch(text)
        group = None if renamed is None else renamed["text"]
        if self._level < self._height:
            return group not in self._finer and (text not in self._tree.index or text in self._labels)
        return bool({text, group} & {ROOT, *self._labels})


def is_day(text: str) -> bool:
    """Whether the text begins with a date, as a value that has a calendar does, and is no range of two.

    >>> is_day("1950-05-31"), is_day("1950-05-31T10:00:00"), is_day("1950s"), is_day("1950-05-31 … 1962-12-31")
    (True, True, False, False)
    """
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return False
    return TO not in text


def _are_ranks(text: str) -> bool:
    """Whether the text names a group of so many values, counted from the most frequent one."""
    ends = _RANKS.fullmatch(text)
    first, last = map(int, ends.groups()) if ends is not None else (1, 0)
    return first <= last and (first - 1) % (last - first + 1) == 0


def _is_interval(text: str, width: float, origin: float) -> bool:
    """Whether the text is an interval of that width, a whole number of widths from the origin; an end is the exact one as far as
    its last digit tells."""
    ends = _INTERVAL.fullmatch(text)
    numbers = as_numbers(ends.groups()) if ends is not None else None
    if ends is None or numbers is None or tuple(map(text_of, numbers)) != ends.groups():
        return False
    start, step = Fraction(repr(origin)), Fraction(repr(width))
    fewest, most = [], []
    for place, number in enumerate(numbers):
        exact, digit = Fraction(number), Fraction(math.ulp(number))
        fewest.append((exact - digit - start) / step - place)
        most.append((exact + digit - start) / step - place)
    return math.ceil(max(fewest)) <= math.floor(min(most))
