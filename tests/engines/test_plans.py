"""Plans mean the same on every engine, and are checked before any engine sees them."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.errors import MissingColumn, SchemaError
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.functions import numbers as f
from sfumato.engines.plan import validate
from tests.engines.conftest import OpenTable
from tests.engines.tables import rows

DAY = datetime.date(2024, 2, 29)
QUOTED = 'it\'s "x" \\ `y` 100%'

TABLE = pa.table(
    {
        "unit": ["u", "u", "u", "v", None, "w", "w"],
        "city": ["Rome", "Oslo", "Rome", "Oslo", "Rome", None, QUOTED],
        "income": [10.5, -3.5, None, 1e12, 0.5, 2.5, -0.5],
        "n": [2**62, 2**62, 2**62, -5, None, 7, 0],
        "ok": [True, False, None, True, True, False, None],
        "day": [DAY, None, DAY, DAY, DAY, DAY, DAY],
    }
)
FIELDS = (
    p.Field("unit", "string"),
    p.Field("city", "string"),
    p.Field("income", "number"),
    p.Field("n", "integer"),
    p.Field("ok", "boolean"),
    p.Field("day", "date"),
)
SCAN = p.Scan(ROWS, FIELDS)
INCOME, N, CITY, OK = e.Reference("income"), e.Reference("n"), e.Reference("city"), e.Reference("ok")


def projected(**columns: e.Expression) -> p.Plan:
    return p.Project(SCAN, tuple(p.Named(name, expression) for name, expression in columns.items()))


def test_arithmetic_is_exact_and_total(on_engine: OpenTable) -> None:
    plan = projected(
        clamped=f.Clamp(INCOME, -1.0, 3.0),
        fixed=f.FixedPoint(INCOME, 1, 1e6),
        wide=e.Arithmetic("*", N, N),
        twice=e.Arithmetic("+", N, N),
        less=e.Arithmetic("-", INCOME, e.Literal(0.5)),
    )
    answer = on_engine(TABLE).run(plan)  # type: ignore[attr-defined]
    expected = []
    for income, n in zip(TABLE["income"].to_pylist(), TABLE["n"].to_pylist(), strict=True):
        clamped = None if income is None else min(max(income, -1.0), 3.0)
        fixed = None if income is None else math.floor(min(max(income, -1e6), 1e6) + 0.5)
        wide, twice = (None, None) if n is None else (Decimal(n * n), Decimal(n + n))
        expected.append((clamped, fixed, wide, twice, None if income is None else income - 0.5))
    assert rows(answer) == sorted(expected, key=repr)


def test_conditions_treat_missing_values_as_stated(on_engine: OpenTable) -> None:
    relation: Any = on_engine(TABLE)

    def kept(condition: e.Expression) -> list[Any]:
        answer = relation.run(p.Filter(p.Project(SCAN, (p.column("n"), p.column("city"), p.column("ok"))), condition))
        return sorted(answer.column("n").to_pylist(), key=repr)

    big = 2**62
    assert kept(e.Compare("=", CITY, e.Literal(QUOTED))) == [0]
    assert kept(e.OneOfValues(CITY, (QUOTED, "Oslo"))) == sorted([big, -5, 0], key=repr)
    assert kept(e.OneOfValues(CITY, ())) == []
    assert kept(e.IsMissing(N)) == [None]
    assert kept(e.Compare("is", N, e.Literal(None, "integer"))) == [None]
    assert kept(e.Not(e.Compare("is", CITY, e.Literal("Rome")))) == sorted([big, -5, 7, 0], key=repr)
    assert kept(e.Or((e.IsMissing(OK), e.And((OK, e.Compare("<", N, e.Literal(0))))))) == sorted([big, 0, -5], key=repr)
    assert len(kept(e.And(()))) == 7
    assert kept(e.Or(())) == []


def test_casts_and_choices(on_engine: OpenTable) -> None:
    plan = projected(
        number=e.Cast(N, "string"),
        truth=e.Cast(OK, "string"),
        bit=e.Cast(OK, "integer"),
        day=e.Cast(e.Reference("day"), "string"),
        later=e.Compare(">=", e.Reference("day"), e.Literal(DAY)),
        size=e.Choose(((e.Compare("<", INCOME, e.Literal(1.0)), e.Literal("low")),), e.Literal("high")),
    )
    answer = on_engine(TABLE).run(plan)  # type: ignore[attr-defined]
    expected = []
    for income, n, ok, day in zip(*(TABLE[name].to_pylist() for name in ("income", "n", "ok", "day")), strict=True):
        expected.append(
            (
                None if n is None else str(n),
                None if ok is None else str(ok).lower(),
                None if ok is None else int(ok),
                None if day is None else day.isoformat(),
                None if day is None else True,
                "low" if income is not None and income < 1.0 else "high",
            )
        )
    assert rows(answer) == sorted(expected, key=repr)


def test_aggregates_per_group(on_engine: OpenTable) -> None:
    plan = p.Group(
        SCAN,
        ("city",),
        (
            p.AggregateColumn("rows", "count"),
            p.AggregateColumn("incomes", "count", INCOME),
            p.AggregateColumn("units", "count_distinct", e.Reference("unit")),
            p.AggregateColumn("total", "sum", N),
            p.AggregateColumn("good", "sum", N, where=OK),
            p.AggregateColumn("least", "min", e.Reference("unit")),
            p.AggregateColumn("most", "max", INCOME),
        ),
    )
    answer = on_engine(TABLE).run(plan)  # type: ignore[attr-defined]
    assert answer.schema.field("total").type == pa.decimal128(38, 0)
    assert rows(answer) == sorted(
        [
            ("Rome", 3, 2, 1, Decimal(2**63), Decimal(2**62), "u", 10.5),
            ("Oslo", 2, 2, 2, Decimal(2**62 - 5), Decimal(-5), "u", 1e12),
            (None, 1, 1, 1, Decimal(7), None, "w", 2.5),
            (QUOTED, 1, 1, 1, Decimal(0), None, "w", -0.5),
        ],
        key=repr,
    )
    none = p.Filter(SCAN, e.Or(()))
    empty = on_engine(TABLE).run(p.Group(none, (), (p.AggregateColumn("rows", "count"),)))  # type: ignore[attr-defined]
    assert empty.column(0).to_pylist() == [0]


def test_bounded_contributions_with_declared_keys(on_engine: OpenTable) -> None:
    """A private grouped sum: clamp, sum per unit, bound its groups, group, fill declared keys."""
    clamped = p.Project(
        SCAN,
        (
            p.column("unit"),
            p.column("city"),
            p.Named("cents", f.FixedPoint(f.Clamp(INCOME, 0.0, 5.0), 100, 1e6)),
        ),
    )
    per_unit = p.PerUnitAggregate(clamped, "unit", ("city",), (p.AggregateColumn("cents", "sum", e.Reference("cents")),))
    bounded = p.Bound(per_unit, ("unit",), 1, (p.Order(e.Reference("city")),))
    sums = p.Group(
        bounded, ("city",), (p.AggregateColumn("sum", "sum", e.Reference("cents")), p.AggregateColumn("units", "count"))
    )
    keys = p.Scan("keys", (p.Field("city", "string"),))
    filled = p.Project(
        p.Join(keys, sums, (("city", "city"),), "left"),
        (
            p.column("city"),
            p.Named("sum", e.Choose(((e.IsMissing(e.Reference("sum")), e.Literal(0)),), e.Reference("sum"))),
            p.column("units"),
        ),
    )
    declared = pa.table({"city": ["Rome", "Oslo", None, "Paris"]})
    answer = on_engine(TABLE).run(filled, {"keys": declared})  # type: ignore[attr-defined]
    # u keeps Oslo (before Rome), v Oslo, the missing unit Rome, w the missing city (before any text)
    assert rows(answer) == sorted(
        [
            ("Rome", Decimal(50), 1),
            ("Oslo", Decimal(500), 2),
            (None, Decimal(250), 1),
            ("Paris", Decimal(0), None),
        ],
        key=repr,
    )


def test_numbering_follows_the_order(on_engine: OpenTable) -> None:
    plan = p.Project(
        p.Numbering(SCAN, "place", ("unit",), (p.Order(CITY, descending=True), p.Order(INCOME))),
        (p.column("unit"), p.column("city"), p.column("income"), p.column("place")),
    )
    answer = on_engine(TABLE).run(plan)  # type: ignore[attr-defined]
    assert rows(answer) == sorted(
        [
            ("u", "Rome", None, 1),
            ("u", "Rome", 10.5, 2),
            ("u", "Oslo", -3.5, 3),
            ("v", "Oslo", 1e12, 1),
            (None, "Rome", 0.5, 1),
            ("w", None, 2.5, 1),
            ("w", QUOTED, -0.5, 2),
        ],
        key=repr,
    )


def test_the_sampling_order_is_the_same_digest_everywhere(on_engine: OpenTable) -> None:
    answer = on_engine(TABLE).run(projected(digest=e.Scrambled(CITY, "key's")))  # type: ignore[attr-defined]
    cities = TABLE["city"].to_pylist()
    digests = [hashlib.md5(f"key's:{city or ''}".encode()).hexdigest() for city in cities]
    assert sorted(answer.column(0).to_pylist()) == sorted(digests)


def test_joins_match_missing_with_missing(on_engine: OpenTable) -> None:
    public = pa.table({"place": ["Rome", None, "Lima"], "ok": [True, None, False], "country": ["IT", "??", "PE"]})
    right = p.Scan("public", (p.Field("place", "string"), p.Field("ok", "boolean"), p.Field("country", "string")))
    joined = p.Join(SCAN, right, (("city", "place"), ("ok", "ok")))
    answer = on_engine(TABLE).run(  # type: ignore[attr-defined]
        p.Project(joined, (p.column("unit"), p.column("country"))), {"public": public}
    )
    assert rows(answer) == sorted([("u", "IT"), (None, "IT")], key=repr)


def faulty_plans() -> Iterator[Any]:
    yield pytest.param(p.Filter(SCAN, e.IsMissing(e.Reference("nope"))), MissingColumn, "nope", id="filter")
    yield pytest.param(p.Group(SCAN, ("a", "b"), ()), MissingColumn, "2 faults", id="group-all-at-once")
    yield pytest.param(p.Join(SCAN, SCAN, (("city", "city"),)), SchemaError, "twice", id="join-names")
    yield pytest.param(p.Filter(SCAN, INCOME), SchemaError, "truth", id="condition")
    yield pytest.param(p.Filter(SCAN, e.Compare("=", CITY, N)), SchemaError, "compared", id="kinds")
    yield pytest.param(projected(x=e.Cast(CITY, "integer")), SchemaError, "fails", id="failing-cast")
    yield pytest.param(projected(x=f.Clamp(INCOME, 2.0, 1.0)), SchemaError, "bounds", id="clamp")
    yield pytest.param(projected(x=e.Literal(math.nan)), SchemaError, "finite", id="nan")
    yield pytest.param(projected(x=f.FixedPoint(INCOME, 2**40, 2.0**30)), SchemaError, "2\\^62", id="fixed-point")
    yield pytest.param(
        projected(x=e.Arithmetic("*", e.Arithmetic("+", N, N), N)),
        SchemaError,
        "wide",
        id="overflowing-product",
    )
    yield pytest.param(p.Bound(SCAN, ("unit",), 0, ()), SchemaError, "at least one", id="bound")
    yield pytest.param(p.Group(SCAN, ("city",), (p.AggregateColumn("s", "sum", CITY),)), SchemaError, "summed", id="sum")
    yield pytest.param(p.Numbering(SCAN, "city", (), ()), SchemaError, "twice", id="number")


@pytest.mark.parametrize(("plan", "error", "message"), list(faulty_plans()))
def test_a_faulty_plan_is_refused_before_it_runs(plan: p.Plan, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        validate(plan)


def test_a_plan_is_a_value() -> None:
    assert projected(x=f.Clamp(INCOME, 0.0, 1.0)) == projected(x=f.Clamp(INCOME, 0.0, 1.0))
    assert hash(SCAN) == hash(p.Scan(ROWS, FIELDS))
    assert validate(p.PerUnitAggregate(SCAN, "unit", ("city",), (p.AggregateColumn("n", "count"),))) == {
        "unit": "string",
        "city": "string",
        "n": "integer",
    }
