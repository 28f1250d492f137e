"""Relations that answer plans: every one in this house does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, cast

from sfumato.core.errors import Unsupported
from sfumato.data.relation import Relation

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.engines.plan import Field, Plan


class Plannable(Relation, Protocol):
    """A relation that answers plans: every one in this house does."""

    @property
    def fields(self) -> dict[str, Field]:
        """The columns as fields of a plan, by name."""

    def run(self, plan: Plan, uploads: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer to a plan over `rows` and uploaded tables."""


def plannable(relation: Relation) -> Plannable:
    """The relation as one that answers plans."""
    if not hasattr(relation, "run"):
        raise Unsupported("this relation answers no plans, only groupings and recodings; read the table with sf.read")
    return cast("Plannable", relation)
