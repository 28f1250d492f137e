"""Open a table wherever it is: a file, a frame in memory, a DuckDB file, PostgreSQL, Spark.

The source decides the engine: files and frames are held in memory, databases stay where they are.
`engine="duckdb"` leaves a Parquet or CSV file on disk, `engine="memory"` brings a database table here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sfumato.core.errors import ParameterError, SourceError, forgetting, reported_as
from sfumato.core.plain_files import refuse_special
from sfumato.data.microdata import Microdata
from sfumato.data.relation import Relation
from sfumato.data.schema import Column, Schema, Type
from sfumato.engines.address import is_postgres_url, redacted

if TYPE_CHECKING:
    from sfumato.data.read_result import Unreadable

Engine = Literal["memory", "duckdb", "postgres", "spark"]
#: A schema as somebody has it: itself, its file, or what the file says as plain data.
SchemaLike = Schema | str | Path | Mapping[str, Any]
#: A table as somebody has it: microdata, or whatever `read` opens (a file, a frame, an Arrow table or reader, the URL of a
#: database). No common type has all of them, and frames come from packages that need not be installed; `read` refuses the rest.
TableLike: TypeAlias = object

#: Endings of files whose rows can stay in them.
LAZY_FILES = (".parquet", ".pq", ".csv", ".tsv", ".txt")
_DATABASE_FILES = (".duckdb", ".db", ".ddb")


def _is_memory(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"(?i)-1|\d+(\.\d+)?\s*([kmgt](i?b)?|b|bytes)", value.strip()) is not None


#: What the options of readers take, and how that is said: a wrong one is no fault of the file.
_OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "separator": (
        lambda value: isinstance(value, str) and len(value) == 1 and value not in '"\r\n',
        "one character, and neither a quote nor a line break",
    ),
    "encoding": (lambda value: isinstance(value, str) and value != "", "the name of an encoding"),
    "strip": (lambda value: isinstance(value, bool), "True or False"),
    "as_text": (lambda value: isinstance(value, bool), "True or False"),
    "sheet": (lambda value: isinstance(value, (str, int)) and not isinstance(value, bool), "the name or number of a sheet"),
    "threads": (lambda value: type(value) is int and value > 0, "a whole number above 0"),
    "memory_limit": (_is_memory, "an amount of memory such as '2GB'"),
}


@forgetting()
def read(
    source: TableLike,
    schema: SchemaLike | None = None,
    *,
    table: str | None = None,
    engine: Engine | None = None,
    unreadable: Unreadable = "refuse",
    **options: object,
) -> Microdata:
    """Open a table about people, with its schema.

    `source` is a path (CSV, Parquet, Arrow, Excel, SPSS, Stata, SAS, DuckDB), a pandas or polars DataFrame,
    an Arrow table or reader, a `postgresql://` URL with `table`, a Spark DataFrame, or with
    `engine="spark"` the name of a Spark table. `schema` is a TOML file, a `Schema`, a mapping, or None:
    then every column is described as plain. A value that is `unreadable` as its declared type is an error
    that says where, for the owner; with `unreadable="missing"` it is missing, so that no single record
    decides whether the table can be read: use that where others ask, or leave it to the session with
    databases and Spark. Further options go to the reader of the source: `separator`,
    `encoding`, `decimal`, `strip`, `sheet`; `threads` and `memory_limit` for DuckDB; `session` for Spark.

    >>> import pyarrow as pa
    >>> people = read(pa.table({"age": [34, 51]}), {"dataset": "demo", "columns": {"age": {"role": "quasi"}}})
    >>> len(people), people.schema.quasi
    (2, ('age',))
    """
    if engine not in (None, "memory", "duckdb", "postgres", "spark"):
        raise ParameterError(f"there is no engine '{engine}'; choose memory, duckdb, postgres or spark")
    if unreadable not in ("refuse", "missing"):
        raise ParameterError("unreadable is 'refuse' or 'missing'")
    declared = _schema(schema)
    with reported_as(lambda error: SourceError(f"the table could not be read ({type(error).__name__}); it may be damaged")):
        opened = _open(source, declared, table, engine, unreadable, options)
        if unreadable == "missing":
            from sfumato.engines.sql.relation import lenient

            opened = replace(opened, relation=lenient(opened.relation))
        if engine == "memory" and opened.relation.engine != "memory":
            opened = _in_memory(opened, declared, unreadable)
    if declared is not None:
        return opened.with_schema(declared)
    return opened


def _schema(source: SchemaLike | None) -> Schema | None:
    if source is None or isinstance(source, Schema):
        return source
    return Schema.parse(source) if isinstance(source, Mapping) else Schema.load(source)


def _open(
    source: Any,
    schema: Schema | None,
    table: str | None,
    engine: Engine | None,
    unreadable: Unreadable,
    options: Mapping[str, Any],
) -> Microdata:
    if is_postgres_url(source):
        return _postgres(source, schema, table, engine, options)
    if isinstance(source, str) and "://" in source:
        raise SourceError(f"addresses of the kind '{source.split('://')[0]}://' are not supported; use postgresql:// or a file")
    if engine == "spark" or _is_spark_frame(source):
        return _spark(source, schema, table, engine, options)
    if engine == "postgres":
        raise SourceError("engine='postgres' needs a postgresql:// URL as source")
    if isinstance(source, (str, Path)):
        return _file(Path(source), schema, table, engine, unreadable, options)
    return _frame(source, schema, table, engine, unreadable, options)


def _postgres(url: str, schema: Schema | None, table: str | None, engine: Engine | None, options: Mapping[str, Any]) -> Microdata:
    from sfumato.engines.postgres.relation import PostgresRelation

    if engine not in (None, "postgres", "memory"):
        raise SourceError(f"a PostgreSQL table cannot be read with engine='{engine}'")
    _no_other(options, ())
    if table is None:
        raise SourceError(f"{redacted(url)}: name the table with table= in Python, or --table where a command has it")
    declared = None if engine == "memory" else schema
    relation = PostgresRelation(url, table, types=_types(declared), missing=_missing(declared))
    return _described(relation, f"{redacted(url)}, table {table}", table)


def _spark(source: Any, schema: Schema | None, table: str | None, engine: Engine | None, options: Mapping[str, Any]) -> Microdata:
    from sfumato.engines.spark.relation import SparkRelation

    if engine not in (None, "spark", "memory"):
        raise SourceError(f"a Spark table cannot be read with engine='{engine}'")
    if not isinstance(source, str) and not _is_spark_frame(source):
        raise SourceError("engine='spark' needs a Spark DataFrame or the name of a Spark table as source")
    _no_other(options, ("session",))
    declared = None if engine == "memory" else schema
    relation = SparkRelation(source, types=_types(declared), missing=_missing(declared), **options)
    name = source if isinstance(source, str) else table or "frame"
    return _described(relation, f"Spark table {name}" if isinstance(source, str) else "Spark DataFrame", name)


def _file(
    path: Path,
    schema: Schema | None,
    table: str | None,
    engine: Engine | None,
    unreadable: Unreadable,
    options: Mapping[str, Any],
) -> Microdata:
    from sfumato.data.readers import read_file
    from sfumato.engines.duckdb.relation import DuckDBRelation, is_database
    from sfumato.engines.memory import MemoryRelation

    refuse_special(path)
    database = path.suffix.lower() in _DATABASE_FILES or is_database(path)
    if database or engine == "duckdb":
        if not database and path.suffix.lower() not in LAZY_FILES:
            raise SourceError(f"DuckDB does not read '{path}' in place; leave engine out to read it into memory")
        if not database and table is not None:
            raise SourceError(f"'{path}' is one table; table= (--table) is for databases")
        _no_other(options, ("threads", "memory_limit") if database else ("threads", "memory_limit", "separator"))
        declared = None if engine == "memory" else schema
        relation = DuckDBRelation(path, table, types=_types(declared), missing=_missing(declared), **options)
        named = f"{path.name}, table {table}" if table else path.name
        opened = _described(relation, named, table or path.stem)
        return replace(opened, inferred=_undeclared(opened, declared)) if relation.infers_types else opened
    if table is not None:
        raise SourceError(f"'{path}' is one table; table= (--table) is for databases")
    _no_other(options, ("separator", "encoding", "decimal", "strip", "sheet", "as_text"))
    result = read_file(path, schema, unreadable=unreadable, **options)
    columns = result.columns
    if schema is None:
        # Nobody declared what a file holds: its types were learnt from its values.
        columns = {name: column.model_copy(update={"source": "data"}) for name, column in columns.items()}
    held = _held(MemoryRelation(result.table, result.exact), columns, path.name, path.name.split(".")[0], result.notes)
    return replace(held, inferred=result.inferred)


def _frame(
    source: Any,
    schema: Schema | None,
    table: str | None,
    engine: Engine | None,
    unreadable: Unreadable,
    options: Mapping[str, Any],
) -> Microdata:
    from sfumato.data.readers import from_frame
    from sfumato.engines.memory import MemoryRelation

    if engine not in (None, "memory"):
        raise SourceError(f"a table in memory cannot be read with engine='{engine}'")
    _no_other(options, ("as_text",))
    result = from_frame(source, schema, unreadable=unreadable, **options)
    held = _held(MemoryRelation(result.table, result.exact), result.columns, "table in memory", table or "unnamed", result.notes)
    return replace(held, inferred=result.inferred)


def _in_memory(data: Microdata, schema: Schema | None, unreadable: Unreadable) -> Microdata:
    """The rows brought into this process, where every declared conversion is possible."""
    from sfumato.data.readers import from_frame
    from sfumato.engines.distinct_units import distinct_units, rounded
    from sfumato.engines.memory import MemoryRelation

    relation, columns = data.relation, schema.columns if schema is not None else {}
    for name, column in columns.items():
        # Units, and decimals that are declared otherwise, come with all their digits.
        if name in data.column_names and (column.role == "unit" or column.type not in (None, "number")):
            relation = distinct_units(relation, name)
    result = from_frame(replace(data, relation=relation).table(), schema, unreadable=unreadable, name=data.description)
    exact = {**rounded(relation), **result.exact}
    return _held(MemoryRelation(result.table, exact), result.columns, data.description, data.schema.dataset, result.notes)


def _held(relation: Relation, columns: Mapping[str, Column], description: str, dataset: str, notes: tuple[str, ...]) -> Microdata:
    return Microdata(relation, Schema(dataset=_dataset(dataset), columns=dict(columns)), description, notes)


def _described(relation: Relation, description: str, dataset: str) -> Microdata:
    """A table on an engine, every column plain and of the type it is stored with."""
    from sfumato.engines.canonical import kind_of_type

    columns = {field.name: Column(type=_declared_type(kind_of_type(field.type))) for field in relation.schema()}
    return Microdata(relation, Schema(dataset=_dataset(dataset), columns=columns), description)


def _declared_type(kind: str | None) -> Type:
    types: dict[str, Type] = {
        "integer": "integer",
        "number": "number",
        "boolean": "boolean",
        "date": "date",
        "datetime": "datetime",
        "instant": "datetime",
    }
    return types.get(kind or "", "string")


def _dataset(name: str) -> str:
    return name[:200] or "unnamed"


def _undeclared(data: Microdata, schema: Schema | None) -> frozenset[str]:
    """The columns whose type the owner did not declare."""
    declared = {n for n, c in (schema.columns if schema is not None else {}).items() if c.type and c.source == "declared"}
    return frozenset(data.column_names) - declared


def _types(schema: Schema | None) -> dict[str, Type]:
    columns = schema.columns if schema is not None else {}
    return {name: stored for name, column in columns.items() if (stored := column.stored_type) is not None}


def _missing(schema: Schema | None) -> dict[str, Sequence[str]]:
    columns = schema.columns if schema is not None else {}
    return {name: column.missing for name, column in columns.items() if column.missing}


def _no_other(options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    other = [name for name in options if name not in allowed]
    if other:
        possible = f"possible here: {', '.join(allowed)}" if allowed else "this source has no options"
        raise ParameterError(f"unknown option {', '.join(other)}; {possible}")
    for name, value in options.items():
        if name in _OPTIONS and value is not None and not _OPTIONS[name][0](value):
            raise ParameterError(f"{name} is {_OPTIONS[name][1]}")


def _is_spark_frame(source: object) -> bool:
    # By name, so that nobody without Spark pays for its import.
    return any(kind.__module__.startswith("pyspark.") and kind.__name__ == "DataFrame" for kind in type(source).__mro__)
