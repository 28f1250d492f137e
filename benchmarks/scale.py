"""Rows that stay in their engine: published and verified by DuckDB and Spark, with what this process takes for it.

Tables are generated: 15 columns, fewer than twenty thousand cells whatever the number of rows. Each run has a process of its own,
whose largest resident set is measured; the JVM of Spark is another process. Time is wall time here, because engines work beside
us. `python -m benchmarks.scale ENGINE FILE OUT LIMIT [MASK]` runs one by hand: a search, or a mask of `MASKS`.
"""

from __future__ import annotations

import json
import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case
from benchmarks.large import cpu_seconds, peak_mb

MILLION = 1_000_000
_GIB = 2**30
_SCHEMA = {
    "dataset": "members",
    "columns": {
        "age": {"role": "quasi", "type": "integer", "hierarchy": {"intervals": [5, 10, 20, 40], "origin": 0}},
        "sex": {"role": "quasi", "type": "string"},
        "region": {"role": "quasi", "type": "string"},
        "marital": {"role": "quasi", "type": "string"},
        "diagnosis": {"role": "sensitive", "type": "string"},
        **{
            name: {"role": "plain"} for name in ("income", "hours", "visits", "since", "plan", "channel", "score", "paid", "flag")
        },
        "member": {"role": "identifier"},
    },
}
#: Masks that an engine computes, with columns of the table.
MASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "pram": ("Pram", {"stay": 0.8, "columns": ("marital",)}),
    "noise": ("AdditiveNoise", {"ratio": 0.1, "columns": ("hours",)}),
    "rank-swapping": ("RankSwapping", {"p": 5, "columns": ("score",)}),
}
_COLUMNS = """
    17 + floor(74 * pow(u(i, 1), 2.5))::BIGINT AS age,
    CASE WHEN u(i, 2) < 0.52 THEN 'f' ELSE 'm' END AS sex,
    'region ' || lpad(floor(24 * pow(u(i, 3), 4))::BIGINT::VARCHAR, 2, '0') AS region,
    ['single', 'married', 'divorced', 'widowed', 'other'][1 + floor(5 * pow(u(i, 4), 2))::BIGINT] AS marital,
    'diagnosis ' || lpad(floor(20 * pow(u(i, 5), 1.5))::BIGINT::VARCHAR, 2, '0') AS diagnosis,
    round(12000 + 90000 * pow(u(i, 6), 3), 2) AS income,
    floor(60 * u(i, 7))::BIGINT AS hours,
    floor(9 * pow(u(i, 8), 2))::BIGINT AS visits,
    DATE '2010-01-01' + floor(5000 * u(i, 9))::INTEGER AS since,
    ['basic', 'plus', 'family'][1 + floor(3 * u(i, 10))::BIGINT] AS plan,
    ['web', 'post', 'broker', 'branch'][1 + floor(4 * u(i, 11))::BIGINT] AS channel,
    floor(1000 * u(i, 12))::BIGINT AS score,
    round(400 * u(i, 13), 2) AS paid,
    u(i, 14) < 0.1 AS flag,
    'member ' || i::VARCHAR AS member
"""


def generated(rows: int, path: Path) -> Path:
    """A Parquet file of so many members, the same on every machine."""
    import duckdb

    if not path.exists():
        with duckdb.connect() as connection:
            connection.execute("CREATE MACRO u(i, c) AS (hash(i, c) >> 11)::DOUBLE / 9007199254740992")
            connection.execute(
                f"COPY (SELECT {_COLUMNS} FROM range({rows}) AS r(i)) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)"
            )
    return path


def cases(folder: Path) -> Iterator[Case]:
    """Ten million rows with DuckDB and Spark, beside one million."""
    yield from _engine_cases(folder, "duckdb", 10 * MILLION, limit_s=120.0)
    yield from _engine_cases(folder, "spark", 10 * MILLION, limit_s=180.0)


def long_cases(folder: Path) -> Iterator[Case]:
    """Fifty million rows with DuckDB under a hard limit of 2 GiB for the data of the process."""
    told: dict[int, dict[str, Any]] = {}

    def both(_: Any) -> float:
        for rows in (10 * MILLION, 50 * MILLION):
            told[rows] = _run(folder, "duckdb", rows, limit=2 * _GIB)
        return float(told[50 * MILLION]["wall_s"] / told[10 * MILLION]["wall_s"] / 5)

    yield Case(
        "fifty million rows with DuckDB under 2 GiB, time per row beside ten million",
        both,
        unit="s",
        limit=1.5,
        reports=True,
        repeats=1,
        warm_run=False,
        remark=lambda _: _in_words(told[50 * MILLION]),
        note="ratio of seconds per row; RLIMIT_DATA of 2 GiB, DuckDB's own memory included",
    )


def _engine_cases(folder: Path, engine: str, rows: int, *, limit_s: float) -> Iterator[Case]:
    @cache
    def runs() -> dict[int, dict[str, Any]]:
        return {each: _run(folder, engine, each) for each in (rows // 10, rows)}

    def reported(value: Callable[[dict[int, dict[str, Any]]], float]) -> Callable[[Any], float]:
        return lambda _: value(runs())

    label = f"{rows:,} rows with {engine}, published and verified without a row here"
    common: dict[str, Any] = {"reports": True, "repeats": 1, "warm_run": False}
    common["remark"] = lambda _: _in_words(runs()[rows])
    yield Case(f"{label}: time", reported(lambda told: told[rows]["wall_s"]), unit="s", limit=limit_s, **common)
    yield Case(
        f"{label}: exponent of time",
        reported(lambda told: math.log10(told[rows]["wall_s"] / told[rows // 10]["wall_s"])),
        unit="s",
        limit=1.05,
        **common,
        note="log10 of the times at all rows and at a tenth of them",
    )
    if engine == "duckdb":  # it works in this process, with the memory that it finds
        return
    yield Case(f"{label}: peak of this process", reported(lambda told: told[rows]["peak_mb"]), unit="MB", limit=400.0, **common)
    yield Case(
        f"{label}: growth of that peak from a tenth of the rows",
        reported(lambda told: told[rows]["peak_mb"] / told[rows // 10]["peak_mb"]),
        unit="MB",
        limit=1.1,
        **common,
        note="a ratio",
    )


def _in_words(run: dict[str, Any]) -> str:
    cpu = f"CPU {run['python_s']:.0f} s here and {run['java_s']:.0f} s in Java"
    took = f"{run['wall_s']:.0f} s ({cpu}), {run['peak_mb']:.0f} MB here"
    return f"{run['rows']:,} rows released in {run['classes']:,} classes, {took}"


def _run(folder: Path, engine: str, rows: int, limit: int | None = None) -> dict[str, Any]:
    source = generated(rows, folder / f"members-{rows}.parquet")
    out = folder / f"stored-{engine}-{rows}"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.scale", engine, str(source), str(out), str(limit or 0)]
    environment = {**os.environ, "TMPDIR": str(folder)}
    limited = partial(resource.setrlimit, resource.RLIMIT_DATA, (limit, limit)) if limit else None
    answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, preexec_fn=limited)
    shutil.rmtree(out, ignore_errors=True)
    told: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    if told["k"] < 5 or not told["accepted"]:
        raise AssertionError("not certified, or not accepted by verify")
    return told


def _people(engine: str, source: Path, limit: int) -> Any:
    import sfumato as sf

    if engine == "duckdb":
        options: dict[str, Any] = {"memory_limit": f"{limit // 2**21}MB", "threads": 1} if limit else {"threads": 1}
        return sf.read(source, _SCHEMA, engine="duckdb", **options)
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.local.dir", str(source.parent))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return sf.read(session.read.parquet(str(source)), _SCHEMA)


def main(engine: str, source: str, out: str, limit: str, mask: str = "") -> None:
    """Publish and verify once, and print what it took."""
    import sfumato as sf
    from benchmarks.harness import one_thread

    one_thread()
    people = _people(engine, Path(source), int(limit))
    key = Path(out).with_suffix(".key")
    start = time.perf_counter()
    if mask:
        name, parameters = MASKS[mask]
        release = sf.protect(people, (), getattr(sf, name)(**parameters), destination=out, key=key)
    else:
        release = sf.protect(people, [sf.KAnonymity(5)], sf.Lattice(suppression=0.02), destination=out, key=key)
    published = time.perf_counter()
    accepted = sf.verify(out).accepted
    python_s, java_s = cpu_seconds()
    told = {
        "rows": len(release),
        "classes": int(release.details.get("classes", 0)),
        "k": release.certificate.measured.get("KAnonymity"),
        "accepted": accepted,
        "published_s": published - start,
        "wall_s": time.perf_counter() - start,
        "python_s": python_s,
        "java_s": java_s,
        "peak_mb": peak_mb(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
