"""Publishing on a Spark of its own, while something dies: a process that `test_spark_faults` starts.

`python -m tests.faults.spark_faults MASTER FOLDER SCENARIO…` prints one line of JSON: per scenario the digest of what was
published, or the message of the error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.core.errors import SfumatoError
from sfumato.engines.digests.row_digest import table_sums
from tests.workflow.people import schema, table

ROWS = 4_000
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.maxResultSize": "1m",
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "0ms",
}


def started(master: str, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("sfumato-faults")
    builder = builder.config("spark.local.dir", str(folder)).config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Run:
    """One session, one table, and a place to publish into per scenario."""

    def __init__(self, master: str, folder: Path) -> None:
        self.session, self.folder = started(master, folder), folder
        self.source = folder / "people"
        self.source.mkdir()
        rows = table(ROWS)
        for part in range(4):
            pq.write_table(rows.slice(part * ROWS // 4, ROWS // 4), self.source / f"{part}.parquet")

    def frame(self) -> Any:
        return self.session.read.parquet(str(self.source))

    def published(self, frame: Any, name: str, progress: Callable[[str, int, int | None], None] | None = None) -> str:
        place = self.folder / name
        place.mkdir()
        options: dict[str, Any] = {} if progress is None else {"progress": progress}
        try:
            promise, search = [sf.KAnonymity(5)], sf.Lattice(suppression=0.05)
            sf.protect(frame, promise, search, schema=schema(), destination=place / "out", **options)
        except SfumatoError as error:
            assert list(place.iterdir()) == [], "something was left"
            return "".join(traceback.format_exception(error, chain=True))
        parts = sorted((place / "out" / "public" / "data").iterdir())
        return table_sums(pa.concat_tables([pq.read_table(part) for part in parts])).content_digest()

    # Scenarios

    def steady(self) -> str:
        """Nothing dies."""
        return self.published(self.frame(), "steady")

    def dies_once(self) -> str:
        """A worker that ends in the middle of its first task."""
        return self.published(self.frame().withColumn("visits", self._dying(str(self.folder / "died"))("visits")), "dies_once")

    def dies_always(self) -> str:
        """A worker that ends in every task."""
        return self.published(self.frame().withColumn("visits", self._dying("")("visits")), "dies_always")

    def _dying(self, marker: str) -> Any:
        from pyspark.sql.functions import udf

        def same(value: int) -> int:
            if not marker or not os.path.exists(marker):
                if marker:
                    open(marker, "w").close()
                os._exit(1)
            return value

        return udf(same, "long")

    def large_answer(self) -> str:
        """Every record is a cell of its own, and all of them are more than the driver takes."""
        frame = self.session.range(200_000).selectExpr(
            *("concat('person 0', id) AS name", "id AS age", "lpad(id, 5, '0') AS zip"),
            *("'f' AS sex", "0L AS visits", "'flu' AS disease"),
        )
        return self.published(frame, "large_answer")

    def executor_killed(self) -> str:
        """An executor that is killed when rows are about to be shuffled; its files are read again elsewhere."""
        return self.published(self.frame(), "executor_killed", self._when("writing rows", self._kill_executor))

    def executor_killed_with_rows(self) -> str:
        """The same where the rows were computed: they are lost with the executor, and are not computed again."""
        frame = self.frame().filter("age > 0")
        return self.published(frame, "executor_killed_with_rows", self._when("writing rows", self._kill_executor))

    def jvm_killed(self) -> str:
        """The driver's JVM is killed when rows are about to be written. Last, since no session is left."""
        return self.published(self.frame(), "jvm_killed", self._when("writing rows", self._kill_jvm))

    def _when(self, phase: str, act: Callable[[], None]) -> Callable[[str, int, int | None], None]:
        waiting = [act]

        def told(now: str, done: int, total: int | None) -> None:
            if now == phase and waiting:
                waiting.pop()()

        return told

    def _kill_executor(self) -> None:
        application = str(self.session.sparkContext.applicationId).encode()
        for process in Path("/proc").glob("[0-9]*"):
            command = (process / "cmdline").read_bytes() if (process / "cmdline").exists() else b""
            if (
                b"CoarseGrainedExecutorBackend" in command
                and application in command
                and b"org.apache.spark.deploy" not in command
            ):
                os.kill(int(process.name), signal.SIGKILL)
                return
        raise RuntimeError("there is no executor to kill")

    def _kill_jvm(self) -> None:
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        assert gateway is not None
        os.killpg(gateway.proc.pid, signal.SIGKILL) if os.getpgid(gateway.proc.pid) == gateway.proc.pid else gateway.proc.kill()


def main(master: str, folder: str, *scenarios: str) -> None:
    run = Run(master, Path(folder))
    print(json.dumps({name: getattr(run, name)() for name in scenarios}), flush=True)
    os._exit(0)  # a gateway whose JVM is gone would wait for it


if __name__ == "__main__":
    main(*sys.argv[1:])
