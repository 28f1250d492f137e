"""A question in DuckDB without noise: rows clamped to their declared bounds, rows of undeclared keys left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from tests.dp.sql.database import CUSTOMERS, ORDERS, customers, orders, regions

#: What the language has and DuckDB has not.
MACROS = "CREATE MACRO CLAMP(x, low, high) AS CASE WHEN x < low THEN low WHEN x > high THEN high ELSE x END"


def shop() -> duckdb.DuckDBPyConnection:
    """The tables of the shop, each number within its bounds."""
    duck = duckdb.connect()
    duck.execute("SET ieee_floating_point_ops = false")  # x / 0 is missing, as it is in the language
    duck.execute(MACROS)
    for name, table, schema in (("customers", customers(), CUSTOMERS), ("orders", orders(), ORDERS), ("regions", regions(), {})):
        columns = schema.get("columns", {})
        duck.register("given", table)
        duck.execute(
            f"CREATE TABLE {name} AS SELECT {', '.join(_clamped(each, columns) for each in table.column_names)} FROM given"
        )
        duck.unregister("given")
    return duck


def _clamped(column: str, columns: Mapping[str, Any]) -> str:
    bounds = columns.get(column, {}).get("bounds")
    return f"{column}" if bounds is None else f"CLAMP({column}, {bounds[0]}, {bounds[1]}) AS {column}"


def declared_values(keys: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The declared values of each column of the shop, and those that come with the question."""
    described = {**CUSTOMERS["columns"], **ORDERS["columns"]}
    listed = {name: column["domain"] for name, column in described.items() if "domain" in column}
    return {**listed, "member": [False, True], **keys}


def rows(duck: duckdb.DuckDBPyConnection, query: str, keys: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """What the question says of the rows whose keys are declared."""
    select = sqlglot.parse_one(query, dialect="duckdb")
    assert isinstance(select, exp.Select)
    group = select.args.get("group")
    declared = declared_values(keys)
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Column) and key.name in declared:
            listed = ", ".join(exp.convert(value).sql("duckdb") for value in declared[key.name])
            select = select.where(f"{key.sql('duckdb')} IN ({listed})", dialect="duckdb")
    # As it was typed where nothing had to be left out: DuckDB reads the text, not our parser's writing of it.
    answer = duck.execute(select.sql("duckdb") if group is not None else query)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
