"""The query that a certificate names is the query that was asked: asked again, it is the same question."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from tests.dp.sql.database import session
from tests.dp.sql.test_same_question import identity

SHOP = [
    entry["ask"]
    for entry in tomllib.loads((Path(__file__).parent / "queries.toml").read_text())["query"]
    if "refused" not in entry
]
AWKWARD = [
    "SELECT SUM(CLAMP(age // 2, 0, 5)) FROM customers",
    "SELECT AVG(age / 2), SUM(age) // 2, ROUND(AVG(age) / 3, 1) FROM customers",
    "SELECT age // 10, COUNT(*) FROM customers GROUP BY age // 10",
    "SELECT FLOOR(income / 3), COUNT(*) FROM customers GROUP BY FLOOR(income / 3)",
    "SELECT EXTRACT(DOY FROM day), COUNT(*) FROM orders GROUP BY EXTRACT(DOY FROM day)",
    "SELECT EXTRACT(ISODOW FROM day), COUNT(*) FROM orders GROUP BY EXTRACT(ISODOW FROM day)",
    "SELECT PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY age DESC) AS x FROM customers",
    "SELECT PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY age) AS x FROM customers",
    "SELECT COUNT(*) /* people */ AS n FROM customers WHERE city IN ('Bern', 'it''s', '\\n') OR age % 7 = 3 ORDER BY n DESC",
    "SELECT SUM(TRY_CAST(age AS DOUBLE)), SUM(CAST(member AS INT)), VARIANCE(age), COUNT_IF(age > 3) FROM customers",
    "SELECT COUNT(*) FROM orders WHERE day >= '2024-03-01'::DATE AND DATE_TRUNC('month', day) > DATE '2024-01-01'",
]


@pytest.mark.parametrize("query", [*SHOP, *AWKWARD])
def test_the_certified_query_is_the_same_question(query: str) -> None:
    asked = session(budget=sf.PureDP(10), max_groups=4)
    question = asked._question(asked._parsed(query), None)
    again = asked._question(asked._parsed(question.text), None)
    assert again.text == question.text
    assert identity(asked, question.text) == identity(asked, query)
    assert (again.shown, again.having, again.order) == (question.shown, question.having, question.order)


def test_the_certified_query_asked_again_is_repeated(tmp_path: Path) -> None:
    schema = {"dataset": "d", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    data = sf.read(pa.table({"x": list(range(10))}), schema=schema)
    asked = sf.Session(data, ledger=tmp_path / "ledger.db", budget=sf.PureDP(10))
    first = asked.sql("SELECT SUM(CLAMP(x // 2, 0, 5)) AS s, AVG(x / 2) AS a FROM d", epsilon=1)
    certified = first.outcome.method["query"]
    assert certified == "SELECT SUM(CLAMP(x // 2, 0, 5)) AS s, AVG(x / 2) AS a FROM d"
    again = asked.sql(certified, epsilon=1)
    assert again.repeated and again.table.equals(first.table)


def test_unnamed_columns_and_keys_are_called_as_they_are_written() -> None:
    asked = session(budget=sf.PureDP(10), max_groups=4)
    question = asked._question(asked._parsed("SELECT age // 10, AVG(income / 2) FROM customers GROUP BY age // 10"), None)
    assert [column.name for column in question.shown] == ["age // 10", "avg(income / 2)"]
    assert [key.label for key in question.keys] == ["age // 10"]


def test_an_unknown_function_is_named_and_the_offered_ones_exist() -> None:
    asked = session(budget=sf.PureDP(10), max_groups=4)
    for query in ("SELECT VAR(age) FROM customers", "SELECT MODE(age) FROM customers"):
        with pytest.raises(Unsupported, match="not supported") as refusal:
            asked.explain(query, epsilon=1)
        offered = str(refusal.value).split("there are ")[1].replace(" and ", ", ").split(", ")
        for name in offered:
            arguments = {"QUANTILE": "age, 0.5", "CORR": "age, income", "REGR_SLOPE": "income, age"}.get(name, "age")
            asked.explain(f"SELECT {name}({arguments}) FROM customers", epsilon=1)


def test_a_quantile_is_ordered_by_itself() -> None:
    asked = session(budget=sf.PureDP(10), max_groups=4)
    with pytest.raises(Unsupported, match="no other"):
        asked.explain("SELECT QUANTILE_CONT(age, 0.5 ORDER BY income) FROM customers", epsilon=1)
