"""Dates outside the years 1 to 9999, which engines store and no release can hold, are refused before anything is written."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import sfumato as sf
from sfumato.core.errors import SourceError
from sfumato.data.microdata import Microdata
from sfumato.engines import date_limits
from sfumato.engines.snapshots import one_state, read_once
from sfumato.engines.sql.relation import lenient

_NUMBERS = itertools.count()
#: Types and values as SQL writes them; Spark has no infinite ones, and no calendar before the year 1.
ON_DUCKDB = {
    "date": ["infinity", "-infinity", "0044-03-15 (BC)", "10000-01-01"],
    "timestamp": ["infinity", "0044-03-15 (BC) 10:00:00", "10000-01-01 00:00:00"],
    "timestamptz": ["-infinity", "12000-01-01 00:00:00+00"],
}
ON_POSTGRES = {
    "date": ["infinity", "-infinity", "0044-03-15 BC", "10000-01-01"],
    "timestamp": ["infinity", "0044-03-15 10:00:00 BC", "10000-01-01 00:00:00"],
    "timestamptz": ["-infinity", "12000-01-01 00:00:00+00"],
}

Opened = Callable[[str, str, str], Microdata]  # of a type, a value and a role


def _schema(role: str) -> dict[str, Any]:
    return {"dataset": "d", "columns": {"age": {"role": "quasi"}, "seen": {"role": role}, "value": {}}}


def _statements(kind: str, value: str) -> list[str]:
    return [
        f"CREATE TABLE people (age INTEGER, seen {kind}, value INTEGER)",
        "INSERT INTO people SELECT i % 5, DATE '2020-01-01', i FROM generate_series(1, 40) AS g(i)",
        f"INSERT INTO people VALUES (1, '{value}', 7), (2, '9999-12-31', 8), (3, '0001-01-01', 9), (4, NULL, 10)",
    ]


def _duckdb(folder: Path, kind: str, value: str, role: str) -> Microdata:
    path = folder / f"dates{next(_NUMBERS)}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in _statements(kind, value):
            connection.execute(statement)
    return sf.read(path, table="people", schema=_schema(role))


def _postgres(url: str, kind: str, value: str, role: str) -> Microdata:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS people")
        for statement in ("SET TimeZone = 'UTC'", *_statements(kind, value)):
            connection.execute(statement.encode())
    return sf.read(url, table="people", schema=_schema(role))


def _refused_everywhere(opened: Callable[[str], Microdata], folder: Path) -> None:
    """By searches and masks, whether the engine writes the rows or not."""
    words = "column 'seen' has 1 of 43 dates outside the years 1 to 9999"
    for number, role in enumerate(("plain", "quasi")):
        data = opened(role)
        place = folder / f"out{number}"
        for destination in ({}, {"destination": place}):
            with pytest.raises(SourceError, match=words):
                sf.protect(data, sf.KAnonymity(2), **destination)  # type: ignore[arg-type]
            with pytest.raises(SourceError, match=words):
                sf.mask(data, sf.RankSwapping(p=20, columns=("value",)), **destination)
        assert not place.exists() and [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
        with pytest.raises(SourceError, match=words):
            read_once(data)
        kept = Microdata(lenient(data.relation), data.schema, data.description)
        with one_state(kept) as held:
            assert len(held) == 44


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in ON_DUCKDB.items() for value in values])
def test_on_duckdb(tmp_path: Path, kind: str, value: str) -> None:
    _refused_everywhere(lambda role: _duckdb(tmp_path, kind, value, role), tmp_path)


@pytest.mark.postgres
@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, values in ON_POSTGRES.items() for value in values])
def test_on_postgres(postgres_url: str, tmp_path: Path, kind: str, value: str) -> None:
    _refused_everywhere(lambda role: _postgres(postgres_url, kind, value, role), tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
def test_on_spark(spark: Any, tmp_path: Path, kind: str) -> None:
    dates = "CASE id WHEN 41 THEN date_add(DATE'9999-12-31', 5) WHEN 42 THEN DATE'9999-12-31' WHEN 43 THEN DATE'0001-01-01' "
    frame = spark.sql(
        f"SELECT CAST(id % 5 AS INT) AS age, CAST({dates} WHEN 44 THEN NULL ELSE DATE'2020-01-01' END AS {kind}) AS seen, "
        "CAST(id AS INT) AS value FROM range(1, 45)"
    )
    _refused_everywhere(lambda role: sf.read(frame, schema=_schema(role)), tmp_path)


@pytest.mark.postgres
def test_a_table_brought_here_is_refused_unless_such_dates_are_to_be_missing(postgres_url: str) -> None:
    _postgres(postgres_url, "date", "infinity", "plain")
    with pytest.raises(SourceError, match="1 of 43 dates"):
        sf.read(postgres_url, table="people", schema=_schema("plain"), engine="memory")
    people = sf.read(postgres_url, table="people", schema=_schema("plain"), engine="memory", unreadable="missing")
    assert people.table()["seen"].null_count == 2


@pytest.mark.parametrize("kind", ON_DUCKDB)
def test_a_folder_with_such_a_date_is_said_to_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(date_limits, "refuse_other_years", lambda relation: None)
    data = _duckdb(tmp_path, kind, ON_DUCKDB[kind][0], "plain")
    sf.protect(data, sf.KAnonymity(2), destination=tmp_path / "out")
    findings = [finding.text for finding in sf.verify(tmp_path / "out").findings if finding.passed is False]
    assert findings and all("'seen' has dates outside the years 1 to 9999" in text for text in findings)


def test_the_ends_of_the_calendar_are_published(tmp_path: Path) -> None:
    data = _duckdb(tmp_path, "date", "2024-02-29", "plain")
    sf.protect(data, sf.KAnonymity(2), destination=tmp_path / "out")
    assert sf.verify(tmp_path / "out").accepted
