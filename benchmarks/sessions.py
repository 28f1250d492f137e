"""Questions in SQL from the query's text to the noisy answer, the ledger included: ten million rows, and a thousand.

The large ones run in a process of their own on two cores: the first question to a session that was just opened, so
that whatever the question loads counts; opening is told beside it. What is held against the limit is wall time (the
median of three processes) and the largest resident set.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, all_threads
from benchmarks.large import peak_mb
from benchmarks.queries import CITIES, USERS, made

HIGHEST = 200_000
QUESTION = "SELECT city, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS m FROM visits GROUP BY city"
ROWS_EACH = 2
#: Groups of one user, and what is asked for: seconds, MB, and the seconds we would like.
BARS = ((5, 5.0, 2000.0, 3.5), (20, 2.5, 1200.0, None))


def cases(folder: Path) -> Iterator[Case]:
    """A thousand rows in five groups: every question is a new one, is entered in a ledger on disk, and keeps its answer."""
    import pyarrow as pa

    import sfumato as sf

    table = pa.table(
        {
            "user": [row % 97 for row in range(1000)],
            "city": [name(row % 5) for row in range(1000)],
            "income": [float(row * 200) for row in range(1000)],
        }
    )
    asked = count(1)

    @cache
    def session() -> sf.Session:
        ledger = folder / "small-questions.db"
        data = sf.read(table, described(5))
        return sf.Session(data, ledger=ledger, budget=sf.PureDP(1000), max_rows=ROWS_EACH, max_groups=3)

    def fresh() -> str:
        session()
        return QUESTION.replace("GROUP BY", f"WHERE income > -{next(asked)} GROUP BY")

    yield Case(
        "session, a thousand rows, count, sum and mean per city",
        lambda question: session().sql(question, epsilon=1),
        limit=50.0,
        prepare=fresh,
        check=lambda answer: None if answer.table.num_rows == 5 and answer.entry and not answer.repeated else "not a new answer",
        note="parsed, priced, reserved, run, noised and committed; SQLite ledger on disk",
    )


def long_cases(folder: Path) -> Iterator[Case]:
    """Ten million rows: time and memory of the same question under different bounds."""
    source = visits(folder)
    for groups, seconds, megabytes, stretch in BARS:
        told = cache(lambda groups=groups: answered(source(), groups))
        title = f"session, ten million rows, {groups} cities and {ROWS_EACH} rows each"
        yield Case(
            f"{title}: wall time",
            lambda _, told=told: told()["wall_s"],
            unit="s", limit=seconds, reports=True, repeats=1, warm_run=False, stretch=stretch,
            check=lambda _, told=told: told()["fault"],
            remark=lambda _, told=told: spent(told()),
        )  # fmt: skip
        yield Case(
            f"{title}: peak memory",
            lambda _, told=told: told()["peak_mb"],
            unit="MB", limit=megabytes, reports=True, repeats=1, warm_run=False,
            check=lambda _, told=told: told()["fault"],
            note="largest resident set of a process of its own",
        )  # fmt: skip


def visits(folder: Path) -> Callable[[], Path]:
    """Makes the rows of `queries` on first use and says where they are."""
    path = folder / "visits-numbers.parquet"
    return cache(lambda: path if path.exists() else made(path, text=False))


def answered(source: Path, groups: int) -> dict[str, Any]:
    """What a process of its own says about one question."""
    command = [sys.executable, "-m", "benchmarks.sessions", str(source), str(groups)]
    runs: list[dict[str, Any]] = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=all_threads()).stdout)
        for _ in range(3)
    ]
    return sorted(runs, key=lambda told: float(told["wall_s"]))[1]


def spent(told: dict[str, Any]) -> str:
    """What a wall time alone does not say."""
    return f"{told['cpu_s']:.1f} s of CPU, opened in {told['opened_s']:.2f} s; about {told['rows']:,} rows kept; load {load()}"


def load() -> str:
    """How many processes wanted a core in the last minute: a wall time means little without it."""
    return f"{os.getloadavg()[0]:.1f}"


def name(city: int) -> str:
    """As `queries` names them."""
    return f"city number {city:04d}"


def described(cities: int) -> dict[str, Any]:
    """The schema, with the cities declared."""
    return {
        "dataset": "visits",
        "columns": {
            "user": {"role": "unit", "type": "integer"},
            "city": {"type": "string", "domain": [name(city) for city in range(cities)]},
            "income": {"type": "number", "bounds": [0, HIGHEST]},
        },
    }


def fault(answer: Any, groups: int) -> str | None:
    """Incomes are uniform, so that sums and means must give their middle; and no user may count more often than bounded."""
    counts, sums, means = (answer.table[column].to_pylist() for column in "nsm")
    rows, middle = sum(counts), HIGHEST / 2
    if answer.table.num_rows != CITIES:
        return "not every city"
    if not 0 < rows <= groups * ROWS_EACH * USERS:
        return "more rows than the bounds allow"
    far = max(abs(sum(sums) / rows - middle), abs(means[counts.index(max(counts))] - middle))
    return None if far < 0.01 * middle else "counts, sums and means do not belong together"


def _asked(source: Path, groups: int) -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    import sfumato as sf

    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        begin = time.perf_counter()
        data = sf.read(source, described(CITIES), engine="duckdb", threads=2)
        session = sf.Session(data, ledger=Path(folder) / "ledger.db", budget=sf.PureDP(1), max_rows=ROWS_EACH, max_groups=groups)
        opened = time.perf_counter() - begin
        begin, used = time.perf_counter(), time.process_time()
        answer = session.sql(QUESTION, epsilon=1)
        told = {
            "wall_s": time.perf_counter() - begin,
            "cpu_s": time.process_time() - used,
            "opened_s": opened,
            "peak_mb": peak_mb(),
            "rows": sum(answer.table["n"].to_pylist()),
            "fault": fault(answer, groups),
        }
    print(json.dumps(told))


if __name__ == "__main__":
    _asked(Path(sys.argv[1]), int(sys.argv[2]))
