"""A release as an adversary reads it: its classes, and how a sensitive attribute is spread over them.

Rows are grouped once by the shown quasi-identifiers; every attack then works on classes, not on rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import TableAttack, is_masked, is_table
from sfumato.core.errors import InputError, MissingColumn, Unsupported, all_at_once
from sfumato.core.ranges import ColumnName
from sfumato.core.view import ONE_RECORD, AttackResult, View
from sfumato.data.masked import TableView
from sfumato.data.microdata import ReleasedTable
from sfumato.data.texts.values import texts
from sfumato.measures.guarantees.classes import tally

if TYPE_CHECKING:
    import pyarrow as pa

K = TypeVar("K")
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column in codes: `values[codes[row]]` is the text of a row (None for a missing value)."""

    values: tuple[str | None, ...] = field(repr=False)
    codes: Ids = field(repr=False)


@dataclass(frozen=True, eq=False)
class ClassHistogram:
    """A sensitive attribute over classes, the pairs that occur only: `count[i]` records of `klass[i]` show
    value `value[i]`.

    Pairs are sorted by class, within a class by count, the most frequent first.
    """

    klass: Ids = field(repr=False)
    value: Ids = field(repr=False)
    count: Ids = field(repr=False)
    values: tuple[str | None, ...] = field(repr=False)
    classes: int

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """The share of each value in the whole table."""
        totals = np.bincount(self.value, weights=self.count, minlength=len(self.values))
        return totals / max(float(totals.sum()), 1.0)

    @cached_property
    def starts(self) -> Ids:
        """Where the pairs of each class begin, and their number last."""
        return np.searchsorted(self.klass, np.arange(self.classes + 1)).astype(np.int64)

    @cached_property
    def distinct(self) -> Ids:
        """Different values per class."""
        return np.diff(self.starts)

    @cached_property
    def single_known(self) -> Ids:
        """The classes that show one value, and records in which it is missing."""
        if None not in self.values:
            return np.zeros(0, dtype=np.int64)
        missing = self.value == self.values.index(None)
        beside = np.bincount(self.klass[missing], minlength=self.classes) > 0
        return np.flatnonzero(beside & (self.distinct == 2))

    @cached_property
    def top(self) -> Ids:
        """The pair of the most frequent value of each class."""
        return self.starts[:-1]


@dataclass(frozen=True, eq=False)
class ReleasedClasses:
    """The classes of a release.

    `of_row[row]` is the class of a row; `sizes` counts records, `units` counts people (records where no unit column
    is shown); `shown[a][c]` is the code of what class c shows for quasi-identifier a among `labels[a]`. A row is one record,
    or stands for as many as `released.counts` says.
    """

    table: pa.Table = field(repr=False)
    released: ReleasedTable = field(repr=False)
    quasi: tuple[str, ...]
    of_row: Ids = field(repr=False)
    sizes: Ids = field(repr=False)
    units: Ids = field(repr=False)
    labels: tuple[tuple[str | None, ...], ...] = field(repr=False)
    shown: tuple[Ids, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """Rows of the table: records, or groups of records that look alike."""
        return int(self.of_row.size)

    @property
    def records(self) -> int:
        """Released records."""
        return self.released.released_records

    @property
    def of_rows(self) -> Ids:
        """For how many records each row stands."""
        counts = self.released.counts
        return np.ones(self.rows, dtype=np.int64) if counts is None else counts

    def histogram(self, attribute: str) -> ClassHistogram:
        """How the values of a column are spread over the classes."""
        column = encoded(self.table, attribute)
        return spread(self.of_row, column.codes, column.values, len(self.sizes), self.released.counts)


def spread(klass: Ids, codes: Ids, values: tuple[str | None, ...], classes: int, of_rows: Ids | None = None) -> ClassHistogram:
    """Count the values of each class; row i stands for `of_rows[i]` records."""
    ids, pairs = hashed(klass * max(len(values), 1) + codes)
    counts = tally(ids, pairs.size, of_rows)
    of_class, value = np.divmod(pairs, max(len(values), 1))
    order = np.lexsort((value, -counts, of_class))
    return ClassHistogram(of_class[order], value[order], counts[order], values, classes)


def released_table(view: TableView) -> ReleasedTable:
    """The released rows with what their texts stand for; a bare Arrow table stands for itself."""
    import pyarrow as pa

    if isinstance(view.result, ReleasedTable):
        return view.result
    if isinstance(view.result, pa.Table):
        return ReleasedTable(view.result, view.schema, records=view.result.num_rows)
    raise InputError(f"this attack reads a released table, not a {type(view.result).__name__}")


def of_units(view: TableView) -> bool:
    """Whether one person may stand behind several records, because the unit is, or was before it was dropped, a column."""
    unit = view.certificate.get("transparency", {}).get("unit", ONE_RECORD)
    return unit != ONE_RECORD or view.schema.unit is not None


def hides_units(view: TableView) -> bool:
    """Whether it does not show which records are of one person, so that only records can be counted."""
    return of_units(view) and view.schema.unit not in released_table(view).table.column_names


def classes_of(view: TableView, quasi: Sequence[str] | None = None) -> ReleasedClasses:
    """Group the released rows by their quasi-identifiers."""
    released = released_table(view)
    table = released.table
    chosen = tuple(name for name in view.schema.quasi if name in table.column_names) if quasi is None else tuple(quasi)
    require_columns(table, chosen, view.name)
    columns = [encoded(table, name) for name in chosen]
    of_row, first = grouped([column.codes for column in columns], table.num_rows)
    sizes = tally(of_row, first.size, released.counts)
    return ReleasedClasses(
        table=table,
        released=released,
        quasi=chosen,
        of_row=of_row,
        sizes=sizes,
        units=_units(table, view.schema.unit, of_row, sizes),
        labels=tuple(column.values for column in columns),
        shown=tuple(column.codes[first] for column in columns),
    )


def encoded(table: pa.Table, name: str) -> EncodedColumn:
    """A column in codes; equal texts have equal codes, whatever type carried them."""
    import pyarrow as pa

    chunks = table.column(name).combine_chunks()
    if isinstance(chunks, pa.ChunkedArray):  # an empty table stays chunked
        chunks = pa.concat_arrays(chunks.chunks) if chunks.num_chunks else pa.array([], type=chunks.type)
    if pa.types.is_dictionary(chunks.type):
        chunks = chunks.cast(chunks.type.value_type)
    dictionary = chunks.dictionary_encode(null_encoding="encode")
    places: dict[str | None, int] = {}
    merged = np.array([places.setdefault(text, len(places)) for text in texts(dictionary.dictionary)], dtype=np.int64)
    codes = dictionary.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return EncodedColumn(tuple(places), merged[codes] if codes.size else codes)


def grouped(columns: Sequence[Ids], rows: int) -> tuple[Ids, Ids]:
    """Equal tuples get equal ids 0, 1, …; also the first row of each id."""
    packed, size = np.zeros(rows, dtype=np.int64), 1
    for codes in columns:
        width = int(codes.max()) + 1 if codes.size else 1
        if size * width >= 1 << 62:  # no room for another digit: number what is there and go on
            packed, distinct = hashed(packed)
            size = distinct.size
        packed, size = packed * width + codes, size * width
    ids, distinct = hashed(packed)
    first = np.empty(distinct.size, dtype=np.int64)
    first[ids[::-1]] = np.arange(rows - 1, -1, -1)
    return ids, first


def hashed(keys: Ids) -> tuple[Ids, Ids]:
    """Number equal keys 0, 1, … in order of appearance: the number of each, and the distinct keys."""
    import pyarrow as pa

    encoded = pa.array(keys).dictionary_encode()
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers, encoded.dictionary.to_numpy(zero_copy_only=False).astype(np.int64)


#: The attribute that an attack on classes is after.
AttackedAttribute = Annotated[
    ColumnName | None, "the sensitive attribute that is attacked; the one that leaks most where left out"
]


class ClassAttack(TableAttack[K], Generic[K]):
    """An adversary who finds a target's class and reads what it tells about a sensitive attribute."""

    attribute: str | None

    def fits(self, view: View[object, object]) -> bool:
        """A sensitive attribute is shown; classes of values that a mask has changed mean something only where it claims so."""
        if not is_table(view) or (is_masked(view) and not view.certificate.get("claims")):
            return False
        return self.fits_attributes(view, *attacked_attributes(view, self.attribute))

    def fits_attributes(self, view: TableView, *names: str) -> bool:
        """Whether there is something to find out about all of these attributes."""
        return bool(names) and all(name in released_table(view).table.column_names for name in names)


def attacked_attributes(view: TableView, attribute: str | None) -> tuple[str, ...]:
    """The attribute asked for, or all sensitive ones of the schema that were released."""
    present = released_table(view).table.column_names
    return (attribute,) if attribute is not None else tuple(n for n in view.schema.sensitive if n in present)


def sensitive_attributes(view: TableView, attribute: str | None) -> tuple[str, ...]:
    """The same, refused where there is none."""
    chosen = attacked_attributes(view, attribute)
    if not chosen:
        raise Unsupported(
            f"{view.name} has no sensitive attribute to attack. Give a column the role 'sensitive' in the "
            f"schema, "
            "or name one with attribute=."
        )
    require_columns(released_table(view).table, chosen, view.name)
    return chosen


def require_columns(table: pa.Table, names: Sequence[str], where: str) -> None:
    """All these columns must be there; every missing one is named."""
    missing = [f"column '{name}' is not in {where}" for name in names if name not in table.column_names]
    all_at_once(MissingColumn, "attack", missing)


def _units(table: pa.Table, unit: str | None, of_row: Ids, sizes: Ids) -> Ids:
    if unit is None or unit not in table.column_names:
        return sizes
    people = encoded(table, unit)
    pairs = np.unique(of_row * max(len(people.values), 1) + people.codes)
    return np.bincount(pairs // max(len(people.values), 1), minlength=sizes.size).astype(np.int64)


#: What is added where a mask changed the column.
ABOUT_SHOWN_VALUES = "A mask changed this column: all this is about what the release shows."


def worst(results: Iterable[AttackResult], view: TableView) -> AttackResult:
    """The result furthest above blind guessing, with the success on every attribute among its details."""
    candidates = [_about_shown_values(result, view) for result in results]
    chosen = max(candidates, key=lambda result: (result.success - result.baseline, result.success))
    if len(candidates) == 1:
        return chosen
    by_attribute = {str(result.details["attribute"]): result.success for result in candidates}
    return replace(chosen, details={**chosen.details, "success_by_attribute": by_attribute})


def _about_shown_values(result: AttackResult, view: TableView) -> AttackResult:
    """What is certain about a value that a mask changed is certain about what the release shows."""
    changed = view.certificate.get("transparency", {}).get("masked_columns", ())
    if result.details.get("attribute") not in changed:
        return result
    return replace(result, finding=f"{result.finding} {ABOUT_SHOWN_VALUES}")
