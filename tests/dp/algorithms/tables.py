"""Small tables with declared schemas, and neighbours of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.core.randomness import StreamRandomness, words
from sfumato.data.microdata import Microdata


def microdata(
    columns: Mapping[str, Sequence[Any]], described: Mapping[str, Mapping[str, Any]], types: Mapping[str, Any] | None = None
) -> Microdata:
    """A table in memory; `types` fixes Arrow types that an empty list would not tell."""
    arrays = {name: pa.array(values, (types or {}).get(name)) for name, values in columns.items()}
    return sf.read(pa.table(arrays), {"dataset": "small", "columns": dict(described)})


def without(data: Microdata, unit: str, value: object) -> Microdata:
    """The neighbour in which one unit is missing."""
    from dataclasses import replace

    from sfumato.engines.memory import MemoryRelation

    table = data.table()
    kept = np.array([entry != value for entry in table.column(unit).to_pylist()], dtype=bool)
    return replace(data, relation=MemoryRelation(table.filter(pa.array(kept))))


def uniform(count: int, seed: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Uniform numbers in [0, 1), the same on every machine."""
    return (words(StreamRandomness(f"tables {seed}"), count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def mixture(rows: int, columns: int, clusters: int, seed: int, spread: float = 0.05) -> Microdata:
    """Clusters of roughly normal points in the unit cube."""
    centres = 0.1 + 0.8 * uniform(clusters * columns, (seed, "centres")).reshape(clusters, columns)
    which = (uniform(rows, (seed, "which")) * clusters).astype(int)
    bell = sum(uniform(rows * columns, (seed, part)) for part in range(6)) - 3.0
    points = np.clip(centres[which] + spread * np.sqrt(2) * np.asarray(bell).reshape(rows, columns), 0, 1)
    names = [f"x{place}" for place in range(columns)]
    described = {name: {"type": "number", "bounds": [0, 1]} for name in names}
    return microdata({name: points[:, place] for place, name in enumerate(names)}, described)
