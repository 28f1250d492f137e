"""Files with text that is not UTF-8, read by DuckDB: such a cell is missing (in CSV its row), where reading is lenient.

DuckDB gives up a whole query for one such cell, so that a failure would reveal that somebody has one. Then the question is
asked again over the same file with its texts as bytes, decoded where they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sfumato.engines.plan import Plan, scans

if TYPE_CHECKING:
    import duckdb

    from sfumato.engines.sql.compile import PhysicalTable

R = TypeVar("R")


def asked_again(
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    tables: Mapping[str, PhysicalTable],
    ask: Callable[[Mapping[str, PhysicalTable]], R],
) -> R:
    """The answer; where text stands in the way of a lenient plan, the answer without that text."""
    import duckdb

    if reads_leniently(plan):
        # At once: DuckDB 1.5 stops for good where it finds such a text in a CSV file of which it reads some columns.
        tables = {name: _without_broken_lines(table) for name, table in tables.items()}
    try:
        return ask(tables)
    except duckdb.InvalidInputException as error:
        if not reads_leniently(plan) or not _is_about_text(str(error)):
            raise
    with _decoded_where_possible(connection, tables) as mended:
        return ask(mended)


@contextmanager
def errors_of_a_reader() -> Iterator[None]:
    """Arrow passes DuckDB's errors on as its own, values included: here they are DuckDB's again, which are never shown."""
    import duckdb

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        message = str(error)
        conversion = message.startswith("Conversion Error")
        raise (duckdb.ConversionException if conversion else duckdb.InvalidInputException)(message) from None


def reads_leniently(plan: Plan) -> bool:
    """True where a cell that cannot be read is to be missing instead of an error."""
    return any(field.lenient for scan in scans(plan) for field in scan.columns)


def _is_about_text(message: str) -> bool:
    return "Invalid string encoding found in Parquet" in message


def _without_broken_lines(table: PhysicalTable) -> PhysicalTable:
    return replace(table, options=(*table.options, ("ignore_errors", True))) if table.function == "read_csv" else table


@contextmanager
def _decoded_where_possible(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, PhysicalTable]
) -> Iterator[dict[str, PhysicalTable]]:
    mended = dict(tables)
    views: list[str] = []
    try:
        for name, table in tables.items():
            if table.function == "read_parquet":
                views.append(f"broken{len(views)}")
                mended[name] = _view(connection, views[-1], table)
        yield mended
    finally:
        for view in views:
            connection.execute(f"DROP VIEW IF EXISTS {view}_decoded")
            connection.unregister(view)


def _view(connection: duckdb.DuckDBPyConnection, name: str, table: PhysicalTable) -> PhysicalTable:
    """The file by way of Arrow, which does not look into texts; columns under plain names, because Arrow's may differ in
    case alone."""
    from pyarrow import dataset

    from sfumato.engines.sql.compile import PhysicalTable

    stored = dataset.dataset(list(table.path), format="parquet").schema
    plain = pa.schema([field.with_type(_bytes(field.type)) for field in stored])
    connection.register(name, dataset.dataset(list(table.path), schema=plain, format="parquet"))
    theirs = connection.view(name).columns
    chosen = []
    # Only names of columns, quoted, and of this view are written into the text.
    for place, (label, field) in enumerate(zip(theirs, stored, strict=True)):
        quoted = '"' + label.replace('"', '""') + '"'
        value = quoted if plain.field(place).type == field.type else f"TRY(decode({quoted}))"
        chosen.append(f"{value} AS c{place}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {name}_decoded AS SELECT {', '.join(chosen)} FROM {name}")  # noqa: S608
    return PhysicalTable((f"{name}_decoded",), columns={label: f"c{place}" for place, label in enumerate(stored.names)})


def _bytes(arrow_type: pa.DataType) -> pa.DataType:
    own = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    text = pa.types.is_string(own) or pa.types.is_large_string(own) or pa.types.is_string_view(own)
    return pa.large_binary() if text else arrow_type
