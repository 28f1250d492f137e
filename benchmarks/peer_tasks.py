"""What the peers do, run by the interpreter of their own environment: prints CPU seconds and findings as JSON.

`python peer_tasks.py TASK ROWS ADULT_FOLDER [ARGUMENT]`. Table and hierarchies are in memory before the clock starts,
and a run on the first few hundred rows goes before. `python peer_tasks.py QUERY PARQUET_FILE [ARGUMENT]` is one
question about a file, on two cores: modules are imported before the clock starts, the file is opened after it, and
nothing goes before.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SENSITIVE = "occupation"
_WARM_ROWS = 300

#: What is timed, and what is said about its result.
Work = tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]


def pycanon(frame: Any, folder: Path, measure: str) -> Work:
    """One measure with eight quasi-identifiers."""
    from pycanon import anonymity

    quasi = [name for name in frame.columns if name != SENSITIVE]
    arguments = (frame, quasi) if measure == "k_anonymity" else (frame, quasi, [SENSITIVE])
    return lambda: getattr(anonymity, measure)(*arguments), lambda found: {"found": str(found)}


def anjana(frame: Any, folder: Path, limit: str) -> Work:
    """k = 5 over nine quasi-identifiers with a suppression limit in percent."""
    import pandas as pd
    from anjana.anonymity import k_anonymity

    quasi = list(frame.columns)
    trees = {}
    for name in quasi:
        levels = pd.read_csv(folder / f"adult_hierarchy_{name}.csv", sep=";", header=None, dtype=str)
        trees[name] = {level: levels[level].to_numpy() for level in levels.columns}
    copied = frame.copy()

    def said(released: Any) -> dict[str, Any]:
        sizes = released.groupby(quasi).size()
        return {"rows": len(released), "classes": len(sizes)}

    return lambda: k_anonymity(copied, [], quasi, 5, float(limit), trees), said


def anonypy(frame: Any, folder: Path, argument: str) -> Work:
    """Mondrian with k = 5 over eight quasi-identifiers."""
    import anonypy as library

    coded = frame.assign(age=frame["age"].astype(int))
    for name in coded.columns:
        if name != "age":
            coded[name] = coded[name].astype("category")
    quasi = [name for name in coded.columns if name != SENSITIVE]

    def said(found: Any) -> dict[str, Any]:
        return {"rows": len(coded), "classes": len({tuple(str(row[name]) for name in quasi) for row in found})}

    return lambda: library.Preserver(coded, quasi, SENSITIVE).anonymize_k_anonymity(k=5), said


def opendp(numbers: str) -> Callable[[str], int]:
    """Count and sum per city, declared cities, ten rows of a user at most; incomes as reals or as whole numbers."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    cities = pl.LazyFrame({"city": [f"city number {i:04d}" for i in range(1000)]})

    def asked(source: str) -> int:
        context = dp.Context.compositor(
            data=pl.scan_parquet(source),
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user")),
            privacy_loss=dp.loss_of(rho=0.5),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=10_000_000, max_groups=1000)],
        )
        reals = pl.col("income").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 200_000.0))
        whole = pl.col("income").cast(int).fill_null(0).dp.sum((0, 200_000))
        income = reals if numbers == "reals" else whole
        question = context.query().truncate_per_group(10).group_by("city").agg(dp.len(), income).with_keys(cities)
        return len(question.release().collect())

    return asked


def smartnoise(argument: str) -> Callable[[str], int]:
    """Count, sum and mean per city, five rows of a user at most; no city is withheld."""
    import pandas as pd
    from snsql import Privacy, from_df

    columns = {
        "user": {"type": "int", "private_id": True},
        "city": {"type": "string"},
        "income": {"type": "float", "lower": 0.0, "upper": 200_000.0},
    }

    def asked(source: str) -> int:
        frame = pd.read_parquet(source)
        table = {"max_ids": 5, "censor_dims": False, "rows": len(frame), **columns}
        reader = from_df(frame, privacy=Privacy(epsilon=1.0, delta=1e-7), metadata={"": {"t": {"visits": table}}})
        question = "SELECT city, COUNT(*) AS n, SUM(income) AS s, AVG(income) AS m FROM t.visits GROUP BY city"
        return len(reader.execute(question)) - 1  # the names of the columns come first

    return asked


TASKS: dict[str, Callable[[Any, Path, str], Work]] = {"anjana": anjana, "anonypy": anonypy, "pycanon": pycanon}
QUERIES: dict[str, Callable[[str], Callable[[str], int]]] = {"opendp": opendp, "smartnoise": smartnoise}


def ask(name: str, source: str, argument: str = "") -> None:
    """One question, from the file to the answer."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    asked = QUERIES[name](argument)
    begin, imported = time.perf_counter(), time.process_time()
    groups = asked(source)
    told = {
        "wall_s": time.perf_counter() - begin,
        "cpu_s": time.process_time() - imported,
        "import_cpu_s": imported,
        "groups": groups,
    }
    # what getrusage says would include the process that started this one
    resident = Path("/proc/self/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]
    print(json.dumps({**told, "peak_mb": int(resident) * 1024 / 1e6}))


def main() -> None:
    """Read, warm up, measure."""
    warnings.simplefilter("ignore")
    if sys.argv[1] in QUERIES:
        ask(*sys.argv[1:])
        return
    import pandas as pd

    name, rows, folder, *rest = sys.argv[1:]
    argument = rest[0] if rest else ""
    frame = pd.read_csv(Path(folder) / "adult.csv", sep=";", dtype=str).head(int(rows))
    warming, _ = TASKS[name](frame.head(_WARM_ROWS), Path(folder), argument)
    warming()
    work, said = TASKS[name](frame, Path(folder), argument)
    before = time.process_time()
    found = work()
    spent = time.process_time() - before
    print(json.dumps({"cpu_s": spent, **said(found)}))


if __name__ == "__main__":
    main()
