"""`python tools/installing.py ARGUMENTS`: `pip install ARGUMENTS` with one line that says how far it is.

At a terminal the line counts packages; elsewhere one line says that it begins and one that it is done. What pip says is shown
only where it fails, and its exit code is passed on.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = re.compile(r"(?:Collecting|Requirement already satisfied:|Processing|Obtaining)\s+([^\s=<>;@(\[]+)")
_LAST_LINES = 15


def main(arguments: Sequence[str]) -> int:
    """Install, and say how far it is."""
    total, seen, lines, shown = listed(arguments), set[str](), list[str](), 0
    looked_at = sys.stdout.isatty()
    of_all = f" of {total}" if total else ""
    if not looked_at:
        print(f"installing {counted(total)}; this may take some minutes", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-color", "--progress-bar", "off"]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines = [*lines[1 - _LAST_LINES :], line]
            if (package := _PACKAGE.match(line)) is not None:
                seen.add(package[1])
                text = f"installing {len(seen)}{of_all}: {Path(package[1]).name[:40]}"
            elif line.startswith("Installing collected packages"):
                text = f"installing: unpacking {len(seen)} packages, the longest part"
            else:
                continue
            if looked_at:
                print(f"\r{text:<{shown}}", end="", flush=True)
                shown = len(text)
    if looked_at:
        print(f"\r{'':<{shown}}\r", end="", flush=True)
    if process.returncode:
        print("".join(lines), end="", file=sys.stderr)
    else:
        print(f"installed {counted(len(seen))}", flush=True)
    return process.returncode


def counted(packages: int) -> str:
    """So many packages, where anybody knows how many."""
    return "packages" if not packages else "1 package" if packages == 1 else f"{packages} packages"


def listed(arguments: Sequence[str]) -> int:
    """How many packages the files of requirements among the arguments name."""
    files = [Path(value) for flag, value in zip(arguments, arguments[1:], strict=False) if flag == "-r"]
    return sum(len(re.findall(r"^[\w.-]+==", file.read_text("utf-8"), re.MULTILINE)) for file in files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
