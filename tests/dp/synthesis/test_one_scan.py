"""Units and values come from one scan, whatever order an engine gives the rows in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.core.randomness import default
from sfumato.data.microdata import Microdata
from sfumato.dp.synthesis.base import Synthesis
from sfumato.engines.memory import MemoryRelation

SCHEMA = {
    "dataset": "visits",
    "columns": {
        "who": {"role": "unit", "type": "string"},
        "item": {"type": "string", "domain": ["0", "1"], "source": "declared"},
    },
}


class Shuffled(MemoryRelation):
    """Rows in another order at each scan, as engines without an order give them."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        self._source = table
        self.scans = 0

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        self.scans += 1
        order = np.random.default_rng(self.scans).permutation(self._source.num_rows)
        yield from MemoryRelation(self._source.take(pa.array(order))).batches(columns)


def visits(victim: int) -> pa.Table:
    """400 people with one visit each, and one person with many of another kind."""
    who = [f"u{place}" for place in range(400)] + ["victim"] * victim
    return pa.table({"who": who, "item": ["0"] * 400 + ["1"] * victim})


def ones(outcome: sf.Outcome[pa.Table]) -> int:
    return outcome.result.column("item").to_pylist().count("1")


@pytest.mark.parametrize("method", [sf.dp.Mst, sf.dp.Aim])
def test_one_unit_keeps_max_rows_when_the_order_changes_at_each_scan(method: type[Synthesis]) -> None:
    """The noise has a deviation below 2; 400 rows of one person would show as hundreds of records."""
    data = sf.read(visits(400), SCHEMA)
    assert isinstance(data, Microdata)
    relation = Shuffled(data.table())
    outcome = method(rho=1, max_rows=1, report=False).run(replace(data, relation=relation), randomness=default(1))
    assert relation.scans == 1
    assert ones(outcome) < 20


def test_one_unit_keeps_max_rows_of_a_view_without_an_order(tmp_path: Path) -> None:
    """DISTINCT over several threads gives rows in no order; the deviation of the noise is below 2."""
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table raw as select 'u' || i as who, '0' as item, i as k from range(40000) t(i) "
            "union all select 'victim', '1', 1000000 + i from range(3000) t(i)"
        )
        connection.execute("create view visits as select distinct who, item, k from raw")
    data = sf.read(path, schema={**SCHEMA, "unlisted": "drop"}, table="visits", engine="duckdb")
    session = sf.Session(data, budget=sf.ConcentratedDP(2), seed=3)
    assert ones(session.release(sf.dp.Mst(rho=1, max_rows=1, report=False))) < 20


def test_nothing_is_drawn_beyond_most_rows() -> None:
    data = sf.read(visits(0), SCHEMA)
    assert sf.dp.Mst(rho=1, max_rows=1, most_rows=50, report=False).run(data, randomness=default(1)).result.num_rows == 50
    assert sf.dp.Mst(rho=1, max_rows=1).most_rows == 1 << 24


@pytest.mark.parametrize("method", [sf.dp.Mst, sf.dp.Aim])
def test_a_rho_below_a_millionth_is_refused(method: type[Synthesis]) -> None:
    with pytest.raises(ParameterError, match="millionth"):
        method(rho="1e-18")
    with pytest.raises(ParameterError, match="millionth"):
        method(epsilon="1e-9", delta="1e-9")
    with pytest.raises(ParameterError, match="most_rows"):
        method(rho=1, most_rows=0)
    assert method(rho="1e-6").budget > 0


def test_a_session_hands_the_owners_report_to_nobody_who_does_not_ask() -> None:
    session = sf.Session(sf.read(visits(0), SCHEMA), budget=sf.ConcentratedDP(2), seed=3)
    method = sf.dp.Mst(rho="0.1", max_rows=1)
    assert session.release(method).details["owner"] == {}
    assert session.release(method, for_owner=True).details["owner"]["quality"]["records"]["original"] == 400
