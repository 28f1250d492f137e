"""What the peers do, run by the interpreter of their own environment: prints CPU seconds and findings as JSON.

`python peer_tasks.py TASK ROWS ADULT_FOLDER [ARGUMENT]`. The table is in memory before the clock starts; a run on the
first few hundred rows goes before.
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

Task = Callable[[Any, Path, str], dict[str, Any]]


def pycanon(frame: Any, folder: Path, measure: str) -> dict[str, Any]:
    """One measure with eight quasi-identifiers."""
    from pycanon import anonymity

    quasi = [name for name in frame.columns if name != SENSITIVE]
    arguments = (frame, quasi) if measure == "k_anonymity" else (frame, quasi, [SENSITIVE])
    return {"found": str(getattr(anonymity, measure)(*arguments))}


def anjana(frame: Any, folder: Path, limit: str) -> dict[str, Any]:
    """k = 5 over nine quasi-identifiers with a suppression limit in percent."""
    import pandas as pd
    from anjana.anonymity import k_anonymity

    trees = {}
    for name in frame.columns:
        levels = pd.read_csv(folder / f"adult_hierarchy_{name}.csv", sep=";", header=None, dtype=str)
        trees[name] = {level: levels[level].to_numpy() for level in levels.columns}
    released = k_anonymity(frame.copy(), [], list(frame.columns), 5, float(limit), trees)
    sizes = released.groupby(list(frame.columns)).size()
    return {"rows": len(released), "classes": len(sizes), "k": int(sizes.min()) if len(sizes) else 0}


def anonypy(frame: Any, folder: Path, argument: str) -> dict[str, Any]:
    """Mondrian with k = 5 over eight quasi-identifiers."""
    import anonypy as library

    coded = frame.assign(age=frame["age"].astype(int))
    for name in coded.columns:
        if name != "age":
            coded[name] = coded[name].astype("category")
    quasi = [name for name in coded.columns if name != SENSITIVE]
    found = library.Preserver(coded, quasi, SENSITIVE).anonymize_k_anonymity(k=5)
    return {"classes": len({tuple(str(row[name]) for name in quasi) for row in found})}


TASKS: dict[str, Task] = {"anjana": anjana, "anonypy": anonypy, "pycanon": pycanon}


def main() -> None:
    """Read, warm up, measure."""
    import pandas as pd

    warnings.simplefilter("ignore")
    name, rows, folder, *rest = sys.argv[1:]
    task, argument = TASKS[name], rest[0] if rest else ""
    frame = pd.read_csv(Path(folder) / "adult.csv", sep=";", dtype=str).head(int(rows))
    task(frame.head(_WARM_ROWS), Path(folder), argument)
    before = time.process_time()
    found = task(frame, Path(folder), argument)
    print(json.dumps({"cpu_s": time.process_time() - before, **found}))


if __name__ == "__main__":
    main()
