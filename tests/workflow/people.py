"""Small tables about people for the tests of the workflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema

DISEASES = ("flu", "cold", "asthma", "none")


def table(rows: int = 600, seed: int = 1) -> pa.Table:
    """People with a name, three quasi-identifiers, a plain column and a disease."""
    draw = np.random.default_rng(seed)
    return pa.table(
        {
            "name": [f"person {i:05d}" for i in range(rows)],
            "age": draw.integers(18, 90, rows),
            "zip": [f"{z:05d}" for z in draw.integers(1000, 1040, rows)],
            "sex": draw.choice(["f", "m"], rows),
            "visits": draw.integers(0, 4, rows),
            "disease": draw.choice(DISEASES, rows),
        }
    )


def schema(**changes: Column) -> Schema:
    """The schema of `table`."""
    columns = {
        "name": Column(role="identifier"),
        "age": Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(5, 10, 20, 40))),
        "zip": Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right")),
        "sex": Column(role="quasi", type="string"),
        "visits": Column(role="plain", type="integer"),
        "disease": Column(role="sensitive", type="string"),
        **changes,
    }
    alone = all(column.role != "unit" for column in columns.values())  # one row per person
    return Schema(dataset="clinic", unit="record" if alone else None, columns=columns)


def people(rows: int = 600, seed: int = 1, **changes: Column) -> Microdata:
    """The table with its schema."""
    return sf.read(table(rows, seed), schema(**changes))


def release(rows: int = 600, **options: Any) -> sf.Release:
    """A release of it, 5-anonymous."""
    return sf.protect(people(rows), [sf.KAnonymity(5)], sf.Lattice(suppression=0.05), **options)


def files(folder: Path, rows: int = 600) -> tuple[Path, Path]:
    """The table and its schema as files."""
    from sfumato.data.writers import write_file

    folder.mkdir(parents=True, exist_ok=True)
    write_file(table(rows), folder / "people.csv")
    (folder / "people.toml").write_text(schema().to_toml(), encoding="utf-8")
    return folder / "people.csv", folder / "people.toml"
