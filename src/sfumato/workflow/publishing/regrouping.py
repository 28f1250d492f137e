"""Written rows, asked again: the queries by which rows in an engine are judged, written apart from those that made them.

Everything here reads what was *written*, by plans of its own: no grouping of the source and no recoding is used. What comes
back are groups, as many as there are classes and promised values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.errors import VerificationFailed
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import IsMissing, Not, Reference
from sfumato.engines.plan import AggregateColumn, Filter, Group, Plan, Scan
from sfumato.engines.plannable import plannable
from sfumato.measures.guarantees.grouped import GroupedTable, UnitsOfClasses
from sfumato.workflow.publishing.grouped_rows import Tied
from sfumato.workflow.verifying.pseudonym_ties import PSEUDONYM
from sfumato.workflow.verifying.untrusted import quoted

if TYPE_CHECKING:
    from sfumato.data.relation import Relation

_ROWS_OF_GROUP = "\x00rows"
_PLACES = "\x00places"


def regrouped(relation: Relation, names: Sequence[str], quasi: Sequence[str] = (), unit: str | None = None) -> GroupedTable:
    """The distinct tuples of these columns among the written rows, with how many rows show each, and where a column names the
    units, how many of them each class by `quasi` has."""
    written = plannable(relation)
    plan = Group(
        Scan(ROWS, tuple(written.fields[name] for name in names)), tuple(names), (AggregateColumn(_ROWS_OF_GROUP, "count"),)
    )
    answer = written.run(plan)
    counts = answer.column(_ROWS_OF_GROUP).to_numpy().astype(np.int64)
    units = () if unit is None else (counted_units(relation, quasi, unit),)
    return GroupedTable(answer.select(list(names)), counts, units)


def tied_names(relation: Relation, name: str, quasi: Sequence[str]) -> Tied:
    """What a column of pseudonyms ties together: the engine adds up records and classes of each, and three numbers come back."""
    written = plannable(relation)
    columns = tuple(dict.fromkeys([name, *quasi]))
    present = Filter(Scan(ROWS, tuple(written.fields[each] for each in columns)), Not(IsMissing(Reference(name))))
    in_classes: Plan = Group(present, columns, (AggregateColumn(_ROWS_OF_GROUP, "count"),))
    of_each = Group(
        in_classes,
        (name,),
        (AggregateColumn(_PLACES, "count"), AggregateColumn(_ROWS_OF_GROUP, "sum", Reference(_ROWS_OF_GROUP))),
    )
    totals = Group(
        of_each,
        (),
        (
            AggregateColumn("names", "count"),
            AggregateColumn("records", "sum", Reference(_ROWS_OF_GROUP)),
            AggregateColumn("places", "sum", Reference(_PLACES)),
        ),
    )
    answer = written.run(totals)
    names, records, places = (int(answer.column(label)[0].as_py() or 0) for label in ("names", "records", "places"))
    return Tied(records > names, places > names)


def refuse_names_in(relation: Relation, name: str) -> None:
    """A column that is said to hold pseudonyms holds nothing else; it is read a batch at a time and not kept."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for batch in relation.batches([name]):
        values = batch.column(0)
        values = (values.dictionary if pa.types.is_dictionary(values.type) else values).drop_null()
        if not pa.types.is_string(values.type) or (
            len(values) and not pc.all(pc.match_substring_regex(values, PSEUDONYM)).as_py()
        ):
            raise VerificationFailed(f"the column {quoted(name)} holds something else than the pseudonyms it is said to hold")


def counted_units(relation: Relation, quasi: Sequence[str], unit: str) -> UnitsOfClasses:
    """How many different units each class of the written rows has."""
    written = plannable(relation)
    columns = tuple(dict.fromkeys([*quasi, unit]))
    plan = Group(
        Scan(ROWS, tuple(written.fields[each] for each in columns)),
        tuple(quasi),
        (AggregateColumn(_PLACES, "count_distinct", Reference(unit)),),
    )
    answer = written.run(plan)
    return UnitsOfClasses(answer.select(list(quasi)), answer.column(_PLACES).to_numpy().astype(np.int64))
