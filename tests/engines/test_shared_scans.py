"""Several groupings answered by one query: each has the answer that it has by itself."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.shared_scans import shared_scans
from tests.engines.conftest import OpenTable
from tests.examples import examples

FIELDS = (p.Field("unit", "integer"), p.Field("city", "string"), p.Field("age", "integer"), p.Field("income", "integer"))
TABLE = pa.table(
    {
        "unit": pa.array([1, 1, 2, 3, None, 4, 4, 5], pa.int64()),
        "city": pa.array(["Bonn", "Ulm", "Bonn", None, "Ulm", "Trier", "Bonn", None]),
        "age": pa.array([20, 30, None, 50, 60, 70, 30, 20], pa.int64()),
        "income": pa.array([1, 2, 3, None, 5, 6, 7, 8], pa.int64()),
    }
)
older = st.integers(15, 75).map(lambda age: e.Compare(">", e.Reference("age"), e.Literal(age)))
known = st.just(e.Not(e.IsMissing(e.Reference("income"))))
conditions = st.lists(st.one_of(older, known), max_size=2)


def grouping(keys: tuple[str, ...], filters: list[e.Expression], unit: str | None, where: e.Expression | None) -> p.BoundedGroup:
    """Counts, a sum and units per group, over columns under other names, as questions ask."""
    plan: p.Plan = p.Project(
        p.Scan(ROWS, FIELDS), tuple(p.Named(f"v{i}", e.Reference(field.name)) for i, field in enumerate(FIELDS))
    )
    names = {field.name: e.Reference(f"v{i}") for i, field in enumerate(FIELDS)}
    from sfumato.engines.substitution import substituted

    for condition in filters:
        plan = p.Filter(plan, substituted(condition, names))
    inputs = [p.Named(f"key {key}", names[key]) for key in keys] + [p.Named("x", names["income"])]
    inputs += [] if where is None else [p.Named("w", substituted(where, names))]
    inputs += [] if unit is None else [p.Named("v0", names["unit"])]
    holds = None if where is None else e.Reference("w")
    aggregates = [p.AggregateColumn("n", "count", None, holds), p.AggregateColumn("s", "sum", e.Reference("x"), holds)]
    if unit is not None:
        aggregates.append(p.AggregateColumn("u", "count_distinct", e.Reference("v0"), holds))
    named = tuple(f"key {key}" for key in keys)
    return p.BoundedGroup(p.Project(plan, tuple(inputs)), unit and "v0", named, (), None, None, tuple(aggregates), (), "salt")


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    columns = [
        [int(v) if isinstance(v, (int, float)) or hasattr(v, "as_tuple") else v for v in c.to_pylist()] for c in table.columns
    ]
    return sorted(zip(*columns, strict=True), key=repr)


@settings(max_examples=examples(30))
@given(
    keys=st.sampled_from([(), ("city",), ("city", "age")]),
    unit=st.sampled_from([None, "unit"]),
    asked=st.lists(st.tuples(conditions, st.one_of(st.none(), older)), min_size=2, max_size=4),
)
def test_a_shared_scan_gives_every_grouping_its_own_answer(
    keys: tuple[str, ...], unit: str | None, asked: list[tuple[list[e.Expression], e.Expression | None]]
) -> None:
    relation = MemoryRelation(TABLE)
    plans = [grouping(keys, filters, unit, where) for filters, where in asked]
    (scan,) = shared_scans(enumerate(plans))
    answers = scan.answers(relation.run(scan.plan))
    assert sorted(answers) == list(range(len(plans)))
    for place, plan in enumerate(plans):
        alone = relation.run(plan)
        assert answers[place].column_names == alone.column_names
        assert rows(answers[place]) == rows(alone)


def test_a_shared_scan_is_the_same_on_every_engine(on_engine: OpenTable) -> None:
    relation = on_engine(TABLE)
    older_than_25 = e.Compare(">", e.Reference("age"), e.Literal(25))
    known_income = e.Not(e.IsMissing(e.Reference("income")))
    plans = [grouping(("city",), [older_than_25], "unit", None), grouping(("city",), [], "unit", known_income)]
    (scan,) = shared_scans(enumerate(plans))
    answers = scan.answers(relation.run(scan.plan))  # type: ignore[attr-defined]
    for place, plan in enumerate(plans):
        assert rows(answers[place]) == rows(MemoryRelation(TABLE).run(plan))


@pytest.mark.parametrize("change", ["bounded", "other keys", "other table", "computed below"])
def test_what_cannot_share_a_scan_is_left_alone(change: str) -> None:
    from dataclasses import replace

    plan = grouping(("city",), [], "unit", None)
    other: p.Plan = {
        "bounded": replace(plan, rows=1),
        "other keys": grouping(("age",), [], "unit", None),
        "other table": p.BoundedGroup(
            p.Project(p.Scan("others", FIELDS), (p.column("unit"), p.column("city"))),
            "unit", ("city",), (), None, None, (p.AggregateColumn("n", "count"),)),
        "computed below": replace(
            plan,
            source=p.Project(
                p.Project(p.Scan(ROWS, FIELDS), (p.Named("twice", e.Arithmetic("+", e.Reference("age"), e.Reference("age"))),
                                                 p.Named("key city", e.Reference("city")), p.Named("v0", e.Reference("unit")))),
                (p.Named("x", e.Reference("twice")), p.column("key city"), p.column("v0")),
            ),
        ),
    }[change]  # fmt: skip
    assert shared_scans([(0, plan), (1, other)]) == []
