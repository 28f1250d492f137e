"""Rows of a stranger's release in several Parquet files, read one file at a time and grouped.

The certificate lists the files: name, bytes, rows and SHA-256 of each, in the order of their names. Each is copied out of the
folder, compared with its entry, unpacked by a limited child process a few row groups at a time, and removed. Its rows must have
the columns of the schema, ordered and typed as in the first file, stand in the order of their content, within the file and after
those of the file before, and fill the file (`stored_form`). What stays is how many rows show each tuple of quasi-identifiers and
sensitive values, which is what the plain verifier judges: memory is needed for the row groups at hand and for the tuples,
whatever number of rows there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import canonical
from sfumato.core.errors import SfumatoError, VerificationFailed
from sfumato.data.schema import Schema
from sfumato.measures.guarantees.grouped import GroupedTable, UnitsOfClasses
from sfumato.wire.merkle import tree_root
from sfumato.workflow.verifying import limited_reading
from sfumato.workflow.verifying.parquet.parts import footer_of
from sfumato.workflow.verifying.pseudonym_ties import PseudonymRows, Ties
from sfumato.workflow.verifying.stored.form import StoredForm, stored_form
from sfumato.workflow.verifying.untrusted import MAX_DATA_BYTES, UntrustedFolder, quoted

if TYPE_CHECKING:
    import pyarrow as pa

#: The folder of a release that holds the files, and how many there may be.
FOLDER, MOST_FILES = "data", 100_000
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_ROWS = 1 << 50
#: Rows that a child process unpacks, and rows that are here at a time, unless a row group has more.
_ROWS_UNPACKED, _ROWS_AT_ONCE = 512 * 1024, 24 * 1024


@dataclass(frozen=True)
class StoredFile:
    """One file of the rows, as the certificate names it."""

    name: str
    bytes: int
    rows: int
    sha256: str


@dataclass(frozen=True, eq=False)
class GroupedParts:
    """What was read from the files: the grouped rows, and what each column of pseudonyms ties together."""

    groups: GroupedTable = field(repr=False)
    ties: Mapping[str, Ties] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    def tying_pseudonyms(self, published: Iterable[str], unit: str | None) -> str | None:
        """A published column of pseudonyms that ties records together, as `publishing.claims.tying_pseudonyms` says of rows."""
        return next((name for name in published if self.ties[name].tying(unit)), None)


def part_name(number: int) -> str:
    """The name of a file of the rows; names sort as the rows do."""
    return f"part-{number:05d}.parquet"


def read_manifest(entries: object) -> tuple[StoredFile, ...]:
    """The files that a certificate lists, in order; anything else than such a list is refused."""
    if not isinstance(entries, list) or not 0 < len(entries) <= MOST_FILES:
        raise VerificationFailed(f"the certificate does not list between 1 and {MOST_FILES:,} files of rows")
    files = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or set(entry) != {"name", "bytes", "rows", "sha256"}:
            raise VerificationFailed("the certificate lists a file of rows in a form that no release has")
        sizes = [entry["bytes"], entry["rows"]]
        digest = entry["sha256"]
        if (
            any(type(size) is not int or not 0 <= size <= _MOST_ROWS for size in sizes)
            or not isinstance(digest, str)
            or not _DIGEST.fullmatch(digest)
        ):
            raise VerificationFailed("the certificate lists a file of rows in a form that no release has")
        if entry["name"] != part_name(number):
            raise VerificationFailed(
                f"the certificate lists {quoted(str(entry['name']))} where {part_name(number)} belongs: files are named by their "
                "place, each once and without a gap"
            )
        files.append(StoredFile(part_name(number), entry["bytes"], entry["rows"], digest))
    return tuple(files)


def merkle_root(files: Sequence[StoredFile]) -> str:
    """The root of the hash tree over the files, in hexadecimal digits.

    The description of a file is the canonical JSON of `{"bytes": …, "name": …, "rows": …, "sha256": …}`; `wire.merkle` says how
    descriptions become a root. Files are taken in the order of the list, which is that of their names.
    """
    return tree_root([canonical(asdict(file)) for file in files]).hex()


def grouped_parts(
    public: UntrustedFolder,
    files: Sequence[StoredFile],
    schema: Schema,
    private: Path,
    *,
    columns: Sequence[str] | None = None,
    pseudonyms: Sequence[str] = (),
    each: Callable[[pa.Table], None] | None = None,
) -> GroupedParts:
    """The rows of all files, grouped by `columns` (quasi-identifiers and sensitive attributes where left out).

    Without a column the rows are read and not grouped. `public` is the folder of the files and `private` a place for one copy at
    a time. Of the columns in `pseudonyms` what they tie
    together is counted; where one of them names the units, how many a class has. `each` looks at the rows as they come, with the
    types of the schema. Everything that does not agree with the list is a `VerificationFailed`.
    """
    import numpy as np
    import pyarrow as pa

    from sfumato.measures.guarantees.classes import Classes

    _refuse_other_names(public, files)
    names = list(dict.fromkeys([*schema.quasi, *schema.sensitive] if columns is None else columns))
    if not names and columns is None:
        raise VerificationFailed("the certificate's schema has no column by which rows are grouped")
    groups = GroupedTable.of(pa.table({name: pa.array([], pa.string()) for name in names}), names)
    last: tuple[Any, ...] | None = None
    alike = _Alike(alone=len(files) == 1)
    with ExitStack() as stack:
        total = sum(file.rows for file in files)
        tied = [stack.enter_context(closing(PseudonymRows(name, total, private))) for name in pseudonyms]
        for file in files:
            for stored, rows in _rows_of(public, file, schema, private, alike):
                last = _refuse_other_order(stored, last, file.name)
                if each is not None:
                    each(rows)
                if names:
                    groups, of_row = groups.extended(rows.select(names))
                else:
                    of_row = np.zeros(rows.num_rows, dtype=np.int64)
                for pseudonym in tied:
                    pseudonym.add(rows.column(pseudonym.name), of_row)
        if not tied:
            return GroupedParts(groups)
        if not names:
            alone = np.zeros(1, dtype=np.int64)
            return GroupedParts(groups, MappingProxyType({each.name: each.counted(alone, 1) for each in tied}))
        classes = Classes.of(groups.table, schema.quasi)
        ties = {pseudonym.name: pseudonym.counted(classes.of_row, max(len(classes), 1)) for pseudonym in tied}
    if schema.unit in ties and len(classes):
        shown = groups.table.select(list(schema.quasi)).take(pa.array(classes.first))
        groups = GroupedTable(groups.table, groups.counts, (UnitsOfClasses(shown, ties[schema.unit].units),))
    return GroupedParts(groups, MappingProxyType(ties))


def _refuse_other_names(public: UntrustedFolder, files: Sequence[StoredFile]) -> None:
    listed = {file.name for file in files}
    extra, absent = sorted(set(public.names) - listed), sorted(listed - set(public.names))
    if extra:
        raise VerificationFailed(f"the folder holds files of rows that were not certified: {', '.join(map(quoted, extra[:5]))}")
    if absent:
        raise VerificationFailed(f"files of rows are missing: {', '.join(map(quoted, absent[:5]))}")


@dataclass
class _Alike:
    """What all files of a release have in common: the writer, the columns in one order and of one type, and rows; a file without
    rows stands `alone`."""

    alone: bool
    first: tuple[bytes, object] | None = None

    def refuse_other(self, form: StoredForm, rows: int) -> None:
        """Raise where a file differs from the first."""
        if not rows and not self.alone:
            raise VerificationFailed("the data file has no rows, and is not the only one")
        described = (form.writer, form.footer.get(2))
        self.first = self.first or described
        if described != self.first:
            raise VerificationFailed("its columns are in another order, or of other types, than those of the first file of rows")


def _rows_of(
    public: UntrustedFolder, file: StoredFile, schema: Schema, private: Path, alike: _Alike
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The rows of one file, some row groups at a time: as they are stored, and with the types of the schema."""
    if file.bytes > MAX_DATA_BYTES:
        raise VerificationFailed(f"the file {quoted(file.name)} is said to be larger than {MAX_DATA_BYTES:,} bytes")
    copied = public.copy(file.name, private, MAX_DATA_BYTES, file.bytes)
    try:
        if copied.length != file.bytes or copied.sha256 != file.sha256:
            raise VerificationFailed(f"the file {quoted(file.name)} is not the one that was certified: its digest differs")
        yield from _unpacked(copied.path, file, schema, alike)
    except VerificationFailed as error:
        raise VerificationFailed(f"{file.name}: {error}" if file.name not in str(error) else str(error)) from None
    finally:
        copied.path.unlink(missing_ok=True)


def _unpacked(path: Path, file: StoredFile, schema: Schema, alike: _Alike) -> Iterator[tuple[pa.Table, pa.Table]]:
    columns, sizes = _shape(path, file, schema)
    with stored_form(path, columns, file.rows) as form:
        alike.refuse_other(form, file.rows)
        for unpacked in _together(sizes, range(len(sizes)), _ROWS_UNPACKED):
            turns = list(_together(sizes, unpacked, _ROWS_AT_ONCE))
            lengths = [sum(sizes[number] for number in chosen) for chosen in turns]
            with closing(limited_reading.unpack_in_turn(path, file.rows, unpacked, lengths)) as tables:
                for chosen, table in zip(turns, tables, strict=True):
                    stored = _as_stored(table, columns)
                    _refuse_other_years(stored)
                    place = 0
                    for number in chosen:
                        form.refuse_other_group(number, stored.slice(place, sizes[number]))
                        place += sizes[number]
                    yield stored, _typed(table, stored, schema)
        form.refuse_gaps()


def _shape(path: Path, file: StoredFile, schema: Schema) -> tuple[pa.Schema, list[int]]:
    """The columns as the file states them, and the rows of its groups."""
    import pyarrow as pa

    try:
        metadata, columns = footer_of(path)
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    except (OSError, ValueError, MemoryError, pa.ArrowException):
        raise VerificationFailed(
            "the data file is not a complete Parquet file: it is damaged, cut short or of another format"
        ) from None
    if sorted(columns.names) != sorted(schema.columns):
        raise VerificationFailed("the data file does not have the columns that the certificate describes")
    odd = [each.name for each in columns if not _is_kind_of_a_release(each.type)]
    if odd:
        raise VerificationFailed("the data file has columns of a kind that no release has, such as decimals or nanoseconds")
    if sum(sizes) != file.rows or min(sizes, default=0) < 0:
        raise VerificationFailed("the data file does not have as many rows as the certificate says")
    if file.rows * len(columns) > limited_reading.FREE_BYTES + limited_reading.BYTES_PER_BYTE * file.bytes:
        raise VerificationFailed("the data file unpacks into more than its size allows; it was not read")
    return columns, sizes


def _is_kind_of_a_release(kind: pa.DataType) -> bool:
    import pyarrow as pa

    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    plain = types.is_string(value) or (
        not types.is_dictionary(kind)
        and (types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind) or types.is_boolean(kind))
    )
    return bool(plain or types.is_date32(kind) or (types.is_timestamp(kind) and kind.unit == "us"))


def _together(sizes: Sequence[int], groups: range, most: int) -> Iterator[range]:
    """These row groups, as many together as have at most so many rows."""
    start, rows = groups.start, 0
    for number in groups:
        if number > start and rows + sizes[number] > most:
            yield range(start, number)
            start, rows = number, 0
        rows += sizes[number]
    if start < groups.stop:
        yield range(start, groups.stop)


def _as_stored(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows in the types that the file states, text written out."""
    import pyarrow as pa

    kinds = [each.type.value_type if pa.types.is_dictionary(each.type) else each.type for each in columns]
    cells = [column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return pa.Table.from_arrays(cells, names=columns.names)


def _refuse_other_years(rows: pa.Table) -> None:
    from sfumato.data.readers.read_result import years_are_printable

    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if not years_are_printable(column):
            raise VerificationFailed(
                f"the column {quoted(name)} has dates outside the years 1 to 9999, which no release can hold"
            )


def _typed(table: pa.Table, stored: pa.Table, schema: Schema) -> pa.Table:
    """The rows with the types of the schema; '5' and '05' are one number, and must not stand for each other."""
    from sfumato.data.readers.read_result import RawTable, finish
    from sfumato.workflow.publishing.released_form import in_one_type

    try:
        rows = finish(RawTable.of(table.replace_schema_metadata(None)), "the data file", schema).table
    except SfumatoError as error:
        reason = type(error).__name__ if error.owner_only else str(error)
        raise VerificationFailed(f"the data file cannot be read: {reason}") from None
    for name in stored.column_names:
        column = in_one_type(stored.column(name))
        if not in_one_type(rows.column(name)).equals(column) or not _same_bits(column, stored.column(name)):
            raise VerificationFailed(
                f"the column {quoted(name)} holds values in another form than those that were measured: read by its schema, they "
                "are others"
            )
    return rows


def _same_bits(plain: pa.ChunkedArray, stored: pa.ChunkedArray) -> bool:
    """Whether numbers are stored in their one form, without NaN and negative zero, which compare as other values do."""
    import numpy as np
    import pyarrow as pa

    if not pa.types.is_floating(stored.type):
        return True
    numbers = stored.drop_null().to_numpy()
    return plain.null_count == stored.null_count and not bool(np.signbit(numbers[numbers == 0]).any())


def _refuse_other_order(rows: pa.Table, last: tuple[Any, ...] | None, name: str) -> tuple[Any, ...] | None:
    """The last row, as it is compared; raises where rows do not stand in the order of their content, also after the `last`."""
    from sfumato.workflow.publishing.released_form import in_order_of_content

    if not rows.num_rows:
        return last
    if (last is not None and last > _comparable(rows, 0)) or not in_order_of_content(rows):
        raise VerificationFailed(f"{name}: its rows are not in the order of their content, which can tell something")
    return _comparable(rows, rows.num_rows - 1)


def _comparable(rows: pa.Table, place: int) -> tuple[Any, ...]:
    """A row that compares as rows of a release do: column by column, text by its bytes, missing values last."""
    from sfumato.workflow.publishing.released_form import in_one_type

    cells = [in_one_type(column.slice(place, 1))[0].as_py() for column in rows.columns]
    return tuple((cell is None, b"" if cell is None else cell.encode() if isinstance(cell, str) else cell) for cell in cells)
