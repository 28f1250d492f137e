"""Fifty questions as analysts ask them: which are answered, and why the others are not."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.reading.grouping import KEY
from tests.dp.sql.database import session

QUERIES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("queries.toml").read_text(encoding="utf-8"))["query"]


@pytest.fixture(scope="module")
def shop() -> Any:
    return session()


def loss_of(query: dict[str, Any]) -> dict[str, Any]:
    epsilon = query.get("epsilon", 1)
    return {"epsilon": epsilon, "delta": "1e-4"} if query.get("loss") == "delta" else {"epsilon": epsilon}


@pytest.mark.parametrize("query", [q for q in QUERIES if "refused" not in q], ids=lambda q: q["ask"][:60])
def test_it_is_answered_with_an_error_for_every_number(shop: Any, query: dict[str, Any]) -> None:
    answer = shop.sql(query["ask"], **loss_of(query))
    assert answer.table.column_names == answer.errors.column_names
    shown = shop._question(shop._parsed(query["ask"]), None).shown
    keys = [isinstance(column.expression, exp.Column) and column.expression.name.startswith(KEY) for column in shown]
    assert not all(keys)
    for errors in answer.answer.errors:
        assert [error is None for error in errors] == keys
        assert all(error is None or 0 <= error < float("inf") for error in errors)


def test_a_share_of_what_may_be_nothing_has_no_error() -> None:
    (query,) = [q for q in QUERIES if "epsilon" in q]
    answer = session().sql(query["ask"].replace(" FROM", ", SUM(amount) AS total FROM"), epsilon="0.1")
    (shown,), (margin,) = answer.table.to_pylist(), answer.margins().to_pylist()
    assert abs(shown["total"]) < margin["total"] and margin["share"] is None and answer.answer.errors[0][0] is None


@pytest.mark.parametrize("query", [q for q in QUERIES if "refused" in q], ids=lambda q: q["ask"][:60])
def test_it_is_refused_for_the_right_reason(shop: Any, query: dict[str, Any]) -> None:
    before = shop.remaining()
    with pytest.raises(Unsupported, match=query["refused"]):
        shop.sql(query["ask"], **loss_of(query))
    assert shop.remaining() == before


def test_the_share_that_is_answered(record_property: Any, capsys: pytest.CaptureFixture[str]) -> None:
    answered = sum("refused" not in query for query in QUERIES)
    record_property("answered", f"{answered} of {len(QUERIES)}")
    with capsys.disabled():
        print(f"\n{answered} of {len(QUERIES)} analyst queries are answered, {len(QUERIES) - answered} refused for their reasons")
    assert (answered, len(QUERIES)) == (33, 50)
