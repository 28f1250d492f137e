"""Declared values that are written differently and mean the same are one group, which gets noise once."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf


@pytest.mark.parametrize(
    ("kind", "domain", "rows", "groups"),
    [
        ("integer", ["1", "01", " 1", "2"], [1, 1, 2], [1, 2]),
        ("boolean", ["true", "TRUE", "false"], [True, True, False], [True, False]),
        ("date", ["2020-01-01", "20200101"], [datetime.date(2020, 1, 1)] * 3, [datetime.date(2020, 1, 1)]),
        ("string", ["a", "a ", "b"], ["a", "a ", "b"], ["a", "a ", "b"]),
    ],
)
def test_each_group_is_shown_and_counted_once(kind: str, domain: list[str], rows: list[Any], groups: list[Any]) -> None:
    schema = {"dataset": "d", "columns": {"k": {"type": kind, "domain": domain}}}
    session = sf.Session(sf.read(pa.table({"k": rows}), schema=schema), budget=sf.PureDP(10**10))
    query = "SELECT k, COUNT(*) AS n FROM d GROUP BY k"
    assert session.explain(query, epsilon=1).groups == len(groups)
    shown = session.sql(query, epsilon=10**9).table.to_pylist()
    assert [(row["k"], row["n"]) for row in shown] == [(group, rows.count(group)) for group in groups]


def test_keys_that_are_given_twice_are_one_group() -> None:
    schema = {"dataset": "d", "columns": {"k": {"type": "integer"}}}
    session = sf.Session(sf.read(pa.table({"k": [1, 1, 2]}), schema=schema), budget=sf.PureDP(10**10))
    answer = session.sql("SELECT k, COUNT(*) AS n FROM d GROUP BY k", epsilon=10**9, keys={"k": [1, 2, 1]})
    assert answer.table.to_pylist() == [{"k": 1, "n": 2}, {"k": 2, "n": 1}]
