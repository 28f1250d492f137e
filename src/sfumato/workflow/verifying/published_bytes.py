"""Are the published bytes those that the rows make? What was read is written again by the house's own writer and compared.

Whoever opens the file must see what was measured: `5` and `05` are one number and two texts, rows in another order than that of
their content tell something, and a Parquet file has room for values that no row shows. CSV is always compared byte by byte;
Parquet where it was written with the same version of its library, and part by part otherwise (`parquet_parts`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import SfumatoError, VerificationFailed
from sfumato.core.files import temporary_folder

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK = 1 << 20
SAME_BYTES = "written again, the rows give the same bytes"


def compare_bytes(path: Path, table: pa.Table, *, ordered: bool, made_with: str) -> str:
    """What was compared, in words; raises `VerificationFailed` where file and rows differ.

    `table` is what was read from the file and is measured. `ordered` says that rows stand in the order of their content, as in
    every protected table. `made_with` is the version of pyarrow that wrote the file.
    """
    try:
        if path.suffix == ".csv":
            return _compare_csv(path, table, ordered)
        return _compare_parquet(path, table, ordered, made_with)
    except VerificationFailed:
        raise
    except SfumatoError as error:
        raise VerificationFailed(f"the rows cannot be written again: {type(error).__name__}") from None
    except (
        OSError,
        ValueError,
        TypeError,
        OverflowError,
        MemoryError,
        LookupError,
        AttributeError,
        RecursionError,
    ) as error:  # Arrow's errors are these
        raise VerificationFailed(f"the rows cannot be written again ({type(error).__name__})") from None


def _compare_csv(path: Path, table: pa.Table, ordered: bool) -> str:
    from sfumato.workflow.publishing.released_form import released_form

    with temporary_folder("verify") as place:
        again = _written(released_form(table) if ordered else table, Path(place) / path.name)
        line = _first_difference(path, again)
    if line is not None:
        raise VerificationFailed(
            "the data file is not written as releases are: written again, its rows give other bytes "
            f"(first in line {line:,}), so that its readers see other values than those that were measured, or another order"
        )
    return SAME_BYTES


def _compare_parquet(path: Path, table: pa.Table, ordered: bool, made_with: str) -> str:
    import pyarrow as pa

    from sfumato.data.writers import clean
    from sfumato.workflow.publishing.released_form import released_form
    from sfumato.workflow.verifying.parquet.parts import refuse_other_parts
    from sfumato.workflow.verifying.parquet.published import refuse_other_bytes_within

    rows = read_as_stored(path)
    if ordered:
        _refuse_other_types(rows.schema)
    expected = released_form(rows) if ordered else rows
    # '5' and '05' are one number, and so are 2^53 and 2^53 + 1 as a float
    if not released_form(table).equals(released_form(rows)):
        raise VerificationFailed(
            "the data file holds values in another form than those that were measured: read by its schema, its rows are others"
        )
    with temporary_folder("verify") as place:
        again = _written(expected, Path(place) / path.name)
        if _first_difference(path, again) is None:
            return SAME_BYTES
        if ordered and not expected.equals(clean(rows)):
            raise VerificationFailed("the rows of the data file are not in the order of their content, which can tell something")
        if made_with == pa.__version__:
            raise VerificationFailed(
                "the data file is not written as releases are: written again, its rows give other bytes, so that it holds "
                "something that no row shows, or values in another form"
            )
        refuse_other_parts(path, again, rows)
        refuse_other_bytes_within(path, again, rows)
    return f"types, rows and every part of the file were compared, not its bytes (written with pyarrow {made_with[:20]})"


def read_as_stored(path: Path) -> pa.Table:
    """The rows of a Parquet file in the types that it states, unpacked by a child process with limits."""
    import pyarrow as pa

    from sfumato.workflow.verifying.limited_reading import unpack
    from sfumato.workflow.verifying.parquet.parts import footer_of

    table = unpack(path)
    stated = footer_of(path)[1]
    columns = [column.cast(field.type) for column, field in zip(table.columns, stated, strict=True)]
    return pa.Table.from_arrays(columns, schema=stated)


def _refuse_other_types(schema: pa.Schema) -> None:
    import pyarrow as pa

    types = (pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.uint64(), pa.float64(), pa.bool_(), pa.date32())
    odd = [kind for kind in schema.types if kind not in types and not (pa.types.is_timestamp(kind) and kind.unit == "us")]
    if odd:
        raise VerificationFailed(
            "the data file has columns of types that no release has, such as decimals or nanoseconds, whose values differ "
            "where those that were measured do not"
        )


def _written(table: pa.Table, path: Path) -> Path:
    from sfumato.data.writers import write_file

    write_file(table, path)
    return path


def _first_difference(one: Path, other: Path) -> int | None:
    """The number of the first line that differs; None for equal files."""
    line = 1
    with one.open("rb") as left, other.open("rb") as right:
        while True:
            a, b = left.read(_BLOCK), right.read(_BLOCK)
            if a != b:
                end = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
                return line + a.count(b"\n", 0, end)
            if not a:
                return None
            line += a.count(b"\n")
