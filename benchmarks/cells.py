"""What a cell takes while a search runs: the growth of the largest resident set of a process of its own, by method.

The table is generated and nearly every row is a cell of its own, which is the worst case. A small table is searched first, so
that what is loaded once does not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata

VALUES = 20  # of the sensitive column
_WIDTHS = {"postcode": 1000, "education": 16, "race": 5, "sex": 2, "marital": 7, "country": 40, "work": 8, "salary": 2}
_ROWS = {"Lattice": 1_000_000, "LeastLoss": 200_000, "Mondrian": 50_000}


def people(rows: int, *, sensitive: bool, seed: int = 1) -> Microdata:
    """A table of nine quasi-identifiers, and a sensitive column where that is asked for."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    generator = np.random.Generator(np.random.PCG64(seed))
    columns: dict[str, Any] = {"age": pa.array(generator.integers(17, 91, rows))}
    schema: dict[str, Any] = {
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [5, 10, 20, 40], "origin": 0}}
    }
    for name, width in {**_WIDTHS, **({"diagnosis": VALUES} if sensitive else {})}.items():
        labels = pa.array([f"{name} {value:03d}" for value in range(width)])
        columns[name] = labels.take(pa.array((width * generator.random(rows) ** 1.5).astype(np.int64)))
        schema[name] = {"role": "sensitive" if name == "diagnosis" else "quasi", "type": "string"}
    return sf.read(pa.table(columns), {"dataset": "cells", "columns": schema})


def cases() -> Iterator[Case]:
    """One case for each method, at most 500 bytes for a cell."""
    from sfumato.workflow.publishing.forecast import BYTES_PER_CELL

    for method, rows in _ROWS.items():
        last: dict[str, float] = {}

        def ours(_: Any, method: str = method, rows: int = rows, last: dict[str, float] = last) -> float:
            last.update(measured(method, rows, sensitive=False))
            return last["bytes"] * last["cells"] / 1e6

        yield Case(
            f"memory of {method} beside the forecast, {rows:,} rows of nine columns",
            ours,
            unit="MB",
            limit=BYTES_PER_CELL * rows / 1e6,
            reports=True,
            repeats=1,
            warm_run=False,
            remark=lambda _, last=last: f"{last['bytes']:.0f} bytes for each of {last['cells']:,.0f} cells",
            note="growth of the largest resident set in a process of its own",
        )


def measured(method: str, rows: int, *, sensitive: bool) -> dict[str, float]:
    """Cells, and the bytes that a search took for each, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.cells", method, str(rows), str(int(sensitive))]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    told: dict[str, float] = json.loads(answer.stdout)
    return told


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split(f"{name}:")[1].split()[0]) * 1024


def main(method: str, rows: str, sensitive: str) -> None:
    """Search once, and print what it took."""
    import gc

    import pyarrow as pa

    import sfumato as sf

    promises: list[Any] = [sf.KAnonymity(5), *([sf.DistinctLDiversity(3, "diagnosis")] if int(sensitive) else [])]
    search = {
        "Lattice": sf.Lattice(suppression=1.0),
        "LeastLoss": sf.LeastLoss(),
        "Mondrian": sf.Mondrian(ranges_everywhere=True),
    }[method]
    search.run(people(500, sensitive=bool(int(sensitive)), seed=2), promises)
    table = people(int(rows), sensitive=bool(int(sensitive)))
    gc.collect()
    pa.default_memory_pool().release_unused()
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the largest set is counted anew
    outcome = search.run(table, promises)
    grown = _status("VmHWM") - before
    cells = outcome.class_table.cell_counts.size
    print(json.dumps({"cells": cells, "bytes": grown / cells}))


if __name__ == "__main__":
    main(*sys.argv[1:])
