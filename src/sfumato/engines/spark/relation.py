"""Rows in Spark: a DataFrame or a table of the running session; questions run on the cluster, answers come
as Arrow.

Columns are renamed by position before Spark sees a query, because it does not tell apart names that differ
in case alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from sfumato.core.errors import MissingExtra, SchemaError, SourceError, all_at_once
from sfumato.data.relation import Relation
from sfumato.data.schema import Type
from sfumato.engines.canonical import canonical_columns, canonical_table, decoded_table
from sfumato.engines.class_queries import ROWS, table_fields
from sfumato.engines.distinct_units import exact_kind
from sfumato.engines.expressions import Kind
from sfumato.engines.joining import not_together
from sfumato.engines.plan import Field, Plan, scans
from sfumato.engines.spark.file_states import FileStates, file_states
from sfumato.engines.spark.sessions import asked_of, check_deterministic, check_version, short_methods
from sfumato.engines.sql.relation import SqlRelation, declared_fields
from sfumato.engines.sql.unreadable_texts import unreadable_counted

if TYPE_CHECKING:
    from sfumato.engines.sql.compile import CompiledQuery, PhysicalTable

_KINDS: Mapping[str, Kind] = {
    "boolean": "boolean",
    "tinyint": "integer",
    "smallint": "integer",
    "int": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "date": "date",
    "timestamp": "instant",
    "timestamp_ntz": "datetime",
    "binary": "binary",
}


#: A column of our views that their frames do not have.
_APART = "sfumato_view"


class SparkRelation(SqlRelation):
    """A Spark DataFrame, or the name of a table or view in `session`.

    `batches` collects the rows to the driver first; `group` and `recode` send only their answers.
    """

    engine = "spark"

    def __init__(
        self,
        source: Any,  # pyspark has no types
        *,
        session: Any = None,  # pyspark has no types
        types: Mapping[str, Type] | None = None,
        missing: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._types = types
        self._missing = missing
        self._files: FileStates | None = None
        self._session = self._running(session) if isinstance(source, str) else source.sparkSession
        check_version(self._session)
        with asked_of(self._session):
            self._frame = self._open(source) if isinstance(source, str) else source
            check_deterministic(self._frame)
            names = self._frame.columns
        twice = sorted({name for name in names if names.count(name) > 1})
        all_at_once(SchemaError, "DataFrame", (f"the column name '{name}' occurs more than once" for name in twice))

    def __repr__(self) -> str:
        return f"SparkRelation({len(self._frame.columns)} columns)"

    @staticmethod
    def _running(session: Any) -> Any:
        chosen = session or active_session()
        if chosen is None:
            raise SourceError("there is no running Spark session; create one first or pass session=")
        return chosen

    def _open(self, table: str) -> Any:
        if not self._session.catalog.tableExists(table):
            raise SourceError(f"Spark has no table or view '{table}'")
        return self._session.table(table)

    @contextmanager
    def snapshot(self) -> Iterator[Self]:
        """The same rows: of files that are shown as they are, refused where one changes; else computed once and kept by the
        executors, where Spark fails rather than compute what it lost again."""
        held = self._with_fields(self.fields)
        with asked_of(self._session):
            held._files = file_states(self._frame)
            if held._files is None:
                held._frame = self._frame.localCheckpoint(eager=True)
        yield held

    @contextmanager
    def kept(self, columns: Sequence[str]) -> Iterator[Self]:
        """The same rows for several questions. Of files that are shown as they are, each question reads its columns again, and
        is refused where a file changes; of any other frame these columns are computed once and kept by the executors."""
        from pyspark import StorageLevel

        held = self._with_fields(self.fields)
        with asked_of(self._session):
            held._files = file_states(self._frame)
            if held._files is not None:  # to keep rows takes longer than to read columns of files again
                yield held
                return
            names = list(self._frame.columns)
            places = {f"s{names.index(name)}": name for name in columns}
            numbered = self._frame.toDF(*(f"s{place}" for place in range(len(names))))
            stored = numbered.select(*places).persist(StorageLevel.MEMORY_AND_DISK)
            held._frame = stored.toDF(*places.values())
        try:
            yield held
        finally:
            with suppress(Exception):  # what is gone by now is kept no more
                stored.unpersist()

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order."""
        stored: dict[str, Kind] = {}
        exact: dict[str, Kind] = {}
        with asked_of(self._session):
            entries = self._frame.schema.fields
        for entry in entries:
            sql_type = entry.dataType.simpleString()
            stored[entry.name] = "number" if sql_type.startswith("decimal") else _KINDS.get(sql_type, "string")
            if sql_type.startswith("decimal"):
                exact[entry.name] = exact_kind(entry.dataType.precision, entry.dataType.scale)
        by_text = {entry.name for entry in entries if entry.dataType.simpleString() == "float"}
        return declared_fields(stored, self._types, self._missing, exact, by_text)

    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows`, uploaded tables and other tables of the same session."""
        with unreadable_counted(plan, {**(beside or {}), ROWS: self}), self._asked(plan, uploads, beside) as (frame, query):
            return _canonical(frame.toArrow(), query)

    @contextmanager
    def _asked(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> Iterator[tuple[Any, CompiledQuery]]:
        """The frame that answers a plan, as long as its tables are there."""
        with asked_of(self._session), self.prepared(plan, uploads, beside) as query:
            yield self._session.sql(query.sql), query

    @contextmanager
    def prepared(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> Iterator[CompiledQuery]:
        """The query of a plan over views that are there as long as the block lasts."""
        from sfumato.engines.sql.compile import compile_plan

        relations: dict[str, SparkRelation] = {ROWS: self}
        for name, other in (beside or {}).items():
            if not isinstance(other, SparkRelation) or other._session is not self._session:
                raise not_together(self, name, other)
            relations[name] = other
        needed = {scan.table for scan in scans(plan)}
        with ExitStack() as stack:
            frames = {name: relation._frame for name, relation in relations.items()}
            tables = {name: stack.enter_context(self._view(frame, list(frame.columns))) for name, frame in frames.items()}
            for name, table in (uploads or {}).items():
                if name in needed:
                    clean = canonical_columns(table)
                    frame = self._session.createDataFrame(for_spark(clean), schema=spark_schema(clean))
                    tables[name] = stack.enter_context(self._view(frame, table.column_names, clean=True))
            for relation in relations.values():
                relation._check_files()
            stack.enter_context(short_methods(self._session))
            yield compile_plan(plan, "spark", tables)
            for relation in relations.values():
                relation._check_files()

    def _check_files(self) -> None:
        if self._files is not None:
            self._files.check()

    def stream(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The answer to a plan over `rows`, a batch at a time."""
        for batch in self.run(plan).to_batches():
            if batch.num_rows:
                yield batch

    @contextmanager
    def _view(self, frame: Any, names: Sequence[str], *, clean: bool = False) -> Iterator[PhysicalTable]:
        from sfumato.engines.sql.compile import PhysicalTable

        view = f"sfumato_{uuid.uuid4().hex}"
        columns = {name: f"s{i}" for i, name in enumerate(names)}
        from pyspark.sql.functions import lit

        # To drop a view is to forget what is kept of its rows, if it shows the same columns. No question reads the one more.
        frame.toDF(*columns.values()).withColumn(_APART, lit(1)).createOrReplaceTempView(view)
        try:
            yield PhysicalTable((view,), columns=columns, clean=clean)
        finally:
            self._session.catalog.dropTempView(view)


def active_session() -> Any:  # pyspark has no types
    """The running Spark session, or None."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("pyspark", "spark", "reading from Spark") from None
    return SparkSession.getActiveSession()


def for_spark(table: pa.Table) -> pa.Table:
    """A canonical table as Spark takes it: without dictionaries, under plain names."""
    plain = decoded_table(table)
    return plain.rename_columns([f"s{i}" for i in range(plain.num_columns)])


def spark_schema(table: pa.Table) -> str:
    """The types of `for_spark(table)` in Spark's words."""
    from sfumato.engines.sql.values import sql_type

    return ", ".join(f"s{i} {sql_type(field.kind, 'spark').sql(dialect='spark')}" for i, field in enumerate(table_fields(table)))


def _canonical(answer: pa.Table, query: CompiledQuery) -> pa.Table:
    return canonical_table(answer, list(query.columns), list(query.columns.values()))
