"""Released rows written by the engine that holds the original, to a folder of Parquet files or a table; this process never holds
them.

`staged` sorts and writes them to a staging place. They are read back and judged there; `publish` makes them appear in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import pyarrow as pa

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.progress import Progress, silent
from sfumato.data.relation import Relation
from sfumato.engines.address import is_postgres_url
from sfumato.engines.plan import Plan, validate
from sfumato.engines.snapshots import Snapshot
from sfumato.engines.sql.sorted_answers import plain_schema, sort_columns
from sfumato.engines.staging.base import (
    DEFAULT_TABLE,
    DatabaseTable,
    Destination,
    ParquetFolder,
    SparkTable,
    Staged,
    StagedFile,
)

if TYPE_CHECKING:
    from sfumato.engines.spark.relation import SparkRelation

__all__ = [
    "DatabaseTable",
    "Destination",
    "ParquetFolder",
    "SparkTable",
    "Staged",
    "StagedFile",
    "check_destination",
    "destination_of",
    "staged",
]

R = TypeVar("R")

_SPARK = "spark:"
_DATABASE_ENDINGS = (".duckdb", ".ddb")


def destination_of(text: str | Path, table_name: str | None = None, overwrite: bool = False) -> Destination:
    """A destination as somebody writes it: `spark:catalog.schema.table`, a `postgresql://` URL, a DuckDB file, or a folder.

    >>> destination_of("spark:published.people")
    SparkTable(name='published.people')
    """
    from sfumato.engines.duckdb.relation import is_database

    address = str(text)
    if address.startswith(_SPARK):
        if table_name is not None:
            raise ParameterError(f"'{_SPARK}' is followed by the name of the table; leave table_name (--destination-table) out")
        return SparkTable(address.removeprefix(_SPARK))
    if is_postgres_url(address):
        return DatabaseTable(address, table_name or DEFAULT_TABLE, overwrite)
    if "://" in address:
        kind = address.split("://")[0]
        raise ParameterError(
            f"rows cannot be written to '{kind[:20]}://'. Use a folder, postgresql://, a DuckDB file or spark:table."
        )
    path = Path(address)
    if path.suffix.lower() in _DATABASE_ENDINGS or is_database(path):
        return DatabaseTable(address, table_name or DEFAULT_TABLE, overwrite)
    if table_name is not None:
        raise ParameterError(f"'{path}' is a folder; table_name (--destination-table) is for databases")
    return ParquetFolder(path, overwrite)


def check_destination(destination: Destination, relation: Relation | None = None) -> None:
    """Refuse a place where the rows could not be put, before the work that makes them."""
    if isinstance(destination, ParquetFolder):
        from sfumato.engines.staging.folder import check_folder

        check_folder(destination)
    elif isinstance(destination, SparkTable):
        if relation is not None:
            from sfumato.engines.staging.spark_table import check_spark_table

            check_spark_table(destination, relation.held if isinstance(relation, Snapshot) else relation)
    elif destination.is_postgres:
        from sfumato.engines.staging.postgres import check_postgres

        check_postgres(destination)
    else:
        from sfumato.engines.staging.duckdb import check_duckdb

        check_duckdb(destination)
        _refuse_source(destination, relation)


def _refuse_source(destination: DatabaseTable, relation: Relation | None) -> None:
    from sfumato.engines.duckdb.relation import DuckDBRelation

    source = relation.held if isinstance(relation, Snapshot) else relation
    if isinstance(source, DuckDBRelation) and source.reads(Path(destination.address)):
        raise Unsupported(
            f"'{destination.address}' is the file that is read, so it cannot be written meanwhile. Choose another one."
        )


@contextmanager
def staged(
    relation: Relation,
    plan: Plan,
    uploads: Mapping[str, pa.Table],
    destination: Destination,
    *,
    order: Sequence[str] = (),
    progress: Progress = silent,
) -> Iterator[Staged]:
    """The answer to a plan over `relation` (as `rows`) and uploaded tables, written by the engine beside its destination.

    Rows are sorted by `order` and then by all other columns, text by bytes, missing values last. When the block ends without
    `publish`, nothing is left and the destination is as it was.
    """
    sorted_by = sort_columns(validate(plan), order)
    source = relation.held if isinstance(relation, Snapshot) else relation
    if isinstance(destination, DatabaseTable):
        with _staged_table(source, plan, uploads, sorted_by, destination, progress) as result:
            yield result
        return
    if isinstance(destination, SparkTable):
        with _staged_spark_table(source, plan, uploads, sorted_by, destination, progress) as result:
            yield result
        return
    with _staged_folder(source, plan, uploads, sorted_by, destination, progress) as result:
        yield result


@contextmanager
def _staged_folder(
    source: Relation,
    plan: Plan,
    uploads: Mapping[str, pa.Table],
    order: Sequence[str],
    destination: ParquetFolder,
    progress: Progress,
) -> Iterator[Staged]:
    from sfumato.engines.staging.folder import publish_folder, staging_folder, write_parts

    with staging_folder(destination) as folder:
        files: tuple[StagedFile, ...]
        written: Relation
        spark = _spark_relation(source)
        if spark is not None:
            from sfumato.engines.staging.spark import read_spark_folder, write_spark_folder

            progress("writing rows", 0, 0)
            files = write_spark_folder(spark, plan, uploads, order, folder, destination)
            written = read_spark_folder(spark, files)
        else:
            from sfumato.engines.duckdb.files import ParquetFiles

            schema = plain_schema(validate(plan))
            files = _deliverer(source, destination).deliver(
                plan, uploads, order, lambda batches: write_parts(batches, schema, folder, destination, progress)
            )
            threads, memory_limit = _limits(source)
            written = ParquetFiles([file.path for file in files], threads=threads, memory_limit=memory_limit)
        rows = sum(file.rows for file in files)
        yield Staged(rows, written, lambda: publish_folder(folder, destination), files)


def _staged_table(
    source: Relation,
    plan: Plan,
    uploads: Mapping[str, pa.Table],
    order: Sequence[str],
    destination: DatabaseTable,
    progress: Progress,
) -> AbstractContextManager[Staged]:
    columns = validate(plan)
    progress("writing rows", 0, 0)
    if not destination.is_postgres:
        from sfumato.engines.staging.duckdb import staged_in_duckdb

        _refuse_source(destination, source)
        return staged_in_duckdb(
            lambda take: _deliverer(source, destination).deliver(plan, uploads, order, take), columns, destination
        )
    from sfumato.engines.postgres.relation import PostgresRelation
    from sfumato.engines.staging.postgres import fill_from, fill_in_place, staged_in_postgres

    if isinstance(source, PostgresRelation) and source.is_in(destination.address):
        return staged_in_postgres(fill_in_place(source, plan, uploads, order), columns, destination)
    deliver = _deliverer(source, destination).deliver
    fill = fill_from(lambda take: deliver(plan, uploads, order, take), plain_schema(columns))
    return staged_in_postgres(fill, columns, destination)


def _staged_spark_table(
    source: Relation,
    plan: Plan,
    uploads: Mapping[str, pa.Table],
    order: Sequence[str],
    destination: SparkTable,
    progress: Progress,
) -> AbstractContextManager[Staged]:
    spark = _spark_relation(source)
    if spark is None:
        raise Unsupported(f"rows on the engine '{source.engine}' cannot be written to {destination}")
    from sfumato.engines.staging.spark_table import staged_in_spark

    progress("writing rows", 0, 0)
    return staged_in_spark(spark, plan, uploads, order, destination)


def _spark_relation(relation: Relation) -> SparkRelation | None:
    """The relation where it is Spark's, asked by name so that nobody without Spark pays for its import."""
    if relation.engine != "spark":
        return None
    from sfumato.engines.spark.relation import SparkRelation

    return relation if isinstance(relation, SparkRelation) else None


class _Deliverer(Protocol):
    """A relation that hands over sorted answers a batch at a time."""

    def deliver(
        self, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str], take: Callable[[Iterator[pa.RecordBatch]], R]
    ) -> R: ...


def _deliverer(source: Relation, destination: Destination) -> _Deliverer:
    if not hasattr(source, "deliver"):
        raise Unsupported(f"rows on the engine '{source.engine}' cannot be written to {destination}")
    return cast(_Deliverer, source)


def _limits(relation: Relation) -> tuple[int | None, str | None]:
    """What reading may use, where the relation says so."""
    from sfumato.engines.duckdb.relation import DuckDBRelation

    return relation.limits if isinstance(relation, DuckDBRelation) else (None, None)
