"""Nothing but the noisy answer may depend on a record: no failure, no reading of other records, nobody's identity."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, SfumatoError, SourceError, Unsupported
from sfumato.dp.sql.measuring.noise import Request, price
from sfumato.dp.sql.measuring.one_query import flat_plan, run
from sfumato.ledger.amounts import LossAmount

NO_NOISE = 10**9


def ledgerless(data: sf.Microdata | dict[str, sf.Microdata], **options: Any) -> sf.Session:
    return sf.Session(data, budget=sf.ApproxDP(10**12, "0.1"), **{"max_rows": 1, "max_groups": 1, **options})


SCHEMA = {
    "dataset": "d",
    "columns": {
        "diagnosis": {"type": "string", "domain": ["flu", "ok", "rare"]},
        "account": {"type": "integer", "bounds": [0, 10]},
        "age": {"type": "integer", "bounds": [0, 120]},
        "day": {"type": "date"},
    },
}


def awkward(folder: Path) -> sf.Microdata:
    """One record whose values cannot be read: beyond 64 bits, no number, a day that no calendar has."""
    table = pa.table(
        {
            "diagnosis": ["flu", "ok", "rare"],
            "account": pa.array([1, 2, 2**64 - 1], pa.uint64()),
            "age": ["30", "40", "n/a"],
            "day": pa.array([1, 2, 2_000_000_000], pa.int32()).cast(pa.date32()),
        }
    )
    pq.write_table(table, folder / "d.parquet")
    return sf.read(folder / "d.parquet", schema=SCHEMA, engine="duckdb")


@pytest.mark.parametrize("who", ["flu", "rare"])
@pytest.mark.parametrize("question", ["SUM(account)", "SUM(age)", "AVG(age)", "COUNT(age)", "MEDIAN(age)", "COUNT(day)"])
def test_a_value_that_cannot_be_read_is_missing_and_no_failure(tmp_path: Path, who: str, question: str) -> None:
    answer = ledgerless(awkward(tmp_path)).sql(f"SELECT {question} AS x FROM d WHERE diagnosis = '{who}'", epsilon=NO_NOISE)
    value = answer.table["x"][0].as_py()
    if question.startswith(("SUM", "COUNT")):
        wanted = {"SUM(account)": 1, "SUM(age)": 30, "COUNT(age)": 1, "COUNT(day)": 1}[question]
        assert value == (wanted if who == "flu" else 0)


def test_days_beyond_the_calendar_are_no_group(tmp_path: Path) -> None:
    answer = ledgerless(awkward(tmp_path)).sql("SELECT day, COUNT(*) AS n FROM d GROUP BY day", epsilon=NO_NOISE, delta="0.01")
    assert {row["day"] for row in answer.table.to_pylist()} <= {datetime.date(1970, 1, 2), datetime.date(1970, 1, 3), None}


def test_an_algorithm_reads_the_same_way(tmp_path: Path) -> None:
    outcome = ledgerless(awkward(tmp_path)).release(
        sf.dp.PrivateHistogram(columns=("age",), bins={"age": 2}, epsilon=1, max_rows=1)
    )
    assert outcome.result.num_rows == 2


@pytest.mark.postgres
def test_postgres_reads_texts_without_failing(postgres_url: str) -> None:
    from sfumato.engines.write import write_table

    texts = ["30", " 41 ", "n/a", "", None, "99999999999999999999", "1e3", "-5", "4.5"]
    write_table(pa.table({"diagnosis": ["ok"] * 9, "age": texts, "real": texts}), postgres_url, table_name="awkward")
    schema = {"dataset": "d", "columns": {**SCHEMA["columns"], "real": {"type": "number", "bounds": [0, 100]}}}  # type: ignore[dict-item]
    del schema["columns"]["account"], schema["columns"]["day"]  # type: ignore[attr-defined]
    asked = ledgerless(sf.read(postgres_url, schema=schema, table="awkward"))
    answer = asked.sql("SELECT COUNT(age) AS n, SUM(age) AS s, COUNT(real) AS r FROM d", epsilon=NO_NOISE).table.to_pylist()[0]
    assert (answer["n"], answer["s"], answer["r"]) == (3, 71, 6)


def test_a_failing_engine_says_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.engines.memory import MemoryRelation

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("the record of Anna Müller")

    asked = ledgerless(sf.read(pa.table({"x": [1]}), schema={"dataset": "d", "columns": {"x": {"type": "integer"}}}))
    monkeypatch.setattr(MemoryRelation, "run", fails)
    with pytest.raises(SourceError, match="stays charged") as failure:
        asked.sql("SELECT COUNT(*) FROM d", epsilon=1)
    assert "Anna" not in str(failure.value) and failure.value.__suppress_context__


def test_a_type_that_was_learnt_from_the_values_is_not_used(tmp_path: Path) -> None:
    told = set()
    for extra in ("", "abc\n"):
        path = tmp_path / "s.csv"
        path.write_text("c\n" + "1.0\n" * 20 + extra)
        for data in (sf.read(path, schema={"dataset": "d", "columns": {"c": {"domain": ["1", "2"]}}}), sf.read(path)):
            asked = ledgerless(data)
            with pytest.raises(Unsupported) as refusal:
                asked.explain("SELECT SUM(CLAMP(c, 0, 10)) FROM d", epsilon=1)
            told.add(str(refusal.value))
        with pytest.raises(Unsupported, match="not declared"):
            ledgerless(sf.read(path, schema={"dataset": "d", "columns": {"c": {"domain": ["1", "2"]}}})).release(
                sf.dp.PrivateHistogram("c", epsilon=1, max_rows=1)
            )
    assert len(told) == 1


def test_declared_bounds_never_make_two_people_one() -> None:
    schema = {
        "dataset": "d",
        "columns": {"uid": {"role": "unit", "type": "integer", "bounds": [1, 3]}, "x": {"type": "integer", "bounds": [-10, 10]}},
    }
    query = "SELECT SUM(CLAMP(s, -10, 10)) AS t FROM (SELECT uid, SUM(x) AS s FROM d GROUP BY uid)"

    def exact(rows: list[tuple[int, int]]) -> int:
        asked = ledgerless(sf.read(pa.table({"uid": [u for u, _ in rows], "x": [x for _, x in rows]}), schema=schema))
        question = asked._question(asked._parsed(query), None)
        priced = price(question, Request(epsilon=1), asked._bounds)
        assert priced.noises["m0"].l1 == 10
        return int(run(question, flat_plan(question, priced, question.measurements, "ab")).column(0)[0].as_py())

    assert exact([(4, -10)]) == -10
    assert exact([(4, -10), (5, 10), (5, 10)]) == 0


def test_a_row_per_unit_needs_no_bounds() -> None:
    schema = {"dataset": "d", "columns": {"u": {"role": "unit", "type": "integer"}, "x": {"type": "integer", "bounds": [0, 9]}}}
    data = sf.read(pa.table({"u": [1, 1, 1, 2], "x": [1, 2, 3, 4]}), schema=schema)
    asked = ledgerless(data, max_rows=5, max_groups=5, bounding="truncate", order="x")
    query = "SELECT LEAST(n, 5) AS k, COUNT(*) AS c FROM (SELECT u, COUNT(*) AS n FROM d GROUP BY u) GROUP BY LEAST(n, 5)"
    assert asked.explain(query, epsilon=1).measurements[0].sensitivity_l1 == 1
    counted = {row["k"]: row["c"] for row in asked.sql(query, epsilon=NO_NOISE).table.to_pylist()}
    assert counted == {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 5: 0}


def test_what_query_and_schema_decide_is_refused_before_it_costs(tmp_path: Path) -> None:
    schema = {
        "dataset": "d",
        "columns": {"x": {"type": "integer", "bounds": [0, 9]}, "g": {"type": "string", "domain": ["a", "b"]}},
    }
    data = sf.read(pa.table({"x": [1, 2], "g": ["a", "b"]}), schema=schema)
    asked = sf.Session(data, max_rows=1, max_groups=1, budget=sf.PureDP(1), bounding="truncate", order="nowhere")
    assert asked.sql("SELECT COUNT(*) AS n FROM d", epsilon="0.1").table.num_rows == 1  # each record is a unit: nothing to order
    for query in (
        "SELECT COUNT(*) AS n, SUM(x) AS n FROM d",
        "SELECT g, COUNT(*) AS g FROM d GROUP BY g",
        "SELECT SUM(FLOOR(g)) FROM d",
        "SELECT SUM(g // 3) FROM d",
    ):
        with pytest.raises(SfumatoError):
            asked.sql(query, epsilon="0.1")
    assert asked.remaining() == LossAmount.pure("0.9")
    assert asked.sql("SELECT COUNT(*), COUNT(*) FROM d", epsilon="0.1").table.column_names == ["count(*)", "count(*) (2)"]


def test_one_budget_is_about_one_kind_of_unit() -> None:
    table = pa.table({"u": [1], "x": [1]})
    plain = {"u": {"type": "integer"}, "x": {"type": "integer"}}
    with_unit = sf.read(table, schema={"dataset": "d", "columns": {**plain, "u": {"type": "integer", "role": "unit"}}})
    without = sf.read(table, schema={"dataset": "d", "columns": plain})
    with pytest.raises(ParameterError, match="unit column"):
        ledgerless({"a": with_unit, "b": without})


def test_a_missing_selection_has_no_certain_median() -> None:
    schema = {"dataset": "d", "columns": {"x": {"type": "number", "bounds": [0, 10]}}}
    asked = ledgerless(sf.read(pa.table({"x": [1.0] * 50}), schema=schema), seed=1)
    answer = asked.sql("SELECT MEDIAN(x) AS m FROM d WHERE x > 5", epsilon="0.1")
    shown, margin = answer.table["m"][0].as_py(), answer.margins()["m"][0].as_py()
    assert shown - margin <= 0.01 and shown + margin >= 9.99  # anything between the bounds


def test_wrong_arguments_are_one_clear_error() -> None:
    data = sf.read(pa.table({"x": [1]}), schema={"dataset": "d", "columns": {"x": {"type": "integer"}}})
    with pytest.raises(ParameterError, match="guarantee"):
        sf.Session(data, budget=1.0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="algorithm"):
        ledgerless(data).release(sf.dp.Laplace(1, 1))  # type: ignore[arg-type]
