"""What a table of a database is to its engine: a table or something that only looks like one, and its columns' own types.

Two tables may hold the same rows while one of them knows more: the values that an ENUM declares need not occur in any row, and
what a view shows is decided when somebody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.data.relation import Relation
from sfumato.engines.duckdb.connections import described_columns
from sfumato.engines.snapshots import Snapshot

if TYPE_CHECKING:
    from sfumato.engines.duckdb.relation import DuckDBRelation
    from sfumato.engines.postgres.relation import PostgresRelation

#: The types of columns that `engines.staging` and `engines.write` make, by engine.
_WRITTEN: Mapping[str, frozenset[str]] = {
    "duckdb": frozenset({"VARCHAR", "BIGINT", "UBIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}),
    "postgres": frozenset({"text", "varchar", "int8", "numeric", "float8", "bool", "date", "timestamp", "timestamptz"}),
}
_POSTGRES_TYPES = """
SELECT a.attname, t.typname, t.typtype = 'b' FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class StoredObject:
    """What the engine says of it: whether it is a table, and columns whose type no writer of releases makes."""

    is_table: bool
    other_types: tuple[str, ...]


def stored_object(relation: Relation) -> StoredObject | None:
    """What holds the rows; None where the engine cannot tell."""
    from sfumato.engines.duckdb.relation import DuckDBRelation
    from sfumato.engines.postgres.relation import PostgresRelation

    source = relation.held if isinstance(relation, Snapshot) else relation
    if isinstance(source, DuckDBRelation) and source._database:
        return _in_duckdb(source)
    return _in_postgres(source) if isinstance(source, PostgresRelation) else None


def _in_duckdb(relation: DuckDBRelation) -> StoredObject:
    asked = "SELECT table_type FROM information_schema.tables WHERE table_catalog = ? AND table_schema = ? AND table_name = ?"
    with relation._connected() as connection:
        row = connection.execute(asked, list(relation._source.path)).fetchone()
        types = described_columns(connection, relation._source)
    other = tuple(name for name, sql_type in types if sql_type not in _WRITTEN["duckdb"])
    return StoredObject(row is not None and row[0] == "BASE TABLE", other)


def _in_postgres(relation: PostgresRelation) -> StoredObject:
    table = relation._found[0]
    with relation._connected() as connection:
        row = connection.execute("SELECT relkind::text FROM pg_catalog.pg_class WHERE oid = %s", [table]).fetchone()
        types = connection.execute(_POSTGRES_TYPES, [table]).fetchall()
    other = tuple(name for name, sql_type, plain in types if not plain or sql_type not in _WRITTEN["postgres"])
    return StoredObject(row is not None and row[0] in ("r", "p"), other)
