"""Rows recoded by a search: the engine applies what was found, and names are dropped or replaced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import Infeasible
from sfumato.core.guarantees.base import ANY_ADVERSARY
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import percent
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.recoding import RecodingTable
from sfumato.data.schema import Schema
from sfumato.data.texts.values import sorted_sets, texts
from sfumato.engines.snapshots import Snapshot, remember
from sfumato.report.headline import FINDS_THE_RECORD, NOT_COVERED_TOGETHER
from sfumato.workflow.contents.rows import Rows
from sfumato.workflow.earlier.readings import written_as
from sfumato.workflow.publishing.claims import unit_in_words, units_behind
from sfumato.workflow.publishing.columns import replace_names
from sfumato.workflow.publishing.released_form import released_form
from sfumato.workflow.publishing.scoring import exact_loss, shown_ranges
from sfumato.workflow.verifying.stated.transparency import AS_EACH_PROMISE, ENDS_OF_RANGES, KEPT_BY, KNOWS_THE_PERSON, RANGES

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.anonymity.search.base import Search, SearchOutcome
    from sfumato.data.class_table import ClassTable
    from sfumato.data.hierarchies.hierarchy import Hierarchy
    from sfumato.workflow.contents.base import Submission
    from sfumato.workflow.protect import ReleaseRequest


def recoded_rows(request: ReleaseRequest, search: Search) -> Submission[Rows]:
    """Search, recode, and bring the rows into the form and order of a release."""
    people, plan, progress = request.people, request.plan, request.progress
    remember(people, (*people.schema.quasi, *people.schema.sensitive))
    outcome = searched(request, search)
    progress("recoding", 0, 1)
    codes, recoding = outcome.class_table, outcome.result
    recoding_table = RecodingTable.of(recoding, codes.keys, codes.quasi)
    units, counts = None, None
    if plan.unit_to_count is None and isinstance(people.relation, Snapshot):
        recoded, counts = people.relation.recode_counted(recoding_table, plan.delivered)
        rows = sorted_sets(recoded, people.schema, but=people.schema.quasi)
    else:
        rows = sorted_sets(people.relation.recode(recoding_table, plan.delivered), people.schema, but=people.schema.quasi)
        if plan.unit_to_count is not None:
            units = units_behind(rows, people, plan.unit_to_count, request.guarantees)
    rows = rows.select(list(plan.keep))
    if plan.pseudonymised:
        rows = replace_names(rows, plan.pseudonymised, request.key)
    table, ranges = released_form(rows, counts), shown_ranges(codes, recoding)
    progress("recoding", 1, 1)
    content = Rows(
        table=table,
        public=request.described(table).replace(unit=plan.schema.declared_unit),
        owners=plan.schema,
        references=request.references,
        units=units,
        hierarchies=MappingProxyType(trees_of(codes)),
        ranges=ranges,
        records=codes.records,
        exact=(exact_loss(recoding.loss(codes.weights)), *outcome.scores),
        loss_per_attribute=MappingProxyType(dict(zip(codes.quasi, recoding.loss_per_attribute().tolist(), strict=True))),
        known_cells=MappingProxyType(codes.known_cells),
    )
    transparency, notices = about_search(outcome, request, ranges, table)
    return request.submission(content, request.guarantees, outcome.method, transparency, outcome.details, notices=notices)


def searched(request: ReleaseRequest, search: Search) -> SearchOutcome:
    """What the search decides about the cells of the table."""
    people, population = request.people, request.population
    if population is not None and request.population_public:
        remember(population, request.by_frequency)
    outcome = search.run(
        people, request.guarantees, population=population, progress=request.progress, randomness=request.randomness
    )
    _refuse_empty(outcome)
    return outcome


#: Below this many records nearly every column has nearly as many values as records.
FEW_RECORDS = 50
#: From this share of the records on it is said that they are alone in a column, or in several together.
_MANY_ALONE = 0.05
#: So many columns are named in one sentence.
_NAMED = 8


def telling_columns(table: pa.Table, names: Sequence[str], unchanged: Sequence[str] = ()) -> list[str]:
    """What is to be said of those columns of a released table that no promise covers; of those that a mask left `unchanged`,
    though it is made for them, what each tells alone."""
    if table.num_rows < FEW_RECORDS:
        return []
    telling = [telling_column(name, values_alone(table.column(name)), table.num_rows) for name in (*names, *unchanged)]
    return [said for said in telling if said] + _telling_together(table, names)


def values_alone(column: pa.ChunkedArray, counts: NDArray[np.int64] | None = None) -> int:
    """How many records have a value of the column that no other record has; a missing value is none. Row i stands for
    `counts[i]` records where rows are known by their groups."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if counts is None:
        return int(pc.sum(pc.equal(column.drop_null().value_counts().field("counts"), 1)).as_py() or 0)
    cells = pa.table({"value": column, "records": counts}).filter(column.is_valid())
    records = cells.group_by(["value"], use_threads=False).aggregate([("records", "sum")]).column("records_sum")
    return int(pc.sum(pc.equal(records, 1)).as_py() or 0)


def telling_column(name: str, alone: int, records: int) -> str | None:
    """What the owner should think about where many records are alone with their value of a column that is published as it is."""
    if not alone or alone < _MANY_ALONE * records:
        return None
    return (
        f"{alone:,} of {records:,} records ({percent(alone / records)}) are alone with their value of column '{name}', which is "
        f"published as it is{FINDS_THE_RECORD}"
    )


def _telling_together(table: pa.Table, names: Sequence[str]) -> list[str]:
    """How many records are alone in what the columns show together, where there are several and it is many."""
    import pyarrow as pa
    import pyarrow.compute as pc

    single = [name for name in names if not pa.types.is_nested(table.schema.field(name).type)]
    if len(single) < 2:
        return []
    counts = table.select(single).group_by(single).aggregate([([], "count_all")]).column("count_all")
    alone = int(pc.sum(pc.equal(counts, 1)).as_py() or 0)
    if alone < _MANY_ALONE * table.num_rows:
        return []
    return [
        f"{alone:,} of {table.num_rows:,} records ({percent(alone / table.num_rows)}) are alone in what the {len(single)} "
        f"columns that are published as they are show together ({_some(single)}): whoever knows enough of their values finds the "
        f"record{NOT_COVERED_TOGETHER}"
    ]


def _some(names: Sequence[str]) -> str:
    """The first names of many, and how many more there are."""
    first = ", ".join(f"'{name}'" for name in names[:_NAMED])
    return first if len(names) <= _NAMED else f"{first} and {len(names) - _NAMED} more"


def about_search(
    outcome: SearchOutcome, request: ReleaseRequest, ranges: Mapping[str, Collection[str]], table: pa.Table
) -> tuple[PlainDict, tuple[str, ...]]:
    """What is published about how rows were recoded, and what the owner should think about; `table` has the quasi-identifiers
    that are shown, in rows or groups of rows."""
    plan = request.plan
    ranged = _ranged(plan.schema, plan.quasi, ranges, table)
    transparency = _transparency(outcome, request, ranged) | {"written_as": written_as(request.people, plan.keep)}
    ends = [", ".join(ranged).join(ENDS_OF_RANGES)] if ranged else []
    return transparency, (*_widths_left_open(plan.schema), *ends)


def trees_of(codes: ClassTable) -> dict[str, Hierarchy]:
    """The hierarchies of quasi-identifiers and sensitive attributes by column."""
    trees = dict(zip(codes.quasi, codes.hierarchies, strict=True))
    return trees | {attribute.name: attribute.hierarchy for attribute in codes.sensitive}


def _transparency(outcome: SearchOutcome, request: ReleaseRequest, ranged: Collection[str]) -> dict[str, Any]:
    """What an honest reader needs to interpret the data and an attacker may know without harm
    (Kerckhoffs).
    """
    plan, schema = request.plan, request.people.schema
    usual = all(guarantee.adversary == ANY_ADVERSARY for guarantee in request.guarantees)
    facts: dict[str, Any] = {
        "adversary": KNOWS_THE_PERSON if usual else AS_EACH_PROMISE,
        "quasi_identifiers": list(plan.quasi),
        "hierarchies": {name: _hierarchy_kind(schema, name, ranged) for name in plan.quasi},
        "removed_columns": list(plan.dropped),
        "pseudonymised_columns": list(plan.pseudonymised),
        "row_order": "sorted by content",
        "unit": unit_in_words(schema.unit),
    }
    if "levels" in outcome.details:
        facts["levels"] = dict(outcome.details["levels"])
    if "search" in outcome.details:
        facts["search_kept"] = outcome.details["search"]
        facts["search_kept_by"] = KEPT_BY
    return facts


def _ranged(schema: Schema, quasi: Sequence[str], ranges: Mapping[str, Collection[str]], table: pa.Table) -> list[str]:
    """Columns that show ranges which the search made of the data; a set, or a cell that is not shown, is none."""
    return [
        name
        for name in quasi
        if schema.columns[name].items is None
        and any(text in ranges.get(name, ()) for text in texts(table.column(name).unique()) if text not in (None, ROOT))
    ]


def _hierarchy_kind(schema: Schema, name: str, ranged: Collection[str]) -> str:
    """What a column shows: nodes of a tree that was declared, or ranges that the search made of the data."""
    spec = schema.columns[name].hierarchy
    return RANGES if name in ranged else "flat" if spec is None else spec.kind


def _widths_left_open(schema: Schema) -> tuple[str, ...]:
    """Masks without a declared width, whatever the data are: that lengths differ may be news of a suppressed record."""
    open_masks = [name for name in schema.quasi if (spec := schema.columns[name].hierarchy) and spec.mask and not spec.width]
    return tuple(
        f"column '{name}' is masked without a declared width: the longest value, which may be of a record that is not released, "
        "sets the length of every text. Declare width in its hierarchy unless all values have one length."
        for name in open_masks
    )


def _refuse_empty(outcome: SearchOutcome) -> None:
    if outcome.result.records and outcome.result.suppressed == outcome.result.records:
        raise Infeasible(
            "the guarantees can only be kept by suppressing every record, and an empty release helps nobody. "
            "Weaken a guarantee, generalise further (longer hierarchies) or leave out a quasi-identifier."
        )
