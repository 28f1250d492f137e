"""What an engine refuses whoever is in the table is refused before a question is charged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import SourceError
from sfumato.engines.write import write_table

SCHEMA = {
    "dataset": "visits",
    "columns": {
        "city": {"role": "quasi", "type": "string", "domain": ["Bonn", "Ulm", 'O"Hara\\', "Trier"]},
        "ward": {"role": "plain", "type": "integer"},
    },
}
ROWS = pa.table({"city": ["Bonn"] * 300 + ["Ulm"] * 500 + ['O"Hara\\'] * 200, "ward": [1, 2] * 500})
WARDS = pa.table({"ward": [1, 2], "floor": ["first", "second"]})
QUERY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
JOINED = "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor"


@pytest.fixture
def reader(postgres_url: str) -> Iterator[str]:
    """The URL of a role that may read one table and create nothing, not even temporary tables."""
    write_table(ROWS, postgres_url, table_name="visits", overwrite=True)
    write_table(ROWS, postgres_url, table_name="hidden", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE looker LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        connection.execute("ALTER ROLE looker SET default_transaction_read_only = on")
        connection.execute("GRANT SELECT ON visits TO looker")
        connection.execute("GRANT SELECT (ward) ON hidden TO looker")
        connection.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
        try:
            yield postgres_url.replace("postgres:@", "looker:@")
        finally:
            connection.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")


def spent(session: sf.Session) -> float:
    left = session.remaining()
    assert left is not None
    return 1.0 - float(left.epsilon or 0)


@pytest.mark.postgres
def test_a_reader_without_temporary_tables_gets_grouped_answers(reader: str) -> None:
    session = sf.Session(sf.read(reader, SCHEMA, table="visits"), budget=sf.PureDP(1.0), seed=3)
    answer = session.sql(QUERY, epsilon=0.9).table
    found = dict(zip(answer.column("city").to_pylist(), answer.column("n").to_pylist(), strict=True))
    assert set(found) == {"Bonn", "Ulm", 'O"Hara\\', "Trier"}
    for city, count in {"Bonn": 300, "Ulm": 500, 'O"Hara\\': 200, "Trier": 0}.items():
        assert abs(found[city] - count) < 40


@pytest.mark.postgres
def test_a_reader_without_temporary_tables_joins_public_ones(reader: str) -> None:
    private = {"visits": sf.read(reader, SCHEMA, table="visits")}
    session = sf.Session(private, public={"wards": WARDS}, budget=sf.PureDP(1.0), seed=3)
    answer = session.sql(JOINED, epsilon=0.9).table
    assert sorted(answer.column("floor").to_pylist()) == ["first", "second"]
    assert all(abs(count - 500) < 40 for count in answer.column("n").to_pylist())


@pytest.mark.postgres
def test_a_right_that_is_missing_costs_nothing(reader: str) -> None:
    session = sf.Session({"visits": sf.read(reader, SCHEMA, table="hidden")}, budget=sf.PureDP(1.0), seed=3)
    with pytest.raises(SourceError, match="42501"):
        session.sql(QUERY, epsilon=0.5)
    assert spent(session) == 0
    assert session.sql("SELECT COUNT(*) AS n FROM visits WHERE ward = 1", epsilon=0.5).table.num_rows == 1
    assert spent(session) == 0.5


@pytest.mark.postgres
def test_a_right_that_is_missing_costs_no_artefact(reader: str) -> None:
    session = sf.Session({"visits": sf.read(reader, SCHEMA, table="hidden")}, budget=sf.PureDP(1.0), seed=3)
    with pytest.raises(SourceError, match="42501"):
        session.release(sf.dp.PrivateHistogram(("city",), epsilon=0.5))
    assert spent(session) == 0
    readable = sf.Session({"visits": sf.read(reader, SCHEMA, table="visits")}, budget=sf.PureDP(1.0), seed=3)
    assert readable.release(sf.dp.PrivateHistogram(("city",), epsilon=0.5)).result is not None
    assert spent(readable) == 0.5


@pytest.mark.postgres
def test_a_table_that_is_gone_costs_nothing(postgres_url: str) -> None:
    write_table(ROWS, postgres_url, table_name="passing", overwrite=True)
    session = sf.Session({"visits": sf.read(postgres_url, SCHEMA, table="passing")}, budget=sf.PureDP(1.0), seed=3)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE passing")
    with pytest.raises(SourceError, match="42P01"):
        session.sql(QUERY, epsilon=0.5)
    assert spent(session) == 0


def test_a_file_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(ROWS, path)
    session = sf.Session(sf.read(path, SCHEMA, engine="duckdb"), budget=sf.PureDP(1.0), seed=3)
    path.unlink()
    with pytest.raises(SourceError, match="could not be read by DuckDB"):
        session.sql(QUERY, epsilon=0.5)
    assert spent(session) == 0


def test_a_read_only_database_file_answers(tmp_path: Path) -> None:
    path = tmp_path / "visits.duckdb"
    write_table(ROWS, path, table_name="visits")
    path.chmod(0o444)
    session = sf.Session(sf.read(path, SCHEMA, table="visits"), budget=sf.PureDP(1.0), seed=3)
    assert session.sql(QUERY, epsilon=0.5).table.num_rows == 4
