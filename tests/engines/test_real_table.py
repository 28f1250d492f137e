"""From file to released rows on real data, with the class table in between: the engines agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.data.class_table import encode
from sfumato.data.microdata import Microdata
from sfumato.data.recoding import SUPPRESSED, Recoding, RecodingTable
from sfumato.data.schema import Schema
from sfumato.engines.sources import read
from sfumato.engines.write import write_table
from tests.engines.tables import rows

SCHEMA = Schema.of(
    "adult",
    quasi=["sex", "race", "marital-status", "age"],
    sensitive=["occupation"],
    plain=["education"],
    unlisted="drop",
)


def released(people: Microdata) -> Any:
    """Age at its top; classes by race, sex and marital status; those below 5 records suppressed."""
    table = encode(people)
    tops = [0, 0, 0, 1]
    nodes = [tree.node_of[level][codes] for tree, level, codes in zip(table.hierarchies, tops, table.codes, strict=True)]
    distinct, tuple_class = np.unique(np.stack(nodes), axis=1, return_inverse=True)
    class_of_cell = tuple_class.reshape(-1)[table.tuple_of_cell]
    sizes = np.bincount(class_of_cell, weights=table.cell_counts)
    class_of_cell = np.where(sizes[class_of_cell] >= 5, class_of_cell, SUPPRESSED)
    shown = tuple(table.shown_at(a, distinct[a].astype(np.int32)) for a in range(4))
    recoding = Recoding.whole_cells(class_of_cell, table.cell_counts, shown, distinct.shape[1])
    keep = ["sex", "age", "race", "marital-status", "education", "occupation"]
    return people.relation.recode(RecodingTable.of(recoding, table.keys, table.quasi), keep)


@pytest.mark.data
@pytest.mark.postgres
@pytest.mark.slow
def test_adult_is_released_alike_everywhere(data_dir: Path, tmp_path: Path, postgres_url: str) -> None:
    here = read(data_dir / "adult" / "adult.csv", SCHEMA)
    assert len(here) == 30_162
    original = here.table()
    expected = released(here)
    assert 30_000 < expected.num_rows < 30_162
    assert set(expected.column("age").to_pylist()) == {"*"}
    write_table(original, tmp_path / "adult.duckdb")
    write_table(original, postgres_url, table_name="adult", overwrite=True)
    for there in (
        read(tmp_path / "adult.duckdb", SCHEMA),
        read(postgres_url, SCHEMA, table="adult"),
        read(data_dir / "adult" / "adult.csv", SCHEMA, engine="duckdb"),
    ):
        assert rows(released(there)) == rows(expected)
