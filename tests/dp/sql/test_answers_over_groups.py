"""Expressions over groups, texts, dates and keys: answered as rows are, and refused before the charge or not at all."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported

DAYS = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 31)]
SCHEMA = {
    "dataset": "d",
    "columns": {
        "s": {"type": "string"},
        "zip": {"type": "string"},
        "day": {"type": "date", "domain": [day.isoformat() for day in DAYS]},
        "at": {"type": "datetime"},
        "k": {"type": "integer"},
    },
}
NO_NOISE = 10**6


def asked() -> sf.Session:
    rows = {
        "s": ["École", "École", "ecole", "ÉCOLE"],
        "zip": ["8001", "8002", "8001", "x"],
        "day": [DAYS[0], DAYS[1], DAYS[1], DAYS[1]],
        "at": [datetime.datetime(2020, 1, day, 10) for day in (1, 2, 3, 4)],
        "k": [1, 2, 2, 3],
    }
    return sf.Session(sf.read(pa.table(rows), schema=SCHEMA), budget=sf.PureDP(10**9))


def rows_of(query: str, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = asked().sql(query, epsilon=NO_NOISE, **options).table.to_pylist()
    return found


@pytest.mark.parametrize(("pattern", "count"), [("École", 3), ("éCOLE", 0), ("É%", 3), ("ÉcolE", 3), ("e%", 1), ("%COLE", 4)])
def test_ilike_ignores_the_case_of_a_to_z_in_the_pattern_as_in_the_rows(pattern: str, count: int) -> None:
    assert rows_of(f"SELECT COUNT(*) AS n FROM d WHERE s ILIKE '{pattern}'") == [{"n": count}]


def test_a_computed_date_is_shown_and_kept() -> None:
    query = (
        "SELECT day, COUNT(*) AS n, CASE WHEN day > '2020-01-01' THEN day ELSE DATE '1999-12-31' END AS z "
        "FROM d GROUP BY day ORDER BY day"
    )
    session = asked()
    shown = [row["z"] for row in session.sql(query, epsilon=NO_NOISE).table.to_pylist()]
    assert shown == [datetime.date(1999, 12, 31), DAYS[1]]
    assert [row["z"] for row in session.sql(query, epsilon=NO_NOISE).table.to_pylist()] == shown  # read back from the ledger


def test_a_date_is_compared_with_the_texts_of_a_case() -> None:
    query = "SELECT day, COUNT(*) AS n, CASE day WHEN '2020-01-31' THEN 1 ELSE 0 END AS last FROM d GROUP BY day ORDER BY day"
    assert [row["last"] for row in rows_of(query)] == [0, 1]


@pytest.mark.parametrize("function", ["LEAST", "GREATEST"])
def test_least_and_greatest_are_missing_when_one_argument_is(function: str) -> None:
    assert rows_of(f"SELECT {function}(COUNT(*), NULL) AS n FROM d") == [{"n": None}]
    assert rows_of(f"SELECT COUNT({function}(k, NULLIF(k, 2))) AS n FROM d") == [{"n": 2}]
    assert rows_of(f"SELECT {function}(COUNT(*), 2) AS n FROM d") == [{"n": 2 if function == "LEAST" else 4}]


WRONG = [
    "day IN ('foo')",
    "day IN ('2020-01-01', 'foo')",
    "day BETWEEN 'foo' AND '2020-01-01'",
    "day BETWEEN '2020-01-01' AND 'x'",
    "day = 'foo'",
    "'foo' < day",
    "CASE day WHEN 'foo' THEN TRUE ELSE FALSE END",
    "COUNT(*) > 1" + "0" * 5000,
    "COUNT(*) > 1e999",
]


@pytest.mark.parametrize("condition", WRONG)
def test_what_the_query_shows_to_be_wrong_is_refused_before_the_charge(condition: str) -> None:
    session = asked()
    before = session.remaining()
    with pytest.raises(Unsupported):
        session.sql(f"SELECT day, COUNT(*) AS n FROM d GROUP BY day HAVING {condition}", epsilon=1)
    assert session.remaining() == before


BIG = "(COUNT(*) * " + " * ".join(["1" + "0" * 50] * 8) + ")"
WITHOUT_VALUE = [
    "ROUND(EXP(COUNT(*) * 150) * EXP(COUNT(*) * 150) - EXP(COUNT(*) * 150) * EXP(COUNT(*) * 150))",
    "ROUND(EXP(COUNT(*) * 1000))",
    f"CAST({BIG} AS DOUBLE)",
    f"CAST({BIG} AS INTEGER) / 2",
    f"{BIG} / 3",
    f"SQRT({BIG})",
    "LN(0 - COUNT(*))",
    "COUNT(*) / 0",
    "POWER(0 - COUNT(*), 0.5)",
    "MOD(COUNT(*), 0)",
]


@pytest.mark.parametrize("expression", WITHOUT_VALUE)
def test_what_has_no_value_is_missing_and_never_a_failure(expression: str) -> None:
    assert rows_of(f"SELECT {expression} AS z FROM d") == [{"z": None}]
    assert rows_of(f"SELECT COUNT(*) AS n FROM d HAVING {expression} > 0 OR COUNT(*) > 0") == [{"n": 4}]


@pytest.mark.parametrize(
    "written", ["TIMESTAMP '2020-01-02 10:00'", "CAST('2020-01-02 10:00:00' AS DATETIME)", "'2020-01-02 10:00'"]
)
def test_moments_are_written_in_the_usual_ways(written: str) -> None:
    assert rows_of(f"SELECT COUNT(*) AS n FROM d WHERE at > {written}") == [{"n": 2}]


def test_dates_are_cast_to_moments_and_zones_are_refused() -> None:
    assert rows_of("SELECT COUNT(*) AS n FROM d WHERE CAST(day AS TIMESTAMP) > TIMESTAMP '2020-01-30 23:59'") == [{"n": 3}]
    with pytest.raises(Unsupported, match="time zone"):
        asked().sql("SELECT COUNT(*) AS n FROM d WHERE at > TIMESTAMP '2020-01-02 10:00Z'", epsilon=1)


def test_texts_of_keys_are_read_as_the_key_holds_them() -> None:
    by_zip = "SELECT zip, COUNT(*) AS n FROM d GROUP BY zip ORDER BY zip"
    assert rows_of(by_zip, keys={"zip": ["8001", "8002"]}) == [{"zip": "8001", "n": 2}, {"zip": "8002", "n": 1}]
    by_k = "SELECT k, COUNT(*) AS n FROM d GROUP BY k ORDER BY k"
    assert rows_of(by_k, keys={"k": ["2", "02", "3"]}) == [{"k": 2, "n": 2}, {"k": 3, "n": 1}]
    by_day = "SELECT day, COUNT(*) AS n FROM d GROUP BY day"
    assert rows_of(by_day, keys={"day": ["2020-01-31"]}) == [{"day": DAYS[1], "n": 3}]
    for values in (["2", "x"], [2, "3"], ["2.5"]):
        with pytest.raises(Unsupported, match="holds an integer"):
            asked().sql(by_k, epsilon=1, keys={"k": values})
