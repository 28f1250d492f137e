"""PostgreSQL reads stored values as other engines do, and no stored value makes it fail."""

from __future__ import annotations

import datetime
import itertools
import math
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import sfumato as sf
from sfumato.engines.sources import read
from sfumato.engines.sql.relation import lenient

pytestmark = pytest.mark.postgres
_NUMBERS = itertools.count()


def stored(url: str, kind: str, texts: list[str]) -> str:
    """A table with numbered texts in a column of a type; returns its name."""
    name = f"conversion{next(_NUMBERS)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (n INT, x {kind})".encode())
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES (%s, %s::text::{kind})".encode(), list(enumerate(texts)))
    return name


def on_postgres(url: str, kind: str, texts: list[str], declared: str) -> list[Any]:
    schema = {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": {"type": declared}}}
    relation = lenient(read(url, table=stored(url, kind, texts), schema=schema).relation)
    return _in_order(relation)


def on_duckdb(folder: Path, texts: list[str], declared: str) -> list[Any]:
    path = folder / f"texts{next(_NUMBERS)}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (n INT, x TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(texts)))
    schema = {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": {"type": declared}}}
    return _in_order(lenient(read(path, table="t", schema=schema).relation))


def _in_order(relation: Any) -> list[Any]:
    rows = [row for batch in relation.batches() for row in batch.to_pylist()]
    return [row["x"] for row in sorted(rows, key=lambda row: row["n"])]


def _date(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


DAYS = [
    f"{year:04}-{month:02}-{day:02}"
    for year in (1, 4, 100, 400, 1600, 1900, 1996, 2000, 2023, 2024, 2100, 9996, 9999)
    for month in range(14)
    for day in (0, 1, 9, 10, 28, 29, 30, 31, 32)
] + ["0000-01-01", "0000-02-29"]


def test_a_text_is_a_date_exactly_where_the_calendar_has_that_day(postgres_url: str) -> None:
    expected = [_date(text) for text in DAYS]
    assert on_postgres(postgres_url, "text", DAYS, "date") == expected
    midnights = [None if day is None else datetime.datetime.combine(day, datetime.time()) for day in expected]
    assert on_postgres(postgres_url, "text", DAYS, "datetime") == midnights


TEXTS = {
    "boolean": ["true", "TRUE", "True", "t", "T", "yes", "YES", "y", "1", "false", "False", "f", "no", "N", "0", "", "2", "maybe"]
    + ["\u0130", "ye\u017f", "tr", "on", "truefalse"],
    "number": ["1", "-2.5", "1e5", "1E-5", ".5", "5.", "+5", "1e150", "1e308", "-1e308", "1e309", "-1e400", "1e-330", "5e-324"]
    + ["1e-400", "1e9999", "inf", "-inf", "Infinity", "nan", "NaN", "e5", "1e", "--1", "", "0x", "1,5", "9" * 500, "\u0661"]
    + [
        "\u20031",
        "1\u00a0",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "0.1",
        "123456789012345678",
        "2.5e-324",
        "2.4e-324",
    ],
    "integer": ["0", "-1", "+7", "007", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "7.0", "", "x"]
    + ["1" * 30, "1" * 40, "\u0661", "\u20037"],
    "datetime": ["2024-02-29 23:59:59", "2024-02-29T01:02", "2024-01-31 10:00:00.5", "2024-01-31 10:00:00.1234569", "2024-01-31"]
    + ["2024-01-31T10:00:00Z", "2023-02-29 10:00", "2024-01-31 25:00", "2024-01-31 10:61", "2024-01-31 10:00:60", "", "now"]
    + ["infinity", "today", "2024-01-31 10:00:00 PM", "yesterday", "epoch", "allballs"],
    "date": [
        "2024-1-31",
        "2024-01-31 10:00",
        "2024-04-31",
        "",
        "now",
        "infinity",
        "today",
        "epoch",
        "31-01-2024",
        "January 8, 1999",
    ],
}


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_are_read_as_on_duckdb(postgres_url: str, tmp_path: Path, kind: str) -> None:
    ours, theirs = on_postgres(postgres_url, "text", TEXTS[kind], kind), on_duckdb(tmp_path, TEXTS[kind], kind)
    # DuckDB's own words for moments are read by no other engine.
    odd = {"infinity", "epoch", "now", "today", "yesterday"}
    assert [pair for pair in zip(TEXTS[kind], ours, strict=True) if pair[0] not in odd] == [
        pair for pair in zip(TEXTS[kind], theirs, strict=True) if pair[0] not in odd
    ]
    assert all(value is None for text, value in zip(TEXTS[kind], ours, strict=True) if text in odd)


DECIMALS = ["3", "1e400", "-1e400", "1e-400", "-1e-400", "NaN", "Infinity", "-Infinity", "0.1", "5e-324", "2.4e-324", "1e308"]
DECIMALS += ["1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", str(2**1024 - 2**970), str(2**1024)]


def test_decimals_are_the_nearest_numbers_and_never_fail(postgres_url: str) -> None:
    expected = [None if math.isnan(float(text)) else float(text) for text in DECIMALS]
    assert on_postgres(postgres_url, "numeric", DECIMALS, "number") == expected


def test_a_decimal_unit_that_is_no_number_is_missing(postgres_url: str) -> None:
    name = stored(postgres_url, "numeric(12, 0)", ["1", "2", "NaN"])
    schema = {"dataset": "d", "columns": {"x": {"role": "unit"}, "n": {"type": "integer", "bounds": [0, 9]}}}
    session = sf.Session(read(postgres_url, table=name, schema=schema), budget=sf.PureDP(10**9), max_rows=1, max_groups=1)
    answer = session.sql("SELECT COUNT(DISTINCT x) AS u, COUNT(*) AS n FROM d", epsilon=10**6).table.to_pylist()
    assert answer == [{"u": 2, "n": 2}]


def test_whether_a_question_is_answered_does_not_depend_on_a_decimal(postgres_url: str) -> None:
    name = stored(postgres_url, "numeric", ["1", "2", "1e400", "NaN", "1e-400"])
    schema = {"dataset": "d", "columns": {"n": {"type": "integer"}, "x": {"type": "number", "bounds": [0, 10]}}}
    session = sf.Session(read(postgres_url, table=name, schema=schema), budget=sf.PureDP(10**9))
    answer = session.sql("SELECT COUNT(x) AS c, SUM(x) AS s FROM d", epsilon=10**6).table.to_pylist()[0]
    assert answer["c"] == 4 and answer["s"] == pytest.approx(13, abs=0.01)
