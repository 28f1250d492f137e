"""`verify`: check a release from its files alone, whoever wrote them.

Digests, form, signature, and every guarantee whose evidence is in the files is measured again; claims that
need a second file are measured when it is given, and claims about a process are looked up in the ledger that paid
for them. A hostile folder gets a verdict, never a crash, and nothing outside it is read.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate
from sfumato.core.errors import SourceError, VerificationFailed, forgetting
from sfumato.core.temporary import temporary_folder
from sfumato.data.schema import Schema
from sfumato.report.wording import counted
from sfumato.workflow import folder_parts as parts
from sfumato.workflow import named, untrusted
from sfumato.workflow.certificate_form import read_certificate, read_schema
from sfumato.workflow.folder_parts import DATA_FILES, RESULT
from sfumato.workflow.public_card import CARD, is_artefact
from sfumato.workflow.told_comparison import refuse_other_comparison
from sfumato.workflow.told_details import refuse_other_details
from sfumato.workflow.transparency import refuse_levels_not_shown, refuse_other_facts
from sfumato.workflow.untrusted import UntrustedFolder, quoted
from sfumato.workflow.verification import Finding, Verification

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger.ledger import Ledger

__all__ = ["Finding", "OpenRelease", "Verification", "open_release", "verify"]

CERTIFICATE = "certificate.json"
SIGNATURE = "signature.json"
#: Files by which a folder without a certificate is still known as a release that lost it.
_OF_A_RELEASE = {*DATA_FILES, *parts.BESIDE_AN_ANSWER, RESULT, SIGNATURE, CARD, parts.SCHEMA}
#: What the folder of a release holds: to give away, and to keep.
OF_A_FOLDER = ("public", "owner")
UNSIGNED = "the release is not signed: digests without a signature prove nothing about who made it"


@forgetting()
def verify(
    folder: str | Path,
    *,
    original: Any = None,
    population: Any = None,
    public_key: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    allow_demonstration: bool = False,
) -> Verification:
    """Check the release in `folder` (the one with `public/` in it, or the public folder itself).

    `original` and `population` are tables or files for claims that compare with them. `public_key` names
    the file of the key you expect the signature from; without it a signature is checked against the key it
    brings along. `ledger` is where claims about a process, such as differential privacy, were paid for.
    `allow_demonstration` accepts a release that was made with a seed.
    """
    from sfumato.workflow.entered import check_entry
    from sfumato.workflow.verify_claims import check_claims, references_of

    place = Path(folder)
    if not place.is_dir():
        raise SourceError(f"there is no release folder '{place}'")
    findings: list[Finding] = []
    certificate: Certificate | None = None
    try:
        with _public_folder(place) as public, temporary_folder("verify") as private:
            findings += _beside(place)
            raw = public.read(CERTIFICATE)
            content = untrusted.parse_json(raw, "the certificate")
            certificate = read_certificate(content)
            findings.append(_about(certificate))
            _refuse_silence(certificate)
            parts.refuse_contradictions(certificate)
            schema = read_schema(certificate)
            parts.refuse_foreign_files(certificate, schema)
            refuse_other_facts(certificate, schema)
            refuse_other_details(certificate)
            refuse_other_comparison(certificate.composition)
            findings.append(_check_files(public, certificate, Path(private)))
            findings.append(parts.stated_only(certificate))
            signature, signer = _check_signature(public, content, public_key)
            findings.append(signature)
            result = _read_content(certificate, schema, Path(private), findings)
            compared = references_of(schema, original, population)
            findings.extend(check_claims(certificate, schema.replace(folder=private), result, compared, ledger))
            table = result if hasattr(result, "num_rows") else None
            entry = None if ledger is None else check_entry(certificate, table, ledger)
            findings.extend([] if entry is None else [entry])
            if all(finding.passed is not False for finding in findings):
                findings += _check_told(certificate, result, Path(private), ledger)
            if all(finding.passed is not False for finding in findings):
                _refuse_other_form(content, raw, "the certificate")
                findings.append(parts.check_card(certificate, table, signer, Path(private)))
    except VerificationFailed as error:
        findings.append(Finding("release", False, str(error)))
    return Verification(str(place), tuple(findings), certificate, allow_demonstration)


@dataclass(frozen=True, eq=False)
class OpenRelease:
    """A saved release as an outsider sees it; the schema finds its hierarchy files while the release is
    open.
    """

    table: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    certificate: Certificate = field(repr=False)


@contextmanager
def open_release(folder: str | Path) -> Iterator[OpenRelease]:
    """Open a saved release; its form and digests are checked, its claims are not."""
    place = Path(folder)
    if not place.is_dir():
        raise SourceError(f"there is no release folder '{place}'")
    with _public_folder(place) as public, temporary_folder("verify") as private:
        certificate = read_certificate(untrusted.parse_json(public.read(CERTIFICATE), "the certificate"))
        schema = read_schema(certificate)
        _check_files(public, certificate, Path(private))
        table = _read_data(certificate, schema, Path(private))
        yield OpenRelease(table, schema.replace(folder=private), certificate)


@contextmanager
def _public_folder(place: Path) -> Iterator[UntrustedFolder]:
    inner = place / "public"
    chosen = inner if inner.is_symlink() or inner.exists() else place.resolve()
    if chosen != inner and not any(os.path.lexists(chosen / name) for name in (CERTIFICATE, *_OF_A_RELEASE)):
        raise SourceError(f"'{place}' is no release folder: neither a certificate.json nor any other file of a release is in it")
    with untrusted.untrusted(chosen) as public:
        if CERTIFICATE not in public.names:
            raise VerificationFailed("the folder has no certificate.json, so there is nothing it claims")
        yield public


def _beside(place: Path) -> list[Finding]:
    """What lies beside `public/` is no part of the release, whatever it is called."""
    if not (place / "public").exists():
        return []
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, untrusted.MAX_FILES))
    except OSError:
        return []
    names = [name for name in names if name not in OF_A_FOLDER]
    if not names:
        return []
    return [Finding("beside public/", None, f"no part of the release and not looked at: {', '.join(map(quoted, names[:5]))}")]


def _check_files(public: UntrustedFolder, certificate: Certificate, private: Path) -> Finding:
    """Every file of the certificate is there with its digest, and no other; those that are measured are
    copied out.
    """
    listed = set(certificate.files)
    extra = sorted(set(public.names) - listed - {CERTIFICATE, SIGNATURE})
    if extra:
        raise VerificationFailed(f"the folder holds files the certificate does not name: {', '.join(map(quoted, extra[:5]))}")
    absent = sorted(listed - set(public.names))
    if absent:
        raise VerificationFailed(f"files of the certificate are missing: {', '.join(map(quoted, absent[:5]))}")
    for name in sorted(listed):
        limit = untrusted.MAX_DATA_BYTES if name in DATA_FILES else untrusted.MAX_TEXT_BYTES
        told = certificate.files[name]
        if told["bytes"] > limit:
            raise VerificationFailed(f"the file {quoted(name)} is said to be larger than {limit:,} bytes")
        copied = public.copy(name, private, limit, told["bytes"])
        if copied.length != told["bytes"] or copied.sha256 != told["sha256"]:
            raise VerificationFailed(f"the file {quoted(name)} is not the one that was certified: its digest differs")
    return Finding("files", True, f"the digests of {counted(len(listed), 'file')} are those that were certified")


def _refuse_other_form(content: Any, raw: bytes, what: str) -> None:
    """Plain data in the one form that releases are written in: the reader of the file sees what is checked."""
    from sfumato.workflow.saving import pretty

    if pretty(content) != raw:
        raise VerificationFailed(f"{what} is not written as releases write it")


def _about(certificate: Certificate) -> Finding:
    text = f"{counted(len(certificate.claims), 'claim')} about {quoted(certificate.dataset)}"
    if not certificate.private:
        text += "; made with a seed: a demonstration that anybody can repeat"
    return Finding("certificate", True, text)


def _check_signature(public: UntrustedFolder, content: Any, public_key: str | Path | None) -> tuple[Finding, str]:
    """What was found, and who signed in the words of the card; empty where nobody did."""
    from sfumato.wire.signatures import VerifyingKey
    from sfumato.workflow.saving import signer_in_words
    from sfumato.workflow.signing import check_signature

    if SIGNATURE not in public.names:
        if public_key is not None:
            raise VerificationFailed("a signature was expected, but the release is not signed")
        return Finding("signature", None, UNSIGNED), ""
    raw = public.read(SIGNATURE, 20_000)
    told = untrusted.parse_json(raw, "the signature")
    trusted, text = check_signature(told, content, public_key)
    _refuse_other_form(told, raw, "the signature")
    return Finding("signature", trusted, text), signer_in_words(VerifyingKey.parse(told["public_key"]))


def _refuse_silence(certificate: Certificate) -> None:
    """Only masks are published without a promise; any other certificate without one has lost it."""
    if not certificate.claims and not named.is_mask(certificate.method):
        raise VerificationFailed("the certificate makes no claim, although a release by its method always does")


def _read_content(certificate: Certificate, schema: Schema, private: Path, findings: list[Finding]) -> Any:
    """The rows as a table, or a result that is plain data; what was read, written again, must give the same bytes."""
    if RESULT in certificate.files:
        if schema.columns:
            raise VerificationFailed("the certificate describes columns of a table, but the release has none")
        from sfumato.workflow.artefact import as_json

        raw = (private / RESULT).read_bytes()
        result = untrusted.parse_json(raw, "the result")
        if as_json(result) != raw:
            raise VerificationFailed("result.json is not written as releases write it")
        findings.append(Finding("data", True, "plain data in result.json"))
        return result
    table = _read_data(certificate, schema, private)
    nobody = "" if table.num_rows else "; no rows: the promise is about nobody"
    shape = f"{counted(table.num_rows, 'row')}, {counted(table.num_columns, 'column')}"
    findings.append(Finding("data", True, shape + nobody))
    parts.refuse_names(certificate, schema, table)
    parts.refuse_other_sets(schema, table)
    findings.append(_check_bytes(certificate, table, private))
    if not is_artefact(certificate):
        refuse_levels_not_shown(certificate, table)
        findings.append(parts.check_schema_file(schema, table.column_names, private))
        parts.refuse_other_hierarchies(schema, private)
    return table


def _check_told(certificate: Certificate, result: Any, private: Path, ledger: Ledger | str | Path | None) -> list[Finding]:
    """How rows were made, or a private result as far as its ledger tells."""
    from sfumato.workflow.told_of_results import check_told, check_told_of_rows

    if not is_artefact(certificate):
        found = check_told_of_rows(certificate)
        return [] if found is None else [found]
    beside = [name for name in parts.BESIDE_AN_ANSWER if name in certificate.files]
    errors = _read_beside(beside[0], certificate, private) if beside else None
    found = check_told(certificate, result, errors, ledger)
    return [] if found is None else [found]


def _check_bytes(certificate: Certificate, table: pa.Table, private: Path) -> Finding:
    """The data file, and the tables beside an answer, hold their rows and nothing else."""
    from sfumato.workflow.published_bytes import SAME_BYTES, compare_bytes

    made_with = str(certificate.versions.get("pyarrow", ""))
    ordered = not is_artefact(certificate)
    elsewhere = {}
    for name in sorted({*DATA_FILES, *parts.BESIDE_AN_ANSWER} & set(certificate.files)):
        rows = table
        if name not in DATA_FILES:
            rows = _read_beside(name, certificate, private)
        found = compare_bytes(private / name, rows, ordered=ordered, made_with=made_with)
        if found != SAME_BYTES:
            elsewhere[name] = found
    if not elsewhere:
        return Finding("bytes", True, SAME_BYTES)
    caveat = f"{' and '.join(elsewhere)}: written by another version of pyarrow; the parts were compared, the bytes were not"
    return Finding("bytes", None, next(iter(elsewhere.values())), caveat=caveat)


def _read_beside(name: str, certificate: Certificate, private: Path) -> pa.Table:
    """A table of numbers beside an answer, which has the answer's columns."""
    from sfumato.workflow.limited_reading import read_foreign

    columns = certificate.schema.get("columns", {})
    numbers = Schema.parse({"columns": {column: {"type": "number"} for column in columns}})
    rows = certificate.files[name].get("rows")
    table = read_foreign(private / name, numbers, rows)
    if sorted(table.column_names) != sorted(columns) or table.num_rows != rows:
        raise VerificationFailed(f"{name} does not have the columns of the answer, or as many rows as the certificate says")
    return table


def _read_data(certificate: Certificate, schema: Schema, private: Path) -> pa.Table:
    from sfumato.workflow.limited_reading import read_foreign

    names = [name for name in DATA_FILES if name in certificate.files]
    if len(names) != 1:
        raise VerificationFailed("a release has exactly one data file, data.parquet or data.csv")
    rows = certificate.files[names[0]].get("rows")
    table = read_foreign(private / names[0], schema, rows)
    if sorted(table.column_names) != sorted(schema.columns):
        raise VerificationFailed("the data file does not have the columns that the certificate describes")
    if rows != table.num_rows:
        raise VerificationFailed("the data file does not have as many rows as the certificate says")
    return table
