"""Rows staged by Spark as a table of its session catalogue, published by a rename.

Spark has no transactions over tables: the staging table has a name of its own and can be listed by whoever may list tables of
that schema, until it is verified and renamed, or dropped. Only Parquet tables of the session catalogue are written. Other
catalogues and formats (Delta, Iceberg) commit in ways of their own, which no test here has seen: they are refused.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import SourceError, Unsupported, all_at_once, reported_as
from sfumato.core.files import hold_folder, take_over
from sfumato.data.relation import Relation
from sfumato.engines.plan import Plan, validate
from sfumato.engines.spark.relation import SparkRelation
from sfumato.engines.spark.sessions import asked_of, condition_of
from sfumato.engines.staging.base import SparkTable, Staged, unwritten
from sfumato.engines.staging.spark import ROW_GROUP_BYTES, sorted_frame

_CATALOGUE = "spark_catalog"
_FORMAT = "parquet"
_PREFIX = "sfumato_staging_"
_LONGEST = 128
_NAME = re.compile(f"[A-Za-z0-9_]{{1,{_LONGEST}}}")
_STAGING = re.compile(_PREFIX + r"[0-9a-f]{16}")
#: How the folders are called by whose locks the next run tells whether whoever staged a table is still there.
_MARK = "sfumato-spark-"


def check_spark_table(destination: SparkTable, relation: Relation, columns: Sequence[str] = ()) -> None:
    """Refuse a table that is there already, or that this session cannot write as a whole."""
    if not isinstance(relation, SparkRelation):
        raise Unsupported(
            f"{destination}: rows on the engine '{relation.engine}' are not written to Spark tables. Read the table with "
            "Spark, or choose a folder."
        )
    session = relation._session
    with asked_of(session):
        _check_catalogue(session, destination)
        schema, name = _placed(session, destination)
        if not session.catalog.databaseExists(_quoted(schema)):
            raise SourceError(f"{destination}: there is no schema '{schema}' in the catalogue of this session. Make it first.")
        _refuse_existing(session, destination, schema, name)
    all_at_once(Unsupported, f"columns of {destination}", _not_apart(columns))


@contextmanager
def staged_in_spark(
    relation: SparkRelation, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str], destination: SparkTable
) -> Iterator[Staged]:
    """Sorted rows in a table of another name, which is dropped when the block ends unless it was published."""
    check_spark_table(destination, relation, list(validate(plan)))
    session = relation._session

    def failed(error: Exception) -> SourceError:
        return unwritten(destination, f"Spark gave up ({condition_of(error)})")

    with asked_of(session):
        schema, name = _placed(session, destination)
        _sweep(session, schema)
    staging = f"{_PREFIX}{secrets.token_hex(8)}"
    path, settled = _quoted(schema, staging), False
    mark = hold_folder(lambda: _mark_of(staging))
    try:
        with sorted_frame(relation, plan, uploads, order, destination) as frame:
            _make(session, path, frame)
            frame.write.insertInto(path)
        written = SparkRelation(path, session=session)

        def publish() -> None:
            nonlocal settled
            with asked_of(session), reported_as(failed):
                _refuse_existing(session, destination, schema, name)
                session.sql(f"ALTER TABLE {path} RENAME TO {_quoted(schema, name)}")
            settled = True

        yield Staged(written.count(), written, publish)
    finally:
        if not settled:
            with suppress(Exception), asked_of(session):
                session.sql(f"DROP TABLE IF EXISTS {path}")
                settled = True
        if settled:
            mark.remove()
        else:  # a session that is gone: the next run finds the table by a mark that nobody holds
            mark.let_go()


def _make(session: Any, path: str, frame: Any) -> None:  # pyspark has no types
    """An empty table for the rows of a frame."""
    columns = ", ".join(f"`{each.name.replace('`', '``')}` {each.dataType.simpleString()}" for each in frame.schema.fields)
    options = f"compression 'zstd', 'parquet.block.size' '{ROW_GROUP_BYTES}'"
    session.sql(f"CREATE TABLE {path} ({columns}) USING {_FORMAT} OPTIONS ({options})")


def _check_catalogue(session: Any, destination: SparkTable) -> None:  # pyspark has no types
    """Only the session's own catalogue, and only where nobody has put another in its place."""
    parts = _parts(destination)
    current = session.catalog.currentCatalog()  # where names of two parts are looked up, which are all that a rename takes
    catalogue = parts[0] if len(parts) == 3 and current == _CATALOGUE else current
    replaced = session.conf.get(f"spark.sql.catalog.{_CATALOGUE}", None)
    if catalogue != _CATALOGUE or (replaced or "builtin") != "builtin":
        raise Unsupported(
            f"{destination}: the catalogue '{catalogue}' is not supported. Rows are written as Parquet tables of '{_CATALOGUE}' "
            "as Spark brings it; for Delta, Iceberg and other catalogues write a folder, and make a table of it."
        )


def _parts(destination: SparkTable) -> list[str]:
    parts = destination.name.split(".")
    if not 1 <= len(parts) <= 3 or not all(_NAME.fullmatch(part) for part in parts):
        raise SourceError(
            f"{destination}: write the name as table, schema.table or {_CATALOGUE}.schema.table. Each part has at most "
            f"{_LONGEST} letters from A to Z, digits and underscores: Spark's catalogue takes no others."
        )
    return parts


def _placed(session: Any, destination: SparkTable) -> tuple[str, str]:
    """The schema and the name of the table."""
    *outer, name = _parts(destination)
    return (outer[-1] if outer else str(session.catalog.currentDatabase())), name


def _quoted(*parts: str) -> str:
    return ".".join(f"`{part}`" for part in parts)


def _refuse_existing(session: Any, destination: SparkTable, schema: str, name: str) -> None:
    if session.catalog.tableExists(_quoted(schema, name)):
        raise SourceError(
            f"{destination} is there already, and Spark replaces no table in one step. Choose another name, or drop it first."
        )


def _not_apart(columns: Sequence[str]) -> Iterator[str]:
    """Names that Spark's tables do not tell apart, or do not take."""
    earlier: dict[str, str] = {}
    for name in columns:
        if name.lower() in earlier:
            yield f"Spark does not tell apart the columns '{earlier[name.lower()]}' and '{name}'"
        earlier[name.lower()] = name


def _mark_of(staging: str) -> Path:
    """The folder that a run holds as long as it may come back to its staging table."""
    return Path(tempfile.gettempdir()) / staging.replace(_PREFIX, _MARK)


def _sweep(session: Any, schema: str) -> None:  # pyspark has no types
    """Drop staging tables whose run is gone, as its mark says; those without a mark here, of other machines, stay."""
    for row in session.sql(f"SHOW TABLES IN {_quoted(schema)} LIKE '{_PREFIX}*'").collect():
        staging = row["tableName"]
        left = take_over(_mark_of(staging)) if _STAGING.fullmatch(staging) else None
        if left is not None:
            session.sql(f"DROP TABLE IF EXISTS {_quoted(schema, staging)}")
            left.remove()
