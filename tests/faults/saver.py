"""A process with a release at hand, which starts others that save it and kills them on the way; run with a folder as argument.

Each line of standard input is a folder to save to, whether something is there, and after how many seconds to kill the process
that saves; the answer is one line: for how many seconds that process ran.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def main(folder: Path) -> None:
    import sfumato as sf
    from tests.workflow.people import people

    made = sf.protect(people(200), sf.KAnonymity(3), sf.Lattice(suppression=0.1), seed=1)
    made.save(folder / "warm", overwrite=True)  # everything is imported before the clock starts
    print("ready", flush=True)
    for line in sys.stdin:
        place, mode, seconds = line.rstrip("\n").split("\t")
        begun = time.monotonic()
        child = os.fork()
        if not child:
            try:
                made.save(Path(place), overwrite=mode == "overwrite")
            finally:
                os._exit(0)
        while time.monotonic() < begun + float(seconds) and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)  # where it has ended, nobody has its number yet
        os.waitpid(child, 0)
        print(time.monotonic() - begun, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
