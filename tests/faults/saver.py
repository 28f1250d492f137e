"""A process that saves a release again and again until it is killed; run with the folder as argument."""

from __future__ import annotations

import sys
from pathlib import Path


def main(folder: Path, overwrite: bool) -> None:
    import sfumato as sf
    from tests.workflow.people import people

    made = sf.protect(people(200), sf.KAnonymity(3), sf.Lattice(suppression=0.1), seed=1)
    made.save(folder / "warm", overwrite=True)  # everything is imported before the clock starts
    print("ready", flush=True)
    sys.stdin.readline()
    made.save(folder / "out", overwrite=overwrite)
    print("saved", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "overwrite")
