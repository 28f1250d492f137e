"""What the peers do, run by the interpreter of their own environment: prints CPU seconds and findings as JSON.

`python peer_tasks.py TASK ROWS ADULT_FOLDER [ARGUMENT]`. Table and hierarchies are in memory before the clock starts,
and a run on the first few hundred rows goes before.
"""

from __future__ import annotations

import json
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


TASKS: dict[str, Callable[[Any, Path, str], Work]] = {"anjana": anjana, "anonypy": anonypy, "pycanon": pycanon}


def main() -> None:
    """Read, warm up, measure."""
    import pandas as pd

    warnings.simplefilter("ignore")
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
