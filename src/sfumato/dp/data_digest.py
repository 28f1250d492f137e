"""A keyed digest of a table, taken when a session is opened: it tells the owner that the data changed, and nobody else.

The ledger keeps it; the owner's key stays in its file. Whoever holds the ledger alone can neither test a guess about the data
nor learn from two digests more than that they differ. Nothing here reaches an answer: whatever goes wrong is noted as "not
taken".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import canonical
from sfumato.core.errors import LedgerError
from sfumato.ledger.versions import COUNTS, EVERY_ROW, NOT_TAKEN, Seen

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata
    from sfumato.ledger.ledger import Ledger

#: Engines whose rows are in this process; those of others stay where they are, and the engine counts and adds them up.
_AT_HAND = ("memory", "duckdb")
_FORMAT = "sfumato-data-digest-1"


def note_data(ledger: Ledger, version: str, tables: Mapping[str, Microdata], *, digest: bool) -> None:
    """Enter which data a session was opened on, where that is new; the same work whether they changed or not."""
    states = [_seen(version, name, table, digest) for name, table in tables.items()]
    dataset = next(iter(tables.values())).schema.dataset
    try:
        ledger.enter_data(dataset, states)
    except LedgerError:
        return  # one that cannot be written refuses every question as well, and says why


def _seen(version: str, name: str, data: Microdata, digest: bool) -> Seen:
    from sfumato.wire.keys import load_or_create_owner_key

    if not digest:
        return Seen(version, name)
    try:
        key = load_or_create_owner_key().derive("data digest")
        names = sorted(data.column_names)
        columns, which = _keyed(key, ["columns", names]), _keyed(key, ["key"])[:16]
        if data.relation.engine in _AT_HAND:
            return Seen(version, name, EVERY_ROW, _every_row(data, key), columns, which)
        return Seen(version, name, COUNTS, _keyed(key, _counts_and_sums(data)), columns, which)
    except Exception:  # an analyst may be waiting: neither the failure nor its reason is theirs
        return Seen(version, name, NOT_TAKEN)


def _every_row(data: Microdata, key: bytes) -> str:
    from sfumato.wire.fingerprint import Fingerprint

    running = Fingerprint(data.relation.schema().names, key)
    for batch in data.relation.batches():
        running.add(batch)
    return running.finish()


def _counts_and_sums(data: Microdata) -> list[Any]:
    """Rows, values per column and sums of whole numbers, computed by the engine in one scan."""
    from sfumato.engines.class_queries import ROWS
    from sfumato.engines.expressions import Reference
    from sfumato.engines.plan import AggregateColumn, Group, Scan

    relation: Any = data.relation
    fields = tuple(relation.fields.values())
    counts = [AggregateColumn(f"count {place}", "count", Reference(field.name)) for place, field in enumerate(fields)]
    sums = [AggregateColumn(f"sum {place}", "sum", Reference(f.name)) for place, f in enumerate(fields) if f.kind == "integer"]
    answer = relation.run(Group(Scan(ROWS, fields), (), (AggregateColumn("rows", "count"), *counts, *sums)))
    return [[field.name for field in fields], [str(column[0].as_py()) for column in answer.columns]]


def _keyed(key: bytes, content: list[Any]) -> str:
    return hmac.new(key, canonical({"format": _FORMAT, "content": content}), hashlib.sha256).hexdigest()
