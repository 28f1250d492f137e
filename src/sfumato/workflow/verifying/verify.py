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

from sfumato.core import registry
from sfumato.core.certificate import Certificate
from sfumato.core.errors import InputError, SfumatoError, SourceError, VerificationFailed, forgetting
from sfumato.core.files import temporary_folder
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.data.texts.reading import stated_options
from sfumato.report.wording import counted
from sfumato.workflow.contents.base import FolderAtHand, content_kind
from sfumato.workflow.contents.private_result import BESIDE_AN_ANSWER, RESULT
from sfumato.workflow.publishing.cards import CARD
from sfumato.workflow.publishing.saving import pretty
from sfumato.workflow.verifying import folder_parts as parts
from sfumato.workflow.verifying import untrusted
from sfumato.workflow.verifying.certificate_form import read_certificate, read_schema
from sfumato.workflow.verifying.folder_rows import DATA_FILES
from sfumato.workflow.verifying.notices import check_notices
from sfumato.workflow.verifying.stated.comparison import refuse_other_comparison
from sfumato.workflow.verifying.stated.ledger_statements import check_withdrawals, refuse_other_ledger_statements
from sfumato.workflow.verifying.stored.parts import FOLDER as PARTS
from sfumato.workflow.verifying.untrusted import UntrustedFolder, quoted
from sfumato.workflow.verifying.verification import Finding, Verification

if TYPE_CHECKING:
    from sfumato.core.guarantees.hidden import Hidden
    from sfumato.data.transactions_lists import ItemsetList
    from sfumato.engines.sources import TableLike
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.contents.base import Content

__all__ = ["Finding", "OpenRelease", "Verification", "open_release", "verify"]

CERTIFICATE = "certificate.json"
SIGNATURE = "signature.json"
#: Files by which a folder without a certificate is still known as a release that lost it.
_OF_A_RELEASE = {*DATA_FILES, *BESIDE_AN_ANSWER, RESULT, SIGNATURE, CARD, parts.SCHEMA}
#: What the folder of a release holds: to give away, and to keep.
OF_A_FOLDER = ("public", "owner")
UNSIGNED = "the release is not signed: digests without a signature prove nothing about who made it"


@forgetting()
def verify(
    folder: str | Path,
    *,
    original: TableLike = None,
    population: TableLike = None,
    itemsets: ItemsetList | Hidden | str | Path | None = None,
    public_key: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    allow_demonstration: bool = False,
    data: TableLike = None,
    table: str | None = None,
    **reading: object,  # keys of a `Reading`
) -> Verification:
    """Check the release in `folder` (the one with `public/` in it, or the public folder itself).

    `original` and `population` are tables or files for claims that compare with them; `itemsets` is the owner's list of what was
    hidden in baskets, or the file of it. `public_key` names
    the file of the key you expect the signature from; without it a signature is checked against the key it
    brings along. `ledger` is where claims about a process, such as differential privacy, were paid for.
    `allow_demonstration` accepts a release that was made with a seed. `data` is where the rows are that were published into a
    database (its URL or file, with `table`). `separator`, `decimal` and the like say how the texts of `original` and `population`
    are read, over what the owner's schema says where the folder has it.
    """
    from sfumato.workflow.earlier.read_alike import owners_reading
    from sfumato.workflow.verifying.claims import check_claims, references_of
    from sfumato.workflow.verifying.entered import check_entry

    place, stated = Path(folder), stated_options(reading)
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
            schema = read_schema(certificate)
            parts.refuse_contradictions(certificate, schema)
            parts.refuse_foreign_files(certificate, schema)
            kind = content_kind(certificate)
            if not kind.has_parts:
                public.refuse(PARTS)
            _refuse_rows_elsewhere(kind, data, table)
            _refuse_other_references(kind, itemsets, original, population)
            kind.refuse_other_facts(certificate, schema)
            refuse_other_comparison(certificate.composition, withdrawn=bool(certificate.withdrawn))
            refuse_other_ledger_statements(certificate)
            parts.refuse_other_attacks(certificate)
            findings.append(_check_files(public, certificate, Path(private), kind))
            findings.append(parts.stated_only(certificate))
            signature, signer = _check_signature(public, content, public_key)
            findings.append(signature)
            beside = FolderAtHand(public, _table_of_rows(data, table))
            content_data, read = kind.read(certificate, schema, Path(private), beside)
            findings.extend(read)
            reading_of = owners_reading(place).overridden(stated)
            compared = references_of(certificate, schema, original, population, reading_of, itemsets)
            findings.extend(check_claims(certificate, schema.replace(folder=private), content_data, compared, ledger))
            findings.extend(check_notices(certificate, schema, content_data))
            entry = None if ledger is None else check_entry(certificate, content_data, ledger)
            findings.extend(each for each in (entry, check_withdrawals(certificate, ledger)) if each is not None)
            if all(finding.passed is not False for finding in findings):
                making = kind.check_making(certificate, content_data, Path(private), ledger)
                findings.extend([] if making is None else [making])
            if all(finding.passed is not False for finding in findings):
                _refuse_other_form(content, raw, "the certificate")
                findings.append(parts.check_card(certificate, content_data, signer, Path(private)))
    except VerificationFailed as error:
        findings.append(Finding("release", False, str(error)))
    except SfumatoError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # whatever a stranger wrote, the answer is a verdict and not a crash
        findings.append(Finding("release", False, f"it holds something that no release holds ({type(error).__name__})"))
    return Verification(str(place), tuple(findings), certificate, allow_demonstration)


@dataclass(frozen=True, eq=False)
class OpenRelease:
    """A saved release as an outsider sees it; the schema finds its hierarchy files while the release is
    open.
    """

    data: Any = field(repr=False)  # rows, or content of another kind
    schema: Schema = field(repr=False)
    certificate: Certificate = field(repr=False)


@contextmanager
def open_release(folder: str | Path, data: TableLike = None, table: str | None = None) -> Iterator[OpenRelease]:
    """Open a saved release, whose rows may be in a database (`data`, `table`); its form, its digests and the form of what it
    tells are checked, its claims are not."""
    place = Path(folder)
    if not place.is_dir():
        raise SourceError(f"there is no release folder '{place}'")
    with _public_folder(place) as public, temporary_folder("verify") as private:
        certificate = read_certificate(untrusted.parse_json(public.read(CERTIFICATE), "the certificate"))
        schema = read_schema(certificate)
        kind = content_kind(certificate)
        _check_files(public, certificate, Path(private), kind)
        if not kind.has_parts:
            public.refuse(PARTS)
        _refuse_rows_elsewhere(kind, data, table)
        kind.refuse_other_facts(certificate, schema)
        content = kind.opened(certificate, schema, Path(private), FolderAtHand(public, _table_of_rows(data, table)))
        yield OpenRelease(content, schema.replace(folder=private), certificate)


def _refuse_rows_elsewhere(kind: type[Content], data: TableLike, table: str | None) -> None:
    """A table that nobody would look at must not read as if it had been checked."""
    if data is None and table is not None:
        raise InputError("table= (--table) names a table of the database in data= (--data); give both")
    if data is not None and not kind.has_parts:
        raise InputError("the rows of this release are in its folder; leave data= (--data) out")


def _refuse_other_references(kind: type[Content], itemsets: object, original: object, population: object) -> None:
    """What nobody would compare with must not read as if it had been compared."""
    if itemsets is not None and not kind.takes_a_list:
        raise InputError(
            "itemsets= (--itemsets) is a list of what was hidden in baskets, and this release has none; leave it out"
        )
    if kind.takes_a_list and (original is not None or population is not None):
        raise InputError("baskets are compared with the list of what is hidden in them: pass itemsets= (--itemsets) alone")


def _table_of_rows(data: TableLike, table: str | None) -> Microdata | None:
    """The table that is said to hold the rows, wherever it is; it is asked and never read whole."""
    if data is None:
        return None
    from sfumato.engines.sources import read

    return data if isinstance(data, Microdata) else read(data, table=table)


def certificate_of(folder: str | Path) -> Certificate:
    """The certificate of a saved release; its form is checked, and nothing else."""
    place = Path(folder)
    if not place.is_dir():
        raise SourceError(f"there is no release folder '{place}'")
    with _public_folder(place) as public:
        return read_certificate(untrusted.parse_json(public.read(CERTIFICATE), "the certificate"))


@contextmanager
def _public_folder(place: Path) -> Iterator[UntrustedFolder]:
    inner = place / "public"
    chosen = inner if inner.is_symlink() or inner.exists() else place.resolve()
    if chosen != inner and not any(os.path.lexists(chosen / name) for name in (CERTIFICATE, *_OF_A_RELEASE)):
        raise SourceError(f"'{place}' is no release folder: neither a certificate.json nor any other file of a release is in it")
    with untrusted.untrusted(chosen, folders=(PARTS,)) as public:
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


def _check_files(public: UntrustedFolder, certificate: Certificate, private: Path, kind: type[Content]) -> Finding:
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
        limit = untrusted.MAX_DATA_BYTES if name in DATA_FILES or name in kind.large_files else untrusted.MAX_TEXT_BYTES
        entry = certificate.files[name]
        if entry["bytes"] > limit:
            raise VerificationFailed(f"the file {quoted(name)} is said to be larger than {limit:,} bytes")
        copied = public.copy(name, private, limit, entry["bytes"])
        if copied.length != entry["bytes"] or copied.sha256 != entry["sha256"]:
            raise VerificationFailed(f"the file {quoted(name)} is not the one that was certified: its digest differs")
    return Finding("files", True, f"the digests of {counted(len(listed), 'file')} are those that were certified")


def _refuse_other_form(content: Any, raw: bytes, what: str) -> None:
    """Plain data in the one form that releases are written in: the reader of the file sees what is checked."""
    if pretty(content) != raw:
        raise VerificationFailed(f"{what} is not written as releases write it")


def _about(certificate: Certificate) -> Finding:
    text = f"{counted(len(certificate.claims), 'claim')} about {quoted(certificate.dataset)}"
    text += "; a draft, which is not to be given away" if certificate.draft else ""
    if not certificate.private:
        text += "; made with a seed: a demonstration that anybody can repeat"
    return Finding("certificate", True, text)


def _check_signature(public: UntrustedFolder, content: Any, public_key: str | Path | None) -> tuple[Finding, str]:
    """What was found, and who signed in the words of the card; empty where nobody did."""
    from sfumato.wire.signatures import VerifyingKey
    from sfumato.workflow.publishing.signing import check_signature, signer_in_words

    if SIGNATURE not in public.names:
        if public_key is not None:
            raise VerificationFailed("a signature was expected, but the release is not signed")
        return Finding("signature", None, UNSIGNED), ""
    raw = public.read(SIGNATURE, 20_000)
    signature = untrusted.parse_json(raw, "the signature")
    trusted, text = check_signature(signature, content, public_key)
    _refuse_other_form(signature, raw, "the signature")
    return Finding("signature", trusted, text), signer_in_words(VerifyingKey.parse(signature["public_key"]))


def _refuse_silence(certificate: Certificate) -> None:
    """Only masks are published without a promise; any other certificate without one has lost it."""
    if not certificate.claims and not registry.has("mask", certificate.method.get("name")):
        raise VerificationFailed("the certificate makes no claim, although a release by its method always does")
