"""A million and ten million rows: the search after one GROUP BY, and the whole way from Parquet to a verified release.

The peer of the whole way is DuckDB on one thread, which reads, groups and writes the same file; the two take turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import adult
from benchmarks.harness import Case

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import Microdata

MILLION = 1_000_000


class GroupedOnce:
    """A relation that has answered its one GROUP BY already: what a search does afterwards."""

    engine = "memory"

    def __init__(self, people: Microdata) -> None:
        self._schema = people.relation.schema()
        self._rows = people.relation.count()
        self._grouped = people.relation.group(list(people.schema.quasi))

    def schema(self) -> pa.Schema:
        """Column names and types."""
        return self._schema

    def count(self) -> int:
        """The number of rows."""
        return self._rows

    def group(self, columns: Sequence[str], *, unit: str | None = None, weight: str | None = None) -> pa.Table:
        """The answer."""
        return self._grouped


#: Makes the file on first use and says where it is.
Source = Callable[[], Path]


def cases(folder: Path) -> Iterator[Case]:
    """The cases at a million rows; files go to `folder`."""
    source = _made(MILLION, folder / "million.parquet")
    yield _search(source)
    yield _whole_way(source, folder)
    yield _to_memory(source, folder)


def _made(rows: int, path: Path) -> Source:
    adult.folder()  # so that missing data are noticed before the case starts
    return cache(lambda: adult.recombined(rows, path))


def _search(source: Source) -> Case:
    import sfumato as sf
    from sfumato.data.microdata import Microdata

    @cache
    def grouped() -> tuple[GroupedOnce, sf.Schema, dict[str, sf.Hierarchy]]:
        people = sf.read(source(), adult.schema())
        once = GroupedOnce(people)
        sf.Lattice(suppression=1.0).run(people, [sf.KAnonymity(5)])  # reads the hierarchies
        return once, people.schema, people.hierarchies

    def prepare() -> Microdata:
        once, schema, trees = grouped()
        people = Microdata(once, schema)  # type: ignore[arg-type]
        people.hierarchies.update(trees)
        return people

    return Case(
        "million rows, search k=5, 5% suppression, after one GROUP BY",
        lambda people: sf.Lattice(suppression=0.05).run(people, [sf.KAnonymity(5)]),
        unit="s",
        limit=0.25,
        prepare=prepare,
        check=lambda outcome: None if outcome.details["optimal"] else "not proven optimal",
        remark=lambda outcome: f"loss {outcome.details['loss']:.6f}, {outcome.details['evaluated']:,} nodes evaluated",
    )


def _protect(source: Path, key: Path, engine: Any = None, destination: Path | None = None) -> Any:
    import sfumato as sf

    most = "300MB" if destination is None else "64MB"  # what is sorted and does not fit goes to the disk, encrypted
    limits: dict[str, Any] = {"memory_limit": most, "threads": 1} if engine == "duckdb" else {}
    people = sf.read(source, adult.schema(), engine=engine, **limits)
    utility = () if destination is not None else ("loss",)  # a search states its loss
    promises, search = [sf.KAnonymity(5)], sf.Lattice(suppression=0.05)
    return sf.protect(people, promises, search, utility=utility, key=key, destination=destination)


def _broken(release: Any) -> str | None:
    return None if release.certificate.measured["KAnonymity"] >= 5 and release.details["optimal"] else "not certified"


def _whole_way(source: Source, folder: Path) -> Case:
    out = folder / "release"

    def prepare() -> None:
        source()
        shutil.rmtree(out, ignore_errors=True)

    def ours(_: Any) -> Any:
        release = _protect(source(), folder / "owner.key")
        release.save(out)
        return release

    return Case(
        "million rows, read, protect and save: Parquet to Parquet",
        ours,
        unit="s",
        peer=duckdb_way(source, folder / "duckdb.parquet"),
        bar=6.0,
        prepare=prepare,
        check=_broken,
        repeats=5,
        note="peer: DuckDB reads, groups and writes the file. Verified twice (protect, save), both cards drawn",
    )


def _to_memory(source: Source, folder: Path) -> Case:
    return Case(
        "million rows, read and protect: Parquet to verified Parquet",
        lambda _: _protect(source(), folder / "owner.key"),
        unit="s",
        peer=duckdb_way(source, folder / "duckdb.parquet"),
        bar=6.0,
        prepare=source,
        check=_broken,
        repeats=5,
        note="peer: DuckDB as above. Written, read back and verified once, kept in memory",
    )


def duckdb_way(source: Source, target: Path) -> Callable[[], None]:
    """Read, group and write the file with DuckDB on one thread."""
    import duckdb

    columns = ", ".join(f'"{name}"' for name in adult.COLUMNS)

    def run() -> None:
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute(
                f"CREATE TABLE grouped AS SELECT {columns}, count(*) FROM read_parquet('{source()}') GROUP BY {columns}"
            )
            connection.execute(f"COPY (FROM read_parquet('{source()}')) TO '{target}' (FORMAT parquet)")

    return run


def long_cases(folder: Path) -> Iterator[Case]:
    """Ten million rows, in a process of their own."""
    source = _made(10 * MILLION, folder / "ten-million.parquet")
    told: dict[str, Any] = {}

    def ours(_: Any) -> float:
        shutil.rmtree(folder / "ten", ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.large", str(source()), str(folder)]
        told.update(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        return float(told["peak_mb"])

    yield Case(
        "ten million rows, read, protect and save: peak memory",
        ours,
        unit="MB",
        limit=4000.0,
        reports=True,
        check=lambda _: None if told["k"] >= 5 else "not certified",
        remark=lambda _: f"{told['rows']:,} rows released; {told['cpu_s']:.1f} s of CPU, {told['protect_s']:.1f} s without save",
        repeats=1,
        warm_run=False,
        note="largest resident set of a process of its own",
    )


def engine_cases(folder: Path) -> Iterator[Case]:
    """Five million rows read by DuckDB beside the same rows in memory, each in a process of its own."""
    source = _made(5 * MILLION, folder / "five-million.parquet")
    told: dict[str, Any] = {}

    def measured(engine: str) -> dict[str, Any]:
        shutil.rmtree(folder / "ten", ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.large", str(source()), str(folder), engine]
        told[engine] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        return dict(told[engine])

    def beside_memory(engine: str, what: str, note: str) -> Case:
        def both(_: Any) -> float:
            if "memory" not in told:
                measured("memory")
            return float(measured(engine)["peak_mb"])

        def check(_: Any) -> str | None:
            if any(told[each]["k"] < 5 for each in ("memory", engine)):
                return "not certified"
            return None if told[engine]["content"] == told["memory"]["content"] else "the engines wrote other rows"

        return Case(
            f"five million rows with DuckDB, {what}: peak memory",
            both,
            unit="MB",
            peer=lambda: told["memory"]["peak_mb"],
            peer_reports=True,
            bar=0.5,
            reports=True,
            check=check,
            remark=lambda _: f"{told[engine]['cpu_s']:.1f} s of CPU, in memory {told['memory']['cpu_s']:.1f} s",
            repeats=1,
            warm_run=False,
            note=f"peer: the memory engine. {note}. Largest resident set",
        )

    yield beside_memory("duckdb", "read, protect and save", "DuckDB is held to 300 MB; the rows come back and are saved here")
    yield beside_memory(
        "written by duckdb", "which writes the rows itself", "DuckDB is held to 64 MB; destination=, no row comes back"
    )


def cpu_seconds() -> tuple[float, float]:
    """CPU time of this process with children that have ended, and of a JVM that it started: what it took on a busy machine."""
    own = sum(os.times()[:4])
    tick, java = os.sysconf("SC_CLK_TCK"), 0.0
    for process in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError, ValueError):  # it may end meanwhile
            name, _, rest = process.read_text().rpartition(")")
            fields = rest.split()
            if name.endswith("(java") and int(fields[1]) == os.getpid():
                java += (int(fields[11]) + int(fields[12])) / tick
    return own, java


def peak_mb() -> float:
    """The largest resident set of this process in 10^6 bytes."""
    try:
        # what getrusage says would include the process that started this one
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def _content_of(parts: Sequence[Path]) -> str:
    """The digest of the rows in these files, whoever wrote them."""
    import pyarrow.parquet as pq

    from sfumato.engines.digests.row_digest import table_sums

    first, *rest = (table_sums(pq.read_table(part)) for part in parts)
    return sum(rest, first).content_digest()


def _whole_run(source: Path, folder: Path, engine: str | None = None) -> None:
    import time

    from benchmarks.harness import one_thread

    one_thread()
    in_engine = engine == "written by duckdb"
    release = _protect(source, folder / "owner.key", "duckdb" if in_engine else engine, folder / "ten" if in_engine else None)
    protected = time.process_time()
    if not in_engine:
        release.save(folder / "ten")
    peak, seconds = peak_mb(), time.process_time()
    public = folder / "ten" / "public"
    parts = sorted((public / "data").iterdir()) if in_engine else [public / "data.parquet"]
    told = {
        "content": _content_of(parts),
        "peak_mb": peak,
        "cpu_s": seconds,
        "protect_s": protected,
        "rows": len(release),
        "k": release.certificate.measured["KAnonymity"],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    _whole_run(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
