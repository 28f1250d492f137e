"""`compare` on five thousand people with everything it does by default: fifteen methods, four draws, two processes.

The bar is wall time on two cores, 20 s compiled and 60 s with the NumPy twins. On a shared machine the wall says little, so that
CPU seconds of all processes together are judged against twice the bar, and the wall stands in the remark.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Case, all_threads

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_110
CORES = 2
SEED = 7


def people(rows: int = ROWS) -> pa.Table:
    """Age, glucose and BMI, three columns of 0 and 1, five of categories, correlated as in a study of strokes."""
    import numpy as np
    import pyarrow as pa

    draw = np.random.Generator(np.random.PCG64(SEED))
    age = draw.integers(1, 83, rows)
    flags = {
        name: (draw.random(rows) < chance * age).astype(np.int64)
        for name, chance in (("hypertension", 0.0022), ("angina", 0.001), ("stroke", 0.0011))
    }
    return pa.table(
        {
            "age": age,
            "glucose": np.round(55 + draw.gamma(3, 17, rows), 2),
            "mass index": np.round(np.clip(draw.normal(28.9, 7.8, rows), 10, 97), 1),
            **flags,
            "gender": draw.choice(["Female", "Male"], rows, p=[0.59, 0.41]),
            "married": np.where(draw.random(rows) < np.clip((age - 15) / 30, 0, 0.95), "Yes", "No"),
            "work": draw.choice(["Private", "Own", "Child", "State", "Never"], rows, p=[0.57, 0.16, 0.13, 0.13, 0.01]),
            "residence": draw.choice(["Urban", "Rural"], rows),
            "smoking": draw.choice(["never", "Unknown", "formerly", "smokes"], rows, p=[0.37, 0.3, 0.17, 0.16]),
        }
    )


def compared(rows: int = ROWS) -> dict[str, Any]:
    """One comparison with the schema that `inspect` proposes, every column known to the intruder."""
    import sfumato as sf

    table = people(rows)
    proposed = sf.data.starting_schema(sf.data.profile_table(table), "strokes")
    known = {name: column.model_copy(update={"role": "quasi"}) for name, column in proposed.columns.items()}
    data = sf.read(table, proposed.replace(columns=known))
    begun, spent = time.perf_counter(), _cpu()
    comparison = sf.compare(data, workers=CORES, cache=False)
    return {
        "cpu": _cpu() - spent,
        "wall": time.perf_counter() - begun,
        "ran": len(comparison.measured),
        "methods": len(comparison.points),
        "recommended": comparison.recommended is not None,
    }


def _cpu() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class _Run:
    """A comparison in a process of its own, and what it said."""

    def __init__(self, kernels: str) -> None:
        self.environment = {**all_threads(), **({"SFUMATO_KERNELS": kernels} if kernels else {})}
        self.facts: dict[str, Any] = {}

    def __call__(self, _: None) -> float:
        command = [sys.executable, "-m", "benchmarks.comparing"]
        self.facts = json.loads(subprocess.run(command, env=self.environment, check=True, capture_output=True).stdout)
        return float(self.facts["cpu"])

    def fault(self, _: object) -> str | None:
        """Every method runs, and one is recommended."""
        sound = self.facts["ran"] == self.facts["methods"] and self.facts["recommended"]
        return None if sound else f"{self.facts['ran']} of {self.facts['methods']} methods ran"

    def remark(self, _: object) -> str:
        """The wall time on this machine as it is."""
        return f"CPU of all processes; {self.facts['ran']} methods; {self.facts['wall']:.0f} s of wall on {os.cpu_count()} cores"


def cases() -> Iterator[Case]:
    """Compiled, and with the twins."""
    for words, kernels, wall in (("compiled", "", 20.0), ("without compiled kernels", "numpy", 60.0)):
        run = _Run(kernels)
        yield Case(
            name=f"compare, {ROWS:,} records of 11 columns, 4 draws, {words}",
            ours=run,
            unit="s",
            limit=CORES * wall,
            check=run.fault,
            remark=run.remark,
            reports=True,
            repeats=1,
            warm_run=False,
            note=f"the bar is {wall:.0f} s of wall on two cores",
        )


if __name__ == "__main__":
    print(json.dumps(compared()))
