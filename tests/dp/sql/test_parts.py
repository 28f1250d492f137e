"""Long expressions are computed in parts: the text stays short and the numbers stay the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.dp.sql.measuring.long_expressions import in_parts
from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.functions import numbers as f
from sfumato.engines.sql.values import written_size

X = np.array([1.5, 2.25, 40.0, 99.0, 7.75, 63.5])
K = np.array([1, 2, 30, 4, 50, 100])
SCHEMA = {
    "dataset": "d",
    "columns": {
        "u": {"role": "unit", "type": "integer"},
        "x": {"type": "number", "bounds": [0, 100]},
        "i": {"type": "integer", "bounds": [0, 100]},
    },
}
EXPECTED = {
    "VAR_POP(x * i)": np.var(X * K),
    "STDDEV_POP(x * 2 + 1)": np.std(2 * X + 1),
    "VAR_POP(LEAST(i, x, 20))": np.var(np.minimum(np.minimum(K, X), 20)),
    "VAR_POP(ABS(x - 50))": np.var(np.abs(X - 50)),
    "VAR_POP(CLAMP(x, 0, 10) * i + x)": np.var(np.clip(X, 0, 10) * K + X),
    "VAR_POP(ROUND(x))": np.var(np.floor(X + 0.5)),
}


@pytest.mark.parametrize("statistic", EXPECTED)
def test_a_variance_of_an_expression_is_that_of_its_values(statistic: str) -> None:
    table = pa.table({"u": np.arange(6), "x": X, "i": K})
    session = sf.Session(sf.read(table, SCHEMA), budget=sf.PureDP(10**12), max_rows=1)
    found = session.sql(f"SELECT {statistic} AS v FROM d", epsilon=10**11).table["v"][0].as_py()
    assert found == pytest.approx(EXPECTED[statistic], rel=1e-3)


def test_parts_are_short_and_shared_ones_have_one_column() -> None:
    value: e.Expression = e.Reference("x")
    for _ in range(12):
        value = f.Clamp(e.Arithmetic("+", value, e.Literal(1.0)), 0.0, 1e6)
    product = e.Arithmetic("*", value, value)
    scan = p.Scan("rows", (p.Field("x", "number"), p.Field("part 0", "number")))
    plan, shorter = in_parts(scan, {"product": product, "again": product, "x": e.Reference("x")})
    assert written_size(product) > 10**7 and shorter["again"] == shorter["product"] and shorter["x"] == e.Reference("x")
    names = []
    while isinstance(plan, p.Project):
        assert all(written_size(named.expression) <= 500 for named in plan.columns)
        names += [named.name for named in plan.columns if named.expression != e.Reference(named.name)]
        plan = plan.source
    assert plan == scan and len(names) == len(set(names)) and "part 0" not in names


def test_what_is_short_stays_as_it_is() -> None:
    scan = p.Scan("rows", (p.Field("x", "number"),))
    inputs = {"a": f.Clamp(e.Reference("x"), 0.0, 1.0)}
    assert in_parts(scan, inputs) == (scan, inputs)
