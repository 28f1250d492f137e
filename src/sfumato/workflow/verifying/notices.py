"""Notices about the rows, held to the rows: how many records are alone, and what missing values are worth.

A notice of that form that the rows do not give is refused. Those that the rows give and the certificate leaves out are told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from sfumato.core import registry
from sfumato.core.certificate import Certificate
from sfumato.core.errors import VerificationFailed
from sfumato.data.schema import Schema
from sfumato.report.headline import FINDS_THE_RECORD, MISSING_COUNTED, NOT_COVERED_TOGETHER
from sfumato.workflow.publishing.claims import missing_counted
from sfumato.workflow.publishing.recoded_rows import telling_columns
from sfumato.workflow.verifying.stated.transparency import names_in
from sfumato.workflow.verifying.verification import Finding

#: The name of this check among the findings of a verification.
NOTICES = "notices"
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
    if not isinstance(rows, pa.Table) or not registry.has("search", certificate.method.get("name")):
        return []
    here = telling_columns(rows, _as_they_are(certificate, schema, rows))
    about_rows = [notice for notice in said if notice.endswith((FINDS_THE_RECORD, NOT_COVERED_TOGETHER))]
    formerly = [match for notice in said if (match := _FORMERLY.fullmatch(notice))]
    if not set(about_rows) <= set(here) or not all(_holds(match, rows) for match in formerly):
        raise VerificationFailed("a notice says something else of the rows than they show")
    named = tuple(f"value of column '{match['name']}', which" for match in formerly)
    left_out = [notice for notice in here if notice not in said and not any(name in notice for name in named)]
    return [Finding(NOTICES, None, f"not said by the maker: {notice}") for notice in left_out]


def _as_they_are(certificate: Certificate, schema: Schema, rows: pa.Table) -> Sequence[str]:
    """The columns that a search published without change, in their order."""
    changed = {*schema.quasi, *names_in(certificate.transparency, "pseudonymised_columns")}
    return [name for name in rows.column_names if name not in changed]


def _holds(match: re.Match[str], rows: pa.Table) -> bool:
    name = match["name"]
    if name not in rows.column_names:
        return False
    column = rows.column(name)
    different = {len(column.unique()), len(column.drop_null().unique())}  # the first versions counted missing as a value
    return match["different"] in {f"{number:,}" for number in different} and match["records"] == f"{rows.num_rows:,}"
