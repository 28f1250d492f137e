"""Open a table wherever it is: a file, a frame in memory, a DuckDB file, PostgreSQL, Spark.

The source decides the engine: files and frames are held in memory, databases stay where they are.
`engine="duckdb"` leaves a Parquet or CSV file on disk, `engine="memory"` brings a database table here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sfumato.core.errors import ParameterError, SourceError, Unsupported, forgetting, reported_as
from sfumato.core.files import refuse_special
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.relation import Relation
from sfumato.data.schema import Column, Schema, Type
from sfumato.data.texts.reading import PLAIN, Reading, stated_reading
from sfumato.engines.address import is_postgres_url, redacted

if TYPE_CHECKING:
    from sfumato.data.readers.read_result import Unreadable
    from sfumato.engines.sql.relation import SqlRelation

Engine = Literal["memory", "duckdb", "postgres", "spark"]
#: A schema as somebody has it: itself, its file, or what the file says as plain data.
SchemaLike = Schema | str | Path | Mapping[str, Any]
#: A table as somebody has it: microdata, or whatever `read` opens (a file, a frame, an Arrow table or reader, the URL of a
#: database). No common type has all of them, and frames come from packages that need not be installed; `read` refuses the rest.
TableLike: TypeAlias = object

#: Endings of files whose rows can stay in them.
LAZY_FILES = (".parquet", ".pq", ".csv", ".tsv", ".txt")
_DATABASE_FILES = (".duckdb", ".db", ".ddb")
_PARQUET_FILES = (".parquet", ".pq")


def _is_memory(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"(?i)-1|\d+(\.\d+)?\s*([kmgt](i?b)?|b|bytes)", value.strip()) is not None


#: What the options of readers take, and how that is said: a wrong one is no fault of the file.
_OPTIONS: dict[str, tuple[Callable[[Any], bool], str]] = {
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
    databases and Spark. `decimal`, `thousands`, `date_format` and `missing` say how texts are read, and for text files
    `separator` and `encoding`, over what the schema says under `read`. Further options go to the reader of the source: `strip`,
    `sheet`; `threads` and `memory_limit` for DuckDB; `session` for Spark.

    >>> import pyarrow as pa
    >>> people = read(pa.table({"age": [34, 51]}), {"dataset": "demo", "columns": {"age": {"role": "quasi"}}})
    >>> len(people), people.schema.quasi
    (2, ('age',))
    """
    if engine not in (None, "memory", "duckdb", "postgres", "spark"):
        raise ParameterError(f"there is no engine '{engine}'; choose memory, duckdb, postgres or spark")
    if unreadable not in ("refuse", "missing"):
        raise ParameterError("unreadable is 'refuse' or 'missing'")
    declared, how = _schema(schema), stated_reading(options)
    reading = (PLAIN if declared is None else declared.read).overridden(how)
    declared = None if declared is None else declared.read_as(reading)
    options = {name: value for name, value in options.items() if name not in Reading.names()}
    with reported_as(lambda error: SourceError(f"the table could not be read ({type(error).__name__}); it may be damaged")):
        opened = _open(source, _Asked(declared, reading, tuple(how), table, engine, unreadable, options))
        if unreadable == "missing":
            from sfumato.engines.sql.relation import lenient

            opened = replace(opened, relation=lenient(opened.relation))
        if engine == "memory" and opened.relation.engine != "memory":
            opened = _in_memory(opened, declared, reading, unreadable)
    if declared is not None:
        return opened.with_schema(declared)
    detected = opened.schema.read.overridden(reading.to_mapping())
    return opened if detected == PLAIN else replace(opened, schema=opened.schema.read_as(detected))


@dataclass(frozen=True)
class _Asked:
    """What somebody wants to read, and how; `how` are the keys of the reading that were options."""

    schema: Schema | None
    reading: Reading
    how: tuple[str, ...]
    table: str | None
    engine: Engine | None
    unreadable: Unreadable
    options: Plain

    @property
    def types(self) -> dict[str, Type]:
        """Declared types by column, unless the rows are converted in this process."""
        columns = self.schema.columns if self.schema is not None and self.engine != "memory" else {}
        return {name: stored for name, column in columns.items() if (stored := column.stored_type) is not None}

    @property
    def missing(self) -> Mapping[str, Sequence[str]]:
        """Codes for missing values by column, likewise; a column that is not described has those of the whole table."""
        if self.engine == "memory":
            return {}
        columns = self.schema.columns if self.schema is not None else {}
        return CodesOfTable({name: column.missing for name, column in columns.items() if column.missing}, self.reading.missing)

    def refuse_other(self, allowed: Sequence[str], *, file: bool = False) -> None:
        """Options that this source does not have; separator and encoding are those of a text `file`."""
        of_reading = Reading.names() if file else ("decimal", "thousands", "date_format", "missing")
        other = [name for name in (*self.how, *self.options) if name not in (*of_reading, *allowed)]
        if other:
            raise ParameterError(f"unknown option {', '.join(other)}; possible here: {', '.join([*of_reading, *allowed])}")
        for name, value in self.options.items():
            if name in _OPTIONS and value is not None and not _OPTIONS[name][0](value):
                raise ParameterError(f"{name} is {_OPTIONS[name][1]}")


class CodesOfTable(Mapping[str, Sequence[str]]):
    """Codes for missing values by column; those of the whole table for every other column."""

    def __init__(self, columns: Mapping[str, Sequence[str]], others: Sequence[str]) -> None:
        self._columns = columns
        self._others = others

    def __getitem__(self, name: str) -> Sequence[str]:
        """The codes of a column."""
        return self._columns.get(name, self._others)

    def __iter__(self) -> Iterator[str]:
        """The columns with codes of their own."""
        return iter(self._columns)

    def __len__(self) -> int:
        """How many have some."""
        return len(self._columns)

    def __bool__(self) -> bool:
        """Whether there are any codes."""
        return bool(self._columns or self._others)


def _schema(source: SchemaLike | None) -> Schema | None:
    if source is None or isinstance(source, Schema):
        return source
    return Schema.parse(source) if isinstance(source, Mapping) else Schema.load(source)


def _open(source: Any, asked: _Asked) -> Microdata:
    if is_postgres_url(source):
        return _postgres(source, asked)
    if isinstance(source, str) and "://" in source:
        raise SourceError(f"addresses of the kind '{source.split('://')[0]}://' are not supported; use postgresql:// or a file")
    if asked.engine == "spark" or _is_spark_frame(source):
        return _spark(source, asked)
    if asked.engine == "postgres":
        raise SourceError("engine='postgres' needs a postgresql:// URL as source")
    if isinstance(source, (str, Path)):
        return _file(Path(source), asked)
    return _frame(source, asked)


def _postgres(url: str, asked: _Asked) -> Microdata:
    from sfumato.engines.postgres.relation import PostgresRelation

    if asked.engine not in (None, "postgres", "memory"):
        raise SourceError(f"a PostgreSQL table cannot be read with engine='{asked.engine}'")
    asked.refuse_other(())
    if asked.table is None:
        raise SourceError(f"{redacted(url)}: name the table with table= in Python, or --table where a command has it")
    relation = PostgresRelation(url, asked.table, types=asked.types, missing=asked.missing)
    _refuse_texts(relation, asked)
    return _described(relation, f"{redacted(url)}, table {asked.table}", asked.table)


def _spark(source: Any, asked: _Asked) -> Microdata:
    from sfumato.engines.spark.relation import SparkRelation

    if asked.engine not in (None, "spark", "memory"):
        raise SourceError(f"a Spark table cannot be read with engine='{asked.engine}'")
    if not isinstance(source, str) and not _is_spark_frame(source):
        raise SourceError("engine='spark' needs a Spark DataFrame or the name of a Spark table as source")
    asked.refuse_other(("session",))
    relation = SparkRelation(source, types=asked.types, missing=asked.missing, **asked.options)
    _refuse_texts(relation, asked)
    name = source if isinstance(source, str) else asked.table or "frame"
    return _described(relation, f"Spark table {name}" if isinstance(source, str) else "Spark DataFrame", name)


def _refuse_texts(relation: SqlRelation, asked: _Asked) -> None:
    """An engine reads texts as numbers and dates in their plain forms alone."""
    if asked.reading.plain or asked.schema is None or asked.engine == "memory":
        return
    texts = [
        name for name, field in relation.fields.items() if field.stored == "string" and field.kind not in ("string", "boolean")
    ]
    if texts:
        listed = ", ".join(f"'{name}'" for name in texts[:5]) + (" …" if len(texts) > 5 else "")
        raise Unsupported(
            f"{listed}: stored as text and declared as numbers or dates, which {relation.engine} reads in their plain forms "
            "alone (1234.5, 1956-02-25), and not by decimal, thousands or date_format. Read the table with engine='memory', or "
            "store these columns as numbers and dates"
        )


def _file(path: Path, asked: _Asked) -> Microdata:
    from sfumato.data.readers.files import read_file
    from sfumato.engines.duckdb.relation import DuckDBRelation, is_database
    from sfumato.engines.memory import MemoryRelation

    refuse_special(path)
    table, schema, reading = asked.table, asked.schema, asked.reading
    database = path.suffix.lower() in _DATABASE_FILES or is_database(path)
    if database or asked.engine == "duckdb":
        if not database and path.suffix.lower() not in LAZY_FILES:
            raise SourceError(f"DuckDB does not read '{path}' in place; leave engine out to read it into memory")
        if not database and table is not None:
            raise SourceError(f"'{path}' is one table; table= (--table) is for databases")
        textual = not database and path.suffix.lower() not in _PARQUET_FILES
        asked.refuse_other(("threads", "memory_limit"), file=textual)
        relation = DuckDBRelation(
            path, table, types=asked.types, missing=asked.missing, reading=reading if textual else PLAIN, **asked.options
        )
        if not textual:
            _refuse_texts(relation, asked)
        named = f"{path.name}, table {table}" if table else path.name
        opened = _described(relation, named, table or path.stem)
        return replace(opened, inferred=_undeclared(opened, schema)) if relation.infers_types else opened
    if table is not None:
        raise SourceError(f"'{path}' is one table; table= (--table) is for databases")
    asked.refuse_other(("strip", "sheet", "as_text"), file=True)
    result = read_file(path, schema, unreadable=asked.unreadable, **{**reading.to_mapping(), **asked.options})
    columns = result.columns
    if schema is None:
        # Nobody declared what a file holds: its types were learnt from its values.
        columns = {name: column.model_copy(update={"source": "data"}) for name, column in columns.items()}
    held = _held(MemoryRelation(result.table, result.exact), columns, path.name, path.name.split(".")[0], result.notes)
    return replace(held, schema=held.schema.replace(read=result.reading), inferred=result.inferred)


def _frame(source: Any, asked: _Asked) -> Microdata:
    from sfumato.data.readers.files import from_frame
    from sfumato.engines.memory import MemoryRelation

    if asked.engine not in (None, "memory"):
        raise SourceError(f"a table in memory cannot be read with engine='{asked.engine}'")
    asked.refuse_other(("as_text",))
    described = _with_reading(asked.schema, asked.reading)
    result = from_frame(source, described, unreadable=asked.unreadable, **asked.options)
    relation, name = MemoryRelation(result.table, result.exact), asked.table or "unnamed"
    held = _held(relation, result.columns, "table in memory", name, result.notes)
    return replace(held, inferred=result.inferred)


def retyped(texts: Microdata, schema: Schema) -> Microdata:
    """A text file that was read as texts, with the types that they have as the schema says that they are written."""
    from sfumato.data.readers.read_result import RawTable, finish
    from sfumato.engines.memory import MemoryRelation

    table = texts.table()
    raw = RawTable(tuple(table.column_names), tuple(table.columns), True, texts.notes)
    result = finish(raw, texts.description, schema)
    columns = {name: column.model_copy(update={"source": "data"}) for name, column in result.columns.items()}
    held = _held(MemoryRelation(result.table, result.exact), columns, texts.description, texts.schema.dataset, result.notes)
    return replace(held, schema=held.schema.read_as(schema.read), inferred=result.inferred)


def _in_memory(data: Microdata, schema: Schema | None, reading: Reading, unreadable: Unreadable) -> Microdata:
    """The rows brought into this process, where every declared conversion is possible."""
    from sfumato.data.readers.files import from_frame
    from sfumato.engines.date_limits import refuse_other_years
    from sfumato.engines.distinct_units import distinct_units, rounded
    from sfumato.engines.memory import MemoryRelation

    refuse_other_years(data.relation)
    relation, columns = data.relation, schema.columns if schema is not None else {}
    for name, column in columns.items():
        # Units, and decimals that are declared otherwise, come with all their digits.
        if name in data.column_names and (column.role == "unit" or column.type not in (None, "number")):
            relation = distinct_units(relation, name)
    described = _with_reading(schema, reading)
    result = from_frame(replace(data, relation=relation).table(), described, unreadable=unreadable, name=data.description)
    exact = {**rounded(relation), **result.exact}
    return _held(MemoryRelation(result.table, exact), result.columns, data.description, data.schema.dataset, result.notes)


def _with_reading(schema: Schema | None, reading: Reading) -> Schema | None:
    """The schema, or one that only says how texts are read; None where neither says anything."""
    return Schema(read=reading) if schema is None and reading != PLAIN else schema


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


def _is_spark_frame(source: object) -> bool:
    # By name, so that nobody without Spark pays for its import.
    return any(kind.__module__.startswith("pyspark.") and kind.__name__ == "DataFrame" for kind in type(source).__mro__)
