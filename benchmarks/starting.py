"""Starting up: what `import sfumato` adds to the interpreter, and the whole of `sfumato --help`, in processes of their own."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import Case

_IMPORT = "import time; before = time.process_time(); import sfumato; print(1000 * (time.process_time() - before))"


def cases() -> Iterator[Case]:
    """Both start-ups."""
    yield Case("import sfumato", _importing, limit=50.0, reports=True, note="CPU beyond the interpreter's own start")
    yield Case("sfumato --help", _helping, limit=250.0, reports=True, note="CPU of the whole process")


def _importing(_: Any) -> float:
    return float(subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True).stdout)


def _helping(_: Any) -> float:
    script = Path(sys.executable).with_name("sfumato")
    plain = [sys.executable, "-c", "from sfumato.cli.main import main; main()"]
    command = [str(script)] if script.exists() else plain
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
