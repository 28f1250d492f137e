"""Rows changed by a mask: what it keeps and how it was made are published with it.

Where a mask reaches a class guarantee by construction, or one is asked for, that is verified on the written file like any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, VerificationFailed
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.relation import ORDERED, Relation
from sfumato.data.schema import Schema
from sfumato.measures.risk.linkage.transparency import published_steps
from sfumato.report.headline import LEFT_AS_THEY_ARE
from sfumato.workflow.contents.rows import Rows
from sfumato.workflow.publishing.claims import unit_in_words, units_behind
from sfumato.workflow.publishing.columns import ColumnPlan, replace_names
from sfumato.workflow.publishing.released_form import released_form
from sfumato.workflow.verifying.stated.transparency import KNOWS_THE_METHOD, missing_shown, with_missing

if TYPE_CHECKING:
    from sfumato.masking.base import Mask
    from sfumato.wire.keys import OwnerKey
    from sfumato.workflow.contents.base import Submission
    from sfumato.workflow.protect import ReleaseRequest

_ROW = "source row of sfumato"
#: What a mask tells about the chance of its draws.
_LAWS = frozenset({"epsilon", "noise_variance_ratio", "factor_variance"})
_PER_RECORD = "what the mask tells about itself, a loss ε or a variance, is about one record:"
#: What of a mask's details is plain data and may be kept.
_PLAIN = (int, float, str, bool)


def masked_rows(request: ReleaseRequest, mask: Mask, source: Relation) -> Submission[Rows]:
    """Apply the mask and bring the rows into the form and order of a release; `source` is what the people were read from."""
    people, plan, asked = request.people, request.plan, request.guarantees
    outcome = mask.apply(people, randomness=request.randomness, progress=request.progress)
    promised = (*asked, *(each for each in outcome.claimed if each not in asked))
    masked = outcome.result
    kept = [name for name in plan.keep if name in masked.table.column_names]
    units = None
    if plan.unit_to_count is not None and masked.rows is not None and promised:
        try:
            units = units_behind(masked.table, people, plan.unit_to_count, promised)
        except VerificationFailed as error:
            raise VerificationFailed(
                f"{error}. {type(mask).__name__} groups records, whoever they belong to, and the promise counts different "
                f"'{plan.unit_to_count}': leave the promise out, or let a search keep it (leave the method out)"
            ) from None
    published = masked.table.select(kept)
    table, rows = _in_order(_with_pseudonyms(published, plan, request.key), masked.rows)
    details = {name: value for name, value in outcome.details.items() if isinstance(value, _PLAIN)}
    content = Rows(
        table=table,
        public=request.described(table),
        owners=owners_schema(plan.schema, table.column_names),
        references=request.references,
        units=units,
        records=len(people),
        masked=dataclasses.replace(masked, table=published),
        rows_behind=rows,
        in_source_order=source.engine in ORDERED,
        drawn=mask.draws,
    )
    return request.submission(
        content,
        promised,
        outcome.method,
        about_mask(masked.transparency, published.column_names, plan, people.schema, new_rows=masked.rows is None),
        {**details, "records": len(people)},
        notices=(
            *left_as_they_are(masked.transparency["masked_columns"], published.column_names, plan.quasi),
            *not_covered(masked.transparency, with_missing(table), people.schema),
        ),
        masked=list(masked.transparency["masked_columns"]) if masked.rows is not None else published.column_names,
        unchanged=_unchanged(masked, people),
    )


def _with_pseudonyms(table: pa.Table, plan: ColumnPlan, key: OwnerKey) -> pa.Table:
    present = [name for name in plan.pseudonymised if name in table.column_names]
    return replace_names(table, present, key) if present else table


def _in_order(table: pa.Table, rows: NDArray[np.int64] | None) -> tuple[pa.Table, NDArray[np.int64] | None]:
    """The table in the form and order of a release, and the source row behind each of its rows."""
    if rows is None:
        return released_form(table), None
    ordered = released_form(table.append_column(_ROW, pa.array(rows)))
    return ordered.drop_columns([_ROW]), ordered.column(_ROW).to_numpy().astype(np.int64)


def owners_schema(schema: Schema, names: Sequence[str]) -> Schema:
    """The owner's schema of what is published; hierarchies describe original values and are left out."""
    columns = {
        name: schema.columns[name].model_copy(update={"hierarchy": None, "domain": None, "bounds": None, "type": None})
        for name in names
    }
    return schema.replace(columns=columns)


def about_mask(facts: Plain, names: Sequence[str], plan: ColumnPlan, schema: Schema, *, new_rows: bool) -> PlainDict:
    """What an honest reader needs to correct an analysis, and an attacker may know without harm (Kerckhoffs); `names` are the
    columns that are published, and `new_rows` says that no record stands behind a row."""
    # whose a record is cannot be counted where rows are new and the column that names people is not published
    nobody = schema.unit is None or (new_rows and schema.unit not in names)
    return {
        "adversary": KNOWS_THE_METHOD,
        "quasi_identifiers": list(plan.quasi),
        "removed_columns": [*plan.dropped, *(name for name in plan.keep if name not in names)],
        "pseudonymised_columns": [name for name in plan.pseudonymised if name in names],
        "row_order": "sorted by content",
        "unit": unit_in_words(None if nobody else schema.unit),
        **facts,
    }


def _unchanged(masked: Masked, people: Microdata) -> list[str]:
    """The columns that a mask is made for and that show what the records behind them had."""
    if masked.rows is None:
        return []
    original = (people.table() if masked.source is None else masked.source[1]).select(list(masked.columns)).take(masked.rows)
    return [name for name in masked.columns if masked.table.column(name).equals(original.column(name))]


def not_covered(facts: Plain, missing: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """What the mask tells about itself is about records, and about those that have a value; `missing` are columns in which values
    are missing."""
    names = {name for step in published_steps(facts) for name in step}
    unit = unit_in_words(schema.unit)
    several = f"{_PER_RECORD} several records of {unit} tell more together" if schema.unit is not None and names & _LAWS else ""
    return tuple(notice for notice in (missing_shown(facts, missing), several) if notice)


def left_as_they_are(masked: Sequence[str], names: Sequence[str], quasi: Sequence[str]) -> tuple[str, ...]:
    """A published quasi-identifier that the mask did not touch is said out loud."""
    left = [name for name in quasi if name not in masked and name in names]
    if not left:
        return ()
    listed = ", ".join(f"'{name}'" for name in left)
    return (f"{LEFT_AS_THEY_ARE}{listed}",)


def refuse_too_many_records(source: Microdata) -> None:
    """A mask in this process holds every record, several times over."""
    from sfumato.masking.engine_rows import MOST_RECORDS

    if source.relation.engine != "memory" and len(source) > MOST_RECORDS:
        raise InputError(
            f"the table has {len(source):,} records, and a mask in this process takes at most {MOST_RECORDS:,}. Let the engine "
            "mask them (destination=, --destination), or mask a uniform sample (sample=100_000, --sample 100000)."
        )
