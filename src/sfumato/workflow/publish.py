"""Publishing: written, read back, verified, entered in the ledger, compared with earlier releases, certified.

The only place where a release is made. What reached the guarantees does not certify them: the written file
is read back and measured by the plain verifier, and a violation leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, Claim, canonical, plain
from sfumato.core.errors import VerificationFailed
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.progress import Progress, silent
from sfumato.core.view import View
from sfumato.data.hierarchy import Hierarchy
from sfumato.data.released import ReleasedTable, ShownValue
from sfumato.data.schema import Schema
from sfumato.workflow.claims import References, UnitCounts, claims_of
from sfumato.workflow.release import NOT_ENTERED

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.randomness import Randomness
    from sfumato.ledger.ledger import Ledger


#: How an entry of the ledger names the digest of the rows; entries of earlier versions have none.
ROWS_DIGEST = "rows_sha256"


@dataclass(frozen=True, eq=False)
class Draft:
    """A protected table that nobody has verified yet.

    `schema` describes what is published, `owner_schema` the same columns with their hierarchies, which some
    distances need. `units` holds what was counted in different units before their column was dropped.
    """

    table: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    owner_schema: Schema = field(repr=False)
    guarantees: tuple[ClassGuarantee, ...]
    method: Mapping[str, Any]
    references: References = field(repr=False)
    randomness: Randomness = field(repr=False)
    transparency: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    units: UnitCounts | None = field(default=None, repr=False)
    notices: tuple[str, ...] = ()
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    ranges: Mapping[str, Mapping[str, ShownValue]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    records: int = 0

    def as_released(self, table: pa.Table) -> ReleasedTable:
        """The rows with what their texts stand for."""
        return ReleasedTable(table, self.owner_schema, self.hierarchies, self.records, self.ranges)


@dataclass(frozen=True, eq=False)
class Published:
    """What publishing returns: the rows as they were read back, and the certificate about them."""

    table: pa.Table = field(repr=False)
    certificate: Certificate
    composition: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)  # the owner's exact count


@dataclass(frozen=True, eq=False)
class Verified:
    """A draft as it was written, read back and verified: its bytes, the rows in them, and the certificate about those."""

    content: bytes = field(repr=False)
    table: pa.Table = field(repr=False)
    certificate: Certificate
    entry: Mapping[str, Any] = field(repr=False)  # what the certificate says of the file


def publish(draft: Draft, ledger: Ledger | None = None, *, progress: Progress = silent) -> Published:
    """Turn a draft into rows with a certificate; raises `VerificationFailed` and leaves nothing when they do
    not keep it.
    """
    return enter(draft, verified(draft, progress=progress), ledger, progress=progress)


def verified(draft: Draft, *, progress: Progress = silent) -> Verified:
    """Write the rows, read them back and measure them; nothing is entered or kept."""
    from sfumato.data.readers import read_parquet_bytes
    from sfumato.data.writers import parquet_bytes

    progress("writing", 0, 1)
    content = parquet_bytes(draft.table)  # never on the disk: nobody has verified it yet
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "rows": int(draft.table.num_rows)}
    progress("verifying", 0, 1)
    table = _as_written(read_parquet_bytes(content, draft.schema).table, draft.table)
    claims = claims_of(table, draft.owner_schema, draft.guarantees, draft.references, units=draft.units)
    progress("verifying", 1, 1)
    return Verified(content, table, _certificate(draft, claims, entry), entry)


def enter(draft: Draft, done: Verified, ledger: Ledger | None, *, progress: Progress = silent) -> Published:
    """Enter a verified draft in the ledger and compare it with what is there. Whatever can fail comes before the entry: nobody
    can take it back, and a release that nobody has would be compared with all later ones.
    """
    from sfumato.workflow.earlier import Newest, compare_with_earlier, keep_reading, keep_rows, store_of
    from sfumato.workflow.readings import Reading
    from sfumato.workflow.rows_digest import rows_digest

    if ledger is None:
        return Published(done.table, done.certificate)
    progress("entering in the ledger", 0, 1)
    reading = Reading.of(draft, store_of(ledger))
    kept, digest = reading.to_json(), str(done.entry["sha256"])
    view = View(draft.as_released(done.table), draft.schema, done.certificate.to_mapping(), "this release")
    payload = _ledger_payload(done.certificate, done.entry, rows_digest(done.table))
    # The same release entered twice (a repeated run) is one entry: its token is the digest of what is
    # entered.
    token = f"release-{hashlib.sha256(canonical(payload)).hexdigest()}"
    with keep_rows(ledger, done.content, digest):
        entered = ledger.enter_release(draft.schema.dataset, payload, token=token)
    keep_reading(ledger, entered.hash, kept)
    new = Newest(view, entered, digest, reading, done.certificate.fingerprint)
    # The certificate is public: it says what an outsider finds who holds the releases and not the original.
    found = compare_with_earlier(ledger, new, draft.references.original)
    exact: dict[str, Any] = {}
    if found["earlier_releases"]:
        exact = compare_with_earlier(ledger, new, draft.references.original, counted=True)
    progress("entering in the ledger", 1, 1)
    return Published(done.table, dataclasses.replace(done.certificate, ledger=entered.hash, composition=found), exact)


def write_and_describe(table: pa.Table, path: Path) -> dict[str, Any]:
    """Write the file and say how long it is and what its digest is."""
    from sfumato.data.writers import write_file

    write_file(table, path)
    return {**describe_file(path), "rows": int(table.num_rows)}


def describe_file(path: Path) -> dict[str, Any]:
    """Length and digest of a file."""
    digest = hashlib.sha256()
    length = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            length += len(block)
    return {"sha256": digest.hexdigest(), "bytes": length}


def read_back(path: Path, schema: Schema, written: pa.Table) -> pa.Table:
    """The rows of the written file; they must be as many, and have the columns, that were written."""
    from sfumato.data.readers import read_file

    separator, encoding = (",", "utf-8") if path.suffix == ".csv" else (None, None)
    return _as_written(read_file(path, schema, separator=separator, encoding=encoding).table, written)


def _as_written(table: pa.Table, written: pa.Table) -> pa.Table:
    if table.num_rows != written.num_rows or table.column_names != written.column_names:
        raise VerificationFailed(
            f"the written file has {table.num_rows:,} rows and {table.num_columns} columns, "
            f"but {written.num_rows:,} rows and {written.num_columns} columns were written; nothing was released"
        )
    return table


def versions() -> dict[str, str]:
    """What the release was made with."""
    from importlib.metadata import version

    import numpy
    import pyarrow

    import sfumato

    return {
        "sfumato": sfumato.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
        "matplotlib": version("matplotlib"),
    }


def _certificate(draft: Draft, claims: tuple[Claim, ...], entry: Mapping[str, Any]) -> Certificate:
    return Certificate(
        dataset=draft.schema.dataset,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        claims=claims,
        method=dict(draft.method),
        schema=public_schema(draft.schema),
        files={"data.parquet": dict(entry)},
        versions=versions(),
        fingerprint=draft.references.original_digest,
        randomness=draft.randomness.description,
        private=draft.randomness.private,
        ledger=NOT_ENTERED,
        transparency=dict(draft.transparency),
        notices=(*draft.notices, *_demonstration(draft.randomness)),
    )


def public_schema(schema: Schema) -> dict[str, Any]:
    """The schema of the release as plain data."""
    return schema.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _demonstration(randomness: Randomness) -> tuple[str, ...]:
    if randomness.private:
        return ()
    return ("made with a seed: a demonstration that anybody can repeat, not a private release",)


def _ledger_payload(certificate: Certificate, entry: Mapping[str, Any], rows: str) -> dict[str, Any]:
    """What the ledger keeps of a release: promises, measured numbers, and the digests of the published file and of its rows."""
    stated = certificate.to_mapping()
    return {
        "sha256": entry["sha256"],
        "rows": entry["rows"],
        ROWS_DIGEST: rows,
        "claims": plain(certificate.measured),
        "promised": [claim["promised"] for claim in stated["claims"]],
        "method": stated["method"],
        "fingerprint": stated["fingerprint"],
        "schema": stated["schema"],
        **({} if certificate.private else {"seeded": True}),  # its fingerprint has a key of its own
    }
