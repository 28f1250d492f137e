"""Which texts a column can show, whatever the level: values of its type, nodes of its tree, or ranges of its values.

A search without one level for a column may show any of its levels. What cannot be told from the description is no contradiction.
"""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_left
from decimal import Decimal
from functools import cached_property
from pathlib import Path

from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.hierarchies.shown_levels import RENAMED, TO, ShownLevel, is_day
from sfumato.data.schema import Column, HierarchySpec
from sfumato.data.texts.values import as_numbers

_WHOLE = r"-?[0-9]{1,400}"
_NUMBER = rf"{_WHOLE}(?:\.[0-9]{{1,400}})?(?:[eE][+-]?[0-9]{{1,5}})?"
_HALF_OPEN = re.compile(rf"\[({_WHOLE}), ({_WHOLE})\)")
_CLOSED = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]")
_INTERVAL = re.compile(rf"\[({_NUMBER}|-inf), ({_NUMBER}|inf)\)")
_NUMBERS = ("number", "float", "halffloat", "float16")


def _is_moment(text: str) -> bool:
    """Whether a text is a day, or a day and a time, and nothing else."""
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*", text) is not None


class ShownTexts:
    """What a column can show whose values were `written` as this type. `folder` is where the file of a tree is looked up.

    >>> born = ShownTexts(Column(hierarchy=HierarchySpec(dates=("year", "decade"))), "date")
    >>> [born.is_node("dates", text) for text in ("1950-05-31", "1950s", "1950-05", "1950-05-31 … 1962-12-31")]
    [True, True, False, False]
    >>> [born.is_range(text) for text in ("1950-05-31 … 1962-12-31", "1962-12-31 … 1950-05-31", "1950s")]
    [True, False, False]
    >>> moment = ShownTexts(Column(hierarchy=HierarchySpec(dates=("year",))), "datetime")
    >>> [moment.is_node("dates", text) for text in ("1950-01-01T10:00:00", "1950-01-01 and a name")]
    [True, False]
    """

    def __init__(self, column: Column, written: str | None, folder: str | Path | None = None) -> None:
        self._column, self._spec = column, column.hierarchy
        self._written, self._folder = written or "", folder
        self._shown: dict[int, ShownLevel] = {}

    @property
    def _numeric(self) -> bool:
        return self._written in ("integer", *_NUMBERS) or self._written.startswith("decimal")

    def is_value(self, text: str) -> bool:
        """Whether a value of the column can have the text; a column of texts may hold any."""
        if self._numeric:
            form = _WHOLE if self._written == "integer" else rf"{_NUMBER}|-?inf"
            if re.fullmatch(form, text) is None:
                return False
        if self._written == "date" and (len(text) != len("2020-01-01") or not is_day(text)):
            return False
        if self._spec is not None and self._spec.dates is not None and not _is_moment(text):
            return False
        return self._spec is None or self._spec.file is not None or self._level(0).can_show(text)

    def is_range(self, text: str) -> bool:
        """Whether the text is a range as searches make them: of two different values, the lower one first."""
        if (ends := _HALF_OPEN.fullmatch(text)) is not None:
            low, high = ends[1], str(int(ends[2]) - 1)
            grows = int(low) < int(high)  # a single whole number is shown as it is
        elif (ends := _CLOSED.fullmatch(text)) is not None and self._written != "integer":
            low, high = ends.groups()
            grows = Decimal(low) < Decimal(high)
        else:
            low, to, high = text.partition(TO)
            in_order = self._spec is None or self._spec.dates is None or low < high  # other orders are not published
            grows = bool(to) and low != high and in_order
        return grows and self.is_value(low) and self.is_value(high)

    def is_node(self, kind: str, text: str) -> bool:
        """Whether some level of the tree can show the text; `kind` is that of a tree that nobody describes."""
        if text == ROOT:
            return True
        if self._spec is not None and self._spec.file is not None:
            return self._in_file(text)
        if self.is_value(text):
            return True
        if self._spec is not None:
            return any(level.can_show(text) for level in self._levels(text))
        renamed = RENAMED.fullmatch(text)
        text = text if renamed is None else renamed["text"]
        if kind in ("intervals", "cuts"):
            ends = _INTERVAL.fullmatch(text)
            return ends is not None and Decimal(ends[1]) < Decimal(ends[2])
        if kind == "mask":
            return text.startswith(ROOT) or text.endswith(ROOT)
        ranks = HierarchySpec(frequency=(1,))
        return kind == "frequency" and ShownLevel(Column(hierarchy=ranks), 1).can_show(text)

    def _levels(self, text: str) -> list[ShownLevel]:
        """The levels that can show a text above the values: a few, however many are described."""
        spec = self._spec or HierarchySpec(flat=True)
        if spec.intervals is not None:
            return self._as_wide(text, spec.intervals)
        if spec.mask is not None:
            renamed = RENAMED.fullmatch(text)
            return [self._level(1 if renamed is None else int(renamed["level"]))]
        if spec.dates is not None:
            return [self._level(level) for level in {unit: level for level, unit in enumerate(spec.dates, 1)}.values()]
        if spec.frequency is not None:
            return [self._level(len(spec.frequency))]
        return [self._level(level) for level in range(1, len(spec.cut_levels) + 1)]

    def _as_wide(self, text: str, widths: tuple[float, ...]) -> list[ShownLevel]:
        """The levels whose intervals are as wide as this one, as far as the last digits of its ends tell."""
        renamed = RENAMED.fullmatch(text)
        ends = _INTERVAL.fullmatch(text if renamed is None else renamed["text"])
        numbers = None if ends is None else as_numbers(ends.groups())
        if numbers is None:
            return [self._level(len(widths) + 1)] if renamed is not None else []
        width, slack = numbers[1] - numbers[0], 4 * math.ulp(max(map(abs, numbers)))
        first, last = bisect_left(widths, width - slack), bisect_left(widths, width + slack)
        return [self._level(level) for level in range(first + 1, min(last + 1, len(widths)) + 1)]

    def _level(self, level: int) -> ShownLevel:
        if level not in self._shown:
            self._shown[level] = ShownLevel(self._column, level, self._folder)
        return self._shown[level]

    def _in_file(self, text: str) -> bool:
        """Whether the published tree has the text, or may add it as a value that is in no group."""
        return not self.in_no_group(text) or (self._spec is not None and self._spec.missing == "root" and self.is_value(text))

    def in_no_group(self, text: str) -> bool:
        """Whether the tree is published as a file that does not have the text."""
        renamed = RENAMED.fullmatch(text)
        listed = text == ROOT or text in self._labels or (renamed is not None and renamed["text"] in self._labels)
        return self._spec is not None and self._spec.file is not None and not listed

    def ends_in_no_group(self, text: str) -> bool:
        """The same of a value, or of an end of a range."""
        low, to, high = text.partition(TO)
        return any(map(self.in_no_group, (low, high) if to else (text,)))

    @cached_property
    def _labels(self) -> frozenset[str | None]:
        spec = self._spec
        if spec is None or spec.file is None:
            return frozenset()
        tree = Hierarchy.load(Path(self._folder or "") / spec.file, separator=spec.separator, verbatim=True)
        return frozenset(tree.labels)
