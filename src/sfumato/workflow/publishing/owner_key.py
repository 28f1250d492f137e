"""The owner's key at work: the keyed fingerprint of an input, and pseudonyms in place of names.

The key never enters a release folder. A seeded run makes its key from the seed, so that a demonstration can
be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.randomness import Randomness
    from sfumato.data.microdata import Microdata
    from sfumato.wire.keys import OwnerKey


def owner_key_of(given: Any, randomness: Randomness) -> OwnerKey:
    """The key given, the key in the file given, or the owner's own, made on first use."""
    from sfumato.wire.keys import OwnerKey, load_or_create_owner_key

    if isinstance(given, OwnerKey):
        return given
    if isinstance(given, (str, Path)):
        return load_or_create_owner_key(given)
    if given is not None:
        raise ParameterError("key is an OwnerKey or the path of the file that holds one")
    return load_or_create_owner_key() if randomness.private else OwnerKey.generate(randomness)


def fingerprint(data: Microdata | None, key: OwnerKey) -> str | None:
    """The keyed fingerprint of all rows, read a batch at a time; their order does not matter."""
    from sfumato.wire.fingerprint import Fingerprint

    if data is None:
        return None
    running = Fingerprint(data.relation.schema().names, key)
    for batch in data.relation.batches():
        running.add(batch)
    return running.finish()


def replace_names(rows: pa.Table, columns: Sequence[str], key: OwnerKey) -> pa.Table:
    """The same rows with keyed pseudonyms in these columns."""
    from sfumato.anonymity.pseudonyms import Pseudonyms

    for name in columns:
        position = rows.column_names.index(name)
        # The scope is the column's name: tables that name people by the same column can be joined by their
        # pseudonyms.
        rows = rows.set_column(position, name, Pseudonyms(key, scope=name).apply(rows.column(name)))
    return rows
