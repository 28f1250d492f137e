"""Attacks on a session: averaging, differencing, and what a refusal tells."""

from __future__ import annotations

import statistics
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import BudgetRefused, SfumatoError, Unsupported
from tests.dp.sql.database import CUSTOMERS, ORDERS, customers, orders, regions, session

SCHEMA = {
    "dataset": "ward",
    "columns": {
        "patient": {"role": "unit", "type": "integer"},
        "hiv": {"type": "boolean"},
        "cost": {"type": "number", "bounds": [0, 1000]},
        "note": {"type": "string"},
    },
}


def ward(positive: bool) -> sf.Microdata:
    """Patient 7 is positive or not; everything else is equal."""
    rows = [{"patient": n, "hiv": n % 3 == 0 if n != 7 else positive, "cost": 10.0 * n, "note": "x"} for n in range(60)]
    types = pa.schema([("patient", pa.int64()), ("hiv", pa.bool_()), ("cost", pa.float64()), ("note", pa.string())])
    return sf.read(pa.Table.from_pylist(rows, schema=types), schema=SCHEMA)


def test_asking_again_does_not_average_the_noise_away() -> None:
    asked = sf.Session(ward(True), max_rows=1, max_groups=1, budget=sf.PureDP(1))
    answers = {asked.sql("SELECT COUNT(*) AS n FROM ward WHERE hiv", epsilon="0.1").table["n"][0].as_py() for _ in range(50)}
    assert len(answers) == 1 and asked.remaining() is not None
    assert str(asked.remaining()) == "ε = 0.9"


def test_rephrasing_the_question_runs_out_of_budget_before_it_averages_the_noise_away() -> None:
    asked = sf.Session(ward(True), max_rows=1, max_groups=1, budget=sf.PureDP(1))
    answers = []
    with pytest.raises(BudgetRefused):
        for number in range(100):
            text = f"SELECT COUNT(*) AS n FROM ward WHERE hiv AND cost > {-1 - number}"
            answers.append(asked.sql(text, epsilon="0.1").table["n"][0].as_py())
    assert len(answers) == 10
    # Ten answers at ε = 0.1 have together the error of one at ε = 1 or more: the mean of ten Laplace(10) has deviation 4.5.
    assert statistics.pstdev(answers) > 0


@pytest.mark.slow
def test_two_questions_that_differ_in_one_person_do_not_tell_about_that_person() -> None:
    """The difference of the two noisy counts separates the two worlds hardly better than a guess.

    Each answer is ε = 0.1; the pair is 0.2-differentially private, so that any test is right with probability at most
    e^0.2 / (1 + e^0.2) < 0.55. Over 160 runs the chance of 0.75 or more is below 10^-6.
    """
    right = 0
    for run in range(160):
        positive = run % 2 == 0
        asked = sf.Session(ward(positive), max_rows=1, max_groups=1, budget=sf.PureDP(1), seed=run)
        everybody = asked.sql("SELECT COUNT(*) AS n FROM ward WHERE hiv", epsilon="0.1").table["n"][0].as_py()
        others = asked.sql("SELECT COUNT(*) AS n FROM ward WHERE hiv AND patient <> 7", epsilon="0.1").table["n"][0].as_py()
        right += ((everybody - others) >= 1) == positive
    assert right < 0.75 * 160


HOSTILE = [
    "SELECT COUNT(*) FROM ward WHERE patient = 7 AND 1/0 = 1",
    "SELECT SUM(CAST(note AS INTEGER)) FROM ward",
    "SELECT SUM(1 / (cost - 70)) FROM ward",
    "SELECT COUNT(*) FROM ward WHERE error('leak')",
    "SELECT note, COUNT(*) FROM ward GROUP BY note",
    "SELECT SUM(patient) FROM ward",
    "SELECT COUNT(*) FROM ward WHERE hiv GROUP BY ROLLUP (hiv)",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_a_refusal_is_the_same_on_neighbouring_databases(query: str) -> None:
    told = []
    for data in (ward(True), ward(False), sf.read(ward(True).table().slice(0, 0), schema=SCHEMA)):
        asked = sf.Session(data, max_rows=1, max_groups=1, budget=sf.PureDP(1))
        with pytest.raises(SfumatoError) as refusal:
            asked.sql(query, epsilon=1)
        told.append((type(refusal.value), str(refusal.value), str(asked.remaining())))
    assert len(set(told)) == 1


def test_an_exhausted_budget_reads_the_same_on_neighbouring_databases() -> None:
    told = set()
    for positive in (True, False):
        asked = sf.Session(ward(positive), max_rows=1, max_groups=1, budget=sf.PureDP("0.5"))
        asked.sql("SELECT COUNT(*) FROM ward", epsilon="0.5")
        with pytest.raises(BudgetRefused) as refusal:
            asked.sql("SELECT COUNT(*) FROM ward WHERE hiv", epsilon="0.1")
        told.add(str(refusal.value))
    assert len(told) == 1


def test_a_refused_question_reads_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.engines.memory import MemoryRelation

    def touched(*_: Any, **__: Any) -> None:
        raise AssertionError("a row was read")

    asked = sf.Session(ward(True), max_rows=1, max_groups=1, budget=sf.PureDP(1))
    monkeypatch.setattr(MemoryRelation, "run", touched)
    for query in HOSTILE:
        with pytest.raises(SfumatoError):
            asked.sql(query, epsilon=1)
    with pytest.raises(BudgetRefused):
        asked.sql("SELECT COUNT(*) FROM ward", epsilon=2)


TEXTS = [
    "",
    " ",
    ";",
    "SELECT",
    "SELECT COUNT(*) FROM ward WHERE " + "(" * 500 + "1" + ")" * 500,
    "SELECT COUNT(*) FROM ward WHERE " + " AND ".join(["hiv"] * 30000),
    "SELECT " + "-" * 20000 + "1 FROM ward",
    "SELECT COUNT(*) FROM ward WHERE note = '" + "a" * 60000 + "'",
    "SELECT COUNT(*) FROM ward WHERE " + "NOT " * 3000 + "hiv",
    "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 100 + "ward" + ")" * 100,
    "\x00",
    "SELECT COUNT(*) FROM ward WHERE note = '\x00'",
    "ATTACH 'x.db'",
    "COPY ward TO '/tmp/x'",
    "PRAGMA version",
    "SET threads = 1",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CALL pragma_version()",
    "SELECT COUNT(*) FROM 'ward.csv'",
    "SELECT COUNT(*) FROM information_schema.tables",
    "SELECT getenv('HOME'), COUNT(*) FROM ward",
    "SELECT COUNT(*) FROM ward WHERE current_setting('x') = 'y'",
    "SELECT pg_sleep(10), COUNT(*) FROM ward",
    "EXPLAIN SELECT COUNT(*) FROM ward",
    "SELECT COUNT(*) FROM ward WHERE note = ''; DROP TABLE ward; --'",
    "INSERT INTO ward VALUES (1)",
    "WITH RECURSIVE t AS (SELECT 1) SELECT COUNT(*) FROM t",
    "SELECT SUM(1e308 * 1e308) FROM ward",
    "SELECT SUM(99999999999999999999999999999999999999999999) FROM ward",
    "SELECT COUNT(*) FROM ward LIMIT -1",
    "SELECT COUNT(*) FROM ward LIMIT (SELECT 1)",
    "SELECT COUNT(*) FROM ward TABLESAMPLE 10%",
]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_gets_one_clear_refusal(text: str) -> None:
    asked = sf.Session({"ward": ward(True)}, max_rows=1, max_groups=1, budget=sf.PureDP(1))
    with pytest.raises(SfumatoError) as refusal:
        asked.sql(text, epsilon=1)
    assert len(str(refusal.value)) < 1000 and str(asked.remaining()) == "ε = 1"


def test_texts_in_a_query_are_values_and_nothing_else() -> None:
    asked = sf.Session({"ward": ward(True)}, max_rows=1, max_groups=1, budget=sf.PureDP(10), seed=1)
    for text in ("' OR 1=1 --", "x'); DROP TABLE ward; --", "\\' OR true", "${x}", "%s", "é\u202e"):
        written = text.replace("'", "''")
        answer = asked.sql(f"SELECT COUNT(*) AS n FROM ward WHERE note = '{written}'", epsilon=1).table["n"][0].as_py()
        assert abs(answer) < 30  # nobody has such a note; P(|Laplace(1)| ≥ 30) is below 10^-12


def test_no_value_of_a_record_is_in_an_error_or_a_text_form() -> None:
    canary = "canary-7f3a"
    rows = pa.table({"patient": [1, 2], "hiv": [True, False], "cost": [1.0, 2.0], "note": [canary, canary]})
    asked = sf.Session(sf.read(rows, schema=SCHEMA), max_rows=1, max_groups=1, budget=sf.PureDP(1))
    told = [repr(asked), str(asked.explain("SELECT COUNT(*) FROM ward", epsilon=1)), repr(asked._catalogue)]
    for query in HOSTILE:
        with pytest.raises(SfumatoError) as refusal:
            asked.sql(query, epsilon=1)
        told.append(str(refusal.value))
    told.append(repr(asked.sql("SELECT COUNT(*) FROM ward", epsilon=1)))
    assert not any(canary in text for text in told)


def test_odd_values_are_defined() -> None:
    """NaN and missing values are left out, infinities are clamped, rows without a unit belong to nobody."""
    nan, infinity = float("nan"), float("inf")
    rows = {"patient": [1, 2, 3, 4, None], "hiv": [True] * 5, "cost": [nan, infinity, -infinity, None, 5.0], "note": ["x"] * 5}
    types = pa.schema([("patient", pa.int64()), ("hiv", pa.bool_()), ("cost", pa.float64()), ("note", pa.string())])
    asked = sf.Session(sf.read(pa.table(rows, schema=types), schema=SCHEMA), max_rows=1, max_groups=1, budget=sf.PureDP("1e6"))
    answer = asked.sql("SELECT COUNT(*) AS n, COUNT(cost) AS c, SUM(cost) AS s FROM ward", epsilon=100000).table.to_pylist()[0]
    assert (answer["n"], answer["c"]) == (4, 2)
    assert answer["s"] == pytest.approx(1000, abs=1)


def test_sums_beyond_64_bits_are_exact() -> None:
    schema = {"dataset": "big", "columns": {"x": {"type": "integer", "bounds": [0, 2**52]}}}
    asked = sf.Session(sf.read(pa.table({"x": [2**52] * 5000}), schema=schema), budget=sf.PureDP("1e9"))
    total = asked.sql("SELECT SUM(x) AS s FROM big", epsilon=1000).table["s"][0].as_py()
    assert total == pytest.approx(5000 * 2**52, rel=1e-3)


def test_both_sides_of_a_private_join_belong_to_one_unit() -> None:
    shop = session()
    with pytest.raises(Unsupported, match="unit"):
        shop.sql("SELECT COUNT(*) FROM customers c JOIN orders o ON c.age = o.quantity", epsilon=1)
    tables = {
        "customers": sf.read(customers(), schema=CUSTOMERS),
        "orders": sf.read(orders(), schema={**ORDERS, "dataset": "other"}),
    }
    with pytest.raises(SfumatoError, match="datasets other, shop"):
        sf.Session(tables, budget=sf.PureDP(1))


def test_a_record_is_not_multiplied_by_a_public_table() -> None:
    people = sf.read(pa.table({"city": ["Bern", "Bern"]}), schema={"dataset": "p", "columns": {"city": {"type": "string"}}})
    asked = sf.Session(
        {"p": people},
        max_rows=1,
        max_groups=1,
        public={"r": regions(), "twice": pa.table({"city": ["Bern", "Bern"]})},
        budget=sf.PureDP(1),
    )
    asked.sql("SELECT COUNT(*) FROM p JOIN r ON p.city = r.city", epsilon="0.1")
    with pytest.raises(Unsupported, match="several rows for one key"):
        asked.sql("SELECT COUNT(*) FROM p JOIN twice ON p.city = twice.city", epsilon="0.1")
