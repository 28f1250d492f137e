"""Keys that a question lists: products of lists, and lists from public tables."""

from __future__ import annotations

import itertools
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError, SfumatoError, Unsupported
from tests.dp.sql.database import ORDERS, orders, regions

QUERY = "SELECT coupon, city, COUNT(*) AS n FROM orders GROUP BY coupon, city"
CODES = pa.table({"code": ["spring", "summer", "spring", "autumn", None], "season": [1, 2, 1, 4, 5]})


def shop(**options: object) -> sf.Session:
    chosen = {"budget": sf.ApproxDP(10**15, "0.5"), "max_rows": 1000, "max_groups": 1000, **options}
    tables = {"orders": sf.read(orders(), schema=ORDERS)}
    return sf.Session(tables, public={"regions": regions(), "codes": CODES}, **chosen)  # type: ignore[arg-type]


def test_the_groups_are_the_product_of_all_lists() -> None:
    keys = {"coupon": ["spring", "winter"], "city": ["Bern", "Basel"]}
    answer = shop().sql(QUERY, epsilon=10**9, keys=keys)
    bought = orders()  # noqa: F841  (DuckDB reads it by its name)
    exact = {(a, b): n for a, b, n in duckdb.sql(QUERY.replace("orders", "bought")).fetchall()}
    rows = [tuple(row.values()) for row in answer.table.to_pylist()]
    assert rows == [(*pair, exact.get(pair, 0)) for pair in itertools.product(*keys.values())]
    assert {row[2] for row in rows if row[0] == "winter"} == {0}


def test_a_list_is_read_from_a_public_table() -> None:
    session = shop()
    lists = {
        "SELECT code FROM codes WHERE code IS NOT NULL": ["autumn", "spring", "summer"],
        "SELECT DISTINCT code FROM codes WHERE season < 3": ["spring", "summer"],
        "WITH late AS (SELECT code AS c FROM codes WHERE season > 3) SELECT LOWER(c) FROM late": [None, "autumn"],
    }
    for query, values in lists.items():
        answer = session.sql("SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon", epsilon=10**6, keys={"coupon": query})
        assert answer.table["coupon"].to_pylist() == values
        again = session.sql("SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon", epsilon=10**6, keys={"coupon": values})
        assert again.repeated and again.table.equals(answer.table)


REFUSED = {
    "SELECT coupon FROM orders": "public tables only",
    "SELECT r.city FROM regions r JOIN orders o ON r.city = o.city": "public tables only",
    "SELECT city FROM regions WHERE city IN (SELECT city FROM orders)": "private table first",
    "SELECT code, season FROM codes": "one column",
    "SELECT code FROM codes ORDER BY code LIMIT 1": "not supported",
    "SELECT code FROM codes WHERE season > 9": "0 values",
    "SELECT season FROM codes": "holds a string",
    "SELECT code FROM read_csv('/etc/passwd')": "declared tables",
}


@pytest.mark.parametrize("query", REFUSED)
def test_a_list_that_reads_private_rows_or_is_none_is_refused_before_anything_is_spent(query: str) -> None:
    session = shop()
    before = session.remaining()
    with pytest.raises(Unsupported, match=REFUSED[query]):
        session.sql("SELECT coupon, COUNT(*) AS n FROM orders GROUP BY coupon", epsilon=1, keys={"coupon": query})
    assert session.remaining() == before


def test_a_text_that_is_no_query_is_no_list() -> None:
    with pytest.raises(ParameterError, match="a list of values, or a SELECT"):
        shop().explain(QUERY, epsilon=1, keys={"coupon": "spring"})
    with pytest.raises(SfumatoError, match="more than 100,000"):
        shop().explain(
            "SELECT coupon, order_id, COUNT(*) AS n FROM orders GROUP BY coupon, order_id",
            epsilon=1,
            keys={"coupon": [str(n) for n in range(400)], "order_id": list(range(400))},
        )


def test_the_command_line_takes_a_list_from_a_public_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from sfumato.cli.arguments import key_values

    assert key_values(["coupon=SELECT code FROM codes WHERE season IN (1, 2)", "city=Bern, Basel"]) == {
        "coupon": "SELECT code FROM codes WHERE season IN (1, 2)",
        "city": ["Bern", "Basel"],
    }
