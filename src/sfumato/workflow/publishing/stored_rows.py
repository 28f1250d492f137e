"""Rows that an engine recodes and writes itself: this process sees cells and classes, never a record.

Group once, search on the cells, and let the engine join its rows with two small tables: which cell goes into which class, and
what a class shows. Names become pseudonyms inside the engine. What was written is grouped again by another query before
anybody else can see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.anonymity.pseudonyms import Pseudonyms, with_pseudonyms
from sfumato.core.errors import Unsupported, VerificationFailed, all_at_once
from sfumato.core.guarantees.base import ClassGuarantee, supposed_known
from sfumato.data.recoding import RecodingTable
from sfumato.data.relation import COUNT
from sfumato.engines import class_queries
from sfumato.engines.plannable import plannable
from sfumato.engines.snapshots import Snapshot
from sfumato.engines.staging.destinations import Staged, staged
from sfumato.report.headline import NOT_COUNTED
from sfumato.workflow.contents.stored_rows import StoredRows
from sfumato.workflow.publishing.columns import released_schema
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.publishing.recoded_rows import FEW_RECORDS, about_search, searched, telling_column, trees_of, values_alone
from sfumato.workflow.publishing.regrouping import regrouped, tied_names
from sfumato.workflow.publishing.scoring import exact_loss, shown_ranges
from sfumato.workflow.publishing.units_in_engine import units_of_classes

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.data.class_table import ClassTable
    from sfumato.data.relation import Relation
    from sfumato.engines.staging.destinations import Destination
    from sfumato.workflow.contents.base import Submission
    from sfumato.workflow.protect import ReleaseRequest


@contextmanager
def stored_rows(
    request: ReleaseRequest, search: Search, destination: Destination, *, home: Path | None = None, attacked: bool = False
) -> Iterator[Submission[StoredRows]]:
    """Search, and let the engine write the recoded rows where nobody sees them; they are gone when the block ends, unless the
    submission's content was published. `home` is the folder in which the release will appear; what is `attacked` is grouped by
    every sensitive column, promised or not."""
    people, plan, progress = request.people, request.plan, request.progress
    refuse_what_needs_rows(request)
    outcome = searched(request, search)
    codes, recoding = outcome.class_table, outcome.result
    recoding_table = RecodingTable.of(recoding, codes.keys, codes.quasi)
    relation = plannable(people.relation.held if isinstance(people.relation, Snapshot) else people.relation)
    class_queries.check_recoding(recoding_table, plan.delivered, list(relation.fields))
    note_counts(people.relation, codes)
    rows, uploads = class_queries.release_plan(relation.fields, recoding_table, plan.keep)
    # The scope is the column's name, as in `replace_names`; the key travels as a table, in no statement.
    rows, keys = with_pseudonyms(rows, {name: Pseudonyms(request.key, scope=name) for name in plan.pseudonymised})
    units = None if plan.unit_to_count is None else units_of_classes(relation, recoding_table, plan.unit_to_count, request)
    with staged(relation, rows, {**uploads, **keys}, destination, order=plan.keep, progress=progress) as written:
        class_queries.check_all_assigned(recoding_table, written.rows)
        progress("grouping what was written", 0, 1)
        ranges = shown_ranges(codes, recoding)
        content = StoredRows(
            stored=table_of(written, request, attacked=attacked),
            written_to=written,
            destination=destination,
            published_types=written.relation.schema(),
            public=released_schema(plan.schema, written.relation.schema().empty_table()).replace(unit=plan.schema.declared_unit),
            owners=plan.schema,
            references=request.references,
            units=units,
            hierarchies=MappingProxyType(trees_of(codes)),
            ranges=ranges,
            records=codes.records,
            exact=(exact_loss(recoding.loss(codes.weights)), *outcome.scores),
            loss_per_attribute=MappingProxyType(dict(zip(codes.quasi, recoding.loss_per_attribute().tolist(), strict=True))),
            known_cells=MappingProxyType(codes.known_cells),
            appears_in=home,
        )
        transparency, notices = about_search(outcome, request, ranges, content.stored.groups.table)
        yield request.submission(
            content,
            request.guarantees,
            outcome.method,
            transparency,
            outcome.details,
            notices=(*notices, *telling_groups(content.stored, _counted(request)), *not_counted(content, request)),
        )


def table_of(written: Staged, request: ReleaseRequest, *, attacked: bool) -> GroupedRows:
    """What was written, by its groups: quasi-identifiers and the values that promises are about, or that attacks are after."""
    plan = request.plan
    extra = [name for name in plan.schema.sensitive if attacked and name in plan.keep]
    grouped = tuple(dict.fromkeys([*grouped_columns(plan.quasi, request.guarantees), *extra]))
    unit = plan.schema.unit if plan.schema.unit in plan.keep else None
    groups = regrouped(written.relation, grouped, plan.quasi, unit)
    if groups.records != written.rows:
        raise VerificationFailed(
            f"{written.rows:,} rows were written and {groups.records:,} can be read back; nothing was released. Check the disk "
            "of the destination, and whether all workers of the engine see it."
        )
    return GroupedRows(
        groups=groups,
        column_names=tuple(written.relation.schema().names),
        pseudonyms=MappingProxyType({name: tied_names(written.relation, name, plan.quasi) for name in plan.pseudonymised}),
    )


def grouped_columns(quasi: Sequence[str], guarantees: Sequence[ClassGuarantee]) -> tuple[str, ...]:
    """The columns by which rows are judged: quasi-identifiers, and sensitive ones that a promise is about."""
    return tuple(dict.fromkeys([*quasi, *(each.sensitive for each in guarantees if each.sensitive is not None)]))


def refuse_what_needs_rows(request: ReleaseRequest) -> None:
    """All that this path cannot do, at once, before anything long is begun."""
    schema, faults = request.plan.schema, []
    sets = [name for name in request.plan.keep if schema.columns[name].items is not None]
    if sets:
        faults.append(f"columns of sets ({', '.join(sets)}) are written in one order of their items, which engines do not know")
    if any(getattr(each, "items", None) for each in request.guarantees):
        faults.append("promises about known items look at single records")
    fields = plannable(request.people.relation).fields
    kinds = {name: fields[name].kind for name in request.plan.keep}
    # what a recoded time shows is computed here; of bytes the engine would write bytes, which no release has
    others = [name for name, kind in kinds.items() if kind == "binary" or (kind == "time" and name not in request.plan.quasi)]
    if others:
        faults.append(f"columns of times or bytes ({', '.join(others)}) are published as text, which engines write differently")
    all_at_once(Unsupported, "rows that stay in the engine (leave destination= out to protect the table in this process)", faults)


def note_counts(relation: Relation, codes: ClassTable) -> None:
    """How often each value of a grouped column occurs follows from the cells: nobody has to ask the engine again."""
    if not isinstance(relation, Snapshot):
        return
    counts = pa.array(codes.cell_counts)
    for name in codes.keys.column_names:
        cells = pa.table({name: codes.keys.column(name), COUNT: counts}).unify_dictionaries()
        column = cells.group_by([name], use_threads=False).aggregate([(COUNT, "sum")])
        relation.note_counts(name, column.select([name, f"{COUNT}_sum"]).rename_columns([name, COUNT]))


def _counted(request: ReleaseRequest) -> list[str]:
    """The columns that are published as they are and whose values are counted: those that something is promised about, and those
    that no promise supposes to be known."""
    quasi = request.plan.quasi
    known = supposed_known(request.guarantees, quasi)
    promised = dict.fromkeys(each.sensitive for each in request.guarantees if each.sensitive is not None)
    return [*(name for name in promised if name not in quasi), *(name for name in quasi if name not in known)]


def telling_groups(stored: GroupedRows, names: Sequence[str]) -> tuple[str, ...]:
    """What is to be said of grouped columns that are published as they are: where many records are alone with their value."""
    groups, rows = stored.groups, stored.num_rows
    if rows < FEW_RECORDS:
        return ()
    said = [telling_column(name, values_alone(groups.table.column(name), groups.counts), rows) for name in names]
    return tuple(filter(None, said))


def not_counted(content: StoredRows, request: ReleaseRequest, changed: Sequence[str] = ()) -> tuple[str, ...]:
    """Columns that are published as they are, neither `changed` nor counted: nobody knows how many people one value names."""
    plan = request.plan
    # whoever left a quasi-identifier as it is has been told so
    counted = {*content.stored.groups.table.column_names, *plan.pseudonymised, *plan.quasi, *changed}
    return not_counted_in_words([name for name in plan.keep if name not in counted])


def not_counted_in_words(names: Sequence[str]) -> tuple[str, ...]:
    """What is said of columns that nobody counted, if there are any."""
    said = f"{NOT_COUNTED}{', '.join(map(repr, names))}. Whoever knows a value that one record alone has finds the record."
    return (said,) if names else ()
