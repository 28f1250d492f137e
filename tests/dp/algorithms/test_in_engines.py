"""Algorithms of counts on tables that stay in their engine: the same counts, the same draws, and only cells come here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.randomness import default
from sfumato.data.microdata import Microdata
from sfumato.dp.algorithms import declared_values
from sfumato.dp.algorithms.base import Algorithm
from sfumato.dp.algorithms.engine_codes import edges_code, equal_steps
from sfumato.dp.algorithms.engine_counts import rows_in_engine
from sfumato.dp.synthesis import base as synthesis
from sfumato.dp.synthesis.declared_domain import declared_domain
from sfumato.dp.synthesis.engine_marginals import EngineMarginals, engine_codes
from sfumato.engines.cell_counts import KeptRows
from sfumato.engines.duckdb.relation import DuckDBRelation
from sfumato.engines.sql.relation import SqlRelation
from tests.engines.conftest import OpenTable, on_engine

__all__ = ["on_engine"]

COLUMNS: dict[str, dict[str, Any]] = {
    "sex": {"type": "string", "domain": ["f", "m"]},
    "age": {"type": "integer", "bounds": [0, 79]},
    "income": {"type": "number", "bounds": [0, 3000]},
    "floor": {"type": "string", "domain": ["0", "1", "2.5"]},
    "letter": {"type": "string", "domain": [chr(97 + place) for place in range(20)]},
    "since": {"type": "date", "domain": ["2020-01-01", "2021-05-06"]},
    "member": {"type": "boolean"},
    "place": {"type": "integer"},
}
TEXT = pa.string()


def people(rows: int, units: int, seed: int = 3) -> pa.Table:
    """Values on edges, outside bounds and domains, written in several ways, and missing ones."""
    random = np.random.default_rng(seed)

    def drawn(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[place] for place in random.integers(len(values), size=rows)], kind)

    edges = [float(edge) for edge in np.linspace(0, 3000, 8)]
    numbers = [*edges, *(float(np.nextafter(edge, 9e9)) for edge in edges), *(float(np.nextafter(edge, -9e9)) for edge in edges)]
    return pa.table(
        {
            "sex": drawn(["f", "f", "m", "m", " m", "x", None], TEXT),
            "age": drawn([*range(-2, 83), None], pa.int64()),
            "income": drawn([*numbers, -1e300, 1e300, 1e-300, float("inf"), None], pa.float64()),
            "floor": drawn(["0", "1", "1.0", "1e0", "2.5", "2.50", "-0", "ground", "", None], TEXT),
            "letter": drawn([*(chr(97 + place) for place in range(22)), "a\t", None], TEXT),
            "since": drawn([date(2020, 1, 1), date(2021, 5, 6), date(1999, 1, 1)], pa.date32()),
            "member": drawn([True, False, None], pa.bool_()),
            "place": drawn([*range(9), None], pa.int64()),
            "who": pa.array([None if place % 97 == 5 else f"u{place % units}" for place in range(rows)], TEXT),
        }
    )


def read(table: pa.Table, columns: list[str], unit: bool) -> Microdata:
    described = {name: COLUMNS[name] for name in columns}
    if unit:
        described["who"] = {"role": "unit", "type": "string"}
    return sf.read(table.select([*described]), {"dataset": "people", "unlisted": "drop", "columns": described})


def result(algorithm: Algorithm, data: Microdata) -> Any:
    shown = algorithm.run(data, randomness=default(7)).result
    return shown.to_pydict() if isinstance(shown, pa.Table) else shown


EVENLY, UNEVENLY = {"income": 7}, {"income": [-1e9, 0.0, 0.5, 400.0, 3000.0]}
HISTOGRAMS: dict[str, Algorithm] = {
    "listed": sf.dp.PrivateHistogram(("sex", "letter", "since", "member"), epsilon=1, max_rows=2),
    "whole": sf.dp.PrivateHistogram(("age",), epsilon=1, max_rows=2),
    "even bins": sf.dp.PrivateHistogram(("income", "sex"), rho=1, bins=EVENLY, max_rows=2),
    "uneven bins": sf.dp.PrivateHistogram(("income",), epsilon=1, bins=UNEVENLY, max_rows=2),
    "units": sf.dp.PrivateHistogram(("sex", "member"), epsilon=1, max_rows=2, count="units"),
    "quantiles": sf.dp.PrivateQuantiles("income", (0.1, 0.5), epsilon=1, max_rows=2),
    "top": sf.dp.TopK("letter", 3, epsilon=1),
    "top mentions": sf.dp.TopK("letter", 3, epsilon=1, repeats=True, max_rows=2),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_counts_of_an_engine_give_the_same_draws(name: str, on_engine: OpenTable, request: pytest.FixtureRequest) -> None:
    """At most two rows of each unit, so that no bound chooses."""
    if "spark" in request.node.name and name not in ("listed", "even bins", "units"):
        pytest.skip("a case takes Spark a second: one for each kind of plan")
    table = people(300, 150)
    here = read(table, [*COLUMNS], unit=True)
    there = replace(here, relation=on_engine(here.table()))
    assert result(HISTOGRAMS[name], there) == result(HISTOGRAMS[name], here)


@pytest.mark.parametrize("bounds", [(0.5, 10.5), (-0.5, 9.5), (0, 9)])
def test_whole_numbers_between_fractional_bounds_are_in_the_bins_of_memory(bounds: Any, tmp_path: Path) -> None:
    """Edges one apart were taken for whole numbers: numbers fell into the next bin, or the run failed."""
    table = pa.table({"x": pa.array([1, 1, 2, 3, 10, 0, -5, 11, None], pa.int64())})
    schema = sf.Schema.parse({"dataset": "d", "unit": "record", "columns": {"x": {"type": "integer", "bounds": list(bounds)}}})
    here = sf.read(table, schema)
    pq.write_table(table, tmp_path / "rows.parquet")
    there = replace(here, relation=DuckDBRelation(tmp_path / "rows.parquet"))
    histogram = sf.dp.PrivateHistogram(("x",), epsilon=1, bins={"x": 10})
    assert histogram.counts(there).tolist() == histogram.counts(here).tolist()


def test_declared_infinities_are_counted_as_in_memory(tmp_path: Path) -> None:
    table = pa.table({"x": [0.1, -0.0, 0.0, float("inf"), float("-inf"), 1.0]})
    column = {"type": "number", "domain": ["0", "0.1", "inf", "-inf", "1"]}
    here = sf.read(table, sf.Schema.parse({"dataset": "d", "unit": "record", "columns": {"x": column}}))
    pq.write_table(table, tmp_path / "rows.parquet")
    there = replace(here, relation=DuckDBRelation(tmp_path / "rows.parquet"))
    histogram = sf.dp.PrivateHistogram(("x",), epsilon=1)
    assert histogram.counts(there).tolist() == histogram.counts(here).tolist() == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("unit", [False, True])
def test_synthetic_tables_are_equal_on_all_engines(unit: bool, on_engine: OpenTable, request: pytest.FixtureRequest) -> None:
    names = ["sex", "age", "income", "floor", "letter", "member"]
    here = read(people(300, 150), names, unit)
    there = replace(here, relation=on_engine(here.table()))
    max_rows = 2 if unit else None
    methods: list[Algorithm] = [sf.dp.Mst(rho=1, max_rows=max_rows, missing=("letter", "income"))]
    if "spark" not in request.node.name and not unit:
        methods.append(sf.dp.Aim(rho="0.05", max_rows=max_rows, bins=5))
    for method in methods:
        assert result(method, there) == result(method, here)


@pytest.mark.parametrize("count", ["rows", "units"])
def test_the_first_rows_of_a_unit_are_the_same_on_all_engines(count: Any, on_engine: OpenTable) -> None:
    here = read(people(200, 7), ["sex", "letter", "place"], unit=True)
    histogram = sf.dp.PrivateHistogram(("sex", "letter"), epsilon=1, max_rows=3, count=count, bounding="truncate", order="place")
    assert histogram.counts(replace(here, relation=on_engine(here.table()))).tolist() == histogram.counts(here).tolist()


def marginals_of(data: Microdata, salt: str, limit: int) -> Callable[[tuple[int, ...]], np.ndarray[Any, Any]]:
    """Each combination counted by a query of its own, as if it did not fit beside the others."""
    domain = declared_domain(data.schema, data.column_names, bins=4, who="test")
    relation = rows_in_engine(data, [*domain.names, "who"])
    if relation is None:
        method = synthesis.Synthesis._counted
        codes = domain.encode(data.table())
        units = declared_values.unit_codes(data.table(), "who")
        counted = method(sf.dp.Mst(rho=1, max_rows=limit), codes, units, default(salt))
        return synthesis.CodedRecords(counted, domain.sizes).marginal
    coded = engine_codes(domain, [relation.fields[name].kind for name in domain.names], relation)
    assert coded is not None
    return EngineMarginals(relation, coded, KeptRows("who", limit, salt)).marginal


def test_neighbours_differ_in_the_rows_of_one_unit_and_in_the_same_rows_everywhere(on_engine: OpenTable) -> None:
    """Before noise: without one unit every combination loses at most `limit` rows, all combinations the same ones."""
    table = people(240, 6)
    limit, names = 3, ["sex", "age", "letter"]
    here = read(table, names, unit=True)
    without = here.table().filter(pa.compute.fill_null(pa.compute.not_equal(here.table().column("who"), "u2"), True))
    full, less = (marginals_of(replace(here, relation=on_engine(rows)), "5a17" * 8, limit) for rows in (here.table(), without))
    lost = {columns: full(columns) - less(columns) for columns in [(0, 1), (2,), (0, 1, 2)]}
    if on_engine.__name__ == "MemoryRelation":  # rows are chosen by their place in the table, which a missing unit moves
        assert all(table.sum() == full((0,)).sum() - less((0,)).sum() for table in lost.values())
    else:
        assert all(table.min() >= 0 and table.sum() == limit for table in lost.values())
    whole = lost[0, 1, 2]
    for columns, part in lost.items():
        others = tuple(axis for axis in range(3) if axis not in columns)
        assert np.array_equal(whole.sum(axis=others), part)


def test_every_row_of_a_unit_is_as_likely_to_be_kept(tmp_path: Path) -> None:
    """3,000 units with three rows of which one counts; a deviation of five and a half happens once in 10⁷ runs."""
    units = 3_000
    table = pa.table({"sex": ["f", "f", "m"] * units, "who": [f"u{place}" for place in range(units) for _ in range(3)]})
    pq.write_table(table, tmp_path / "rows.parquet")
    here = read(table, ["sex"], unit=True)
    there = replace(here, relation=DuckDBRelation(tmp_path / "rows.parquet"))
    women, men = sf.dp.PrivateHistogram(("sex",), epsilon=1, max_rows=1).counts(there, default(11))
    assert women + men == units
    assert abs(women - 2 * units / 3) < 5.5 * (units * 2 / 9) ** 0.5


EDGES = [np.linspace(0, 1, 8), np.linspace(-7, 3, 1001), np.linspace(0.1, 0.7, 4097), np.array([0, 1, 1.5, 9.0])]


def test_numbers_lie_in_the_same_bin_as_here(on_engine: OpenTable) -> None:
    near = [np.concatenate([each, np.nextafter(each, 1e9), np.nextafter(each, -1e9), [-1e308, 1e308, 5e-324]]) for each in EDGES]
    rows = max(map(len, near))
    numbers = [np.resize(each, rows) for each in near]
    relation = on_engine(pa.table({f"x{place}": pa.array(each, pa.float64()) for place, each in enumerate(numbers)}))
    if not isinstance(relation, SqlRelation):
        return
    codes = [edges_code(f"x{place}", "number", list(edges), whole=False) for place, edges in enumerate(EDGES)]
    counted = EngineMarginals(relation, [code for code in codes if code is not None], KeptRows(None))
    counted.prepare([(place,) for place in range(len(EDGES))])
    for place, (edges, inner) in enumerate(zip(EDGES, numbers, strict=True)):
        bins = np.clip(np.searchsorted(edges, np.clip(inner, edges[0], edges[-1]), side="right") - 1, 0, len(edges) - 2)
        assert counted.marginal((place,)).tolist() == np.bincount(bins, minlength=len(edges) - 1).tolist()


def test_bounds_that_leave_no_room_between_edges_are_read_here() -> None:
    crowded = np.linspace(1e15, 1e15 + 1, 1001)
    assert not equal_steps(crowded) and edges_code("x", "number", list(crowded), whole=False) is None


@pytest.fixture
def crossing(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What comes out of DuckDB into this process: rows and columns of each answer."""
    answers: list[tuple[int, int]] = []
    ask: Callable[..., pa.Table] = DuckDBRelation.run

    def counted(self: DuckDBRelation, *arguments: Any, **named: Any) -> pa.Table:
        answer = ask(self, *arguments, **named)
        answers.append((answer.num_rows, answer.num_columns))
        return answer

    def refused(self: DuckDBRelation, *_: Any) -> Any:
        raise AssertionError("rows were collected")

    monkeypatch.setattr(DuckDBRelation, "run", counted)
    monkeypatch.setattr(DuckDBRelation, "stream", refused)
    return answers


@pytest.mark.parametrize("unit", [False, True])
def test_only_cells_cross_the_border_of_the_engine(unit: bool, tmp_path: Path, crossing: list[tuple[int, int]]) -> None:
    rows = 20_000
    table = people(rows, 5_000)
    pq.write_table(table, tmp_path / "people.parquet")
    here = read(table.slice(0, 0), ["sex", "age", "member"], unit)
    there = replace(here, relation=DuckDBRelation(tmp_path / "people.parquet"))
    session = sf.Session(there, budget=sf.ConcentratedDP(2), seed=3)
    bound = 2 if unit else None
    session.release(sf.dp.PrivateHistogram(("sex", "age"), rho="0.5", max_rows=bound))
    assert crossing == [(2 * 80, 2)]
    crossing.clear()
    session.release(sf.dp.Mst(rho="0.5", max_rows=bound, bins=80, report=False))
    assert crossing == [(2 * 80 * 2, 2)]  # so few declared cells are one block
    crossing.clear()
    session.release(sf.dp.Mst(rho="0.5", max_rows=bound, bins=80))
    assert len(crossing) == (3 if unit else 2)  # the owner's report counts all rows, and the cells of every row of a unit
    assert max(cells for cells, _ in crossing) <= 320 and {columns for _, columns in crossing} <= {1, 2}


def test_blocks_hold_every_combination_and_few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    from itertools import combinations

    from sfumato.dp.synthesis import engine_marginals

    sizes = [2, 7, 32, 16, 5, 41, 2, 16, 7, 5, 2, 100, 100, 100, 6]
    pairs = list(combinations(range(len(sizes)), 2))
    blocks = engine_marginals.covering_blocks(pairs, sizes)
    assert all(set(pair) <= set(block) for pair, block in zip(pairs, blocks, strict=True))
    assert all(np.prod([sizes[place] for place in block]) <= engine_marginals.BLOCK_CELLS for block in blocks)
    assert len(Counter(blocks)) < 40
