"""Functions of dates, text and numbers have one value on every engine, for every input."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.errors import SchemaError
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.functions import dates as d
from sfumato.engines.functions import numbers as f
from sfumato.engines.functions import texts as t
from sfumato.engines.plan import validate
from tests.engines.conftest import OpenTable

INF = math.inf
NUMBERS = [
    0.0, -0.0, 0.1, 1 / 3, -2.5, 2.5, 1e15 + 0.5, -1e15 - 0.5, 1e300, -1e300, 1.7e308, -1.7e308, 5e-324, -5e-324, 1e-200,
    INF, -INF, math.nan, None, 99.99999999999999, 100.0, 30.0, 0.3, 7e22, 2.0**53, 2.0**53 + 2, 123456.789,
]  # fmt: skip
INTEGERS = [0, 1, -1, 7, -7, 2**63 - 1, -(2**63), None, 2**53 + 1, -(2**53) - 1, 10**18, 5]
DATES = [
    datetime.date(2024, 2, 29),
    datetime.date(1899, 12, 31),
    datetime.date(1, 1, 1),
    datetime.date(9999, 12, 31),
    datetime.date(1969, 12, 31),
    datetime.date(2023, 1, 1),
    datetime.date(2020, 12, 31),
    None,
    datetime.date(2026, 8, 17),
]
MOMENTS = [
    datetime.datetime(2024, 2, 29, 23, 59, 59, 999_999),
    datetime.datetime(1969, 12, 31, 0, 0, 0, 1),
    None,
    datetime.datetime(1, 1, 1),
    datetime.datetime(9999, 12, 31, 23, 59, 59),
    datetime.datetime(2000, 1, 3, 12, 30),
]
TEXTS = [
    "Oslo", "OSLO", "", None, "ångström ÅÉ", "a\u0301bc", "🙂🙃x", "100%", "a_b", "x\ny", "ẞß İi", "日本語", " pad ", "it's",
]  # fmt: skip


def computed(on_engine: OpenTable, values: list[Any], kind: e.Kind, given: pa.DataType, **asked: e.Expression) -> dict[str, Any]:
    """The values of expressions over the column `x`, by the number of the row."""
    relation: Any = on_engine(pa.table({"i": list(range(len(values))), "x": pa.array(values, given)}))
    scan = p.Scan(ROWS, (p.Field("i", "integer"), p.Field("x", kind)))
    named = tuple(p.Named(name, expression) for name, expression in asked.items())
    answer = relation.run(p.Project(scan, (p.column("i"), *named))).sort_by("i")
    return {name: answer.column(name).to_pylist() for name in asked}


def each(function: Any, values: list[Any]) -> list[Any]:
    return [None if value is None or value != value else function(value) for value in values]


X = e.Reference("x")


def moved(value: float, *, near_zero: bool) -> float:
    """What a number counts as in arithmetic."""
    if near_zero and abs(value) < e.SMALLEST:
        return 0.0
    return min(max(value, -e.LARGEST), e.LARGEST)


def test_arithmetic_of_extreme_numbers_is_total(on_engine: OpenTable) -> None:
    found = computed(
        on_engine, NUMBERS, "number", pa.float64(),
        half=f.Divide(X, 2), third=f.Divide(X, -3.0), large=f.Divide(X, 1e-150), small=f.Divide(X, 1e150),
        square=e.Arithmetic("*", X, X), none=e.Arithmetic("-", X, X), twice=e.Arithmetic("+", X, X),
        thrice=e.Arithmetic("*", f.Clamp(X, -1e9, 1e9), e.Literal(3.0)),
    )  # fmt: skip
    for name, divisor in (("half", 2.0), ("third", -3.0), ("large", 1e-150), ("small", 1e150)):
        assert found[name] == each(lambda x, d=divisor: moved(x, near_zero=True) / d, NUMBERS)
    assert found["square"] == each(lambda x: moved(x, near_zero=True) ** 2, NUMBERS)
    assert found["none"] == each(lambda x: 0.0, NUMBERS)
    assert found["twice"] == each(lambda x: 2 * moved(x, near_zero=False), NUMBERS)
    assert found["thrice"] == each(lambda x: 3.0 * moved(min(max(x, -1e9), 1e9), near_zero=True), NUMBERS)


def test_floors_clamps_and_buckets_of_numbers(on_engine: OpenTable) -> None:
    found = computed(
        on_engine, NUMBERS, "number", pa.float64(),
        floor=f.Floor(X), clamp=f.Clamp(X, -5.0, 100.0), fixed=f.FixedPoint(X, 10, 1e6),
        inside=f.FixedPoint(f.Clamp(X, 0.0, 100.0), 10, 1e6),
        tenth=f.Bucket(X, 0.0, 100.0, 10), third=f.Bucket(X, -0.1, 0.35, 3), one=f.Bucket(X, 0, 1, 1),
    )  # fmt: skip
    assert found["floor"] == each(lambda x: math.floor(min(max(x, -(2.0**53)), 2.0**53)), NUMBERS)
    assert found["clamp"] == each(lambda x: min(max(x, -5.0), 100.0), NUMBERS)
    assert found["fixed"] == each(lambda x: math.floor(min(max(x, -1e6), 1e6) * 10 + 0.5), NUMBERS)
    assert found["inside"] == each(lambda x: math.floor(min(max(x, 0.0), 100.0) * 10 + 0.5), NUMBERS)

    def bucket(x: float, low: float, high: float, count: int) -> int:
        return min(count - 1, math.floor((min(max(x, low), high) - low) * count / (high - low)))

    assert found["tenth"] == each(lambda x: bucket(x, 0.0, 100.0, 10), NUMBERS)
    assert found["third"] == each(lambda x: bucket(x, -0.1, 0.35, 3), NUMBERS)
    assert found["one"] == each(lambda x: 0, NUMBERS)
    assert set(found["tenth"]) == {0, 3, 9, None}  # 30 is in the fourth part, 99.99… and 100 in the last


def test_whole_numbers(on_engine: OpenTable) -> None:
    found = computed(
        on_engine, INTEGERS, "integer", pa.int64(),
        floor=f.Floor(X), rest=f.Remainder(X, 5), one=f.Remainder(X, 1), half=f.Divide(X, 2), part=f.Bucket(X, 0, 10, 4),
        narrow=e.Cast(e.Arithmetic("+", X, X), "integer"), wide=e.Cast(f.Clamp(e.Arithmetic("*", X, X), -9, 9), "integer"),
    )  # fmt: skip
    assert found["floor"] == each(lambda n: min(max(n, -(2**53)), 2**53), INTEGERS)
    assert found["rest"] == each(lambda n: int(math.copysign(abs(n) % 5, n)), INTEGERS)
    assert found["one"] == each(lambda n: 0, INTEGERS)
    assert found["half"] == each(lambda n: n / 2, INTEGERS)
    assert found["part"] == each(lambda n: min(3, min(max(n, 0), 10) * 4 // 10), INTEGERS)
    assert found["narrow"] == each(lambda n: min(max(2 * n, -(2**63)), 2**63 - 1), INTEGERS)
    assert found["wide"] == each(lambda n: min(n * n, 9), INTEGERS)


def quarter(day: datetime.date) -> int:
    return (day.month + 2) // 3


def start(day: datetime.date, part: str) -> datetime.date:
    if isinstance(day, datetime.datetime):
        day = day.date()
    first = {"year": (day.year, 1, 1), "quarter": (day.year, 3 * quarter(day) - 2, 1), "month": (day.year, day.month, 1)}
    if part == "week":
        return day - datetime.timedelta(days=day.weekday())
    return datetime.date(*first[part]) if part in first else day


PARTS = {
    "year": lambda d: d.year,
    "quarter": quarter,
    "month": lambda d: d.month,
    "day": lambda d: d.day,
    "weekday": lambda d: d.isoweekday(),
    "day_of_year": lambda d: d.timetuple().tm_yday,
}
STARTS = ("year", "quarter", "month", "week", "day")


@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_parts_and_starts_of_dates(on_engine: OpenTable, kind: e.Kind) -> None:
    values: list[Any] = DATES if kind == "date" else MOMENTS
    given = pa.date32() if kind == "date" else pa.timestamp("us")
    asked: dict[str, e.Expression] = {f"part_{part}": d.DatePart(X, part) for part in PARTS}  # type: ignore[arg-type]
    asked |= {f"start_{part}": d.DateStart(X, part) for part in STARTS}  # type: ignore[arg-type]
    clock = {"hour": lambda m: m.hour, "minute": lambda m: m.minute}
    if kind == "datetime":
        asked |= {f"part_{part}": d.DatePart(X, part) for part in clock}  # type: ignore[arg-type]
    found = computed(on_engine, values, kind, given, **asked)
    for part, function in {**PARTS, **(clock if kind == "datetime" else {})}.items():
        assert found[f"part_{part}"] == each(function, values), part
    for part in STARTS:
        assert found[f"start_{part}"] == each(lambda d, part=part: start(d, part), values), part


def test_text(on_engine: OpenTable) -> None:
    patterns = {"begins": "O%", "case": "o%", "one": "___", "percent": "100%", "any": "%", "within": "%\n%", "none": ""}
    found = computed(
        on_engine, TEXTS, "string", pa.string(),
        lower=t.Lowered(X), upper=t.Uppered(X), length=t.Length(X),
        first=t.TextPart(X, 1, 2), middle=t.TextPart(X, 2, 3), beyond=t.TextPart(X, 100, 5), nothing=t.TextPart(X, 1, 0),
        **{name: t.Like(X, pattern) for name, pattern in patterns.items()},
    )  # fmt: skip
    assert found["lower"] == each(lambda t: "".join(c.lower() if c.isascii() else c for c in t), TEXTS)
    assert found["upper"] == each(lambda t: "".join(c.upper() if c.isascii() else c for c in t), TEXTS)
    assert found["length"] == each(len, TEXTS)
    assert found["first"] == each(lambda t: t[:2], TEXTS)
    assert found["middle"] == each(lambda t: t[1:4], TEXTS)
    assert found["beyond"] == found["nothing"] == each(lambda t: "", TEXTS)
    assert found["begins"] == each(lambda t: t.startswith("O"), TEXTS)
    assert found["case"] == each(lambda t: t.startswith("o"), TEXTS)
    assert found["one"] == each(lambda t: len(t) == 3, TEXTS)
    assert found["percent"] == each(lambda t: t.startswith("100"), TEXTS)
    assert found["any"] == each(lambda t: True, TEXTS)
    assert found["within"] == each(lambda t: "\n" in t, TEXTS)
    assert found["none"] == each(lambda t: t == "", TEXTS)


@pytest.mark.parametrize(
    ("expression", "kind", "message"),
    [
        (f.Divide(X, 0), "number", "divisor"),
        (f.Divide(X, 1e-300), "number", "divisor"),
        (f.Divide(X, math.inf), "number", "divisor"),
        (f.Divide(X, 2), "string", "does not apply"),
        (f.Remainder(X, 0), "integer", "positive"),
        (f.Remainder(X, 3), "number", "does not apply"),
        (f.Bucket(X, 1.0, 1.0, 3), "number", "bounds"),
        (f.Bucket(X, 0.0, math.inf, 3), "number", "bounds"),
        (f.Bucket(X, 0.0, 1.0, 0), "number", "parts"),
        (d.DatePart(X, "hour"), "date", "does not apply"),
        (d.DateStart(X, "week"), "instant", "does not apply"),
        (t.Like(X, "a\\%"), "string", "backslash"),
        (t.Like(X, "a\x00"), "string", "NUL"),
        (t.TextPart(X, 0, 1), "string", "start"),
        (e.Arithmetic("+", e.Arithmetic("*", X, X), e.Arithmetic("*", X, X)), "integer", "38 digits"),
    ],
)
def test_what_has_no_value_everywhere_is_refused(expression: e.Expression, kind: e.Kind, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        validate(p.Project(p.Scan(ROWS, (p.Field("x", kind),)), (p.Named("y", expression),)))


@pytest.mark.postgres
def test_infinite_and_distant_dates_have_no_parts_in_postgres(postgres_url: str) -> None:
    import psycopg

    from sfumato.engines.postgres.relation import PostgresRelation

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS far_dates")
        connection.execute("CREATE TABLE far_dates (x date)")
        connection.execute(
            "INSERT INTO far_dates VALUES ('infinity'), ('-infinity'), ('300000-01-01'), ('0044-03-15 BC'), (NULL)"
        )
    relation = PostgresRelation(postgres_url, "far_dates")
    asked = (p.Named("year", d.DatePart(X, "year")), p.Named("week", d.DateStart(X, "week")))
    answer = relation.run(p.Project(p.Scan(ROWS, (p.Field("x", "date"),)), asked))
    assert answer.column("year").null_count == answer.column("week").null_count == 5


def test_rounding_sends_halves_up_on_every_engine(on_engine: OpenTable) -> None:
    halves = [*NUMBERS, 0.5, -0.5, 1.5, -1.5, 0.05, 0.15, -0.05, -0.15, 1.005, 2.675, 99.995, -99.995]
    asked = {f"digits{digits}": f.Rounded(X, digits) for digits in (0, 1, 2, 9)}
    found = computed(on_engine, halves, "number", pa.float64(), **asked, up=f.Ceil(X))
    for name, function in asked.items():
        assert found[name] == each(function.of, halves)
    assert found["digits0"][halves.index(2.5)] == 3 and found["digits0"][halves.index(-2.5)] == -2
    assert found["up"] == each(lambda x: math.ceil(min(max(x, -(2.0**53)), 2.0**53)), halves)
    whole = computed(on_engine, INTEGERS, "integer", pa.int64(), up=f.Ceil(X), near=f.Rounded(X, 0))
    assert whole["up"] == each(lambda n: min(max(n, -(2**53)), 2**53), INTEGERS)
    assert whole["near"] == each(lambda n: int(f.Rounded(X, 0).of(float(n))), INTEGERS)
