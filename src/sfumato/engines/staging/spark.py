"""Rows staged by Spark: ranges of the sort order, each sorted and written by one task, so that its files in turn are sorted.

A folder must be one that all workers write to: of this machine, or mounted everywhere. Spark's own marks and checksums are
removed, its files renamed. A job that is stopped is stopped on the cluster too.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from sfumato.core.errors import SourceError, reported_as
from sfumato.core.files import remove_tree
from sfumato.data.relation import Relation
from sfumato.engines.class_queries import ROWS
from sfumato.engines.duckdb.files import ParquetFiles
from sfumato.engines.plan import Plan
from sfumato.engines.spark.relation import SparkRelation
from sfumato.engines.spark.sessions import SparkFrame, asked_of, condition_of
from sfumato.engines.sql.sorted_answers import plain_values, sort_columns
from sfumato.engines.sql.unreadable_texts import unreadable_counted
from sfumato.engines.staging.base import Destination, ParquetFolder, StagedFile, unwritten
from sfumato.engines.staging.folder import part_name, refuse_to_write, staged_file

#: What a file must not depend on the session for: the form of moments, names that differ in case alone, commits by rename.
_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.caseSensitive": "true",
}
#: Whoever verifies unpacks a row group at a time. Its size is that of packed pages, which sorted rows fill slowly, and Parquet's
#: writer for Java counts no rows: the bound of a file bounds what rows that hardly differ make of it.
ROW_GROUP_BYTES = 1024 * 1024
ROWS_PER_FILE = 1024 * 1024
_WRITTEN = re.compile(r"part-(\d+)-.*-c(\d+)\.zstd\.parquet")


def write_spark_folder(
    relation: SparkRelation,
    plan: Plan,
    uploads: Mapping[str, pa.Table],
    order: Sequence[str],
    folder: Path,
    destination: ParquetFolder,
) -> tuple[StagedFile, ...]:
    """Let Spark write the sorted answer to a plan into a folder."""
    inside = folder / "spark"
    with sorted_frame(relation, plan, uploads, order, destination) as frame:
        writer = frame.write.option("compression", "zstd").option("parquet.block.size", ROW_GROUP_BYTES)
        writer = writer.option("maxRecordsPerFile", min(destination.rows_per_file, ROWS_PER_FILE))
        # The second way of committing shows files of tasks that are not yet done.
        writer = writer.option("mapreduce.fileoutputcommitter.algorithm.version", "1")
        writer.parquet(inside.as_uri())
    return _taken_over(inside, folder, destination)


def read_spark_folder(relation: SparkRelation, files: Sequence[StagedFile]) -> Relation:
    """The staged files as Spark reads them; DuckDB reads those whose columns differ in case alone."""
    names = _names(files[0].path)
    if len({name.lower() for name in names}) < len(names):
        return ParquetFiles([file.path for file in files])
    with asked_of(relation._session):
        return SparkRelation(relation._session.read.parquet(*(file.path.as_uri() for file in files)))


@contextmanager
def sorted_frame(
    relation: SparkRelation, plan: Plan, uploads: Mapping[str, pa.Table], order: Sequence[str], destination: Destination
) -> Iterator[SparkFrame]:
    """The answer to a plan in ranges of the sort order, each sorted, under the plan's names; errors are those of writing."""
    session = relation._session

    def failed(error: Exception) -> SourceError:
        return unwritten(destination, f"Spark gave up ({condition_of(error)})")

    with asked_of(session), reported_as(failed), unreadable_counted(plan, {ROWS: relation}), _stoppable(session):
        with relation.prepared(plan, uploads) as query, _settings(session):
            columns = query.columns
            places = {name: f"v{place}" for place, name in enumerate(columns)}
            frame = session.sql(plain_values(query).sql(dialect="spark"))
            keys = [frame[places[name]].asc_nulls_last() for name in sort_columns(columns, order)]
            yield frame.repartitionByRange(*keys).sortWithinPartitions(*keys).toDF(*columns)


@contextmanager
def _settings(session: Any) -> Iterator[None]:
    """The settings that written files depend on, as they must be while a frame is written."""
    before = {name: session.conf.get(name, None) for name in _SETTINGS}
    try:
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, value)


@contextmanager
def _stoppable(session: Any) -> Iterator[None]:
    """Whatever ends this block early ends its jobs on the cluster."""
    tag = f"sfumato-{secrets.token_hex(8)}"
    session.addTag(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # a cluster that is gone has no jobs
            session.interruptTag(tag)
        raise
    finally:
        with suppress(Exception):
            session.removeTag(tag)


def _taken_over(inside: Path, folder: Path, destination: ParquetFolder) -> tuple[StagedFile, ...]:
    """Spark's files under our names, in the order of their ranges; files without rows are left out unless there is no other."""
    try:
        written = sorted((int(m[1]), int(m[2]), name) for name in os.listdir(inside) if (m := _WRITTEN.fullmatch(name)))
        counted = [(inside / name, _rows(inside / name)) for _, _, name in written]
        kept = [entry for entry in counted if entry[1]] or counted[:1]
        if not kept:
            raise unwritten(destination, "Spark's workers wrote nothing that can be seen from here; they must share this folder")
        files = []
        for number, (path, rows) in enumerate(kept):
            target = folder / part_name(number)
            path.chmod(0o600)
            os.rename(path, target)
            files.append(staged_file(target, rows, destination))
        remove_tree(inside)
        return tuple(files)
    except OSError as error:
        refuse_to_write(destination, error)


def _rows(path: Path) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def _names(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)
