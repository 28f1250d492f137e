"""Digests of rows, and their sums over a table, computed by the engine that holds it: the same numbers everywhere.

The text of a row has its values one after the other. A value is a number in decimal with a letter behind it:

* `i`: a whole number, a truth value (0 or 1), days since 1970, microseconds since 1970 or, of a time, since midnight;
* `w`: a wide number; `d`: the 64 bits of a floating-point number, read as a whole number with a sign;
* `s`: so many octets of text in UTF-8 follow; `b`: the hexadecimal digits of so many octets follow.

A missing value is `n`. So no two rows of the same kinds have one text. Negative zero is zero; NaN, dates without a finite value
and text that is not UTF-8 are missing, as everywhere in `engines.canonical`.

The digest of a row is SHA-256 of its text. Added up over all rows in four parts of 60 bits, digests do not depend on order,
partitions or retries. Clarke et al., "Incremental multiset hash functions", ASIACRYPT 2003; see docs/theory/row-digests.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.core.certificate import canonical
from sfumato.core.errors import MissingColumn, SchemaError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.engines.canonical import kind_of_type
from sfumato.engines.class_queries import ROWS
from sfumato.engines.digests.row_text import LIMBS, Limb, RowDigest
from sfumato.engines.expressions import Kind, Reference
from sfumato.engines.plan import AggregateColumn, Group, Named, Plan, Project, Scan, columns
from sfumato.wire.fingerprint import keyed_content

if TYPE_CHECKING:
    from sfumato.data.relation import Relation
    from sfumato.engines.plan import Field
    from sfumato.wire.keys import OwnerKey

FORMAT = "sfumato-content-1"

_DIGEST = "\x00digest"
_COUNT = "\x00rows"


@dataclass(frozen=True)
class RowSums:
    """How many rows a table has, and the sums of the four parts of their digests; `columns` are names and kinds, sorted by name.

    Sums of two parts of a table add up to those of the whole.
    """

    columns: tuple[tuple[str, Kind], ...]
    rows: int
    sums: tuple[int, int, int, int] = field(repr=False)

    def __add__(self, other: RowSums) -> RowSums:
        if self.columns != other.columns:
            raise SchemaError("rows of different columns do not add up to one table")
        first, second, third, fourth = (one + two for one, two in zip(self.sums, other.sums, strict=True))
        return RowSums(self.columns, self.rows + other.rows, (first, second, third, fourth))

    def content(self) -> Plain:
        """What both digests cover; sums are written in decimal, since not every reader of JSON has such numbers."""
        return {
            "columns": [list(column) for column in self.columns],
            "rows": self.rows,
            "sums": [str(part) for part in self.sums],
        }

    def content_digest(self) -> str:
        """`sfumato-content-1:` and 64 hexadecimal digits. Anyone who has the rows can compute it, and anyone can test a guess of
        all rows with it: it is published for published rows alone."""
        return f"{FORMAT}:{hashlib.sha256(canonical({'format': FORMAT, **self.content()})).hexdigest()}"

    def fingerprint(self, key: OwnerKey | bytes) -> str:
        """The keyed fingerprint in its second format, see `wire.fingerprint.keyed_content`; the key stays in this process."""
        return keyed_content(self.content(), key)


def digest_plan(source: Plan) -> Plan:
    """One row: how many rows the source has, and the sums of the parts of their digests."""
    names = sorted(columns(source))
    digests = Project(source, (Named(_DIGEST, RowDigest(tuple(Reference(name) for name in names))),))
    sums = (AggregateColumn(_part(part), "sum", Limb(Reference(_DIGEST), part)) for part in range(LIMBS))
    return Group(digests, (), (AggregateColumn(_COUNT, "count"), *sums))


def sums_of(answer: pa.Table, kinds: Mapping[str, Kind]) -> RowSums:
    """The answer to `digest_plan` over a source with these columns."""
    first, second, third, fourth = (int(answer.column(_part(part))[0].as_py() or 0) for part in range(LIMBS))
    return RowSums(tuple(sorted(kinds.items())), int(answer.column(_COUNT)[0].as_py()), (first, second, third, fourth))


def row_sums(relation: Relation, names: Sequence[str] | None = None) -> RowSums:
    """The sums over a relation's rows, or over some of its columns: one pass in the engine, of which one row comes back."""
    held: Any = relation  # every engine answers plans; the protocol of rows does not say so
    chosen = relation.schema().names if names is None else list(names)
    fields: dict[str, Field] = held.fields
    all_at_once(MissingColumn, "table", _absent(relation, chosen))
    all_at_once(Unsupported, "content digest", _without_digest(relation, chosen, fields))
    if not chosen:
        raise Unsupported("a table without columns has no content to digest")
    plan = Scan(ROWS, tuple(fields[name] for name in chosen))
    return sums_of(held.run(digest_plan(plan)), columns(plan))


def table_sums(table: pa.Table) -> RowSums:
    """The sums over a table in memory."""
    from sfumato.engines.memory import MemoryRelation

    return row_sums(MemoryRelation(table))


def _part(part: int) -> str:
    return f"\x00sum {part}"


def _absent(relation: Relation, names: Sequence[str]) -> Iterator[str]:
    present = set(relation.schema().names)
    return (f"there is no column '{name}' in the table" for name in dict.fromkeys(names) if name not in present)


def _without_digest(relation: Relation, names: Sequence[str], fields: Mapping[str, Field]) -> Iterator[str]:
    """Columns whose values not every engine holds alike."""
    schema = relation.schema()
    for name in names:
        arrow_type = schema.field(name).type
        if name not in fields or kind_of_type(arrow_type) is None:
            yield f"column '{name}' has the type {arrow_type}, which engines cannot compare; leave it out"
        elif (pa.types.is_timestamp(arrow_type) or pa.types.is_time(arrow_type)) and arrow_type.unit == "ns":
            yield f"column '{name}' has moments finer than a microsecond, which no other engine holds; round them first"
