"""Private algorithms of counts on ten million rows: rows that stay in DuckDB, beside the same rows read into this process.

Each run has a process of its own, whose largest resident set is measured, DuckDB included (600 MB at most). With one seed
both ways give the same result, which is compared.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import Case
from benchmarks.large import peak_mb
from benchmarks.scale import MILLION, generated

ROWS = 10 * MILLION
LIMIT_S, LIMIT_MB = 120.0, 400.0
_LISTED = {
    "sex": ["f", "m"],
    "region": [f"region {place:02d}" for place in range(24)],
    "marital": ["single", "married", "divorced", "widowed", "other"],
    "diagnosis": [f"diagnosis {place:02d}" for place in range(20)],
    "plan": ["basic", "plus", "family"],
    "channel": ["web", "post", "broker", "branch"],
}
_BOUNDS: dict[str, tuple[str, list[int]]] = {
    "age": ("integer", [17, 90]),
    "income": ("number", [12_000, 102_000]),
    "hours": ("integer", [0, 59]),
    "visits": ("integer", [0, 8]),
}
_SCHEMA = {
    "dataset": "members",
    "unlisted": "drop",
    "columns": {
        **{name: {"type": "string", "domain": values} for name, values in _LISTED.items()},
        **{name: {"type": kind, "bounds": bounds} for name, (kind, bounds) in _BOUNDS.items()},
        "flag": {"type": "boolean"},
    },
}


def cases(folder: Path) -> Iterator[Case]:
    """A histogram of 4,800 cells, and a synthetic table from eleven columns."""
    for name, label in (("histogram", "private histogram"), ("mst", "synthetic table (MST)")):

        @cache
        def runs(name: str = name) -> dict[str, dict[str, Any]]:
            source = generated(ROWS, folder / f"members-{ROWS}.parquet")
            return {engine: _run(name, engine, source) for engine in ("duckdb", "memory")}

        common: dict[str, Any] = {"reports": True, "repeats": 1, "warm_run": False}
        common["remark"] = lambda _, runs=runs: _beside(runs())
        where = f"{ROWS:,} rows counted by DuckDB, {label}"
        yield Case(f"{where}: time", lambda _, runs=runs: runs()["duckdb"]["wall_s"], unit="s", limit=LIMIT_S, **common)
        yield Case(f"{where}: peak", lambda _, runs=runs: runs()["duckdb"]["peak_mb"], unit="MB", limit=LIMIT_MB, **common)


def _beside(runs: dict[str, dict[str, Any]]) -> str:
    if runs["duckdb"]["sha256"] != runs["memory"]["sha256"]:
        raise AssertionError("rows in DuckDB and rows in memory gave different results")
    return f"read into this process: {runs['memory']['wall_s']:.0f} s, {runs['memory']['peak_mb']:.0f} MB"


def _run(name: str, engine: str, source: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.counting", name, engine, str(source)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return told


def main(name: str, engine: str, source: str) -> None:
    """One run, in a process of its own."""
    import sfumato as sf
    from sfumato.core.randomness import default

    begun = time.perf_counter()
    held = engine == "duckdb"
    data = sf.read(source, _SCHEMA, engine="duckdb", memory_limit="600MB") if held else sf.read(source, _SCHEMA, engine="memory")
    histogram = sf.dp.PrivateHistogram(("sex", "region", "income"), rho="0.1", bins={"income": 100})
    method = histogram if name == "histogram" else sf.dp.Mst(rho="0.1", rows=100_000, report=False)
    result = method.run(data, randomness=default(1)).result
    digest = hashlib.sha256(json.dumps(result.to_pydict()).encode()).hexdigest()
    print(json.dumps({"wall_s": time.perf_counter() - begun, "peak_mb": peak_mb(), "sha256": digest}))


if __name__ == "__main__":
    main(*sys.argv[1:])
