"""What every released cell stands for: the link between a shown text, the leaves below it and the
original values.

Where the released rows stand in the original order (nothing suppressed, every cell covers the value it
replaces) each cell is compared with the value it came from; otherwise the original values below a shown
text are taken in their original proportions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.microdata import Microdata, ReleasedTable, ShownValue
from sfumato.data.texts.values import as_numbers
from sfumato.measures.guarantees.classes import CodedColumn, require_columns, tally
from sfumato.measures.guarantees.cover import covered, interval_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShownColumn:
    """A released quasi-identifier: text codes per row, and what each text means."""

    name: str
    coded: CodedColumn = field(repr=False)
    meanings: tuple[ShownValue, ...] = field(repr=False)
    tree: Hierarchy = field(repr=False)
    of_rows: NDArray[np.int64] | None = field(default=None, repr=False)  # for how many records each row stands

    @property
    def counts(self) -> NDArray[np.int64]:
        """Records per shown text."""
        return tally(self.coded.codes, len(self.coded.values), self.of_rows)

    @property
    def losses(self) -> Floats:
        """Loss per shown text."""
        return np.array([meaning.loss for meaning in self.meanings], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class OriginalColumn:
    """The same quasi-identifier before: its distinct values, how often each occurs, and the code per row."""

    coded: CodedColumn = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, table: pa.Table, name: str) -> OriginalColumn:
        """Encode a column of the original."""
        coded = CodedColumn.of(table.column(name))
        return cls(coded, np.bincount(coded.codes, minlength=len(coded.values)).astype(np.int64))

    def below(self, meaning: ShownValue) -> NDArray[np.bool_]:
        """Which original values a shown text stands for."""
        return np.array([value in meaning.leaves for value in self.coded.values], dtype=np.bool_)


#: Rows, by whatever carries them.
Rows: TypeAlias = pa.Table | ReleasedTable | Microdata


def rows_of(table: Rows) -> pa.Table:
    """The rows of whatever carries some: microdata, a released table or an Arrow table."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, ReleasedTable):
        return table.table
    rows = table.table()
    if not isinstance(rows, pa.Table):
        raise ParameterError("a measure compares tables: pass microdata, a released table or an Arrow table")
    return rows


def quasi_of(released: ReleasedTable) -> tuple[str, ...]:
    """The quasi-identifiers that the released table has; measures of generalisation need at least one."""
    names = released.schema.quasi
    if not names:
        raise Unsupported("no column has the role 'quasi', so there is no generalisation to measure")
    require_columns(released.table, names)
    return names


def require_release(released: object) -> None:
    """Measures of generalisation and suppression need what only a release knows; a masked table is none."""
    if not isinstance(released, ReleasedTable):
        raise InputError(
            "this measure is about generalised and suppressed records and reads the released table of a recoding method; for a "
            "masked table use a measure of masked data, such as information_loss, moments or hellinger"
        )


def records_of(released: ReleasedTable) -> int:
    """How many records the original had."""
    require_release(released)
    return max(released.records, released.released_records)


def shown_columns(original: Rows | None, released: ReleasedTable) -> tuple[ShownColumn, ...]:
    """Every quasi-identifier of the release with the meaning of each text it shows."""
    require_release(released)
    names = quasi_of(released)
    trees = {name: released.hierarchies.get(name) or _tree(original, released, name) for name in names}
    shown = replace(released, hierarchies=trees).shown
    columns = []
    for name in names:
        coded = CodedColumn.of(released.table.column(name))
        columns.append(ShownColumn(name, coded, _meanings(coded, shown[name], trees[name], name), trees[name], released.counts))
    return tuple(columns)


def joint_counts(columns: tuple[ShownColumn, ...], original: pa.Table) -> list[Floats]:
    """Per column a matrix: how many records with each original value show each text, known or expected."""
    require_leaves(columns)
    before = [OriginalColumn.of(original, column.name) for column in columns]
    exact = _aligned(columns, before)
    if exact is not None:
        return exact
    expected = []
    for column, source in zip(columns, before, strict=True):
        below = np.zeros((len(column.meanings), len(source.coded.values)))
        for text, meaning in enumerate(column.meanings):
            below[text] = source.below(meaning)
        weights = below * source.counts
        totals = weights.sum(axis=1, keepdims=True)
        shares = np.divide(weights, totals, out=np.zeros_like(weights, dtype=np.float64), where=totals > 0)
        expected.append(shares * column.counts[:, None])
    return expected


def suppressed_counts(joint: Floats, source: OriginalColumn, suppressed: float) -> Floats:
    """How many of the suppressed records have each original value: those that no shown text accounts for."""
    left = np.maximum(source.counts - joint.sum(axis=0), 0.0)
    total = float(left.sum())
    counts: Floats = left * (suppressed / total) if total else left
    return counts


def _aligned(columns: tuple[ShownColumn, ...], before: list[OriginalColumn]) -> list[Floats] | None:
    aligned = []
    for column, source in zip(columns, before, strict=True):
        if column.coded.codes.size != source.coded.codes.size:
            return None
        width = max(len(source.coded.values), 1)
        key = column.coded.codes * width + source.coded.codes
        counts = np.bincount(key, minlength=len(column.meanings) * width).astype(np.float64)
        joint = counts.reshape(len(column.meanings), width)
        for text, meaning in enumerate(column.meanings):
            if joint[text][~source.below(meaning)].any():
                return None
        aligned.append(joint)
    return aligned


def _tree(original: Any, released: ReleasedTable, name: str) -> Hierarchy:
    source = OriginalColumn.of(rows_of(original), name)
    column = released.schema.columns[name]
    return hierarchy_builders.build(name, column, source.coded.values, source.counts.tolist(), released.schema.folder)


def _meanings(coded: CodedColumn, shown: Mapping[str | None, ShownValue], tree: Hierarchy, name: str) -> tuple[ShownValue, ...]:
    meanings, unknown = [], 0
    numbers: Floats | None = None
    for text in coded.values:
        meaning = shown.get(text) or _outside_the_tree(text, tree)
        if meaning is not None and not meaning.leaves:
            numbers = _leaf_numbers(tree) if numbers is None else numbers
            meaning = _with_leaves(text, meaning, tree, numbers)
        if meaning is None:
            unknown += 1
        else:
            meanings.append(meaning)
    if unknown:
        raise Unsupported(
            f"column '{name}' shows {unknown:,} texts that are neither in its hierarchy nor ranges of "
            "it, so what they stand "
            "for is not known. Give the hierarchy that was used, or describe them as ranges."
        )
    return tuple(meanings)


def _leaf_numbers(tree: Hierarchy) -> Floats:
    """The leaves as numbers, not a number where a value is missing; empty where some leaf is none."""
    return np.array(as_numbers(tree.leaves) or [], dtype=np.float64)


def _with_leaves(text: str | None, meaning: ShownValue, tree: Hierarchy, numbers: Floats) -> ShownValue:
    """A range described by its bounds or its text stands for the leaves inside it."""
    span = None if text is None else interval_of(text)
    if not numbers.size or span is None:
        return replace(meaning, leaves=_leaves_at(covered(text, tree.leaves, None), tree))
    low, high, with_low, with_high = span
    inside = (numbers >= low if with_low else numbers > low) & (numbers <= high if with_high else numbers < high)
    if meaning.bounds is not None:
        inside |= (numbers >= meaning.bounds[0]) & (numbers < meaning.bounds[1])
    return replace(meaning, leaves=_leaves_at(inside, tree))


def _leaves_at(inside: NDArray[np.bool_], tree: Hierarchy) -> frozenset[str | None]:
    return frozenset(tree.leaves[i] for i in np.flatnonzero(inside).tolist())


def require_leaves(columns: tuple[ShownColumn, ...]) -> None:
    """Measures that look below a shown text need to know what it stands for."""
    vague = [column.name for column in columns if any(not meaning.leaves for meaning in column.meanings)]
    if vague:
        raise Unsupported(
            f"{', '.join(vague)}: some shown ranges do not say which values they stand for, so this "
            "measure cannot look below them"
        )


def _outside_the_tree(text: str | None, tree: Hierarchy) -> ShownValue | None:
    """A suppressed cell is the root; an interval stands for the leaves inside it."""
    if text == ROOT:
        return ShownValue(1.0 if tree.total > 1 else 0.0, tree.total, frozenset(tree.leaves), int(tree.steps.max()))
    if text is None or interval_of(text) is None:
        return None
    inside = np.flatnonzero(covered(text, tree.leaves, None))
    if not inside.size:
        return None
    size = float(inside.size)
    loss = (size - 1) / (tree.total - 1) if tree.total > 1 else 0.0
    return ShownValue(loss, size, frozenset(tree.leaves[int(i)] for i in inside), steps=1)
