"""Questions to Spark on one core with a heap of 2 GB: ten million visits of a million users, from opening a session on.

Each size runs in a process of its own that starts its own Spark (`local[1]`). What is compared with the limits is the time of
a session (opened, one question, a batch of three) without that of starting Spark, beside that of its first question, and the
largest resident set of the Python process; the heap of Spark is fixed. `python -m benchmarks.spark_sessions ROWS` runs one size
by hand.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, all_threads
from benchmarks.large import cpu_seconds, peak_mb
from benchmarks.queries import CITIES
from benchmarks.sessions import QUESTION, ROWS_EACH, described, load

MILLION = 1_000_000
GROUPS = 5
#: The bars for ten million rows; smaller sizes have none.
SECONDS, MEGABYTES = 60.0, 200.0
BATCH = (
    "SELECT COUNT(*) AS n FROM visits WHERE income > 100000",
    "SELECT COUNT(DISTINCT user) AS u, SUM(income) AS s FROM visits",
    "SELECT city, COUNT(DISTINCT user) AS u FROM visits GROUP BY city",
)


def long_cases(folder: Path, rows: int = 10 * MILLION) -> Iterator[Case]:
    """Time and memory of one session; a tenth as many users as rows."""
    told = cache(lambda: answered(folder, rows))
    title = f"session on Spark, local[1] with 2 GB, {rows:,} rows and {rows // 10:,} users"
    bars = rows == 10 * MILLION
    yield Case(
        f"{title}: opened and asked one question, wall time",
        lambda _: told()["opened_s"] + told()["one_s"],
        unit="s", limit=SECONDS if bars else None, reports=True, repeats=1, warm_run=False,
        check=lambda _: told()["fault"],
        remark=lambda _: f"{told()['wall_s']:.1f} s with the batch; "
        f"CPU {told()['python_s']:.0f} s here and {told()['java_s']:.0f} s in Java; load {load()}",
    )  # fmt: skip
    yield Case(
        f"{title}: the same and a batch of three questions, wall time",
        lambda _: told()["wall_s"],
        unit="s", limit=SECONDS if bars else None, reports=True, repeats=1, warm_run=False,
        check=lambda _: told()["fault"],
    )  # fmt: skip
    yield Case(
        f"{title}: peak memory of Python",
        lambda _: told()["peak_mb"],
        unit="MB", limit=MEGABYTES if bars else None, reports=True, repeats=1, warm_run=False,
        check=lambda _: told()["fault"],
        note="largest resident set of the Python process; Spark has its heap of 2 GB",
    )  # fmt: skip


def answered(folder: Path, rows: int) -> dict[str, Any]:
    """What a process of its own says about a session."""
    command = [sys.executable, "-m", "benchmarks.spark_sessions", str(rows), str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=all_threads()).stdout
    told: dict[str, Any] = json.loads(output.splitlines()[-1])
    return told


def fault(one: Any, batch: Any, users: int) -> str | None:
    """Incomes are uniform up to 200,000, and no user may count more often than bounded."""
    counts, sums = (one.table[column].to_pylist() for column in "ns")
    rows = sum(counts)
    if one.table.num_rows != CITIES:
        return "not every city"
    if not 0 < rows <= GROUPS * ROWS_EACH * users:
        return "more rows than the bounds allow"
    if abs(sum(sums) / rows - 100_000) > 1_000:
        return "counts and sums do not belong together"
    seen = batch[1].table["u"].to_pylist()[0]
    return None if 0.5 * users < seen <= 1.01 * users else "not as many users as there are"


@cache
def started(folder: Path) -> Any:
    """A Spark on one core, bound to this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("sfumato-benchmarks")
    settings = {
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "16",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def visits(spark: Any, path: Path, rows: int) -> Path:
    """Visits written by Spark, so that this process never holds them: users of very different sizes, few large cities."""
    if not path.exists():
        spread, place = (f"pmod(xxhash64(id, '{name}'), 1000000) / 1000000" for name in ("user", "city"))
        frame = spark.range(rows).selectExpr(
            f"CAST(floor(pow({spread}, 1.5) * {rows // 10}) * 2654435761 % 35184372088832 AS BIGINT) AS user",
            f"concat('city number ', lpad(CAST(floor(pow({place}, 3) * {CITIES}) AS STRING), 4, '0')) AS city",
            "pmod(xxhash64(id, 'income'), 200000001) / 1000.0D AS income",
        )
        frame.write.parquet(str(path))
    return path


def _asked(rows: int, folder: Path) -> None:
    import sfumato as sf

    spark = started(folder)
    source = visits(spark, folder / f"visits-{rows}", rows)
    begin = time.perf_counter()
    data = sf.read(spark.read.parquet(str(source)), described(CITIES))
    session = sf.Session(data, ledger=folder / f"ledger-{rows}.db", budget=sf.PureDP(10), max_rows=ROWS_EACH, max_groups=GROUPS)
    opened = time.perf_counter() - begin
    one = session.sql(QUESTION, epsilon=1)
    first = time.perf_counter() - begin - opened
    batch = session.sql_batch(list(BATCH), epsilon=1)
    whole = time.perf_counter() - begin
    python_s, java_s = cpu_seconds()
    told = {
        "wall_s": whole,
        "opened_s": opened,
        "one_s": first,
        "batch_s": whole - opened - first,
        "python_s": python_s,
        "java_s": java_s,
        "peak_mb": peak_mb(),
        "fault": fault(one, batch, rows // 10),
    }
    spark.stop()
    print(json.dumps(told))


def _by_hand(arguments: list[str]) -> None:
    rows = int(arguments[0])
    if len(arguments) > 1:
        _asked(rows, Path(arguments[1]))
        return
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        _asked(rows, Path(folder))


if __name__ == "__main__":
    _by_hand(sys.argv[1:])
