"""Rows that were grouped elsewhere: tuples of values, and how many records show each.

Where rows stay in an engine, one query groups them and the verifier judges what comes back. Every number that it measures is a
number of counts, so that the same definitions serve both: a table of rows is a grouped table in which each tuple stands once.
Different units cannot be added up over tuples. Where the column that names them is not among the grouped ones, they are counted
beside, once for each set of columns by which classes are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sfumato.core.errors import InputError
from sfumato.measures.guarantees.classes import Classes, CodedColumn, Integers, combined, require_columns, tally

#: Records of a table at the most: sums of counts stay within 64 bits.
_MOST_RECORDS = 1 << 62


@dataclass(frozen=True, eq=False)
class UnitsOfClasses:
    """How many different units each class has: `units[i]` for the class in row i of `classes`, whose columns make the classes."""

    classes: pa.Table = field(repr=False)
    units: Integers = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", _counts(self.units, self.classes.num_rows, "units", least=0))

    @property
    def columns(self) -> frozenset[str]:
        """The columns by which the classes are made."""
        return frozenset(self.classes.column_names)

    def in_order_of(self, table: pa.Table, classes: Classes) -> Integers:
        """The units of these classes of a table, in their order; raises `InputError` where both have different classes."""
        rows = [CodedColumn.of(table.column(name)) for name in classes.quasi]
        here = [CodedColumn(column.values, column.codes[classes.first]) for column in rows]
        there = [CodedColumn.of(self.classes.column(name)) for name in classes.quasi]
        both = (CodedColumn.one_after_another(pair) for pair in zip(here, there, strict=True))
        key, _ = combined(both, len(classes) + self.classes.num_rows)
        order = np.argsort(key[len(classes) :], kind="stable")
        mine, theirs = key[: len(classes)], key[len(classes) :][order]
        if theirs.size != mine.size or not np.array_equal(np.sort(mine), theirs):
            raise InputError(
                "different units were counted for other classes than the grouped table has. Count them by the same columns, "
                "over the same rows, with one row per class."
            )
        units = self.units[order][np.searchsorted(theirs, mine)]
        if bool((units > classes.sizes).any()):
            raise InputError("a class is said to have more different units than records; count both over the same rows")
        return units


@dataclass(frozen=True, eq=False)
class GroupedTable:
    """Tuples of values with the records that each stands for: `counts[i]` records show row i of `table`.

    The same tuple may stand in several rows; its counts add up. `units` says how many different units the classes have, for each
    set of columns that makes classes; it is empty where records are counted, or where the unit column is among the grouped ones.
    """

    table: pa.Table = field(repr=False)
    counts: Integers = field(repr=False)
    units: tuple[UnitsOfClasses, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", _counts(self.counts, self.table.num_rows, "records"))

    @classmethod
    def of(cls, table: pa.Table, columns: Sequence[str]) -> GroupedTable:
        """The rows of a table grouped by these columns, in order of appearance."""
        require_columns(table, columns)
        return cls.merged([cls(table.select(columns), np.ones(table.num_rows, dtype=np.int64))])

    @classmethod
    def merged(cls, parts: Iterable[GroupedTable]) -> GroupedTable:
        """All records of several grouped tables with the same columns, each tuple once; without units, which do not add up."""
        kept = list(parts)
        if not kept:
            raise InputError("there is no grouped table to merge")
        names = kept[0].table.column_names
        columns = [CodedColumn.one_after_another([CodedColumn.of(part.table.column(name)) for part in kept]) for name in names]
        counts = np.concatenate([part.counts for part in kept])
        key, groups = combined(columns, counts.size)
        first = np.zeros(groups, dtype=np.int64)
        first[key[::-1]] = np.arange(counts.size - 1, -1, -1, dtype=np.int64)
        shown = [CodedColumn(column.values, column.codes[first]).to_arrow() for column in columns]
        return cls(pa.Table.from_arrays(shown, names=names), tally(key, groups, counts))

    def extended(self, rows: pa.Table) -> tuple[GroupedTable, Integers]:
        """These groups with more rows, and the group of each of the rows; groups keep their numbers."""
        names = self.table.column_names
        columns = [CodedColumn.of(rows.column(name)) for name in names]
        of_row, different = combined(columns, rows.num_rows)
        first = np.zeros(different, dtype=np.int64)
        first[of_row[::-1]] = np.arange(rows.num_rows - 1, -1, -1, dtype=np.int64)
        new = [CodedColumn(column.values, column.codes[first]) for column in columns]
        old = [CodedColumn.of(self.table.column(name)) for name in names]
        both = [CodedColumn.one_after_another(pair) for pair in zip(old, new, strict=True)]
        group, groups = combined(both, self.counts.size + different)
        counts = tally(group, groups, np.concatenate([self.counts, tally(of_row, different)]))
        place = np.zeros(groups, dtype=np.int64)
        place[group[::-1]] = np.arange(group.size - 1, -1, -1, dtype=np.int64)
        shown = [CodedColumn(column.values, column.codes[place]).to_arrow() for column in both]
        return GroupedTable(pa.Table.from_arrays(shown, names=names), counts), group[self.counts.size :][of_row]

    @property
    def records(self) -> int:
        """All records."""
        return int(self.counts.sum())


def _counts(counts: Integers, rows: int, what: str, *, least: int = 1) -> Integers:
    """Whole numbers of at least `least`, one for each row, whose sum is a whole number of 64 bits."""
    numbers = np.asarray(counts)
    if numbers.shape != (rows,) or (numbers.size and numbers.dtype.kind not in "iu"):
        raise InputError(f"a grouped table needs a whole number of {what} for each of its rows")
    if numbers.size and (int(numbers.min()) < least or float(numbers.sum(dtype=np.float64)) >= _MOST_RECORDS):
        raise InputError(
            f"each row of a grouped table stands for at least {least} of its {what}, and all rows for fewer than 2^62"
        )
    return numbers.astype(np.int64, copy=False)
