"""Several quantiles in one call: one tree, one list in the answer, an interval for each element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from tests.dp.sql.database import customers, session

QUARTILES = "SELECT city, QUANTILE_CONT(age, [0.25, 0.5, 0.75]) AS q, COUNT(*) AS n FROM customers GROUP BY city"


@pytest.fixture(scope="module")
def shop() -> sf.Session:
    return session(budget=sf.ApproxDP(10**9, "0.5"), max_rows=100, max_groups=10)


def test_a_list_is_the_quantiles_one_by_one_for_one_tree(shop: sf.Session) -> None:
    explanation = shop.explain(QUARTILES, epsilon=1)
    assert [note.what for note in explanation.measurements] and len(explanation.measurements) == 2  # a tree and a count
    assert [note.name for note in explanation.columns] == ["q[1]", "q[2]", "q[3]", "n"]
    assert all(note.rank_margin is not None for note in explanation.columns[:3])
    answer = shop.sql(QUARTILES, epsilon=1)
    left = shop.remaining()
    single = shop.sql(
        "SELECT city, QUANTILE(age, 0.25) AS a, MEDIAN(age) AS b, QUANTILE(age, 0.75) AS c FROM customers GROUP BY city",
        epsilon="0.4",
    )
    assert single.repeated and shop.remaining() == left
    for listed, alone in (
        (answer.table, single.table),
        (answer.errors, single.errors),
        (answer.margins(), single.margins()),
        (answer.intervals(), single.intervals()),
    ):
        assert listed.column_names == ["city", "q", "n"]
        assert listed["q"].to_pylist() == [[row["a"], row["b"], row["c"]] for row in alone.to_pylist()]
    assert all(all(margin is not None for margin in margins) for margins in answer.margins()["q"].to_pylist())


FORMS = [
    "QUANTILE_CONT(age, [0.1, 0.9])",
    "QUANTILE(age, [0.1, 0.9])",
    "QUANTILE_CONT(age, [0.1, 0.9] ORDER BY age)",
    "PERCENTILE_CONT(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY age)",
    "PERCENTILE_CONT([0.9, 0.1]) WITHIN GROUP (ORDER BY age DESC)",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_spelling_means_the_same_and_is_near_what_sql_says(shop: sf.Session, form: str) -> None:
    (ends,) = shop.sql(f"SELECT {form} AS ends FROM customers", epsilon=10**5).table["ends"].to_pylist()
    ages = customers()  # noqa: F841  (DuckDB reads it by its name)
    ((exact,),) = duckdb.sql("SELECT QUANTILE_DISC(age, [0.1, 0.9]) FROM ages").fetchall()
    assert all(abs(one - other) <= 1 for one, other in zip(ends, exact, strict=True))


def test_a_filter_holds_for_every_element(shop: sf.Session) -> None:
    query = "SELECT QUANTILE_CONT(age, [0.1, 0.9]) FILTER (WHERE member) AS ends FROM customers"
    (ends,) = shop.sql(query, epsilon=10**5).table["ends"].to_pylist()
    ages = customers()  # noqa: F841
    ((exact,),) = duckdb.sql("SELECT QUANTILE_DISC(age, [0.1, 0.9]) FROM ages WHERE member").fetchall()
    assert all(abs(one - other) <= 1 for one, other in zip(ends, exact, strict=True))


REFUSED = {
    "SELECT QUANTILE_CONT(age, []) AS q FROM customers": "1 to 100 ranks",
    "SELECT QUANTILE_CONT(age, [0.1, 2]) AS q FROM customers": "between 0 and 1",
    "SELECT QUANTILE_CONT(age, [0.1, 0.2]) + 1 AS q FROM customers": "one rank each",
    "SELECT city, QUANTILE_CONT(age, [0.1, 0.9]) AS q FROM customers GROUP BY city ORDER BY q": "one rank each",
    "SELECT city, QUANTILE_CONT(age, [0.1, 0.9]) AS q FROM customers GROUP BY city ORDER BY 2": "one rank each",
    "SELECT QUANTILE_CONT(age, [0.1, 0.9]) AS q, COUNT(*) AS 'q[1]' FROM customers": "name them apart",
    "SELECT [COUNT(*), SUM(age)] AS q FROM customers": "over aggregates",
}


@pytest.mark.parametrize("query", REFUSED)
def test_a_list_stands_by_itself(shop: sf.Session, query: str) -> None:
    with pytest.raises(Unsupported, match=REFUSED[query]):
        shop.explain(query, epsilon=1)


def test_the_rewrite_of_an_expression_costs_no_more(shop: sf.Session) -> None:
    spread = shop.explain("SELECT QUANTILE(age, 0.9) - QUANTILE(age, 0.1) AS spread FROM customers", epsilon=1)
    assert len(spread.measurements) == 1


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_list_is_published_element_by_element_and_verifies(tmp_path: Path, format: Any) -> None:
    shop = session(ledger=tmp_path / "ledger.db", seed=None)
    release = sf.publish(shop.sql(QUARTILES, epsilon=1).outcome, shop.ledger)
    release.save(tmp_path / "out", format)
    checked = sf.verify(tmp_path / "out", ledger=shop.ledger)
    assert checked.accepted and all(finding.passed is not False for finding in checked.findings)
    if format == "csv":
        assert (
            (tmp_path / "out" / "public" / "data.csv").read_text(encoding="utf-8").startswith('"city","q[1]","q[2]","q[3]","n"')
        )
