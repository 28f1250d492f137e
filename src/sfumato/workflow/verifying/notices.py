"""Notices about the rows, held to the rows: how many records are alone, and what missing values are worth.

A notice of that form that the rows do not give is refused. Those that the rows give and the certificate leaves out are told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sfumato.anonymity.pseudonyms import WARNING
from sfumato.core import registry
from sfumato.core.certificate import Certificate
from sfumato.core.errors import VerificationFailed
from sfumato.core.guarantees.base import supposed_known
from sfumato.data.schema import Schema
from sfumato.report.headline import FINDS_THE_RECORD, MISSING_COUNTED, NOT_COUNTED, NOT_COVERED_TOGETHER, class_guarantees
from sfumato.workflow.publishing.claims import missing_counted
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.publishing.masked_rows import left_as_they_are
from sfumato.workflow.publishing.recoded_rows import telling_columns
from sfumato.workflow.publishing.stored_rows import not_counted_in_words, telling_groups
from sfumato.workflow.verifying.stated.transparency import names_in
from sfumato.workflow.verifying.stored.description import promised_columns
from sfumato.workflow.verifying.verification import Finding

#: The name of this check among the findings of a verification.
NOTICES = "notices"
_ABOUT_ROWS = (FINDS_THE_RECORD, NOT_COVERED_TOGETHER)
#: What earlier versions said of a column with nearly as many values as records.
_FORMERLY = re.compile(
    r"column '(?P<name>.*)' is published as it is and has (?P<different>[0-9,]+) different values in (?P<records>[0-9,]+) "
    r"records: whoever knows one finds the record\. Should it be a quasi-identifier\?",
    re.DOTALL,
)


def check_notices(certificate: Certificate, schema: Schema, rows: object) -> list[Finding]:
    """Raise where a notice says something else of the rows than they show; tell what it leaves out."""
    said = certificate.notices
    if any(notice.startswith(MISSING_COUNTED) and notice not in missing_counted(certificate.claims) for notice in said):
        raise VerificationFailed("a notice about missing values says something else than the claim that it is about")
    notices = _given(certificate, schema, rows)
    about_rows = [notice for notice in said if notice.endswith(_ABOUT_ROWS) or notice.startswith(NOT_COUNTED)]
    formerly = [match for notice in said if (match := _FORMERLY.fullmatch(notice))]
    if not {*about_rows} <= {*notices.must, *notices.may} or not all(_holds(match, rows) for match in formerly):
        raise VerificationFailed("a notice says something else of the rows than they show")
    named = tuple(f"value of column '{match['name']}', which" for match in formerly)
    left_out = [notice for notice in notices.must if notice not in said and not any(name in notice for name in named)]
    left_out += [notice for notice in _of_the_certificate(certificate, schema) if notice not in said]
    return [Finding(NOTICES, None, f"not said by the maker: {notice}") for notice in left_out]


@dataclass(frozen=True)
class _Given:
    """Notices that the rows give: those that must be said, and those that may."""

    must: Sequence[str] = ()
    may: Sequence[str] = ()


def _given(certificate: Certificate, schema: Schema, rows: object) -> _Given:
    """What is to be said of columns that are published as they are. Of columns that a mask is made for it may be said, since the
    mask may have left them as they were."""
    name, facts = certificate.method.get("name"), certificate.transparency
    is_mask = registry.has("mask", name)
    masked = {*names_in(facts, "masked_columns")} if is_mask else set()
    if not isinstance(rows, (pa.Table, GroupedRows)) or not (is_mask or registry.has("search", name)):
        return _Given()
    if is_mask and registry.find("mask", str(name)).synthetic:
        return _Given()
    covered = supposed_known([guarantee for claim in certificate.claims for guarantee in class_guarantees(claim)], schema.quasi)
    others = [each for each in rows.column_names if each not in {*covered, *names_in(facts, "pseudonymised_columns")}]
    as_they_are = [each for each in others if each not in masked]
    if isinstance(rows, pa.Table):
        return _Given(telling_columns(rows, as_they_are), telling_columns(rows, [], [each for each in others if each in masked]))
    promised = dict.fromkeys(each for each in promised_columns(certificate) if each not in schema.quasi)
    aside = [each for each in schema.quasi if each not in covered]
    alone = () if is_mask else telling_groups(rows, [*promised, *aside])
    uncounted = [each for each in as_they_are if each not in promised and each not in schema.quasi]
    attacked = not_counted_in_words([each for each in uncounted if each not in schema.sensitive])  # which an attack counts
    said = {*attacked} & {*certificate.notices}
    return _Given((*alone, *(said or not_counted_in_words(uncounted))))


def _of_the_certificate(certificate: Certificate, schema: Schema) -> list[str]:
    """What follows from claims and from what is told about the making: missing values that count, pseudonyms, and
    quasi-identifiers that a mask left alone."""
    facts = certificate.transparency
    pseudonyms = [WARNING] if set(names_in(facts, "pseudonymised_columns")) & set(schema.columns) else []
    masked = registry.has("mask", certificate.method.get("name"))
    quasi = [name for name in names_in(facts, "quasi_identifiers") if name in schema.quasi]  # in the order of the maker's words
    left = left_as_they_are(names_in(facts, "masked_columns"), list(schema.columns), quasi) if masked else ()
    return [*missing_counted(certificate.claims), *pseudonyms, *left]


def _holds(match: re.Match[str], rows: object) -> bool:
    name = match["name"]
    if not isinstance(rows, pa.Table) or name not in rows.column_names:
        return False
    column = rows.column(name)
    different = {len(column.unique()), len(column.drop_null().unique())}  # the first versions counted missing as a value
    return match["different"] in {f"{number:,}" for number in different} and match["records"] == f"{rows.num_rows:,}"
