"""A relation that answers plans, and what is said when two of them cannot be asked together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from sfumato.core.errors import Unsupported
from sfumato.data.relation import Relation

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.engines.plan import Field, Plan


class Queryable(Relation, Protocol):
    """Rows held by an engine that runs plans over them."""

    @property
    def fields(self) -> Mapping[str, Field]:
        """The columns by name, in order."""

    def run(
        self,
        plan: Plan,
        uploads: Mapping[str, pa.Table] | None = None,
        beside: Mapping[str, Relation] | None = None,
    ) -> pa.Table:
        """The answer to a plan over `rows` (this relation), small uploaded tables and relations beside this one."""


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
