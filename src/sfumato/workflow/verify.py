"""`verify`: check a release from its files alone, whoever wrote them.

Digests, form, signature, and every guarantee whose evidence is in the files is measured again; claims that
need a second file are measured when it is given, and claims about a process are looked up in the ledger that paid
for them. A hostile folder gets a verdict, never a crash, and nothing outside it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, Claim
from sfumato.core.errors import SfumatoError, SourceError, VerificationFailed, forgetting
from sfumato.core.temporary import temporary_folder
from sfumato.data.schema import Column, Schema
from sfumato.report.wording import counted
from sfumato.workflow import named, untrusted
from sfumato.workflow.certificate_form import read_certificate, read_schema
from sfumato.workflow.untrusted import UntrustedFolder, quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.ledger.ledger import Ledger
    from sfumato.measures.guarantees.examined import Measurement
    from sfumato.workflow.claims import References

CERTIFICATE = "certificate.json"
SIGNATURE = "signature.json"
DATA_FILES = ("data.parquet", "data.csv")
RESULT = "result.json"  # a private result that is no table
UNSIGNED = "the release is not signed: digests without a signature prove nothing about who made it"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: `passed` is None where it could not be checked with what was given."""

    check: str
    passed: bool | None
    text: str
    claim: bool = False  # whether it is about a claim of the certificate


@dataclass(frozen=True)
class Verification:
    """The verdict on a release folder."""

    folder: str
    findings: tuple[Finding, ...]
    certificate: Certificate | None = field(default=None, repr=False)

    @property
    def holds(self) -> bool:
        """True when at least one claim could be checked and nothing was found wrong."""
        checked = any(finding.claim and finding.passed for finding in self.findings)
        return checked and all(finding.passed is not False for finding in self.findings)

    @property
    def promises_nothing(self) -> bool:
        """A masked table without a guarantee: its risk was measured by its owner, and nobody promises a limit."""
        return self.certificate is not None and not self.certificate.claims

    @property
    def not_checked(self) -> tuple[Finding, ...]:
        """The claims that could not be checked with what was given."""
        return tuple(finding for finding in self.findings if finding.claim and finding.passed is None)

    def __bool__(self) -> bool:
        return self.holds

    def explain(self) -> str:
        """The findings, one line each."""
        marks = {True: "passed", False: "FAILED", None: "not checked"}
        lines = [f"{marks[finding.passed]:<12}{finding.check}: {finding.text}" for finding in self.findings]
        return "\n".join([*lines, self._verdict()])

    def _verdict(self) -> str:
        if any(finding.passed is False for finding in self.findings):
            return "the release does NOT keep what it claims"
        if self.promises_nothing:
            return "the files fit their certificate, which promises no guarantee: there is nothing that could hold"
        missing = "; ".join(f"{finding.check} {finding.text}" for finding in self.not_checked)
        if not self.holds:
            return f"no claim could be checked: {missing}"
        if missing:
            return f"every claim that could be checked holds; {len(self.not_checked)} not checked: {missing}"
        return "the release keeps what it claims"

    def to_mapping(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "folder": self.folder,
            "holds": self.holds,
            "promises_nothing": self.promises_nothing,
            "findings": [finding.__dict__ for finding in self.findings],
            "verdict": self._verdict(),
            "dataset": self.certificate.dataset if self.certificate else None,
        }


@forgetting()
def verify(
    folder: str | Path,
    *,
    original: Any = None,
    population: Any = None,
    public_key: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
) -> Verification:
    """Check the release in `folder` (the one with `public/` in it, or the public folder itself).

    `original` and `population` are tables or files for claims that compare with them. `public_key` names
    the file of the key you expect the signature from; without it a signature is checked against the key it
    brings along. `ledger` is where claims about a process, such as differential privacy, were paid for.
    """
    place = Path(folder)
    if not place.is_dir():
        raise SourceError(f"there is no release folder '{place}'")
    findings: list[Finding] = []
    certificate: Certificate | None = None
    try:
        with _public_folder(place) as public, temporary_folder("verify") as private:
            content = untrusted.parse_json(public.read(CERTIFICATE), "the certificate")
            certificate = read_certificate(content)
            findings.append(
                Finding(
                    "certificate",
                    True,
                    f"{counted(len(certificate.claims), 'claim')} about '{certificate.dataset[:80]}'",
                )
            )
            _refuse_silence(certificate)
            schema = read_schema(certificate)
            findings.append(_check_files(public, certificate, Path(private)))
            findings.append(_check_signature(public, content, public_key))
            result = _read_content(certificate, schema, Path(private), findings)
            compared = _references(schema, original, population)
            findings.extend(_check_claims(certificate, schema.replace(folder=private), result, compared, ledger))
    except VerificationFailed as error:
        findings.append(Finding("release", False, str(error)))
    return Verification(str(place), tuple(findings), certificate)


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
    with untrusted.untrusted(chosen) as public:
        if CERTIFICATE not in public.names:
            raise VerificationFailed("the folder has no certificate.json, so there is nothing it claims")
        yield public


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
        copied = public.copy(name, private, limit)
        if copied.length != told["bytes"] or copied.sha256 != told["sha256"]:
            raise VerificationFailed(f"the file {quoted(name)} is not the one that was certified: its digest differs")
    return Finding("files", True, f"the digests of {counted(len(listed), 'file')} are those that were certified")


def _check_signature(public: UntrustedFolder, content: Any, public_key: str | Path | None) -> Finding:
    from sfumato.workflow.signing import check_signature

    if SIGNATURE not in public.names:
        if public_key is not None:
            raise VerificationFailed("a signature was expected, but the release is not signed")
        return Finding("signature", None, UNSIGNED)
    told = untrusted.parse_json(public.read(SIGNATURE, 20_000), "the signature")
    trusted, text = check_signature(told, content, public_key)
    return Finding("signature", trusted, text)


def _refuse_silence(certificate: Certificate) -> None:
    """Only masks are published without a promise; any other certificate without one has lost it."""
    if not certificate.claims and not named.is_mask(certificate.method):
        raise VerificationFailed("the certificate makes no claim, although a release by its method always does")


def _read_content(certificate: Certificate, schema: Schema, private: Path, findings: list[Finding]) -> Any:
    """The rows as a table, or a result that is plain data; either must be readable."""
    if RESULT not in certificate.files or any(name in certificate.files for name in DATA_FILES):
        table = _read_data(certificate, schema, private)
        findings.append(Finding("data", True, f"{counted(table.num_rows, 'row')}, {counted(table.num_columns, 'column')}"))
        return table
    if schema.columns:
        raise VerificationFailed("the certificate describes columns of a table, but the release has none")
    result = untrusted.parse_json((private / RESULT).read_bytes(), "the result")
    findings.append(Finding("data", True, "plain data in result.json"))
    return result


def _read_data(certificate: Certificate, schema: Schema, private: Path) -> pa.Table:
    from sfumato.data.readers import read_file

    names = [name for name in DATA_FILES if name in certificate.files]
    if len(names) != 1:
        raise VerificationFailed("a release has exactly one data file, data.parquet or data.csv")
    path = private / names[0]
    if path.suffix == ".parquet":
        _refuse_bomb(path)
    try:
        separator, encoding = (",", "utf-8") if path.suffix == ".csv" else (None, None)
        table = read_file(path, schema, separator=separator, encoding=encoding).table
    except SfumatoError as error:
        raise VerificationFailed(f"the data file cannot be read: {error}") from None
    except (MemoryError, OverflowError, ValueError, OSError) as error:
        raise VerificationFailed(f"the data file cannot be read ({type(error).__name__})") from None
    if sorted(table.column_names) != sorted(schema.columns):
        raise VerificationFailed("the data file does not have the columns that the certificate describes")
    if certificate.files[names[0]].get("rows") != table.num_rows:
        raise VerificationFailed("the data file does not have as many rows as the certificate says")
    return table


def _refuse_bomb(path: Path) -> None:
    """A small file that would unpack into more than memory holds is refused before it is unpacked."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, thrift_string_size_limit=50_000_000, thrift_container_size_limit=1_000_000) as file:
            told = file.metadata
            odd = [field for field in file.schema_arrow if not _is_plain_type(field.type)]
            groups = [told.row_group(i) for i in range(told.num_row_groups)]
            decoded = sum(max(group.total_byte_size, group.num_rows * group.num_columns) for group in groups)
            rows = sum(group.num_rows for group in groups)
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise VerificationFailed(f"the data file is not a complete Parquet file ({type(error).__name__})") from None
    if odd:
        raise VerificationFailed("the data file has columns of a kind that no release has")
    limit = min(untrusted.MAX_DECODED_BYTES, 2_000 * path.stat().st_size + 100_000_000)
    if decoded > limit or rows != told.num_rows or rows < 0:
        raise VerificationFailed("the data file claims to unpack into far more than its size allows; it was not unpacked")


def _is_plain_type(kind: pa.DataType) -> bool:
    """Text (read as codes, however long it is), numbers, booleans and dates; bytes and nested values would be
    unpacked.
    """
    import pyarrow as pa

    types = pa.types
    value = kind.value_type if types.is_dictionary(kind) else kind
    text = types.is_string(value) or types.is_large_string(value)
    fixed = types.is_primitive(value) or types.is_decimal(value) or types.is_null(value)
    return bool(text or (fixed and not types.is_dictionary(kind)))


def _references(schema: Schema, original: Any, population: Any) -> References:
    from sfumato.workflow.claims import References

    return References(_original(original, schema), _population(population))


def _check_claims(
    certificate: Certificate, schema: Schema, result: Any, references: References, ledger: Ledger | str | Path | None
) -> list[Finding]:
    from sfumato.workflow.process_claims import check_process_claim

    findings = []
    for claim in certificate.claims:
        if claim.evidence == "process":
            found = Finding(claim.guarantee[:80], *check_process_claim(claim, certificate, result, ledger))
        elif RESULT in certificate.files:
            found = Finding(claim.guarantee[:80], False, "the claim is about a table, and the release has none")
        else:
            found = _check_claim(claim, schema, result, references)
        findings.append(replace(found, claim=True))
    return findings


def _check_claim(claim: Claim, schema: Schema, table: pa.Table, references: References) -> Finding:
    from sfumato.workflow.claims import RECORDS_PER_CLASS, counts_units, measure_all

    name = claim.guarantee[:80]
    try:
        guarantee = named.guarantee({**claim.parameters, "name": claim.guarantee.split("(")[0]})
        if (guarantee.key, guarantee.claim(), guarantee.evidence) != (
            claim.guarantee,
            claim.promised,
            claim.evidence,
        ):
            return Finding(name, False, "the claim's words do not say what its parameters mean")
        if guarantee.needs_population and references.population is None:
            return Finding(name, None, "compares with a population; pass it to check this claim")
        if claim.evidence == "output+reference" and not guarantee.needs_population and references.original is None:
            return Finding(name, None, "compares with the original table; pass it to check this claim")
        measured = measure_all(table, schema, [guarantee], references)[0]
    except SfumatoError as error:
        reason = type(error).__name__ if error.owner_only else str(error)
        return Finding(name, False, f"the claim cannot be measured: {reason}")
    except (TypeError, ValueError, OverflowError, MemoryError, ArithmeticError, LookupError) as error:
        return Finding(name, False, f"the claim cannot be measured ({type(error).__name__})")
    if not measured.holds:
        return Finding(name, False, f"{claim.promised}; measured {measured.value:.6g}, which breaks it")
    if RECORDS_PER_CLASS in claim.also_measured and counts_units(guarantee) and schema.unit is None:
        return _check_units(claim, guarantee, measured)
    if not _same(claim.measured, measured.value):
        return Finding(name, False, f"the certificate states another number than the {measured.value:.6g} measured here")
    return Finding(name, True, f"{claim.promised}; measured {measured.value:.6g}")


def _check_units(claim: Claim, guarantee: Any, measured: Measurement) -> Finding:
    """A claim about different units whose column was dropped: the file shows records, of which there are at
    least as many.
    """
    from sfumato.workflow.claims import RECORDS_PER_CLASS, records_per_class

    name, records = claim.guarantee[:80], records_per_class(measured)
    beside_a_share = "k" in measured.also
    if not _same(claim.also_measured[RECORDS_PER_CLASS], records) or (
        beside_a_share and not _same(claim.measured, measured.value)
    ):
        return Finding(
            name, False, f"the certificate states other numbers than those measured here ({records:.6g} records per class)"
        )
    units = claim.also_measured.get("k") if beside_a_share else claim.measured
    if isinstance(units, str) or units is None or not guarantee.k <= units <= records:
        return Finding(name, False, f"the units that the certificate states cannot be in classes of {records:.6g} records")
    text = (
        f"{claim.promised}; measured {records:.6g} records per class. The certificate states {units:.6g} different units, "
        "which outsiders cannot recount because the column that names them is not published"
    )
    return Finding(name, True, text)


def _same(stated: Any, measured: float) -> bool:
    if isinstance(stated, str):
        return stated == ("infinite" if measured > 0 else "-infinite") and math.isinf(measured)
    return isinstance(stated, (int, float)) and math.isclose(stated, measured, rel_tol=1e-9, abs_tol=1e-9)


def _original(given: Any, schema: Schema) -> Any:
    """The original as microdata; a file or frame is read with the types that the release's sensitive columns have."""
    from sfumato.data.microdata import Microdata
    from sfumato.engines.sources import read

    if given is None or isinstance(given, Microdata):
        return given
    types = {name: Column(type=schema.columns[name].type) for name in schema.sensitive}
    return read(given, Schema(dataset=schema.dataset, columns=types))


def _population(given: Any) -> Any:
    from sfumato.data.microdata import Microdata
    from sfumato.engines.sources import read

    return given if given is None or isinstance(given, Microdata) else read(given)
