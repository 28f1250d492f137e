"""Statistics of stored files are those of their rows: whoever forges a bound, a count or an index is found out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import VerificationFailed
from sfumato.workflow.verifying.parquet.published import footer_fields
from sfumato.workflow.verifying.stored.form import stored_form
from sfumato.workflow.verifying.stored.parts import StoredFile, part_name
from tests.workflow.test_stored_parts import describe, put, read, refused, rows, write_arrow, write_duckdb

LONG = "äö€𝄞" * 40


def varied(count: int = 300) -> pa.Table:
    """Rows with long texts, missing values, a column without any value, zeros and moments."""
    table = rows(count)
    draw = np.random.default_rng(3)
    notes = [None if i % 7 == 0 else LONG[: i % 90] + str(i) for i in range(count)]
    moments = pa.array(draw.integers(0, 10**15, count), pa.timestamp("us"))
    gone = pa.nulls(count, pa.string())
    return table.append_column("note", pa.array(notes)).append_column("at", moments).append_column("gone", gone)


def form_of(path: Path, table: pa.Table) -> None:
    """Raises where the file says something else than these rows."""
    with stored_form(path, table.schema, table.num_rows) as form:
        place = 0
        for number, group in enumerate(form.footer[4]):
            form.refuse_other_group(number, table.slice(place, group[3]))
            place += group[3]
        form.refuse_gaps()


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    "arrow": lambda table, path: pq.write_table(table, path, compression="zstd", store_schema=False),
    "arrow without dictionaries": lambda table, path: pq.write_table(
        table, path, compression="zstd", store_schema=False, use_dictionary=False
    ),
    "arrow with small pages": lambda table, path: pq.write_table(
        table, path, compression="zstd", store_schema=False, max_rows_per_page=37
    ),
    "arrow whose dictionaries are too large": lambda table, path: pq.write_table(
        table, path, compression="zstd", store_schema=False, dictionary_pagesize_limit=500, max_rows_per_page=37
    ),
    "duckdb": write_duckdb,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_files_of_honest_writers_state_what_their_rows_give(tmp_path: Path, writer: str) -> None:
    WRITERS[writer](varied(), tmp_path / "part.parquet")
    form_of(tmp_path / "part.parquet", varied())


@pytest.mark.spark
def test_indexes_of_spark_state_what_their_rows_give(spark: Any, tmp_path: Path) -> None:
    table = varied(2_000).drop_columns(["at"])
    pq.write_table(table, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).coalesce(1)
    limited = frame.write.option("compression", "zstd").option("parquet.page.row.count.limit", "300")
    limited.parquet(str(tmp_path / "written"))
    (path,) = (tmp_path / "written").glob("*.parquet")
    assert any(chunk.get(6) for chunk in footer_fields(path)[4][0][1])
    shown = pq.read_table(path)
    form_of(path, shown)
    whole, accepted = path.read_bytes(), []
    for place in _indexes(path):
        forged = bytearray(whole)
        forged[place] ^= 1
        path.write_bytes(bytes(forged))
        try:
            form_of(path, shown)
            accepted.append(place)
        except VerificationFailed:
            pass
    assert not accepted


def _indexes(path: Path) -> Iterator[int]:
    """The places of all bytes of page indexes."""
    for chunk in footer_fields(path)[4][0][1]:
        yield from range(chunk[6], chunk[6] + chunk[7], 3)
        yield from range(chunk[4], chunk[4] + chunk[5], 3)


def _swapped(path: Path, old: bytes, new: bytes) -> int:
    """Exchange some bytes of the footer; how often they stood there."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little") + 8
    footer = whole[-length:]
    path.write_bytes(whole[:-length] + footer.replace(old, new))
    return footer.count(old)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"flu", b"col", "bound"),  # another text
        (b"40-49", b"20-29", "bound"),  # a value that is shown, and not the largest
        (b"20-29", b"40-49", "bound"),
    ],
)
def test_a_bound_that_is_shown_and_not_the_end_is_refused(tmp_path: Path, old: bytes, new: bytes, reason: str) -> None:
    table = rows(300)
    path = tmp_path / "part.parquet"
    WRITERS["arrow"](table, path)
    assert _swapped(path, old, new)
    with pytest.raises(VerificationFailed, match=reason):
        form_of(path, table)


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["arrow", "duckdb"])
def test_changed_bytes_of_a_footer_are_refused(tmp_path: Path, writer: str) -> None:
    """But for the version of the writer, and for how many bits a number is said to have."""
    table, path = rows(300), tmp_path / "part.parquet"
    WRITERS[writer](table, path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[-8:-4], "little") + 8
    maker = whole.rindex(b" version ")
    accepted = []
    for place in range(len(whole) - length, maker):
        forged = bytearray(whole)
        forged[place] ^= 2
        path.write_bytes(bytes(forged))
        try:
            form_of(path, table)
            if not {forged[place] & 15, whole[place] & 15} <= {4, 5, 6} and _reads_alike(path, table):
                accepted.append(place - len(whole))
        except VerificationFailed:
            continue
    assert not accepted


def _reads_alike(path: Path, table: pa.Table) -> bool:
    """Whether a reader still sees these rows; where it does not, the verifier reads other rows than were certified."""
    try:
        return bool(pq.read_table(path).equals(table))
    except (OSError, ValueError):
        return False


def _beside(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    put(tmp_path / "data", rows(600), 2)
    return tmp_path / "data" / part_name(1)


OTHERS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "another order of columns": lambda table: table.select(["sex", "age", *table.column_names[2:]]),
    "all columns the other way round": lambda table: table.select(table.column_names[::-1]),
    "narrower numbers": lambda table: table.set_column(3, "income", table["income"].cast(pa.int32())),
    "another kind of number": lambda table: table.set_column(3, "income", table["income"].cast(pa.float64())),
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_second_file_with_other_columns_is_refused(tmp_path: Path, other: str) -> None:
    path = _beside(tmp_path)
    write_arrow(OTHERS[other](pq.read_table(path)), path, store_schema=False)
    refused(tmp_path, "part-00001.parquet: its columns are in another order, or of other types")


def test_moments_with_and_without_a_zone_do_not_mix(tmp_path: Path) -> None:
    path, zones = _beside(tmp_path), {0: None, 1: "UTC"}
    from sfumato.data.schema import Column
    from tests.workflow.test_stored_parts import SCHEMA

    for number, zone in zones.items():
        table = pq.read_table(tmp_path / "data" / part_name(number))
        moments = pa.array(range(number * 1000, number * 1000 + table.num_rows), pa.timestamp("us", zone))
        write_arrow(table.append_column("at", moments), tmp_path / "data" / part_name(number), store_schema=False)
    schema = SCHEMA.replace(columns={**SCHEMA.columns, "at": Column(role="plain", type="datetime")})
    refused(tmp_path, "of other types", schema=schema)
    assert path.exists()


def test_files_of_two_writers_do_not_mix(tmp_path: Path) -> None:
    path = _beside(tmp_path)
    write_duckdb(pq.read_table(path), path)
    refused(tmp_path, "of other types")


def test_an_empty_file_beside_others_is_refused(tmp_path: Path) -> None:
    _beside(tmp_path)
    write_arrow(rows(600).slice(0, 0), tmp_path / "data" / part_name(2), store_schema=False)
    refused(tmp_path, "no rows, and is not the only one")


def test_row_groups_of_one_row_are_refused(tmp_path: Path) -> None:
    path = _beside(tmp_path)
    pq.write_table(pq.read_table(path), path, compression="zstd", store_schema=False, row_group_size=1)
    refused(tmp_path, "groups of a size")


def test_indexes_of_pages_that_only_spark_writes_are_refused(tmp_path: Path) -> None:
    path = _beside(tmp_path)
    write_arrow(pq.read_table(path), path, store_schema=False, write_page_index=True)
    refused(tmp_path, "only Spark writes")


@pytest.mark.parametrize("odd", [float("nan"), -0.0])
def test_numbers_in_a_form_that_no_release_has_are_refused(tmp_path: Path, odd: float) -> None:
    (tmp_path / "private").mkdir()
    table = rows(50)
    odd_numbers = pa.array([odd] * 50)
    put(tmp_path / "data", table.set_column(4, "weight", odd_numbers), 1)
    refused(tmp_path, "another form")


def test_a_dictionary_in_another_order_is_refused(tmp_path: Path) -> None:
    path = _beside(tmp_path)
    table = pq.read_table(path)
    codes = table["disease"].combine_chunks().dictionary_encode()
    turned = pa.array(len(codes.dictionary) - 1 - codes.indices.to_numpy(), pa.int32())
    other = pa.DictionaryArray.from_arrays(turned, codes.dictionary[::-1])
    write_arrow(table.set_column(2, "disease", other), path, store_schema=False)
    refused(tmp_path, "another order than its rows")


def test_honest_files_are_read(tmp_path: Path) -> None:
    _beside(tmp_path)
    files: tuple[StoredFile, ...] = describe(tmp_path / "data")
    assert read(tmp_path, files).groups.records == 600
