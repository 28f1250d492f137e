"""The same release, whichever engine holds the rows, and the way back into databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.data.microdata import Microdata
from sfumato.data.writers import write_file
from tests.workflow.people import people, release, schema, table

WANTED = [sf.KAnonymity(5), sf.DistinctLDiversity(2, "disease")]


def same_release(data: Microdata, method: Any) -> None:
    mine = sf.protect(people(), WANTED, method, seed=1)
    theirs = sf.protect(data, WANTED, method, seed=1)
    assert theirs.data.schema.equals(mine.data.schema)
    assert theirs.data.equals(mine.data)
    assert theirs.certificate.measured == mine.certificate.measured
    assert theirs.certificate.files == mine.certificate.files
    assert theirs.scores == pytest.approx(mine.scores)
    assert theirs.certificate.fingerprint == mine.certificate.fingerprint


METHODS = [sf.Lattice(suppression=0.05), sf.LocalRecoding(), sf.Mondrian(ranges_everywhere=True)]


@pytest.mark.covering
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_in_duckdb(tmp_path: Path, ending: str, method: Any) -> None:
    write_file(table(), tmp_path / f"people.{ending}")
    same_release(sf.read(tmp_path / f"people.{ending}", schema(), engine="duckdb"), method)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.postgres
def test_postgres(postgres_url: str, method: Any) -> None:
    from sfumato.engines.write import write_table

    write_table(table(), postgres_url, table_name="clinic_people", overwrite=True)
    same_release(sf.read(postgres_url, schema(), table="clinic_people"), method)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.spark
def test_spark(spark: Any, method: Any) -> None:
    same_release(sf.read(spark.createDataFrame(table().to_pandas()), schema()), method)


def test_frames() -> None:
    import polars

    same_release(sf.read(polars.from_arrow(table()), schema()), METHODS[0])
    same_release(sf.read(table().to_pandas(), schema()), METHODS[0])


def test_a_release_is_written_into_duckdb(tmp_path: Path) -> None:
    made = release()
    made.write(tmp_path / "out.duckdb", table_name="people")
    back = sf.read(tmp_path / "out.duckdb", table="people").table()
    assert back.num_rows == len(made)
    with pytest.raises(sf.core.errors.SfumatoError):
        made.write(tmp_path / "out.duckdb", table_name="people")
    made.write(tmp_path / "out.duckdb", table_name="people", overwrite=True)


@pytest.mark.postgres
def test_a_release_is_written_into_postgres(postgres_url: str) -> None:
    made = release()
    made.write(postgres_url, table_name="published_people", overwrite=True)
    assert len(sf.read(postgres_url, table="published_people")) == len(made)
