"""Bounded contributions mean the same on every engine, and bound what a unit can change."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import SchemaError, Unsupported
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.duckdb.bounding_in_process import bounded_in_process
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import validate
from sfumato.engines.sql.bounding import expanded
from tests.engines import bounding_reference as ref
from tests.engines.conftest import MARKS, NAMES, OpenTable
from tests.engines.tables import rows as sorted_rows
from tests.examples import examples

BIG = 2**63 - 1
PEOPLE: list[ref.Row] = [
    ("u", "Rome", 2020, 5, True),
    ("u", "Rome", 2020, 5, True),
    ("u", "Rome", 2021, None, False),
    ("u", "Oslo", 2020, BIG, None),
    ("u", None, 2020, 1, True),
    ("u", "日本", None, -3, True),
    ("v", "Rome", 2020, -BIG - 1, True),
    ("v", "Rome", 2021, -BIG - 1, False),
    ("v", "rome", 2020, 0, None),
    ("w", "Oslo", 2019, None, None),
    (None, "Rome", 2020, 1000, True),
    (None, "Lima", 2020, 1000, True),
    ("é", "Oslo", 2020, BIG, True),
    ("e\u0301", "Oslo", 2020, BIG, True),
    ("", "Oslo", 2020, BIG, False),
]
NOT_MISSING = [row for row in PEOPLE if row[0] is not None]
SHAPES = [((), ()), (("city",), ()), (("city",), ("year",)), ((), ("year",)), (("city", "year"), ()), (("city",), ("year", "n"))]
#: Those that engines are asked; the laws below go through every shape on one. A shape takes Spark a second: one for each law.
SOME_SHAPES = [SHAPES[0], SHAPES[2], SHAPES[4]]


def shapes_of(on_spark: int) -> pytest.MarkDecorator:
    """Some shapes on every engine, and one of them on Spark."""
    cases = [
        pytest.param(engine, *shape, marks=MARKS.get(engine, ()), id=f"{name}-{number}")
        for engine, name in NAMES.items()
        for number, shape in enumerate(SOME_SHAPES)
        if engine != "spark" or number == on_spark
    ]
    return pytest.mark.parametrize(("on_engine", "keys", "within"), cases, indirect=["on_engine"])


@shapes_of(on_spark=1)
def test_bounds_that_do_not_bite_leave_the_plain_grouping(
    on_engine: OpenTable, keys: tuple[str, ...], within: tuple[str, ...]
) -> None:
    relation: Any = on_engine(ref.table(PEOPLE))
    expected = ref.aggregated(NOT_MISSING, keys + within)
    for salt, bounds in (("s'alt", (6, 6)), ("s", (None, 6)), (None, (6, 6)), (None, (None, None))):
        answer = relation.run(ref.bounded(keys, *bounds, within=within, salt=salt))
        assert answer.column_names == [*keys, *within, *(a.name for a in ref.AGGREGATES)]
        assert sorted_rows(answer) == expected
    assert answer.schema.field("rows").type == pa.int64()
    assert answer.schema.field("sum").type == pa.decimal128(38, 0)


@shapes_of(on_spark=1)
def test_truncation_keeps_the_first_rows_and_groups(on_engine: OpenTable, keys: tuple[str, ...], within: tuple[str, ...]) -> None:
    relation: Any = on_engine(ref.table(PEOPLE))
    descending = (p.Order(e.Reference("year"), descending=True),)
    # missing values are first in either direction
    orders: list[tuple[Any, Any]] = [((), lambda row: 0), (descending, lambda row: (row[2] is not None, -(row[2] or 0)))]
    for (order, key), bounds in zip(orders, ((1, 2), (2, 1)), strict=True):
        plan = ref.bounded(keys, *bounds, within=within, order=order)
        assert sorted_rows(relation.run(plan)) == ref.aggregated(ref.first_kept(PEOPLE, plan, key), keys + within), bounds


@shapes_of(on_spark=2)
def test_sampling_keeps_as_many_rows_and_groups_as_it_may(
    on_engine: OpenTable, keys: tuple[str, ...], within: tuple[str, ...]
) -> None:
    relation: Any = on_engine(ref.table(PEOPLE))
    per_unit: dict[Any, Counter[ref.Row]] = defaultdict(Counter)
    for row in NOT_MISSING:
        per_unit[row[0]][ref.key_of(row, keys)] += 1
    for rows, groups in ((1, 1), (2, 3)):
        answer = relation.run(ref.bounded(keys, rows, groups, within=within, salt="salt"))
        most = sum(sum(sorted((min(rows, n) for n in own.values()), reverse=True)[:groups]) for own in per_unit.values())
        least = sum(sum(sorted(min(rows, n) for n in own.values())[:groups]) for own in per_unit.values())
        assert least <= sum(answer.column("rows").to_pylist()) <= most
        if not within:
            assert sum(answer.column("units").to_pylist()) == sum(min(groups, len(own)) for own in per_unit.values())


def test_every_row_may_be_a_unit_of_its_own(on_engine: OpenTable) -> None:
    relation: Any = on_engine(ref.table(PEOPLE))
    answer = relation.run(ref.bounded(("city",), 1, 1, unit=None, salt="s"))
    assert sorted_rows(answer) == ref.aggregated(PEOPLE, ("city",), units=False)


def test_nothing_is_one_row_without_keys_and_none_with(on_engine: OpenTable) -> None:
    only_missing = [row for row in PEOPLE if row[0] is None]
    for people, salt in (([], "s"), (only_missing, "s"), (only_missing, None)):
        relation: Any = on_engine(ref.table(people))
        answer = relation.run(ref.bounded((), 2, None, salt=salt))
        assert sorted_rows(answer) == [(0, 0, 0, 0, 0, 0, None, None, None)]
        answer = relation.run(ref.bounded(("city",), 2, 2, within=("year",), salt=salt))
        assert answer.num_rows == 0
        assert answer.schema.field("sum").type == pa.decimal128(38, 0)


UNITS: list[tuple[str, pa.DataType, list[Any]]] = [
    ("integer", pa.int64(), [1, 1, 1, -5, None, 2**62]),
    ("number", pa.float64(), [0.5, 0.5, 0.5, 0.0, math.nan, math.inf]),
    ("boolean", pa.bool_(), [True, True, True, False, None, False]),
    ("date", pa.date32(), [1, 1, 1, -700000, None, 3]),
    ("datetime", pa.timestamp("us"), [1, 1, 1, -10, None, 3]),
    ("string", pa.string(), ["x", "x", "x", "", None, "日本"]),
    ("binary", pa.binary(), [b"x", b"x", b"x", b"", None, b"\x00\xff"]),
]


@pytest.mark.parametrize(("kind", "given_type", "values"), UNITS, ids=[kind for kind, _, _ in UNITS])
def test_units_may_be_of_any_kind(on_engine: OpenTable, kind: e.Kind, given_type: pa.DataType, values: list[Any]) -> None:
    relation: Any = on_engine(pa.table({"u": pa.array(values, given_type), "k": ["a", "a", "b", "a", "a", "b"]}))
    scan = p.Scan(ROWS, (p.Field("u", kind), p.Field("k", "string")))
    asked = (p.AggregateColumn("rows", "count"), p.AggregateColumn("units", "count_distinct", e.Reference("u")))
    answer = relation.run(p.BoundedGroup(scan, "u", ("k",), (), 1, 2, asked, (), "s"))
    assert sorted_rows(answer) == [("a", 2, 2), ("b", 2, 2)]


def test_keys_may_be_of_any_kind(on_engine: OpenTable) -> None:
    columns = {kind: pa.array(values, given_type) for kind, given_type, values in UNITS}
    relation: Any = on_engine(pa.table({"u": [1, 1, 1, 1, 1, 1], **columns}))
    scan = p.Scan(ROWS, (p.Field("u", "integer"), *(p.Field(kind, kind) for kind in columns)))  # type: ignore[arg-type]
    plan = p.BoundedGroup(scan, "u", tuple(columns), (), 2, 9, (p.AggregateColumn("rows", "count"),), (), "s")
    values = [[None if v is None or v != v else v for v in column.to_pylist()] for column in columns.values()]
    expected = [(*key, min(n, 2)) for key, n in Counter(zip(*values, strict=True)).items()]
    assert sorted_rows(relation.run(plan)) == sorted(expected, key=repr)


def test_a_bounded_grouping_may_be_part_of_a_larger_question(on_engine: OpenTable) -> None:
    relation: Any = on_engine(ref.table(PEOPLE))
    asked = (p.AggregateColumn("rows", "count"),)
    bounded = ref.bounded(("city",), 9, 9, salt="s", aggregates=asked)
    keys = p.Scan("keys", (p.Field("place", "string"),))
    filled = p.Join(keys, bounded, (("place", "city"),), "left")
    answer = relation.run(filled, {"keys": pa.table({"place": ["Rome", "Lima", None]})})
    assert sorted_rows(answer) == sorted([("Rome", 5), ("Lima", None), (None, 1)], key=repr)


def test_the_salt_decides_and_is_not_shown(on_engine: OpenTable) -> None:
    people = [("u", f"c{i}", 0, i, True) for i in range(40)]
    relation: Any = on_engine(ref.table(people))
    drawn = {tuple(sorted(relation.run(ref.bounded(("city",), 1, 3, salt=s))["city"].to_pylist())) for s in ("a", "b", "c")}
    assert len(drawn) == 3  # all alike with probability 10^-8
    assert "secret" not in repr(ref.bounded((), 1, 1, salt="secret"))


# -- laws ---------------------------------------------------------------------------------------------------------------

_rows = st.lists(
    st.tuples(
        st.sampled_from(["u", "v", "w", "x", None]),
        st.sampled_from(["Rome", "Oslo", "", None]),
        st.sampled_from([2020, 2021, None]),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.sampled_from([True, False, None]),
    ),
    max_size=40,
)
_bounds = st.one_of(st.none(), st.integers(1, 4))
_shapes = st.sampled_from(SHAPES)
_salts = st.sampled_from([None, "one", "two"])


def by_key(answer: pa.Table, names: tuple[str, ...]) -> dict[ref.Row, dict[str, Any]]:
    found = answer.to_pylist()
    return {tuple(row[name] for name in names): row for row in found}


@settings(max_examples=examples(30))
@given(_rows, _shapes, _bounds, _bounds, _salts, st.sampled_from(["memory", "by units", "by rows"]))
def test_leaving_out_a_unit_changes_at_most_so_many_groups_and_rows(
    people: list[ref.Row], shape: Any, rows: int | None, groups: int | None, salt: str | None, way: str
) -> None:
    keys, within = shape
    plan: p.BoundedGroup = ref.bounded(keys, rows, groups, within=within, salt=salt)
    run = plan if way == "memory" else expanded(plan, by_rows=way == "by rows")
    whole = by_key(MemoryRelation(ref.table(people)).run(run), keys + within)
    for left_out in ("u", "v"):
        part = by_key(MemoryRelation(ref.table([r for r in people if r[0] != left_out])).run(run), keys + within)
        changed: dict[ref.Row, int] = defaultdict(int)
        for name in whole.keys() | part.keys():
            one, other = whole.get(name, {}), part.get(name, {})
            difference = abs((one.get("rows") or 0) - (other.get("rows") or 0))
            assert 0 <= (one.get("units") or 0) - (other.get("units") or 0) <= 1
            assert abs((one.get("sum") or 0) - (other.get("sum") or 0)) <= difference * 2**63
            if one != other:
                changed[name[: len(keys)]] += difference
        if rows is not None:
            assert all(count <= rows for count in changed.values())
        if groups is not None and keys:
            assert len(changed) <= groups


@settings(max_examples=examples(20))
@given(_rows, _shapes, _bounds, _bounds)
def test_both_ways_of_sampling_keep_equally_much(people: list[ref.Row], shape: Any, rows: int | None, groups: int | None) -> None:
    keys, within = shape
    plan = ref.bounded(keys, rows, groups, within=within, salt="salt")
    relation = MemoryRelation(ref.table(people))
    here, there = relation.run(plan), relation.run(expanded(plan))
    assert here.schema == there.schema
    if groups is None or not keys:  # which groups are kept decides how many rows are
        assert sum(here["rows"].to_pylist()) == sum(there["rows"].to_pylist())
    if not within:
        assert sum(here["units"].to_pylist()) == sum(there["units"].to_pylist())
    if all(bound is None or bound >= len(people) for bound in (rows, groups)):
        assert sorted_rows(here) == sorted_rows(there)


@settings(max_examples=examples(30))
@given(_rows, _shapes, _bounds, _bounds, st.sampled_from(["one", "two"]), st.booleans())
def test_rows_bounded_one_by_one_are_those_bounded_by_sums_per_unit(
    people: list[ref.Row], shape: Any, rows: int | None, groups: int | None, salt: str, conditions: bool
) -> None:
    keys, within = shape
    asked = [each for each in ref.AGGREGATES if conditions or each.name != "good_units"]
    plan = ref.bounded(keys, rows, groups, within=within, salt=salt, aggregates=asked)
    relation = MemoryRelation(ref.table(people))
    by_units, by_rows = relation.run(expanded(plan)), relation.run(expanded(plan, by_rows=True))
    assert by_units.schema == by_rows.schema
    assert sorted_rows(by_units) == sorted_rows(by_rows)


def test_single_rows_are_bounded_where_units_need_no_sums() -> None:
    def sums_per_unit(plan: p.BoundedGroup) -> bool:
        return any(isinstance(each, p.PerUnitAggregate) for each in p.parts(expanded(plan, by_rows=True)))

    units, good_units = (next(a for a in ref.AGGREGATES if a.name == name) for name in ("units", "good_units"))
    assert not sums_per_unit(ref.bounded(("city",), 2, 2, salt="s", aggregates=[units]))
    assert sums_per_unit(ref.bounded(("city",), 2, 2, salt="s", aggregates=[units, good_units]))
    assert sums_per_unit(ref.bounded(("city",), 2, 2, salt="s", within=("year",), aggregates=[units]))
    assert sums_per_unit(ref.bounded(("city",), 2, 2, aggregates=[units]))


@settings(max_examples=examples(20))
@given(_rows, st.sampled_from([(), ("city",)]), st.integers(1, 4), _bounds)
def test_rows_that_are_alike_are_counted_and_not_numbered(
    people: list[ref.Row], keys: tuple[str, ...], rows: int, groups: int | None
) -> None:
    """With a column more, which nothing reads, rows are numbered and drawn: counts are the same."""
    asked = [p.AggregateColumn("rows", "count"), p.AggregateColumn("units", "count_distinct", ref.UNIT)]
    wide = ref.bounded(keys, rows, groups, salt="s", aggregates=asked)
    narrow = replace(wide, source=p.Project(wide.source, tuple(p.column(name) for name in ("unit", *keys))))
    numberings = [each for each in p.parts(expanded(narrow)) if isinstance(each, p.Numbering)]
    assert len(numberings) == (1 if keys and groups else 0)  # groups alone are
    relation = MemoryRelation(ref.table(people))
    assert sorted_rows(relation.run(expanded(narrow))) == sorted_rows(relation.run(expanded(wide)))


@settings(max_examples=examples(20))
@given(_rows, _shapes, _bounds, _bounds, st.sampled_from([(), (p.Order(e.Reference("n")),)]))
def test_truncation_is_what_the_reference_keeps(
    people: list[ref.Row], shape: Any, rows: int | None, groups: int | None, order: tuple[p.Order, ...]
) -> None:
    keys, within = shape
    plan = ref.bounded(keys, rows, groups, within=within, order=order)
    kept = ref.first_kept(people, plan, lambda row: ref.canonical(row[3]) if order else 0)
    assert sorted_rows(MemoryRelation(ref.table(people)).run(plan)) == ref.aggregated(kept, keys + within)


@pytest.mark.parametrize("way", ["in process", "by units", "by rows"])
def test_each_row_and_group_is_drawn_equally_often(way: str) -> None:
    """400 users with 5 rows in each of 4 groups, 1 row and 1 group kept: every one of 20 rows has chance 1/20.

    A count of 400 · 30 draws is 600 ± 24; six standard deviations are exceeded with probability below 10^-7 over all rows.
    """
    draws, users, cells = 30, 400, 20
    table = pa.table({
        "u": [u for u in range(users) for _ in range(cells)],
        "g": [c % 4 for _ in range(users) for c in range(cells)],
        "c": [c for _ in range(users) for c in range(cells)],
    })  # fmt: skip
    scan = p.Scan(ROWS, tuple(p.Field(name, "integer") for name in table.column_names))
    counts: Counter[int] = Counter()
    for draw in range(draws):
        asked = (p.AggregateColumn("n", "count"),)
        plan = p.BoundedGroup(scan, "u", ("g",), ("c",), 1, 1, asked, (), f"salt {draw}")
        answer = MemoryRelation(table).run(plan if way == "in process" else expanded(plan, by_rows=way == "by rows"))
        assert sum(answer["n"].to_pylist()) == users
        counts.update(dict(zip(answer["c"].to_pylist(), answer["n"].to_pylist(), strict=True)))
    expected = draws * users / cells
    assert all(abs(counts[c] - expected) < 6 * math.sqrt(expected) for c in range(cells))


def test_sums_beyond_64_bits_are_exact_in_process() -> None:
    people = [(f"u{i}", "Rome", 0, 2**63 - 1 if i % 3 else -(2**63), True) for i in range(3000)]
    answer = MemoryRelation(ref.table(people)).run(ref.bounded(("city",), 1, 1, salt="s"))
    assert sorted_rows(answer) == ref.aggregated(people, ("city",))


# -- refusals -----------------------------------------------------------------------------------------------------------


def faulty(**changes: Any) -> p.BoundedGroup:
    asked: dict[str, Any] = {"keys": ("city",), "rows": 1, "groups": 1, **changes}
    return ref.bounded(**asked)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (faulty(rows=0), "at least one row"),
        (faulty(groups=0), "at least one row"),
        (faulty(salt=""), "salt"),
        (faulty(salt="s", order=(p.Order(ref.N),)), "not both"),
        (faulty(within=("city",)), "twice"),
        (faulty(aggregates=(p.AggregateColumn("m", "max", ref.N),)), "'max'"),
        (faulty(aggregates=(p.AggregateColumn("d", "count_distinct", ref.N),)), "distinct units"),
        (faulty(aggregates=(p.AggregateColumn("s", "sum", e.Cast(ref.N, "number")),)), "FixedPoint"),
        (faulty(aggregates=(p.AggregateColumn("s", "sum", e.Arithmetic("*", ref.N, ref.N)),)), "2\\^95"),
        (faulty(keys=(), within=(), aggregates=()), "neither"),
    ],
)
def test_a_faulty_bounded_grouping_is_refused(plan: p.BoundedGroup, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        validate(plan)
    with pytest.raises(SchemaError, match=message):
        MemoryRelation(ref.table(PEOPLE)).run(plan)


def test_too_many_rows_for_the_kernel_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.engines.duckdb.bounding_in_process._ROW_LIMIT", 3)
    with pytest.raises(Unsupported, match="2\\^31"):
        MemoryRelation(ref.table(PEOPLE)).run(ref.bounded((), 1, 1, salt="s"))
    with pytest.raises(ValueError, match="sampled"):
        bounded_in_process(ref.bounded((), 1, 1), lambda plan: [])
