"""Rows that DuckDB counts are the rows that it hands over one by one, and the release is the same file as from memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines.duckdb import connections
from sfumato.workflow.publishing.released_form import released_form

SCHEMA = {
    "dataset": "counted",
    "columns": {
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [5, 20]}},
        "town": {"role": "quasi"},
        "illness": {"role": "sensitive"},
        "visits": {"role": "plain", "type": "integer"},
        "share": {"role": "plain", "type": "number"},
    },
}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    draw = np.random.default_rng(4)
    count = 600
    table = pa.table(
        {
            "age": draw.integers(20, 60, count),
            "town": [None if each == 3 else f"t{each}" for each in draw.integers(0, 4, count)],
            "illness": [f"i{each}" for each in draw.integers(0, 3, count)],
            "visits": pa.array(draw.integers(0, 3, count), mask=draw.random(count) < 0.1),
            "share": draw.choice([0.0, -0.0, 0.5, float("nan")], count),
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


@pytest.mark.parametrize("search", [sf.Lattice(0.1), sf.LocalRecoding(0.1)], ids=repr)
def test_a_release_of_counted_rows_is_the_release_from_memory(
    people: Path, tmp_path: Path, search: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_LARGE_BYTES", 0)  # no connection is kept
    asked = [sf.KAnonymity(4), sf.DistinctLDiversity(2, "illness")]
    files = []
    for engine in ("memory", "duckdb"):
        release = sf.protect(sf.read(people, SCHEMA, engine=engine), asked, search, seed=2)
        release.save(tmp_path / engine)
        files.append((tmp_path / engine / "public" / "data.parquet").read_bytes())
    assert files[0] == files[1]


def test_rows_with_counts_have_the_form_of_the_rows_themselves() -> None:
    draw = np.random.default_rng(6)
    table = pa.table(
        {"a": [None, "x", "x", "y", "x"], "b": [2.5, float("nan"), 0.0, -0.0, float("nan")], "c": pa.array([1, 1, 1, 1, 1])}
    )
    counts = draw.integers(0, 4, 5)
    repeated = table.take(pa.array(np.repeat(np.arange(5), counts)))
    assert released_form(table, counts).equals(released_form(repeated))
    assert Counter(released_form(table, counts)["a"].to_pylist()) == Counter(repeated["a"].to_pylist())
