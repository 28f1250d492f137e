"""Several tables of one engine are joined where they are; tables of different engines are not."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.errors import Unsupported
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.class_queries import ROWS
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.memory import MemoryRelation
from tests.engines.conftest import OpenTable
from tests.engines.tables import rows

VISITS = pa.table({"who": [1, 1, 2, None, 3], "cost": [10, 20, 30, 40, 50]})
PEOPLE = pa.table({"id": [1, 2, None, 4], "Name": ["Ada", "Bo", "nobody", "Di"]})
VISIT_SCAN = p.Scan(ROWS, (p.Field("who", "integer"), p.Field("cost", "integer")))
PEOPLE_SCAN = p.Scan("people", (p.Field("id", "integer"), p.Field("Name", "string")))


@pytest.mark.parametrize(
    ("nulls", "kind", "expected"),
    [
        ("drop", "inner", [("Ada", 10), ("Ada", 20), ("Bo", 30)]),
        ("drop", "left", [("Ada", 10), ("Ada", 20), ("Bo", 30), (None, 40), (None, 50)]),
        ("match", "inner", [("Ada", 10), ("Ada", 20), ("Bo", 30), ("nobody", 40)]),
    ],
)
def test_tables_are_joined_in_place(on_engine: OpenTable, nulls: Any, kind: Any, expected: list[Any]) -> None:
    visits: Any = on_engine(VISITS)
    people = on_engine(PEOPLE)
    joined = p.Join(VISIT_SCAN, PEOPLE_SCAN, (("who", "id"),), kind, nulls)
    plan = p.Project(joined, (p.column("Name"), p.column("cost")))
    assert rows(visits.run(plan, None, {"people": people})) == sorted(expected, key=repr)
    assert rows(visits.run(plan, beside={"people": people})) == sorted(expected, key=repr)  # once more, on what is kept open


def test_contributions_are_bounded_over_a_join_with_uploaded_keys(on_engine: OpenTable) -> None:
    visits: Any = on_engine(VISITS)
    joined = p.Join(VISIT_SCAN, PEOPLE_SCAN, (("who", "id"),), nulls="drop")
    bounded = p.BoundedGroup(joined, "who", ("Name",), (), 1, 1, (p.AggregateColumn("rows", "count"),), (), "salt")
    filled = p.Join(p.Scan("keys", (p.Field("key", "string"),)), bounded, (("key", "Name"),), "left")
    answer = visits.run(filled, {"keys": pa.table({"key": ["Ada", "Bo", "Cy"]})}, {"people": on_engine(PEOPLE)})
    assert rows(answer) == [("Ada", 1), ("Bo", 1), ("Cy", None)]


def test_tables_of_another_engine_are_refused(on_engine: OpenTable, tmp_path: Path) -> None:
    relation: Any = on_engine(VISITS)
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    other = DuckDBRelation(tmp_path / "people.parquet") if relation.engine == "memory" else MemoryRelation(PEOPLE)
    plan = p.Join(VISIT_SCAN, PEOPLE_SCAN, (("who", "id"),))
    with pytest.raises(Unsupported, match="'people'.*one engine"):
        relation.run(plan, beside={"people": other})


def test_fields_say_what_a_relation_holds(on_engine: OpenTable) -> None:
    relation: Any = on_engine(PEOPLE)
    assert {name: field.kind for name, field in relation.fields.items()} == {"id": "integer", "Name": "string"}


def test_databases_and_files_of_duckdb_mix(tmp_path: Path) -> None:
    pq.write_table(VISITS, tmp_path / "visits.parquet")
    folders = [tmp_path / "one", tmp_path / "other"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        with duckdb.connect(str(folder / "my db.duckdb")) as connection:  # two files of one name
            connection.execute(f"CREATE TABLE people AS SELECT * FROM (VALUES ({number + 1}, 'name {number}')) t(id, \"Name\")")
            connection.execute("CREATE VIEW everybody AS SELECT * FROM people")
            connection.execute("CREATE TABLE visits AS SELECT 1 AS who, 5 AS cost")
    joined = p.Project(p.Join(VISIT_SCAN, PEOPLE_SCAN, (("who", "id"),)), (p.column("Name"), p.column("cost")))
    file = DuckDBRelation(tmp_path / "visits.parquet")
    first, second = (DuckDBRelation(folder / "my db.duckdb", "everybody") for folder in folders)
    assert rows(file.run(joined, beside={"people": first})) == [("name 0", 10), ("name 0", 20)]
    assert rows(file.run(joined, beside={"people": second})) == [("name 1", 30)]
    stored = DuckDBRelation(folders[0] / "my db.duckdb", "visits")
    assert rows(stored.run(joined, beside={"people": first})) == [("name 0", 5)]
    assert stored.run(joined, beside={"people": second}).num_rows == 0
    assert rows(stored.run(joined, beside={"people": second, "unused": file})) == []
    with duckdb.connect(str(folders[0] / "my db.duckdb")) as connection:  # nothing is held open
        connection.execute("INSERT INTO visits VALUES (1, 7)")
    assert rows(stored.run(joined, beside={"people": first})) == [("name 0", 5), ("name 0", 7)]


def test_a_relation_answers_several_threads_and_inside_its_own_stream(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(1000))}), tmp_path / "rows.parquet")
    relation = DuckDBRelation(tmp_path / "rows.parquet")
    scan = p.Scan(ROWS, (p.Field("a", "integer"),))
    total = p.Group(scan, (), (p.AggregateColumn("n", "sum", e.Reference("a")),))
    found: list[int] = []

    def ask() -> None:
        for batch in relation.stream(scan):
            found.append(int(relation.run(total)["n"][0].as_py()) + batch.num_rows)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [499_500 + 1000] * 4


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    pq.write_table(VISITS, tmp_path / "rows.parquet")
    relation = DuckDBRelation(tmp_path / "rows.parquet")
    assert relation.count() == 5
    pq.write_table(VISITS.slice(0, 2), tmp_path / "rows.parquet")
    assert relation.count() == 2


def test_a_question_that_failed_leaves_the_next_one_in_order(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["1", "canary"]}), tmp_path / "rows.parquet")
    relation = DuckDBRelation(tmp_path / "rows.parquet", types={"a": "integer"})
    for _ in range(2):
        with pytest.raises(Exception, match="do not fit their type") as caught:
            relation.group(["a"])
        assert "canary" not in str(caught.value)
    assert MemoryRelation(VISITS).run(p.Group(VISIT_SCAN, (), (p.AggregateColumn("n", "count"),)))["n"].to_pylist() == [5]
