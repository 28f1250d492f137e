"""Which texts a level of a hierarchy shows, from its description alone: what contradicts it was not generalised so far.

Missing values and `*` may stand at every level, for a record that is not shown. What cannot be told from the description is no
contradiction.
"""

from __future__ import annotations

import math
import re
from functools import cached_property
from pathlib import Path

from sfumato.data.hierarchy import ROOT, Hierarchy
from sfumato.data.schema import Column, HierarchySpec
from sfumato.data.values import as_numbers

#: A group that bears the name of another one has its level added.
_RENAMED = " (level "
_INTERVAL = re.compile(r"\[([^,\s]{1,40}), ([^,\s]{1,40})\)")
_DATES = {
    "week": r"\d{4}-W\d{2}",
    "month": r"\d{4}-\d{2}",
    "quarter": r"\d{4}-Q[1-4]",
    "year": r"\d{4}",
    "decade": r"\d{3}0s",
    "century": r"\d{2}00–\d{2}99",
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
        spec, tree = self._spec, self._tree
        if tree is not None:  # what is not in it stands below a root, which it may have to get
            return self._level <= tree.height + (not tree.has_root or tree.height == 0)
        if spec.mask is not None:
            return not spec.width or self._level <= spec.width
        widths = spec.intervals or spec.dates or spec.frequency or ()
        return self._level <= len(widths) + 1

    @cached_property
    def _labels(self) -> set[str | None]:
        tree = self._tree
        return {tree.labels[node] for node in tree.node_of[min(self._level, tree.height)]} if tree is not None else set()

    def can_show(self, text: str) -> bool:
        """Whether a value at this level can have the text."""
        spec, tree, level = self._spec, self._tree, self._level
        if tree is not None:
            return text == ROOT or level == 0 or text not in tree.index or text in self._labels
        if spec.mask is not None:
            return text == ROOT or ROOT * level in text
        text = text.split(_RENAMED, 1)[0]
        if text == ROOT:
            return True
        if spec.intervals is not None:
            if level == 0:
                return as_numbers([text]) is not None
            return level <= len(spec.intervals) and _is_interval(text, spec.intervals[level - 1], spec.origin)
        if level == 0:
            return True
        if spec.dates is not None:
            return level <= len(spec.dates) and re.fullmatch(_DATES[spec.dates[level - 1]], text) is not None
        return spec.frequency is not None


def _is_interval(text: str, width: float, origin: float) -> bool:
    """Whether the text is an interval of that width, as many widths from the origin as there are; numbers are rounded."""
    ends = _INTERVAL.fullmatch(text)
    numbers = as_numbers([ends[1], ends[2]]) if ends is not None else None
    if numbers is None:
        return False
    low, high = ((number - origin) / width for number in numbers)
    if not math.isfinite(high - low):  # beyond what can be compared
        return True
    slack = 1e-6 + 1e-12 * max(abs(low), abs(high), abs(origin) / width)
    return math.isclose(high - low, 1.0, abs_tol=slack) and abs(low - round(low)) <= slack
