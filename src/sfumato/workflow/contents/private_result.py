"""A result of a private method: a histogram, a synthetic table, a model, released once and used freely.

Its evidence is the process: the certificate states the loss with its unit and neighbour relation, the argument why it holds, the
source of the noise and the ledger's entry that paid for it. What was computed without noise stays in the owner's folder.
Blum, Ligett, Roth, "A learning theory approach to non-interactive database privacy", STOC 2008.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

from sfumato.core.certificate import Certificate, Claim, plain
from sfumato.core.errors import ParameterError, VerificationFailed
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data.publication import NOTHING_SAID, Publication
from sfumato.data.schema import Column, Schema
from sfumato.report.headline import DEMONSTRATION, NOT_CHARGED
from sfumato.workflow.contents.base import (
    Content,
    Files,
    FolderAtHand,
    Format,
    Page,
    Promise,
    Saved,
    Submission,
    entered,
)
from sfumato.workflow.earlier.comparing import Together, withdrawn_of
from sfumato.workflow.publishing.saving import (
    describe_bytes,
    describe_file,
    plain_data,
    pretty,
    read_back,
    refuse_other_bytes,
    write_and_describe,
)
from sfumato.workflow.verifying.folder_rows import (
    DATA_FILES,
    PARQUET,
    check_bytes,
    check_shape,
    read_beside,
    read_rows,
    refuse_several_data_files,
)
from sfumato.workflow.verifying.stated.results import RESULT_DIGEST, check_stated_result
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.outcome import Outcome
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.publishing.claims import References
    from sfumato.workflow.release import Release

RESULT = "result.json"  # a result that is no table
#: The table that comes with the answer to a question; other tables in the details of an outcome stay with its owner.
_ERRORS = "errors"
BESIDE_AN_ANSWER = (f"{_ERRORS}.parquet", f"{_ERRORS}.csv")
#: How a release entry says that its guarantee rests on the process, so that nobody looks for classes in its rows.
PROCESS = "process"
#: What an outcome says about itself; everything else in its details was computed with noise, or not from the data.
_ABOUT = frozenset({"argument", "randomness", "private", "dataset", "ledger_entry", "owner", "not_covered", "publication"})


@dataclass(frozen=True, eq=False)
class PrivateResult(Content):
    """An Arrow table or plain data, with the tables that come with it, such as the standard errors of an answer."""

    result: Any = field(repr=False)  # what an algorithm returns: an Arrow table or plain data
    dataset: str = "unnamed"
    beside: Mapping[str, pa.Table] = field(default_factory=dict, repr=False)
    paid: str | None = None
    publication: Publication = NOTHING_SAID

    named_in_certificates: ClassVar[bool] = False
    says_scored: ClassVar[bool] = False

    @classmethod
    def submitted(
        cls, outcome: Outcome[object], *, dataset: str | None, ledger: Ledger | None, ledger_entry: str | None
    ) -> Submission[Self] | None:
        """What an algorithm returned that claims a privacy loss; data set and entry are its own unless given."""
        if not outcome.claimed or not all(isinstance(each, LossGuarantee) for each in outcome.claimed):
            return None
        details = outcome.details
        private = details.get("private") is True
        paid = ledger_entry or details.get("ledger_entry")
        name = dataset or details.get("dataset") or "unnamed"
        public = {key: value for key, value in details.items() if key not in _ABOUT}
        beside = {key: public[key] for key in (_ERRORS,) if is_table(public.get(key))}
        # earlier charges that the claim does not cover, as they were when it was paid for and as they are now
        later = [] if ledger is None else ledger.not_covered(name)
        notices = (
            *(() if private else (DEMONSTRATION,)),
            *(() if paid else (NOT_CHARGED,)),
            *dict.fromkeys(str(each) for each in (*(details.get("not_covered") or ()), *later)),
        )
        argument, entry = str(details.get("argument") or ""), None if paid is None else str(paid)
        _refuse_other_charge(ledger, entry, name)
        return Submission(
            content=cls(outcome.result, name, beside, entry, Publication(**(details.get("publication") or {}))),
            promises=tuple(Promise(each, argument, entry) for each in outcome.claimed),
            method=plain(dict(outcome.method)),
            randomness=str(details.get("randomness") or "not said"),
            private=private,
            notices=notices,
            details=public,
            computed=dict(details.get("owner") or {}),
        )

    @property
    def data(self) -> Any:  # an Arrow table or plain data
        """The result."""
        return self.result

    @property
    def schema(self) -> Schema:
        """The columns by type; plain data have none."""
        from sfumato.engines.canonical import kind_of_type

        types: dict[str | None, Any] = {name: name for name in ("integer", "number", "boolean", "date", "datetime")}
        fields = self.result.schema if is_table(self.result) else ()
        columns = {each.name: Column(type=types.get(kind_of_type(each.type), "string")) for each in fields}
        return Schema(dataset=self.dataset, columns=columns, publication=self.publication)

    def written(self) -> tuple[Self, Files]:
        """The result as it is; its canonical form is checked to be one."""
        from sfumato.data.writers import clean, parquet_bytes

        if not is_table(self.result):
            return self, {RESULT: describe_bytes(as_json(self.result))}
        return self, {PARQUET: {**describe_bytes(parquet_bytes(clean(self.result))), "rows": int(self.result.num_rows)}}

    def claims(self, guarantees: Sequence[Guarantee]) -> tuple[Claim, ...]:
        """Nothing can be measured on it."""
        if guarantees:
            raise ParameterError(
                "a private result is published with the privacy loss it claims (PureDP, ApproxDP, …); tables with class "
                "guarantees are published by sf.protect"
            )
        return ()

    def entry(self, facts: Plain, files: Files) -> PlainDict:
        """No number of the result itself, only its digest."""
        from sfumato.dp.sql.asking.identity import result_digest, table_digest

        rows: pa.Table | None = self.result if is_table(self.result) else None
        payload: dict[str, Any] = {
            "sha256": _digest(self.result),
            "rows": 0 if rows is None else rows.num_rows,
            "claims": {claim["guarantee"]: claim["parameters"] for claim in facts["claims"]},
            "promised": [claim["promised"] for claim in facts["claims"]],
            "method": facts["method"],
            "evidence": PROCESS,
            "charged": self.paid,
            "private": facts["private"],
            RESULT_DIGEST: result_digest(self.result),
        }
        return payload | ({"errors": table_digest(self.beside["errors"])} if "errors" in self.beside else {})

    def enter(self, ledger: Ledger, facts: Plain, files: Files) -> tuple[Entry, Together]:
        """The entry alone: what was charged adds up in the accounts of the ledger."""
        entry = entered(ledger, self.dataset, self.entry(facts, files))
        return entry, Together(withdrawn=withdrawn_of(ledger, self.dataset))

    def save(self, folder: Path, format: Format, release: Release[Content]) -> Saved:
        """The result and the tables that come with it, read back."""
        from sfumato.dp.sql.asking.identity import table_digest

        files, notices = self._save_result(folder, format)
        for name, table in self.beside.items():
            place = folder / f"{name}.{format}"
            files[place.name] = write_and_describe(table, place)
            numbers = Schema(columns={column: Column(type="number") for column in table.column_names})
            if table_digest(read_back(place, numbers, table)) != table_digest(table):
                raise VerificationFailed(
                    f"the numbers read back from {place.name} are not those that were made; nothing was released"
                )
        return Saved(files, release.published.claims, self.schema, notices)

    def _save_result(self, folder: Path, format: Format) -> tuple[dict[str, Any], list[str]]:
        from sfumato.data.writers import clean, spreadsheet_notices
        from sfumato.workflow.publishing.appearing import write_bytes
        from sfumato.workflow.publishing.released_form import released_form

        if not is_table(self.result):
            content = as_json(self.result)
            write_bytes(folder / RESULT, content)
            if json.loads((folder / RESULT).read_bytes()) != json.loads(content):
                raise VerificationFailed("the written result is not the one that was made; nothing was released")
            return {RESULT: describe_file(folder / RESULT)}, []
        rows: pa.Table = clean(self.result)
        place = folder / f"data.{format}"
        files = {place.name: write_and_describe(rows, place)}
        back = read_back(place, self.schema, rows)
        if not released_form(back).equals(released_form(rows)):
            raise VerificationFailed(f"the rows read back from {format} are not those that were made; nothing was released")
        refuse_other_bytes(place, back, ordered=False)
        return files, [] if format == "parquet" else spreadsheet_notices(rows)

    def page_details(self, release: Release[Content]) -> Plain:
        """What follows from the parameters of the method."""
        from sfumato.workflow.verifying.stated.details import details_of

        return details_of(release.published.method, plain_data(release.details))

    def owner_details(self, release: Release[Content]) -> Mapping[str, object]:
        """What was computed without noise."""
        details: Mapping[str, Any] = plain_data(release.owner.computed)
        return details

    @classmethod
    def refuse_other_facts(cls, certificate: Certificate, schema: Schema) -> None:
        """A private result is not compared, not attacked and has no fingerprint: all of that takes the original."""
        super().refuse_other_facts(certificate, schema)
        if certificate.composition or certificate.attacks or certificate.fingerprint is not None:
            raise VerificationFailed("the certificate of a private result states what only a table of records has")

    @classmethod
    def refuse_other_details(cls, certificate: Certificate) -> None:
        """Details of a known method are computed again; others have names of their own."""
        from sfumato.workflow.verifying.stated.details import refuse_other_details

        refuse_other_details(certificate)

    def owner_files(self, release: Release[Content]) -> dict[str, bytes]:
        """What was computed without noise, and how the work went."""

        computed = release.owner.computed
        files = {
            "quality.json": pretty(plain_data(computed)),
            "details.json": pretty({"method": plain_data(release.published.method), "details": plain_data(release.details)}),
        }
        quality = computed.get("quality")
        if isinstance(quality, Mapping) and {"columns", "distance"} <= set(quality):
            from sfumato.report.figures.synthetic_quality import synthetic_quality

            files["quality.svg"] = synthetic_quality(quality).encode()
        return files

    @classmethod
    def files(cls, certificate: Certificate, schema: Schema) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """A data file or plain data, and the errors of an answer."""
        refuse_several_data_files(certificate, RESULT)
        return {*DATA_FILES, RESULT, *BESIDE_AN_ANSWER}, set()

    @classmethod
    def read(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> tuple[object, list[Finding]]:
        """The rows as a table, or plain data; what was read, written again, must give the same bytes."""
        from sfumato.workflow.verifying import folder_parts as parts
        from sfumato.workflow.verifying import untrusted

        if RESULT not in certificate.files:
            table = read_rows(certificate, schema, folder)
            shape = check_shape(table)
            parts.refuse_roles(certificate, schema)
            parts.refuse_other_sets(schema, table)
            return table, [shape, check_bytes(certificate, table, folder, ordered=False, beside=BESIDE_AN_ANSWER)]
        if schema.columns:
            raise VerificationFailed("the certificate describes columns of a table, but the release has none")
        raw = (folder / RESULT).read_bytes()
        result = untrusted.parse_json(raw, "the result")
        if as_json(result) != raw:
            raise VerificationFailed("result.json is not written as releases write it")
        return result, [Finding("data", True, "plain data in result.json")]

    @classmethod
    def check_claim(
        cls, claim: Claim, certificate: Certificate, schema: Schema, data: object, references: References
    ) -> list[Finding]:
        """A private result makes no claim that its files could show."""
        return [Finding(claim.guarantee[:80], False, "the claim is about rows of people, and the release has none")]

    @classmethod
    def entry_facts(cls, certificate: Certificate) -> Mapping[str, Sequence[object]]:
        """Its charge, which is looked up by itself, holds the result."""
        facts = certificate.to_mapping()
        return {
            "promised": [[claim["promised"] for claim in facts["claims"]]],
            "method": [facts["method"]],
            "charged": [claim.ledger_entry for claim in certificate.claims],
            "private": [certificate.private],
        }

    @classmethod
    def check_making(
        cls, certificate: Certificate, data: object, folder: Path, ledger: Ledger | str | Path | None
    ) -> Finding | None:
        """How it was made, and the margins beside it, as far as the ledger tells."""

        beside = [name for name in BESIDE_AN_ANSWER if name in certificate.files]
        errors = read_beside(beside[0], certificate, folder) if beside else None
        return check_stated_result(certificate, data, errors, ledger)

    @classmethod
    def page(cls, certificate: Certificate, data: object) -> Page:
        """How the result was made, as far as everybody may know."""
        rows = {"published rows": int(data.num_rows)} if is_table(data) else {}
        return Page({**rows, **certificate.card["details"], **rows})


def _refuse_other_charge(ledger: Ledger | None, entry: str | None, dataset: str) -> None:
    """What is entered names a charge of the same data set, where the ledger has it: nobody can take an entry back."""
    charge = None if ledger is None or entry is None else ledger.charge(entry)
    if charge is not None and charge.dataset != dataset:
        raise ParameterError("the charge that paid for this result is about another data set; leave dataset= out")


def is_table(result: object) -> TypeGuard[pa.Table]:
    """True for an Arrow table; anything else is plain data."""
    import pyarrow as pa

    return isinstance(result, pa.Table)


def as_json(result: object) -> bytes:
    """Plain data as the JSON file of a release; refused when it is no plain data."""
    try:
        text = json.dumps(plain(result), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # the cause is not chained: its message may print a value
        raise ParameterError(
            "a private result is an Arrow table or plain data (mappings, lists, finite numbers, texts); this is neither"
        ) from None
    return (text + "\n").encode()


def _digest(result: Any) -> str:
    """A digest of the content, the same whatever file it is written to."""
    import pyarrow as pa

    if not is_table(result):
        return hashlib.sha256(as_json(result)).hexdigest()
    from sfumato.data.writers import clean

    sink = pa.BufferOutputStream()
    rows = clean(result).combine_chunks()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return hashlib.sha256(sink.getvalue()).hexdigest()
