"""How much of one unit counts is asked for, or found privately, and stands beside every margin."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import SchemaError, SfumatoError, Unsupported
from sfumato.workflow.publishing.publish import publish

SCHEMA: dict[str, Any] = {
    "dataset": "visits",
    "columns": {
        "patient": {"role": "unit", "type": "integer"},
        "ward": {"type": "string", "domain": ["north", "south"]},
        "days": {"type": "integer", "bounds": [0, 30]},
    },
}


def visits(patients: int = 100, each: int = 4) -> sf.Microdata:
    rows = patients * each
    held = {
        "patient": [row // each for row in range(rows)],
        "ward": ["north" if row % 2 else "south" for row in range(rows)],
        "days": [row % 9 for row in range(rows)],
    }
    return sf.read(pa.table(held), schema=SCHEMA)


def session(**options: Any) -> sf.Session:
    return sf.Session(visits(), budget=sf.PureDP(10**9), seed=1, **options)


@pytest.mark.parametrize("query", ["SELECT COUNT(*) AS n FROM visits", "SELECT AVG(days) AS d, MEDIAN(days) AS m FROM visits"])
def test_a_question_about_rows_asks_how_many_of_one_unit_count(query: str) -> None:
    with pytest.raises(Unsupported, match="max_rows=") as refusal:
        session().sql(query, epsilon=1)
    assert "max_groups" not in str(refusal.value) and "session.contributions" in str(refusal.value)
    empty = sf.Session(visits(0), budget=sf.PureDP(1))
    for ask in (empty.explain, empty.sql, lambda text, epsilon: empty.batch([text], epsilon=epsilon)):
        with pytest.raises(Unsupported) as other:
            ask(query, epsilon=1)
        assert str(other.value) == str(refusal.value)  # by schema and query alone


def test_groups_are_asked_for_where_there_are_keys() -> None:
    with pytest.raises(Unsupported, match="max_groups="):
        session(max_rows=2).sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    with pytest.raises(Unsupported, match=r"max_rows=.*max_groups="):
        session().table().group_by("ward").agg(n="COUNT(*)").ask(epsilon=1)
    with pytest.raises(Unsupported, match="max_rows="):
        session().cost("SELECT COUNT(*) AS n FROM visits", within=5)


def test_counting_units_needs_no_bound_on_rows() -> None:
    answer = session().sql("SELECT COUNT(DISTINCT patient) AS n FROM visits", epsilon=10**6)
    assert answer.table.to_pylist() == [{"n": 100}]
    assert answer.contribution == (
        "Each patient is counted once, however many rows it has. Rows without a patient are left out. "
        "A value that cannot be read as its declared type counts as missing"
    )
    per_unit = "SELECT AVG(CLAMP(n, 0, 9)) AS m FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)"
    assert "nothing has to be bounded" in session().explain(per_unit, epsilon=1).contribution


def test_what_is_left_out_is_said_wherever_a_margin_is() -> None:
    """A true count of 400 under a bound of one row is 100, and the margin does not pretend otherwise."""
    answer = session(max_rows=1).sql("SELECT COUNT(*) AS n FROM visits", epsilon=10**6)
    said = "At most 1 row of each patient is counted, chosen at random where there are more; rows beyond that are left out"
    assert answer.table.to_pylist() == [{"n": 100}] and answer.margins().to_pylist() == [{"n": 0.0}]
    assert answer.contribution.startswith(said) and said in str(answer.explanation) and said in repr(answer)
    assert answer.explanation.to_mapping()["contribution"].startswith(said)
    assert session(max_rows=4).sql("SELECT COUNT(*) AS n FROM visits", epsilon=10**6).table.to_pylist() == [{"n": 400}]
    method = publish(answer.outcome).certificate.method
    assert method["bounds"]["rows"] == 1 and method["contribution"].startswith(said)


def test_records_that_are_units_need_no_bound() -> None:
    plain = {"dataset": "d", "columns": {"days": {"type": "integer", "bounds": [0, 30]}}}
    asked = sf.Session(sf.read(pa.table({"days": [1, 2, 3]}), schema=plain), budget=sf.PureDP(10**9))
    assert (
        asked.sql("SELECT COUNT(*) AS n FROM d", epsilon=10**6).contribution
        == "Each record counts by itself, as a unit of its own"
    )


def test_bounds_are_found_privately_and_charged() -> None:
    asked = session()
    before = asked.remaining()
    found = asked.contributions(by=["ward"], epsilon=50)
    assert (found.max_rows, found.max_groups) == (4, 2) and len(found.answers) == 2
    assert str(before) != str(asked.remaining())
    answer = asked.sql("SELECT COUNT(*) AS n FROM visits", epsilon=10**6, max_rows=found.max_rows)
    assert answer.table.to_pylist() == [{"n": 400}]
    assert sf.Session(visits(3), budget=sf.PureDP(1), seed=1).contributions(epsilon="0.1").max_rows is None


def test_a_missing_key_is_a_group_that_a_unit_is_in() -> None:
    table = pa.table({"p": [row // 2 for row in range(400)], "c": ["a" if row % 2 else None for row in range(400)]})
    columns = {"p": {"type": "integer", "role": "unit"}, "c": {"type": "string"}}
    asked = sf.Session(sf.read(table, schema={"dataset": "d", "columns": columns}), budget=sf.PureDP(1000), seed=1)
    assert asked.contributions(by=["c"], epsilon=200, share=1.0).max_groups == 2


def test_groups_of_several_keys_are_counted_together() -> None:
    """Each unit has one sex, and visits in both years or in one: two groups of both keys; a text is one key."""
    units = [unit for unit in range(300) for _ in range(8)]
    table = pa.table(
        {
            "p": units,
            "my sex": ["mf"[unit % 2] for unit in units],
            "year": [2020 + row % 2 for row in range(len(units))],
            "hour": [row % 8 for row in range(len(units))],
        }
    )
    columns = {"p": {"type": "integer", "role": "unit"}, "my sex": {"type": "string"}}
    columns |= {name: {"type": "integer", "bounds": [0, 3000]} for name in ("year", "hour")}
    data = sf.read(table, schema={"dataset": "d", "columns": columns})
    expected: dict[Any, int] = {
        "my sex": 1, ("my sex",): 1, ("my sex", "year"): 2, ("hour", "year"): 8, "hour / 2 < 2": 2,
    }  # fmt: skip
    for by, groups in expected.items():
        asked = sf.Session(data, budget=sf.PureDP(1000), seed=1)
        found = asked.contributions(by=by, epsilon=400, share=1.0)
        assert (found.max_rows, found.max_groups, str(asked.remaining())) == (8, groups, "ε = 600"), by
        assert not any(answer.repeated for answer in found.answers)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"by": ["nosuch", "ward"]}, "there are: patient, ward, days"), ({"by": ["ward"], "share": 2.0}, "share lies between")],
)
def test_what_cannot_be_asked_is_refused_before_any_charge(options: dict[str, Any], said: str) -> None:
    asked = session()
    before = asked.remaining()
    with pytest.raises(SfumatoError, match=said):
        asked.contributions(epsilon=1, **options)
    assert asked.remaining() == before


def test_many_small_numbers_of_units_are_not_left_out() -> None:
    """A fifth of the units lies in eight buckets, each as small as the noise: a bound of 1 would leave all of them out."""
    rows = [1] * 800 + [2**power for power in range(1, 9) for _ in range(25)]
    table = pa.table({"p": [unit for unit, count in enumerate(rows) for _ in range(count)]})
    data = sf.read(table, schema={"dataset": "d", "columns": {"p": {"type": "integer", "role": "unit"}}})
    for seed in range(5):
        found = sf.Session(data, budget=sf.PureDP(1), seed=seed).contributions(epsilon="0.2", share=0.95).max_rows
        assert found is not None and found >= 16


@pytest.mark.parametrize(
    "algorithm",
    [
        sf.dp.PrivateHistogram(("ward",), epsilon=1),
        sf.dp.PrivateQuantiles("days", epsilon=1),
        sf.dp.KMeans(("days",), 2, epsilon=1),
    ],
    ids=lambda algorithm: algorithm.name,
)
def test_an_algorithm_asks_as_well(algorithm: Any) -> None:
    with pytest.raises(SchemaError, match="how many rows of one patient count is not declared"):
        session().release(algorithm)


@pytest.mark.parametrize(
    ("keys", "said", "kept"),
    [
        (None, "Rows whose key is missing or not among the declared values are left out", 2),
        ({"ward": ["a", None]}, "Rows whose key is not among the declared values are left out", 3),
    ],
)
def test_rows_without_unit_or_declared_key_are_said_to_be_left_out(keys: Any, said: str, kept: int) -> None:
    schema = {
        "dataset": "d",
        "columns": {"patient": {"role": "unit", "type": "integer"}, "ward": {"type": "string", "domain": ["a"]}},
    }
    table = pa.table({"patient": [1, 2, 3, 4, None], "ward": ["a", "a", "b", None, "a"]})
    asked = sf.Session(sf.read(table, schema=schema), budget=sf.PureDP(10**9), max_rows=9, max_groups=9)
    answer = asked.sql("SELECT ward, COUNT(*) AS n FROM d GROUP BY ward", epsilon=10**6, keys=keys)
    assert sum(answer.table["n"].to_pylist()) == kept
    typed = "A value that cannot be read as its declared type counts as missing"  # a patient is a number
    assert answer.contribution.endswith(f"Rows without a patient are left out. {said}. {typed}")
    assert answer.contribution == publish(answer.outcome).certificate.method["contribution"]
    every = asked.sql("SELECT COUNT(*) AS n FROM d", epsilon=10**6)
    assert every.table["n"].to_pylist() == [4] and every.contribution.endswith(f"Rows without a patient are left out. {typed}")
    per_unit = "SELECT SUM(CLAMP(n, 0, 9)) AS m FROM (SELECT patient, COUNT(*) AS n FROM d GROUP BY patient)"
    single = asked.sql(per_unit, epsilon=10**6)
    assert single.table["m"].to_pylist() == [4] and single.contribution.endswith(f"Rows without a patient are left out. {typed}")


def test_values_that_are_none_of_their_type_are_said_to_count_as_missing() -> None:
    """In the same words whether there are any: that somebody has one is not told. Texts can always be read."""
    schema = {"dataset": "d", "unit": "record", "columns": {"born": {"type": "date"}, "name": {"type": "string"}}}
    said = "A value that cannot be read as its declared type counts as missing"
    born, everybody = "SELECT COUNT(*) AS n FROM d WHERE born > DATE '1980-01-01'", "SELECT COUNT(*) AS n FROM d WHERE name <> ''"
    for dates, true in (["31.12.1981", "30.12.1981"], 0), (["1981-12-31", "1981-12-30"], 2):
        data = sf.read(pa.table({"born": dates, "name": ["a", "b"]}), schema=schema, unreadable="missing")
        asked = sf.Session(data, budget=sf.PureDP(10**9))
        answer = asked.sql(born, epsilon=10**6)
        assert answer.table["n"].to_pylist() == [true] and answer.contribution.endswith(f". {said}")
        assert said in str(asked.explain(born, epsilon=1))
        assert publish(answer.outcome).certificate.method["contribution"] == answer.contribution
        assert said not in asked.sql(everybody, epsilon=10**6).contribution
