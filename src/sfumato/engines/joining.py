"""What is said when two tables cannot be asked together."""

from __future__ import annotations

from sfumato.core.errors import Unsupported
from sfumato.data.relation import Relation


def not_together(own: Relation, name: str, other: Relation) -> Unsupported:
    """The error for a table that cannot be joined in place."""
    same = {
        "duckdb": "files that DuckDB reads",
        "postgres": "tables of the same database, given by the same URL",
        "spark": "tables of the same Spark session",
        "memory": "tables in memory",
    }.get(own.engine, "tables of the same engine")
    return Unsupported(
        f"the table '{name}' ({other.engine}) cannot be joined in place with one on {own.engine}, which joins {same}. "
        "Put both on one engine, or read both with engine='memory'."
    )
