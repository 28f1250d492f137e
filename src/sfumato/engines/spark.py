"""Rows in Spark: a DataFrame or a table of the running session; questions run on the cluster, answers come
as Arrow.

Columns are renamed by position before Spark sees a query, because it does not tell apart names that differ
in case alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.core.errors import MissingExtra, SchemaError, SourceError, all_at_once
from sfumato.data.relation import Relation
from sfumato.data.schema import Type
from sfumato.engines.canonical import canonical, canonical_table, decoded_table
from sfumato.engines.class_queries import ROWS, table_fields
from sfumato.engines.expressions import Kind
from sfumato.engines.plan import Field, Plan, scans
from sfumato.engines.queryable import not_together
from sfumato.engines.sql_relation import SqlRelation, declared_fields
from sfumato.engines.told_apart import exact_kind

if TYPE_CHECKING:
    from sfumato.engines.compile import CompiledQuery, PhysicalTable

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


class SparkRelation(SqlRelation):
    """A Spark DataFrame, or the name of a table or view in `session`.

    `batches` collects the rows to the driver first; `group` and `recode` send only their answers.
    """

    engine = "spark"

    def __init__(
        self,
        source: Any,
        *,
        session: Any = None,
        types: Mapping[str, Type] | None = None,
        missing: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._frame = self._open(source, session) if isinstance(source, str) else source
        self._session = self._frame.sparkSession
        self._types = types
        self._missing = missing
        names = self._frame.columns
        twice = sorted({name for name in names if names.count(name) > 1})
        all_at_once(SchemaError, "DataFrame", (f"the column name '{name}' occurs more than once" for name in twice))

    def __repr__(self) -> str:
        return f"SparkRelation({len(self._frame.columns)} columns)"

    @staticmethod
    def _open(table: str, session: Any) -> Any:
        chosen = session or active_session()
        if chosen is None:
            raise SourceError("there is no running Spark session; create one first or pass session=")
        if not chosen.catalog.tableExists(table):
            raise SourceError(f"Spark has no table or view '{table}'")
        return chosen.table(table)

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The columns by name, in order."""
        stored: dict[str, Kind] = {}
        exact: dict[str, Kind] = {}
        for entry in self._frame.schema.fields:
            given = entry.dataType.simpleString()
            stored[entry.name] = "number" if given.startswith("decimal") else _KINDS.get(given, "string")
            if given.startswith("decimal"):
                exact[entry.name] = exact_kind(entry.dataType.precision, entry.dataType.scale)
        return declared_fields(stored, self._types, self._missing, exact)

    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows`, uploaded tables and other tables of the same session."""
        from sfumato.engines.compile import compile_plan

        relations: dict[str, SparkRelation] = {ROWS: self}
        for name, other in (beside or {}).items():
            if not isinstance(other, SparkRelation) or other._session is not self._session:
                raise not_together(self, name, other)
            relations[name] = other
        needed = {scan.table for scan in scans(plan)}
        with ExitStack() as stack, _plain_errors():
            frames = {name: relation._frame for name, relation in relations.items()}
            tables = {name: stack.enter_context(self._view(frame, list(frame.columns))) for name, frame in frames.items()}
            for name, table in (uploads or {}).items():
                if name in needed:
                    clean = canonical(table)
                    frame = self._session.createDataFrame(for_spark(clean), schema=spark_schema(clean))
                    tables[name] = stack.enter_context(self._view(frame, table.column_names, clean=True))
            query = compile_plan(plan, "spark", tables)
            return _canonical(self._session.sql(query.sql).toArrow(), query)

    def stream(self, plan: Plan) -> Iterator[pa.RecordBatch]:
        """The answer to a plan over `rows`, a batch at a time."""
        for batch in self.run(plan).to_batches():
            if batch.num_rows:
                yield batch

    @contextmanager
    def _view(self, frame: Any, names: Sequence[str], *, clean: bool = False) -> Iterator[PhysicalTable]:
        from sfumato.engines.compile import PhysicalTable

        view = f"sfumato_{uuid.uuid4().hex}"
        columns = {name: f"s{i}" for i, name in enumerate(names)}
        frame.toDF(*columns.values()).createOrReplaceTempView(view)
        try:
            yield PhysicalTable((view,), columns=columns, clean=clean)
        finally:
            self._session.catalog.dropTempView(view)


def active_session() -> Any:
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
    from sfumato.engines.sql_values import sql_type

    return ", ".join(f"s{i} {sql_type(field.kind, 'spark').sql(dialect='spark')}" for i, field in enumerate(table_fields(table)))


def _canonical(answer: pa.Table, query: CompiledQuery) -> pa.Table:
    return canonical_table(answer, list(query.columns), list(query.columns.values()))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Spark quotes values in its messages; ours name the class of the error alone."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
        raise SourceError(f"Spark could not answer the question ({condition})") from None
