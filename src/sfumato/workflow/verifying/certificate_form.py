"""The form a foreign certificate must have before anything in it is believed: every field, its type and its
bounds.
"""

from __future__ import annotations

import datetime
import json
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sfumato.core.certificate import FIRST_FORMAT, FORMAT, FORMATS, NOT_ENTERED, Certificate
from sfumato.core.errors import VerificationFailed, forgetting
from sfumato.data.schema import Column, Schema
from sfumato.report.checklist import LONGEST_NOTE, QUESTIONS
from sfumato.wire.fingerprint import FORMATS as FINGERPRINTS
from sfumato.workflow.verifying.untrusted import is_plain_name, quoted

_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
_Time = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00$")]
_Fingerprint = Annotated[str, StringConstraints(pattern=rf"^({'|'.join(FINGERPRINTS)}):[0-9a-f]{{64}}$")]
_Entry = Annotated[str, StringConstraints(pattern=rf"^([0-9a-f]{{64}}|{NOT_ENTERED})$")]
#: The name of a class, or of a method of one: no praise, no sentence.
_METHOD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}(\.[a-z_]{1,40})?")
_MOST_LEVELS = 100
_MOST_CUTS = 1000
_MOST_VALUES = 1_000_000
#: What a release says about its columns; bounds, codes and labels of values describe the original.
_PUBLISHED = frozenset({"role", "type", "order", "domain", "label", "items", "hierarchy"})
_LONGEST_MASK = 200
_MOST_ATTACKS, _LONGEST_FINDING = 100, 1000
_MOST_WITHDRAWN = 10_000
_Text = Annotated[str, StringConstraints(max_length=20_000)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Question = Annotated[str, StringConstraints(pattern=f"^({'|'.join(QUESTIONS)})$")]
_Kind = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z]{0,79}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)


class FileForm(_Strict):
    """One file of the release."""

    sha256: _Digest
    bytes: int = Field(ge=0)
    rows: int | None = Field(default=None, ge=0)


class ClaimForm(_Strict):
    """One claim."""

    guarantee: _Text
    parameters: dict[str, Any]
    promised: _Text
    measured: int | float | Literal["infinite", "-infinite"] | None
    holds: bool
    evidence: Literal["output", "output+reference", "output+model", "process"]
    protects: _Text
    also_measured: dict[str, int | float | Literal["infinite", "-infinite"] | None]
    adversary: _Text
    unit: _Text
    neighbours: _Text | None
    reference: _Text | None
    argument: _Text | None
    ledger_entry: _Text | None


class ScoreForm(_Strict):
    """A score of the published rows."""

    measure: _Text
    value: int | float | Literal["infinite", "-infinite"] | None
    better: Literal["lower", "higher"]
    meaning: _Text
    parts: dict[str, int | float | Literal["infinite", "-infinite"] | None]
    uses_original: Literal[False]
    floor: _Share | None = None  # earlier certificates state neither
    interval: list[_Share] | None = Field(default=None, min_length=2, max_length=2)


class AttackForm(_Strict):
    """How far an attack got, beside blind guessing."""

    attack: _Kind
    success: _Share
    baseline: _Share
    interval: list[_Share] = Field(min_length=2, max_length=2)
    targets: int = Field(ge=0)
    finding: Annotated[str, StringConstraints(max_length=_LONGEST_FINDING)]


class AnswerForm(_Strict):
    """An answer to the checklist."""

    given: bool
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)]


class CardForm(_Strict):
    """What the public page shows besides the certificate."""

    format: _Text
    scores: list[ScoreForm] = Field(max_length=200)
    scored: bool
    answers: dict[_Question, AnswerForm]
    details: dict[str, Any] = Field(max_length=200)


class FirstForm(_Strict):
    """The whole certificate in its first format."""

    format: str
    dataset: _Text
    created: _Time
    claims: list[ClaimForm] = Field(max_length=1000)
    method: dict[str, Any]
    schema_: dict[str, Any] = Field(alias="schema")
    files: dict[str, FileForm] = Field(min_length=1, max_length=200)
    versions: dict[str, _Text]
    fingerprint: _Fingerprint | None
    randomness: _Text
    private: bool
    ledger: _Entry
    composition: dict[str, Any]
    attacks: list[AttackForm] = Field(max_length=_MOST_ATTACKS)
    transparency: dict[str, Any]
    notices: list[_Text] = Field(max_length=1000)


class CertificateForm(FirstForm):
    """The whole certificate; `content` names a kind that cannot be known by its claims. What says nothing is not stated."""

    card: CardForm
    content: _Kind = ""
    draft: Literal[True] = True
    withdrawn: list[_Digest] = Field(default=[], min_length=1, max_length=_MOST_WITHDRAWN)


_FORMS: dict[str, type[FirstForm]] = {FIRST_FORMAT: FirstForm, FORMAT: CertificateForm}


@forgetting()
def read_certificate(content: object) -> Certificate:
    """A certificate from parsed JSON; everything that is wrong with its form is reported at once, without its
    values.
    """
    if not isinstance(content, dict):
        raise VerificationFailed("the certificate is not a JSON object")
    if content.get("format") not in FORMATS:
        raise VerificationFailed(f"the certificate has an unknown format; this version reads {' and '.join(FORMATS)}")
    try:
        _FORMS[content["format"]].model_validate(content)
    except ValidationError as error:
        faults = [f"{'.'.join(str(part)[:60] for part in fault['loc'])}: {fault['msg']}" for fault in error.errors()[:20]]
        listed = "; ".join(quoted(fault) for fault in faults)
        raise VerificationFailed(f"the certificate does not have the form of a certificate: {listed}") from None
    _refuse_odd_time(content["created"])
    promises = {json.dumps([claim["guarantee"], claim["parameters"]], sort_keys=True) for claim in content["claims"]}
    # the first versions wrote a promise twice where it was asked for twice
    if content["format"] != FIRST_FORMAT and len(promises) < len(content["claims"]):
        raise VerificationFailed("the certificate makes the same claim twice")
    name = content["method"].get("name", "")
    if not isinstance(name, str) or (name and not _METHOD.fullmatch(name)):
        raise VerificationFailed("the certificate names a method that has no name of one")
    odd = [quoted(name) for name in content["files"] if not is_plain_name(name)]
    if odd:
        raise VerificationFailed(f"the certificate names files that are not plain names: {', '.join(odd[:5])}")
    return Certificate.from_mapping(content)


def _refuse_odd_time(created: str) -> None:
    try:
        datetime.datetime.fromisoformat(created)
    except ValueError:
        raise VerificationFailed("the certificate was made at a time that no calendar or clock has") from None


@forgetting()
def read_schema(certificate: Certificate) -> Schema:
    """The schema in a certificate; a hierarchy in it may only be one of the certificate's own files."""
    columns = certificate.schema.get("columns", {})
    if not isinstance(columns, dict) or set(certificate.schema) - {"dataset", "columns"}:
        raise VerificationFailed("the certificate's schema has unknown parts")
    for column in columns.values():
        if not isinstance(column, dict) or set(column) - _PUBLISHED:
            raise VerificationFailed("the certificate's schema says things about a column that no release says")
        if any(isinstance(listed, list) and len(listed) > _MOST_VALUES for listed in (column.get("domain"), column.get("order"))):
            raise VerificationFailed("the certificate's schema lists more values of a column than can be checked")
        if not _harmless(column.get("hierarchy"), column.get("role"), certificate):
            raise VerificationFailed("the certificate's schema has a hierarchy that no release has")
    try:
        schema = Schema.parse(certificate.schema)
    except Exception as error:  # whatever a stranger wrote, the answer is a verdict and not a crash
        raise VerificationFailed(f"the certificate's schema cannot be read ({type(error).__name__})") from None
    return schema.replace(columns={name: _of_a_release(column) for name, column in schema.columns.items()})


def _of_a_release(column: Column) -> Column:
    return column if column.hierarchy is None else column.model_copy(update={"hierarchy": column.hierarchy.of_a_release()})


def _harmless(hierarchy: Any, role: Any, certificate: Certificate) -> bool:
    """A hierarchy is one of the certificate's own files or, of a quasi-identifier, described by a few small
    parameters.
    """
    if hierarchy is None:
        return True
    if not isinstance(hierarchy, dict):
        return False
    if "file" in hierarchy:
        return not set(hierarchy) - {"file", "separator", "missing"} and str(hierarchy["file"]) in certificate.files
    frequency = hierarchy.get("frequency", [])
    intervals, cuts = hierarchy.get("intervals", []), hierarchy.get("cuts", [])
    width = hierarchy.get("width", 1)
    alphabet = hierarchy.get("alphabet", 1)
    return (
        role == "quasi"
        and not set(hierarchy) - {"intervals", "origin", "cuts", "mask", "width", "alphabet", "dates", "frequency"}
        and isinstance(frequency, list)
        and len(frequency) <= _MOST_LEVELS
        and isinstance(intervals, list)
        and len(intervals) <= _MOST_LEVELS
        and isinstance(cuts, list)
        and len(cuts) <= _MOST_CUTS
        and isinstance(width, int)
        and 0 < width <= _LONGEST_MASK
        and isinstance(alphabet, int)
        and 0 < alphabet <= _LONGEST_MASK
    )
