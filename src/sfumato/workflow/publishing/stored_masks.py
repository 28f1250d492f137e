"""Rows that an engine masks and writes itself: this process sees counts, extremes and sums, never a record.

The mask says how it is computed by plans (`Mask.in_engine`); its draws are keyed by a key of the run that no statement shows.
What was written is asked again before anybody else can see it: how many rows, where values are missing and, where something is
promised about classes, their groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from sfumato.anonymity.pseudonyms import Pseudonyms, with_pseudonyms
from sfumato.core.errors import SourceError, Unsupported
from sfumato.data.microdata import Microdata
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import Reference
from sfumato.engines.plan import AggregateColumn, Group, Scan
from sfumato.engines.plannable import plannable
from sfumato.engines.snapshots import Snapshot
from sfumato.engines.staging.destinations import Staged, staged
from sfumato.masking.engine_rows import EngineRows
from sfumato.masking.transparency import transparency_of
from sfumato.workflow.contents.stored_rows import StoredRows
from sfumato.workflow.publishing.columns import released_schema
from sfumato.workflow.publishing.forecast import refuse_too_many_cells
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.publishing.masked_rows import about_mask, left_as_they_are, not_covered, owners_schema
from sfumato.workflow.publishing.regrouping import tied_names
from sfumato.workflow.publishing.stored_rows import not_counted, refuse_what_needs_rows, table_of

if TYPE_CHECKING:
    from sfumato.engines.staging.destinations import Destination
    from sfumato.masking.base import Mask
    from sfumato.workflow.contents.base import Submission
    from sfumato.workflow.protect import ReleaseRequest

_KEY_BYTES = 32


@contextmanager
def stored_masked_rows(
    request: ReleaseRequest,
    mask: Mask,
    destination: Destination,
    *,
    memory: int,
    home: Path | None = None,
    attacked: bool = False,
) -> Iterator[Submission[StoredRows]]:
    """Let the engine mask and write the rows where nobody sees them; they are gone when the block ends, unless the submission's
    content was published."""
    people, plan, progress = request.people, request.plan, request.progress
    refuse_what_needs_rows(request)
    if request.guarantees and plan.unit_to_count is not None:
        raise Unsupported(
            f"the promises count different '{plan.unit_to_count}', which is not published, and of masked rows that is counted in "
            "this process alone: leave the promise or destination= out"
        )
    relation = plannable(people.relation.held if isinstance(people.relation, Snapshot) else people.relation)
    progress("masking", 0, 1)
    key = request.randomness.bytes(_KEY_BYTES)
    change = mask.in_engine(EngineRows.of(relation, people.schema, plan.keep, len(people), key))
    rows, keys = with_pseudonyms(
        change.rows.finished(plan.keep), {name: Pseudonyms(request.key, scope=name) for name in plan.pseudonymised}
    )
    uploads = {**change.rows.uploads, **keys}
    with staged(relation, rows, uploads, destination, order=plan.keep, progress=progress) as written:
        if written.rows != change.rows.size:
            raise SourceError(
                f"the table changed while it was being masked: {change.rows.size:,} records should be released and "
                f"{written.rows:,} were written. Nothing was released; mask a snapshot of the table or try again."
            )
        progress("masking", 1, 1)
        names = tuple(written.relation.schema().names)
        content = StoredRows(
            stored=_known_of(written, request, memory, attacked=attacked),
            written_to=written,
            destination=destination,
            published_types=written.relation.schema(),
            public=released_schema(plan.schema, written.relation.schema().empty_table()),
            owners=owners_schema(plan.schema, names),
            references=request.references,
            records=len(people),
            appears_in=home,
            masked=True,
            truthful=mask.truthful,
            drawn=mask.draws,
        )
        facts = transparency_of(mask, change.columns, [change.published])
        yield request.submission(
            content,
            request.guarantees,
            mask.described(),
            about_mask(facts, names, plan, people.schema, new_rows=False),
            {**change.details, "records": len(people)},
            notices=(
                *left_as_they_are(facts["masked_columns"], names, plan.quasi),
                *not_covered(facts, _with_missing(written), people.schema),
                *not_counted(content, request, facts["masked_columns"]),
            ),
        )


def _known_of(written: Staged, request: ReleaseRequest, memory: int, *, attacked: bool) -> GroupedRows:
    """What is known here of the written rows: their groups where something is promised about classes."""
    plan = request.plan
    if request.guarantees:
        promised = [each.sensitive for each in request.guarantees if each.sensitive is not None]
        refuse_too_many_cells(Microdata(written.relation, plan.schema), promised, memory)
        return table_of(written, request, attacked=attacked)
    tied = {name: tied_names(written.relation, name, ()) for name in plan.pseudonymised}
    return GroupedRows.without_groups(written.rows, tuple(written.relation.schema().names), MappingProxyType(tied))


def _with_missing(written: Staged) -> tuple[str, ...]:
    """The columns in which values are missing, asked of what was written."""
    relation = plannable(written.relation)
    names = list(relation.fields)
    asked = tuple(AggregateColumn(f"known {place}", "count", Reference(name)) for place, name in enumerate(names))
    answer = relation.run(Group(Scan(ROWS, tuple(relation.fields.values())), (), asked))
    return tuple(name for place, name in enumerate(names) if int(answer.column(place)[0].as_py()) < written.rows)
