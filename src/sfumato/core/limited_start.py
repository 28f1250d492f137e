"""How a limited process starts (`core.limited_process`): run by its path, it imports nothing of ours.

Before the program runs, the process gives up the right to more memory, time, output and processes than it was granted; nothing
that the program does gets them back.
"""

from __future__ import annotations

import json
import os
import runpy
import sys


def lower(limits: dict[str, int | None]) -> None:
    """Give up what goes beyond the limits, for good."""
    import resource

    most = {
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_CPU: limits["seconds"],
        resource.RLIMIT_FSIZE: limits["output"],
        resource.RLIMIT_CORE: 0,
    }
    if limits["processes"] is not None:
        most[resource.RLIMIT_NPROC] = _threads_of_user() + limits["processes"]
    for kind, wish in most.items():
        granted = resource.getrlimit(kind)[1]
        value = int(wish or 0) if granted == resource.RLIM_INFINITY else min(int(wish or 0), granted)
        try:
            resource.setrlimit(kind, (value, value))
        except (OSError, ValueError):
            if kind not in (resource.RLIMIT_AS, resource.RLIMIT_NPROC):  # some systems bound neither
                raise


def _threads_of_user() -> int:
    """What the system counts against a limit on processes."""
    total = 0
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            tasks = f"/proc/{entry}/task"
            if entry.isdecimal() and os.stat(tasks).st_uid == os.getuid():
                total += len(os.listdir(tasks))
        except OSError:
            continue
    return total


def main(start: str, program: str, arguments: list[str]) -> None:
    """Run a program, a file or a module by its name, within the limits that `start` states."""
    stated = json.loads(start)
    lower(stated["limits"])
    if stated["path"] is not None:
        sys.path[:] = stated["path"]
    sys.argv = [program, *arguments]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
