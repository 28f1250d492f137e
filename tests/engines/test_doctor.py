"""`doctor` says what an engine can do here, for roles with few rights as well, and shows neither a password nor a value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.main import run
from sfumato.core.errors import ParameterError, SourceError
from sfumato.engines.write import write_table

ROWS = pa.table({"city": ["Canary-Bonn", "Canary-Ulm"], "ward": [1, 2]})


def states(diagnosis: Any) -> dict[str, str]:
    return {finding.what: finding.state for finding in diagnosis}


def test_a_file_and_a_folder_that_can_be_written(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    diagnosis = sf.doctor(tmp_path / "visits.parquet", destination=tmp_path / "new" / "out")
    assert diagnosis.usable and diagnosis.engine == "duckdb"
    assert states(diagnosis)["snapshot"] == "kept" and diagnosis["destination"].state in ("kept", "warning")
    assert "Canary" not in str(diagnosis)
    assert not (tmp_path / "new").exists()


def test_a_database_file_lists_how_many_tables_it_has(tmp_path: Path) -> None:
    write_table(ROWS, tmp_path / "shop.duckdb", table_name="one")
    write_table(ROWS, tmp_path / "shop.duckdb", table_name="two")
    assert "2 tables; name one" in sf.doctor(tmp_path / "shop.duckdb")["table"].text
    assert sf.doctor(tmp_path / "shop.duckdb", table="one")["table"].text == "2 columns"
    missing = sf.doctor(tmp_path / "shop.duckdb", table="three")
    assert not missing.usable and "three" in str(missing)


@pytest.mark.parametrize("content", [None, b"PAR1 this is no table"])
def test_what_cannot_be_opened_fails_and_the_command_says_so_by_its_exit_code(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "visits.parquet"
    if content is not None:
        path.write_bytes(content)
    assert not sf.doctor(path).usable
    assert run(["doctor", str(path)]) == 1


def test_a_destination_that_cannot_be_written_fails(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    diagnosis = sf.doctor(tmp_path / "visits.parquet", destination=tmp_path / "visits.parquet" / "out")
    assert diagnosis["destination"].state == "failed" and not diagnosis.usable


def test_json_is_what_python_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    assert run(["doctor", str(tmp_path / "visits.parquet"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["usable"] is True and facts["engine"] == "duckdb"
    assert [finding["what"] for finding in facts["findings"]] == [f.what for f in sf.doctor(tmp_path / "visits.parquet")]


def test_what_is_no_engine_is_refused() -> None:
    with pytest.raises(ParameterError, match="doctor looks at"):
        sf.doctor(3)
    with pytest.raises(SourceError, match="not supported"):
        sf.doctor("mysql://user:secret@host/db")


def test_a_server_that_is_not_there_is_one_finding_without_the_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "postgresql://somebody:canary-secret@127.0.0.1:9/nowhere"]) == 1
    shown = capsys.readouterr()
    assert "cannot connect" in shown.out
    assert "canary-secret" not in shown.out + shown.err and "somebody" not in shown.out + shown.err


@pytest.fixture
def reader(postgres_url: str) -> Iterator[str]:
    """A role that may read one table: read-only, without temporary tables."""
    write_table(ROWS, postgres_url, table_name="doctor_visits", overwrite=True)
    write_table(ROWS, postgres_url, table_name="doctor_hidden", overwrite=True)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DO $$ BEGIN CREATE ROLE patient LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        connection.execute("ALTER ROLE patient SET default_transaction_read_only = on")
        connection.execute("ALTER ROLE patient SET statement_timeout = '5s'")
        connection.execute("GRANT SELECT ON doctor_visits TO patient")
        connection.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
        try:
            yield postgres_url.replace("postgres:@", "patient:@")
        finally:
            connection.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")


@pytest.mark.postgres
def test_the_owner_of_a_database_may_do_everything(postgres_url: str) -> None:
    write_table(ROWS, postgres_url, table_name="doctor_owned", overwrite=True)
    diagnosis = sf.doctor(postgres_url, table="doctor_owned", destination=postgres_url)
    assert diagnosis.usable and set(states(diagnosis).values()) == {"kept"}


@pytest.mark.postgres
def test_a_reader_is_warned_and_may_ask(reader: str) -> None:
    diagnosis = sf.doctor(reader, table="doctor_visits")
    assert diagnosis.usable
    named = states(diagnosis)
    assert (named["table"], named["snapshot"]) == ("kept", "kept")
    assert (named["temporary tables"], named["write access"], named["time-out"]) == ("warning", "warning", "warning")
    assert "5 s" in diagnosis["time-out"].text and "GRANT TEMPORARY" in diagnosis["temporary tables"].advice
    assert "patient" not in str(diagnosis) and "Canary" not in str(diagnosis)


@pytest.mark.postgres
def test_a_table_that_may_not_be_read_and_a_place_that_may_not_be_written_fail(reader: str) -> None:
    diagnosis = sf.doctor(reader, table="doctor_hidden", destination=reader)
    assert {what for what, state in states(diagnosis).items() if state == "failed"} == {"table", "destination"}
    assert not sf.doctor(reader, table="not_there").usable


@pytest.mark.spark
def test_a_spark_session_says_its_kind_and_what_it_can_do(spark: Any) -> None:
    diagnosis = sf.doctor(spark)
    named = states(diagnosis)
    assert diagnosis.usable and (named["version"], named["reachable"], named["snapshot"]) == ("kept", "kept", "kept")
    assert named["spill"] == "warning" and "spark.io.encryption.enabled" in diagnosis["spill"].advice
    assert "neither Delta nor Iceberg" in diagnosis["table formats"].text
    assert not sf.doctor(spark, table="not_there").usable
    assert sf.doctor(spark.range(3)).engine == "spark"
