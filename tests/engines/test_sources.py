"""`read` opens every kind of source with its schema, and says what is wrong all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import MissingColumn, ParameterError, SchemaError, SourceError
from sfumato.data.schema import Column, Schema
from sfumato.engines.sources import read
from sfumato.engines.write import write_table
from tests.engines.tables import rows

TABLE = pa.table({"zip": ["01234", "02345", None], "age": [34, 51, 34], "country": ["NO", "FI", "NO"]})
CSV = "zip,age,country\n01234,34,NO\n02345,51,FI\n,34,NO\n"
SCHEMA = """
dataset = "people"
[columns.zip]
role = "quasi"
[columns.age]
role = "quasi"
type = "integer"
[columns.country]
role = "sensitive"
"""


def write(folder: Path, kind: str) -> Any:
    path = folder / f"people.{kind}"
    if kind in ("csv", "tsv"):
        path.write_text(CSV.replace(",", "\t") if kind == "tsv" else CSV)
    elif kind == "parquet":
        pq.write_table(TABLE, path)
    elif kind in ("arrow", "feather"):
        pyarrow.feather.write_feather(TABLE, str(path))
    elif kind == "xlsx":
        TABLE.to_pandas().to_excel(path, index=False)
    elif kind == "dta":
        TABLE.to_pandas().to_stata(path, write_index=False)
    elif kind == "duckdb":
        write_table(TABLE, path, table_name="people")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "arrow", "feather", "xlsx", "duckdb"])
def test_files_of_every_kind(tmp_path: Path, kind: str) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA)
    people = read(str(write(tmp_path, kind)), tmp_path / "s.toml")
    assert rows(people.table()) == rows(TABLE)
    assert people.schema.dataset == "people"
    assert people.schema.quasi == ("zip", "age")
    assert people.description.startswith(f"people.{kind}")
    assert people.relation.engine == ("duckdb" if kind == "duckdb" else "memory")


@pytest.mark.parametrize(
    "frame",
    [
        TABLE,
        TABLE.to_reader(),
        TABLE.to_pandas(),
        polars.from_arrow(TABLE),
        polars.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    ],
    ids=["arrow", "reader", "pandas", "polars", "lazy"],
)
def test_frames_of_every_kind(frame: Any) -> None:
    people = read(frame, {"dataset": "people", "columns": {"zip": {"role": "quasi"}}})
    assert rows(people.table()) == rows(TABLE)
    assert people.relation.engine == "memory"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_left_on_disk_reads_the_same(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    lazy = read(path, engine="duckdb", threads=1)
    assert lazy.relation.engine == "duckdb"
    assert lazy.relation.schema() == read(path).relation.schema()
    assert rows(lazy.table()) == rows(TABLE)


def test_without_a_schema_every_column_is_plain(tmp_path: Path) -> None:
    for source in (write(tmp_path, "csv"), write(tmp_path, "duckdb")):
        people = read(source)
        assert people.schema.dataset == "people"
        assert people.schema.with_role("plain") == ("zip", "age", "country")
        assert [column.type for column in people.schema.columns.values()] == ["string", "integer", "string"]
    assert read(pandas.DataFrame({"a": [1]})).schema.dataset == "unnamed"


def test_all_columns_that_the_data_lack_are_named(tmp_path: Path) -> None:
    schema = Schema.of("people", quasi=["Zip", "agge"], sensitive=["country"])
    for source in (write(tmp_path, "csv"), write(tmp_path, "duckdb"), TABLE):
        with pytest.raises(MissingColumn) as caught:
            read(source, schema)
        assert "'Zip'" in str(caught.value) and "'agge'" in str(caught.value) and "nearest: 'age'" in str(caught.value)


def test_database_tables(tmp_path: Path) -> None:
    path = write(tmp_path, "duckdb")
    write_table(TABLE.slice(0, 1), path, table_name="other")
    with pytest.raises(SourceError, match="other, people"):
        read(path)
    assert len(read(path, table="other")) == 1
    renamed = path.rename(tmp_path / "people.sqlite3")
    assert len(read(renamed, table="people")) == 3  # recognised by its content


def test_declared_types_apply_wherever_the_table_is(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1234 AS zip, '-9' AS n UNION ALL SELECT 999, '3'")
    schema = Schema(
        dataset="d",
        columns={
            "zip": Column(role="quasi", type="string"),
            "n": Column(role="quasi", type="integer", missing=("-9",)),
        },
    )
    expected = sorted([("1234", None), ("999", 3)])
    assert rows(read(path, schema).table()) == expected
    in_memory = read(path, schema, engine="memory")
    assert in_memory.relation.engine == "memory"
    assert rows(in_memory.table()) == expected


@pytest.mark.postgres
def test_a_postgres_table(postgres_url: str) -> None:
    write_table(TABLE, postgres_url, table_name="sources people", overwrite=True)
    people = read(postgres_url, SCHEMA_MAPPING, table="sources people")
    assert people.relation.engine == "postgres"
    assert people.description == "postgresql://local/postgres, table sources people"
    assert rows(people.table()) == rows(TABLE)
    here = read(postgres_url, table="sources people", engine="memory")
    assert here.relation.engine == "memory"
    assert here.schema.dataset == "sources people"


SCHEMA_MAPPING = {"dataset": "people", "columns": {"age": {"role": "quasi", "type": "number"}}}


@pytest.mark.spark
def test_spark_frames_and_tables(spark: Any) -> None:
    frame = spark.createDataFrame([("01234", 34), (None, 51)], "zip STRING, age INT")
    people = read(frame, {"dataset": "d", "columns": {"age": {"role": "quasi"}}})
    assert people.relation.engine == "spark"
    assert rows(people.table()) == sorted([("01234", 34), (None, 51)], key=repr)
    frame.createOrReplaceTempView("people_for_sfumato")
    assert len(read("people_for_sfumato", engine="spark")) == 2
    assert len(read("people_for_sfumato", engine="spark", session=spark)) == 2
    with pytest.raises(SourceError, match="no table"):
        read("nowhere", engine="spark")
    assert not [t for t in spark.catalog.listTables() if t.name.startswith("sfumato_")]


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("mysql://u:p@host/db", {}, SourceError, "mysql://"),
        ("nowhere.csv", {}, SourceError, "nowhere.csv"),
        ("nowhere.duckdb", {}, SourceError, "nowhere.duckdb"),
        (TABLE, {"engine": "oracle"}, ParameterError, "oracle"),
        (TABLE, {"engine": "duckdb"}, SourceError, "in memory"),
        (TABLE, {"engine": "postgres"}, SourceError, "URL"),
        (TABLE, {"engine": "spark"}, SourceError, "Spark DataFrame"),
        (TABLE, {"seperator": ";"}, ParameterError, "seperator"),
        (object(), {}, SourceError, "not a table"),
        (TABLE, {"schema": {"dataset": "d", "colums": {}}}, SchemaError, "colums"),
        (TABLE, {"schema": "nowhere.toml"}, SchemaError, "nowhere.toml"),
    ],
)
def test_what_cannot_be_opened_is_one_clear_error(
    source: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        read(source, **options)
    assert "u:p@" not in str(caught.value)


def test_a_table_name_is_refused_for_a_file(tmp_path: Path) -> None:
    for engine in (None, "duckdb"):
        with pytest.raises(SourceError, match="one table"):
            read(write(tmp_path, "csv"), table="x", engine=engine)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"separator": 3}, "separator is one ASCII character"),
        ({"separator": 3, "engine": "duckdb"}, "separator is one ASCII character"),
        ({"encoding": 3}, "encoding is the name"),
        ({"strip": "yes"}, "strip is True or False"),
        ({"sheet": [1]}, "sheet is the name or number"),
        ({"threads": "two", "engine": "duckdb"}, "threads is a whole number"),
        ({"threads": 0, "engine": "duckdb"}, "threads is a whole number"),
        ({"memory_limit": "much", "engine": "duckdb"}, "memory_limit is an amount"),
    ],
)
def test_a_wrong_option_is_not_called_a_damaged_file(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ParameterError, match=said):
        read(tmp_path / "p.csv", **options)


def test_right_options_are_taken(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a;b\n1;2\n")
    for limit in ("200MB", "1.5 GiB", "300000kb", "1g", "-1", None):
        assert len(read(tmp_path / "p.csv", engine="duckdb", separator=";", threads=1, memory_limit=limit)) == 1
    assert len(read(tmp_path / "p.csv", separator=";", encoding="utf-8", strip=True, sheet=None)) == 1
