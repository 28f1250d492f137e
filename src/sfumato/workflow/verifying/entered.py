"""Whether a ledger holds the entry of a release: one that was made for it, not just any entry of the chain.

The entry keeps what was stated when the release was made. Data set, promises, measured numbers, method, columns, number of rows
and the fingerprint of the original must be those of the certificate, the rows those in the folder, and so the file, where it is
the Parquet file that was entered. An entry of an earlier version has no digest of its rows: those of a CSV file are then written
as Parquet again, which gives the file that was entered where the versions of pyarrow and of sfumato are those that wrote it.
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.core.certificate import NOT_ENTERED, Certificate
from sfumato.ledger.chain import is_hash
from sfumato.ledger.ledger import Ledger
from sfumato.workflow.contents.base import content_kind, without_hierarchies_in
from sfumato.workflow.contents.rows import ROWS_DIGEST
from sfumato.workflow.publishing.released_form import rows_digest
from sfumato.workflow.verifying.folder_rows import PARQUET
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    from sfumato.ledger.chain import Entry


def check_entry(certificate: Certificate, data: object, ledger: Ledger | str | Path) -> Finding | None:
    """What the ledger says about the entry that the certificate names; None where the claims looked it up themselves.

    `data` is what was read from the folder.
    """
    named, charges = certificate.ledger, _charges(certificate)
    with nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger.open(ledger, read_only=True) as book:
        if named in (NOT_ENTERED if charges else None, *charges):
            return None
        if named == NOT_ENTERED:
            said = "the certificate names no entry of a ledger, so that nothing was compared with the one that was passed"
            return Finding("ledger", None, "not used: the certificate names no entry of a ledger", caveat=said)
        if not is_hash(named):
            return Finding("ledger", False, "what the certificate names as its entry is not the hash of one")
        verification = book.verify(named)
        entry = book.entry(named)
    if not verification.ok or entry is None:
        return Finding(
            "ledger", False, f"the ledger does not confirm the entry that the certificate names: {verification.finding}"
        )
    difference = _difference(certificate, entry)
    if difference:
        return Finding("ledger", False, f"the entry {named[:16]}… that the certificate names {difference}")
    rows = isinstance(data, pa.Table) and not charges  # of other content the entry holds the digest of its file
    same = _same_rows(certificate, data, entry) if rows else True
    if same is False:
        return Finding("ledger", False, f"the rows are not those that the entry {named[:16]}… was made for")
    if same is None:
        said = (
            "the ledger keeps no digest of the rows that it entered, but of a Parquet file that these rows do not give here: "
            "whether they are the same rows is not known"
        )
        return Finding("ledger", None, f"it holds an entry {named[:16]}… with the same statements; {said}", caveat=said)
    return Finding("ledger", True, f"it holds the entry {named[:16]}… of this release")


def _same_rows(certificate: Certificate, table: pa.Table, entry: Entry) -> bool | None:
    """Whether the rows are those that were entered; None where the entry does not tell."""
    if ROWS_DIGEST in entry.payload:
        return bool(rows_digest(table) == entry.payload[ROWS_DIGEST])
    if PARQUET in certificate.files or _written_alike(table, entry):
        return True  # the file is the one that was entered
    return False if _made_here(certificate) else None


def _written_alike(table: pa.Table, entry: Entry) -> bool:
    """Whether the rows, written as publishing writes them, give the file that was entered."""
    from sfumato.data.writers import parquet_bytes

    return hashlib.sha256(parquet_bytes(table)).hexdigest() == entry.payload.get("sha256")


def _made_here(certificate: Certificate) -> bool:
    """Whether rows are written here as they were when the release was made, by the certificate's own word."""
    from sfumato.workflow.publishing.saving import versions

    here = versions()
    return all(certificate.versions.get(name) == here[name] for name in ("sfumato", "pyarrow"))


def _difference(certificate: Certificate, entry: Entry) -> str:
    """Why the entry is not that of the release; empty where it may be."""
    if entry.kind != "release":
        return f"is not about a release, but a {entry.kind}"
    if entry.dataset != certificate.dataset:
        return "is about another dataset"
    kept = entry.payload
    stated = content_kind(certificate).entry_facts(certificate)
    other = [name for name, values in stated.items() if without_hierarchies_in(kept.get(name)) not in values]
    return f"is that of another release: it differs in {', '.join(other)}" if other else ""


def _charges(certificate: Certificate) -> set[str | None]:
    """The entries that paid for claims about a process, which are looked up with them."""
    return {claim.ledger_entry for claim in certificate.claims if claim.evidence == "process"}
