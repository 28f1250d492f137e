"""Released rows written by the engine that holds the original, to a folder of Parquet files or a table; this process never holds
them.

`staged` sorts and writes them to a staging place. They are read back and judged there; `publish` makes them appear in one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.progress import Progress, silent
from sfumato.data.relation import Relation
from sfumato.engines.address import is_postgres_url
from sfumato.engines.plan import Plan, validate
from sfumato.engines.snapshots import Snapshot
from sfumato.engines.sorted_answers import plain_schema, sort_columns
from sfumato.engines.staging import (
    DEFAULT_TABLE,
    DatabaseTable,
    Destination,
    ParquetFolder,
    SparkTable,
    Staged,
    StagedFile,
)

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

_SPARK = "spark:"
_DATABASE_ENDINGS = (".duckdb", ".ddb")


def destination_of(text: str | Path, table_name: str | None = None, overwrite: bool = False) -> Destination:
    """A destination as somebody writes it: `spark:catalog.schema.table`, a `postgresql://` URL, a DuckDB file, or a folder.

    >>> destination_of("spark:published.people")
    SparkTable(name='published.people', format=None, overwrite=False)
    """
    from sfumato.engines.duckdb import is_database

    address = str(text)
    if address.startswith(_SPARK):
        if table_name is not None:
            raise ParameterError(f"'{_SPARK}' is followed by the name of the table; leave table_name (--table-name) out")
        return SparkTable(address.removeprefix(_SPARK), overwrite=overwrite)
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
        raise ParameterError(f"'{path}' is a folder; table_name (--table-name) is for databases")
    return ParquetFolder(path, overwrite)


def check_destination(destination: Destination, relation: Relation | None = None) -> None:
    """Refuse a place where the rows could not be put, before the work that makes them."""
    if isinstance(destination, ParquetFolder):
        from sfumato.engines.staging_folder import check_folder

        check_folder(destination)
    else:
        raise Unsupported(f"{destination}: rows are written to folders of Parquet files only")


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
    columns = validate(plan)
    sorted_by = sort_columns(columns, order)
    source = relation.held if isinstance(relation, Snapshot) else relation
    if not isinstance(destination, ParquetFolder):
        raise Unsupported(f"{destination}: rows are written to folders of Parquet files only")
    if not hasattr(source, "deliver"):
        raise Unsupported(f"rows on the engine '{source.engine}' cannot be written to {destination}")
    from sfumato.engines.duckdb_files import ParquetFiles
    from sfumato.engines.staging_folder import publish_folder, staging_folder, write_parts

    with staging_folder(destination) as folder:
        schema = plain_schema(columns)
        threads, memory_limit = _limits(source)
        files: tuple[StagedFile, ...] = source.deliver(
            plan, uploads, sorted_by, lambda batches: write_parts(batches, schema, folder, destination, progress)
        )
        yield Staged(
            sum(file.rows for file in files),
            ParquetFiles([file.path for file in files], threads=threads, memory_limit=memory_limit),
            lambda: publish_folder(folder, destination),
            files,
        )


def _limits(relation: Relation) -> tuple[int | None, str | None]:
    """What reading may use, where the relation says so."""
    from sfumato.engines.duckdb import DuckDBRelation

    return relation.limits if isinstance(relation, DuckDBRelation) else (None, None)
