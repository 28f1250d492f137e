"""Where the system limits the memory of a process, nothing is reserved that holds nothing."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core import memory_limit

GIB = 2**30
READ = """
import sys
import sfumato as sf

people = sf.read(sys.argv[1], {"columns": {"age": {"role": "quasi", "type": "integer"}}})
for line in open("/proc/self/status"):
    if line.startswith("VmData"):
        print(people.relation.count(), int(line.split()[1]) * 1024)
"""


def test_arrow_reserves_no_gigabyte_under_a_limit(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [30, 40]}), tmp_path / "people.parquet")
    limited = partial(resource.setrlimit, resource.RLIMIT_DATA, (3 * GIB, 3 * GIB))
    command = [sys.executable, "-c", READ, str(tmp_path / "people.parquet")]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=limited)
    rows, data = map(int, answer.stdout.split())
    assert rows == 2 and data < 0.75 * GIB


def test_the_smallest_limit_counts_and_an_allocator_that_somebody_chose_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: unlimited)
    memory_limit.fit_arrow()
    assert memory_limit.memory_limit() is None and "ARROW_DEFAULT_MEMORY_POOL" not in memory_limit.os.environ
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (GIB, GIB) if kind == resource.RLIMIT_DATA else (2 * GIB, 2 * GIB))
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    memory_limit.fit_arrow()
    assert memory_limit.memory_limit() == GIB and memory_limit.os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "jemalloc"
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL")
    memory_limit.fit_arrow()
    assert memory_limit.os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "system"
