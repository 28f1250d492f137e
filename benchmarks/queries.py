"""Private queries in the engine: contributions of a million users bounded in ten million rows, and a small question.

The large ones run in a process of their own on two cores, from opening the Parquet file to the answer; what is held
against the limit is wall time and the largest resident set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import Case
from benchmarks.large import peak_mb

ROWS, USERS, CITIES, MOST = 10_000_000, 1_000_000, 1_000, 30_000
#: What the harness sets to hold everything to one thread.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "ARROW_IO_THREADS")


def cases() -> Iterator[Case]:
    """A thousand rows in five groups: what a question costs that has next to nothing to compute."""
    import pyarrow as pa

    from sfumato.engines.memory import MemoryRelation

    table = pa.table(
        {
            "user": [row % 97 for row in range(1000)],
            "city": [f"city {row % 5}" for row in range(1000)],
            "income": [float(row) for row in range(1000)],
            **{f"unused {i}": list(range(1000)) for i in range(20)},
        }
    )
    relation = MemoryRelation(table)
    yield Case(
        "a thousand rows, count and sum per city, bounded",
        lambda _: relation.run(plan(2, 3)),
        limit=20.0,
        check=lambda answer: None if answer.num_rows == 5 else "not five cities",
        note="the question inside the engine, nothing private added yet",
    )


def long_cases(folder: Path) -> Iterator[Case]:
    """Ten million rows: time and memory of the same question under different bounds."""
    for ids in ("numbers", "text"):
        source = cache(lambda ids=ids: made(folder / f"visits-{ids}.parquet", text=ids == "text"))
        for groups, seconds, megabytes, stretch in ((5, 5.0, 2000.0, 3.5), (20, 2.5, 1200.0, None)):
            if ids == "text" and groups == 20:
                continue
            told = _told(source, groups)
            name = f"ten million rows, a million users ({ids}), {groups} cities and 2 rows each"
            limit = seconds if ids == "numbers" else 2 * seconds
            yield Case(
                f"{name}: wall time",
                lambda _, told=told: told()["wall_s"],
                unit="s", limit=limit, reports=True, repeats=1, warm_run=False, stretch=stretch,
                remark=lambda _, told=told: f"{told()['cpu_s']:.1f} s of CPU; {told()['rows']:,} rows kept",
            )  # fmt: skip
            yield Case(
                f"{name}: peak memory",
                lambda _, told=told: told()["peak_mb"],
                unit="MB", limit=megabytes, reports=True, repeats=1, warm_run=False,
                check=lambda _, told=told: None if told()["cities"] == CITIES else "not every city",
                note="largest resident set of a process of its own",
            )  # fmt: skip


def _told(source: Callable[[], Path], groups: int) -> Callable[[], dict[str, Any]]:
    @cache
    def told() -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.queries", str(source()), str(groups)]
        threads = {name: value for name, value in os.environ.items() if name not in _THREADS}
        found: dict[str, Any] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True, env=threads).stdout
        )
        return found

    return told


def plan(rows: int | None, groups: int, user: Any = "integer") -> Any:
    """Count and sum of clamped incomes per city."""
    from sfumato.engines import expressions as e
    from sfumato.engines import plan as p
    from sfumato.engines.functions import numbers as f

    scan = p.Scan("rows", (p.Field("user", user), p.Field("city", "string"), p.Field("income", "number")))
    income = f.FixedPoint(f.Clamp(e.Reference("income"), 0.0, 200_000.0), 1000, 1e6)
    asked = (p.AggregateColumn("rows", "count"), p.AggregateColumn("income", "sum", income))
    return p.BoundedGroup(scan, "user", ("city",), (), rows, groups, asked, salt="a benchmark has no secrets")


def made(path: Path, *, text: bool) -> Path:
    """Visits of a million users, ten each on average and 30,000 at most, in cities of which few are large."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(20_240_607)
    weight = generator.pareto(1.3, USERS) + 0.2
    rate = weight / weight.mean() * (ROWS / USERS)
    visits = np.minimum(generator.poisson(rate), MOST)
    visits[visits == visits.max()] = MOST
    # ids without any order or density, as a hash of something would be
    users = np.repeat(np.arange(USERS, dtype=np.int64), visits)[:ROWS]
    users = np.concatenate([users, generator.integers(0, USERS, ROWS - users.size)])
    ids = users * 2_654_435_761 % 2**45
    generator.shuffle(ids)
    chance = np.arange(1, CITIES + 1) ** -0.8
    city = generator.choice(CITIES, ids.size, p=chance / chance.sum()).astype(np.int32)
    names = pa.array([f"city number {i:04d}" for i in range(CITIES)])
    user = pa.array(ids).cast(pa.string()) if text else pa.array(ids)
    columns = {
        "user": user,
        "city": pa.DictionaryArray.from_arrays(pa.array(city), names).cast(pa.string()),
        "income": pa.array(generator.random(ids.size) * 200_000),
    }
    pq.write_table(pa.table(columns), path)
    return path


def _asked(source: Path, groups: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    begin = time.perf_counter()
    from sfumato.engines.duckdb.relation import DuckDBRelation

    relation = DuckDBRelation(source, threads=2)
    answer = relation.run(plan(2, groups, relation.fields["user"].kind))
    told = {
        "wall_s": time.perf_counter() - begin,
        "cpu_s": time.process_time(),
        "peak_mb": peak_mb(),
        "cities": answer.num_rows,
        "rows": sum(answer["rows"].to_pylist()),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    _asked(Path(sys.argv[1]), int(sys.argv[2]))
