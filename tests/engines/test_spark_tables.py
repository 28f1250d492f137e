"""Rows that Spark writes into a table of its catalogue: there when they are published, whole, and gone otherwise."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from sfumato.core.errors import InputError, SourceError, Unsupported
from sfumato.core.files import hold_folder, take_over
from sfumato.data.relation import Relation
from sfumato.engines.class_queries import ROWS
from sfumato.engines.memory import MemoryRelation
from sfumato.engines.plan import Plan, Scan
from sfumato.engines.spark.relation import SparkRelation
from sfumato.engines.staging.destinations import SparkTable, check_destination, destination_of, staged
from sfumato.engines.staging.spark_table import _mark_of
from sfumato.workflow.publishing.released_form import released_form
from tests.engines.conftest import OpenTable
from tests.engines.conftest import _spark as put_on_spark
from tests.engines.tables import nasty_table

pytestmark = [pytest.mark.spark]

TABLE = nasty_table().drop_columns(["country"])  # Spark's tables do not tell it from "Country"


def everything(relation: Relation) -> Plan:
    return Scan(ROWS, tuple(relation.fields.values()))  # type: ignore[attr-defined]


def values(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def read(relation: Relation) -> pa.Table:
    return pa.Table.from_batches(relation.batches(), schema=relation.schema())


@pytest.fixture
def schema(spark: Any) -> Iterator[str]:
    """A schema of its own, thrown away with what is in it."""
    name = f"published_{secrets.token_hex(4)}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


def tables(spark: Any, schema: str) -> list[str]:
    rows = spark.sql(f"SHOW TABLES IN {schema}").collect()
    return [row["tableName"] for row in rows if not row["isTemporary"]]  # views of the session are listed in every schema


@pytest.fixture
def people(spark: Any, on_spark: OpenTable) -> SparkRelation:
    relation = on_spark(TABLE)
    assert isinstance(relation, SparkRelation)
    return relation


@pytest.fixture
def on_spark(spark: Any) -> OpenTable:
    return lambda table: put_on_spark(table, spark)


def test_a_table_appears_when_it_is_published_with_all_rows(spark: Any, schema: str, people: SparkRelation) -> None:
    place = SparkTable(f"{schema}.release")
    check_destination(place, people)
    with staged(people, everything(people), {}, place) as result:
        assert (result.rows, result.files) == (8, ())
        assert values(released_form(read(result.relation))) == values(released_form(TABLE))
        (hidden,) = tables(spark, schema)
        assert hidden.startswith("sfumato_staging_")
        result.publish()
    assert tables(spark, schema) == ["release"]
    assert values(released_form(read(SparkRelation(f"{schema}.release", session=spark)))) == values(released_form(TABLE))
    properties = {row["key"] for row in spark.sql(f"SHOW TBLPROPERTIES {schema}.release").collect()}
    assert not any(key.startswith("sfumato") for key in properties)
    with pytest.raises(SourceError, match="is there already"):
        check_destination(SparkTable(f"{schema}.release"), people)


@pytest.mark.parametrize("name", ["x;drop", "a-b c", "a" * 300, "a" * 129, "\u00e9", "", "a..b", "a b.c", "a`b", "a.b.c.d"])
def test_a_name_that_the_catalogue_does_not_take_is_refused_before_the_work(name: str, people: SparkRelation) -> None:
    with pytest.raises(SourceError, match="letters from A to Z, digits and underscores"):
        check_destination(destination_of(f"spark:{name}"), people)


def test_a_name_of_128_characters_is_published(spark: Any, schema: str, people: SparkRelation) -> None:
    place = SparkTable(f"{schema}.{'a' * 128}")
    with staged(people, everything(people), {}, place) as result:
        result.publish()
    assert tables(spark, schema) == ["a" * 128]


def test_a_block_that_ends_without_publishing_leaves_no_table(spark: Any, schema: str, people: SparkRelation) -> None:
    with staged(people, everything(people), {}, SparkTable(f"{schema}.release")):
        pass
    with pytest.raises(RuntimeError), staged(people, everything(people), {}, SparkTable(f"{schema}.release")):
        raise RuntimeError
    assert tables(spark, schema) == []


def test_a_table_that_appeared_meanwhile_is_left_alone(spark: Any, schema: str, people: SparkRelation) -> None:
    with staged(people, everything(people), {}, SparkTable(f"{schema}.release")) as result:
        spark.sql(f"CREATE TABLE {schema}.release (mine INT) USING parquet")
        with pytest.raises(SourceError, match="is there already"):
            result.publish()
    assert tables(spark, schema) == ["release"]
    assert spark.table(f"{schema}.release").columns == ["mine"]


def test_a_staging_table_of_a_dead_process_is_dropped_and_that_of_a_living_one_stays(
    spark: Any, schema: str, people: SparkRelation
) -> None:
    """Process numbers and host names used to decide, which are others in another PID namespace: a living run lost its table."""
    dead, alive, elsewhere = (f"sfumato_staging_{secrets.token_hex(8)}" for _ in range(3))
    for name in (dead, alive, elsewhere):
        spark.sql(f"CREATE TABLE {schema}.{name} (n INT) USING parquet")
    _mark_of(dead).mkdir()  # of a process that is gone: nobody holds it
    held = hold_folder(lambda: _mark_of(alive))
    try:
        with staged(people, everything(people), {}, SparkTable(f"{schema}.release")) as result:
            (mine,) = {*tables(spark, schema)} - {alive, elsewhere}
            assert _mark_of(mine).is_dir() and take_over(_mark_of(mine)) is None
            result.publish()
        assert sorted(tables(spark, schema)) == sorted(["release", alive, elsewhere])
        assert not _mark_of(dead).exists() and not _mark_of(mine).exists()
    finally:
        held.remove()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lake.schema.release", "the catalogue 'lake' is not supported"),
        ("nowhere_at_all.release", "no schema 'nowhere_at_all'"),
        ("a.b.c.d", "write the name as"),
        ("`a`.b", "write the name as"),
    ],
)
def test_places_that_cannot_be_written_are_refused_before_the_work(name: str, reason: str, people: SparkRelation) -> None:
    with pytest.raises((Unsupported, SourceError), match=reason):
        check_destination(SparkTable(name), people)


def test_rows_of_other_engines_and_columns_that_differ_in_case_alone_are_refused(spark: Any, schema: str, on_spark: Any) -> None:
    memory = MemoryRelation(TABLE)
    with pytest.raises(InputError, match="not written to Spark tables"):
        check_destination(SparkTable(f"{schema}.release"), memory)
    with pytest.raises(InputError), staged(memory, everything(memory), {}, SparkTable(f"{schema}.release")):
        pass
    twice = on_spark(nasty_table())
    with pytest.raises(InputError, match="does not tell apart"):
        with staged(twice, everything(twice), {}, SparkTable(f"{schema}.release")):
            pass
    assert tables(spark, schema) == []
