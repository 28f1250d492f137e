"""What an answer will look like is known from the query and the schema: free, and as the answer then is."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.main import app
from sfumato.dp.sql.measuring import one_query
from tests.dp.sql.database import customers, session

QUERIES = [
    "SELECT city, COUNT(*) AS n, AVG(age) AS age, SUM(income) AS s, STDDEV(age) AS spread FROM customers GROUP BY city",
    "SELECT member, MEDIAN(age) AS m, MAX(income) AS x, 100 - AVG(age) AS rest FROM customers GROUP BY member",
    "SELECT EXTRACT(MONTH FROM day) AS k, SUM(quantity) AS q, RANK() OVER (ORDER BY SUM(quantity)) AS r FROM orders GROUP BY k",
    "SELECT COUNT(*) AS n, CASE WHEN COUNT(*) > 5 THEN 'many' ELSE 'few' END AS size, COUNT(*) > 3 AS some FROM orders",
    "SELECT SUM(COUNT(*)) OVER () AS t, city FROM orders GROUP BY city",
    # Every cell is missing: the kind is still that of the expression.
    "SELECT CASE WHEN COUNT(*) > 100000000 THEN 'many' END AS size, CASE WHEN COUNT(*) > 100000000 THEN COUNT(*) > 3 END AS s, "
    "CASE WHEN COUNT(*) > 100000000 THEN DATE '2024-01-01' END AS day, NULLIF(COUNT(*), COUNT(*)) AS none FROM orders",
    "SELECT city, CASE WHEN COUNT(*) > 100000000 THEN city END AS large FROM orders GROUP BY city HAVING COUNT(*) > 100000000",
]
TYPES = {"string": pa.string(), "boolean": pa.bool_(), "date": pa.date32(), "number": pa.float64(), "integer": pa.int64()}


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_as_described(query: str) -> None:
    shop = session()
    left = shop.remaining()
    described = shop.describe(query)
    assert shop.remaining() == left
    answer = shop.sql(query, epsilon="0.2")  # much noise, so that bounds are reached
    assert [column.name for column in described] == list(answer.answer.names)
    assert [column.kind for column in described] == list(answer.answer.kinds)
    assert described.groups == answer.table.num_rows or "HAVING" in query
    for column in described:
        assert answer.table.schema.field(column.name).type == TYPES[column.kind]
        cells = [cell for cell in answer.table[column.name].to_pylist() if cell is not None]
        assert column.low is None or min(cells, default=math.inf) >= column.low - 1e-9
        assert column.high is None or max(cells, default=-math.inf) <= column.high + 1e-9


def test_bounds_kinds_and_noise_are_said() -> None:
    described = session().describe(
        "SELECT city, COUNT(*) AS n, AVG(age) AS age, 100 - AVG(age) AS rest FROM customers GROUP BY city"
    )
    city, n, age, rest = described
    assert (city.kind, city.noisy, city.values) == ("string", False, 4)
    assert (n.kind, n.noisy, n.low, n.high) == ("integer", True, None, None)
    assert (age.low, age.high, rest.low, rest.high) == (0, 120, -20, 100)
    assert described["age"] == age and "age: number, with noise, from 0 to 120" in str(described)


def test_no_row_is_read_and_no_bound_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_query, "run", lambda *_: pytest.fail("the engine was asked"))
    shop = session(max_rows=None, max_groups=None)
    described = shop.describe("SELECT coupon, SUM(amount) AS s FROM orders GROUP BY coupon")
    assert described.groups is None and described["coupon"].values is None
    given = shop.describe("SELECT coupon, SUM(amount) AS s FROM orders GROUP BY coupon", keys={"coupon": ["spring", "summer"]})
    assert given.groups == 2
    with pytest.raises(sf.core.errors.Unsupported, match="single rows"):
        shop.describe("SELECT * FROM customers")


def test_the_command_line_describes(tmp_path: Path) -> None:
    csv.write_csv(customers(), tmp_path / "customers.csv")
    (tmp_path / "schema.toml").write_text(
        'dataset = "shop"\n[columns.customer_id]\nrole = "unit"\ntype = "integer"\n[columns.age]\ntype = "integer"\n'
        'bounds = [0, 120]\n[columns.city]\ntype = "string"\ndomain = ["Bern", "Basel"]\n',
        encoding="utf-8",
    )
    arguments = ["query", "SELECT city, AVG(age) AS age FROM customers GROUP BY city", "--describe"]
    arguments += ["--data", str(tmp_path / "customers.csv"), "--schema", str(tmp_path / "schema.toml")]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert "city: string, without noise, 2 values" in shown.output and "nothing was spent" in shown.output
    facts = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert facts["groups"] == 2 and facts["columns"][1]["high"] == 120 and facts["columns"][1]["noisy"] is True
