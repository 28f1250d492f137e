"""The method limit of a Spark session: as low as Java compiles while a question runs, and afterwards as it was."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sfumato.engines.class_queries import ROWS
from sfumato.engines.digests.row_digest import digest_plan, row_sums, table_sums
from sfumato.engines.plan import Plan, Scan
from sfumato.engines.spark.relation import SparkRelation
from sfumato.engines.spark.sessions import short_methods

pytestmark = pytest.mark.spark

LIMIT = "spark.sql.codegen.hugeMethodLimit"
COMPILED = 8_000


def limit(spark: Any) -> int:
    return int(spark.conf.get(LIMIT, None) or 65_535)


def relation(spark: Any) -> SparkRelation:
    return SparkRelation(spark.range(50).selectExpr("id AS a", "id / 7 AS b"))


def plan_of(rows: SparkRelation) -> Plan:
    return digest_plan(Scan(ROWS, tuple(rows.fields.values())))


def test_questions_run_with_methods_that_java_compiles(spark: Any) -> None:
    before, one, other = limit(spark), relation(spark), relation(spark)
    assert before > COMPILED
    with one.prepared(plan_of(one)):
        assert limit(spark) == COMPILED
        with other.prepared(plan_of(other)):
            assert limit(spark) == COMPILED
        assert limit(spark) == COMPILED
    assert limit(spark) == before
    with pytest.raises(RuntimeError), one.prepared(plan_of(one)):
        raise RuntimeError
    assert limit(spark) == before


def test_questions_that_end_in_another_order_leave_the_limit_as_it_was(spark: Any) -> None:
    before, first, second = limit(spark), short_methods(spark), short_methods(spark)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert limit(spark) == COMPILED
    second.__exit__(None, None, None)
    assert limit(spark) == before


def test_a_lower_limit_of_the_owner_stays(spark: Any) -> None:
    before = spark.conf.get(LIMIT, None)
    try:
        spark.conf.set(LIMIT, "5000")
        rows = relation(spark)
        with rows.prepared(plan_of(rows)):
            assert limit(spark) == 5_000
        assert limit(spark) == 5_000
    finally:
        spark.conf.unset(LIMIT) if before is None else spark.conf.set(LIMIT, before)


def test_a_session_whose_settings_are_not_to_be_changed_answers_all_the_same() -> None:
    class Fixed:
        def __getattr__(self, name: str) -> Any:
            raise PermissionError(name)

    with short_methods(Fixed()):
        pass


def test_tables_too_wide_for_one_method_have_the_same_digest(spark: Any) -> None:
    names = ", ".join(f"id AS `n {place}`, id / 3 AS `x {place}`" for place in range(40))
    rows = SparkRelation(spark.range(5).selectExpr(*names.split(", ")))
    ids = range(5)
    columns = {f"{kind} {place}": [*ids] if kind == "n" else [each / 3 for each in ids] for place in range(40) for kind in "nx"}
    assert row_sums(rows) == table_sums(pa.table(columns))
