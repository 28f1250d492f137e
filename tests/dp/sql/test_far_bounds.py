"""Bounds beyond 64 bits: no question fails because of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.errors import Unsupported
from sfumato.engines import expressions as e
from sfumato.engines.functions import numbers as f

QUESTIONS = [
    "SELECT COUNT(*) AS n FROM d WHERE name = 'Anna' AND hiv AND CLAMP(big, 0, 1e30) > 5",
    "SELECT COUNT(*) AS n FROM d WHERE name = 'Anna' AND hiv AND CLAMP(big, -1e30, 1e30) > 5",
    "SELECT COUNT(CASE WHEN hiv THEN CLAMP(big, -1e25, 3) END) AS n FROM d",
    "SELECT SUM(CLAMP(CLAMP(big, 0, 1e30), 0, 10)) AS n FROM d WHERE hiv",
    "SELECT COUNT(*) AS n FROM d WHERE hiv AND WIDTH_BUCKET(CLAMP(big, 0, 1e30), 0, 10, 5) = 1",
    "SELECT COUNT(*) AS n FROM d WHERE hiv AND wide + 1 > 3 AND FLOOR(wide / 10) < 9",
]


def session(hiv: bool, engine: Any, place: Path) -> sf.Session:
    columns: dict[str, Any] = {
        "u": {"role": "unit", "type": "integer"},
        "name": {"type": "string"},
        "hiv": {"type": "boolean"},
        "big": {"type": "integer"},
        "wide": {"type": "integer", "bounds": [-1e30, 1e30]},
    }
    rows = {"u": [1, 2, 3], "name": ["Bob", "Carl", "Anna"], "hiv": [False, False, hiv], "big": [1, 2, 3], "wide": [1, 2, 3]}
    pq.write_table(pa.table(rows), place / "d.parquet")
    return sf.Session(
        sf.read(place / "d.parquet", {"dataset": "d", "columns": columns}, engine=engine), budget=sf.PureDP(10**9), max_rows=1
    )


@pytest.mark.covering
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_whatever_the_rows(question: str, engine: str, tmp_path: Path) -> None:
    counts = [session(hiv, engine, tmp_path).sql(question, epsilon=10**6).table["n"][0].as_py() for hiv in (False, True)]
    assert counts[0] == 0 and counts[1] in (0, 1, 3)


@pytest.mark.parametrize("bounds", ["1e30, 1e31", "-1e31, -1e30"])
def test_bounds_that_no_whole_number_reaches_are_refused(bounds: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="64 bits"):
        session(True, "duckdb", tmp_path).sql(f"SELECT COUNT(*) AS n FROM d WHERE CLAMP(big, {bounds}) > 5", epsilon=1)


@pytest.mark.parametrize(
    "expression",
    [
        f.Clamp(e.Reference("x"), 0, 2**63),
        f.Clamp(e.Reference("x"), -(2**63) - 1, 0),
        f.Clamp(e.Reference("w"), 0, 10**38),
        e.Compare("<", e.Reference("x"), e.Literal(10**38)),
        e.OneOfValues(e.Reference("x"), (1, 10**40)),
    ],
)
def test_constants_that_an_engine_cannot_hold_are_no_plan(expression: e.Expression) -> None:
    with pytest.raises(Unsupported, match="64 bits|38 digits"):
        e.kind_of(expression, {"x": "integer", "w": "wide"})
