"""Starting up: what `import sfumato` adds to the interpreter, the whole of `sfumato --help`, and a stranger's first release,
before anything was compiled and after `sfumato warm`; all in processes of their own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case

_IMPORT = "import time; before = time.process_time(); import sfumato; print(1000 * (time.process_time() - before))"


def cases() -> Iterator[Case]:
    """Start-ups, and the first command of somebody who never typed `make`, beside the same with compiled kernels."""
    yield Case("import sfumato", _importing, limit=50.0, reports=True, note="CPU beyond the interpreter's own start")
    yield Case("sfumato --help", _helping, limit=250.0, reports=True, note="CPU of the whole process")
    for kernels, state, limit in (("numpy", "nothing compiled", 4_500.0), ("", "kernels compiled", 4_500.0)):
        yield Case(
            f"a first release, 2,000 people, {state}",
            partial(_protecting, kernels),
            limit=limit,
            reports=True,
            note="CPU of the whole process, to the saved folder",
        )


def _importing(_: Any) -> float:
    return float(subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True).stdout)


def _helping(_: Any) -> float:
    return _milliseconds([*_program(), "--help"])


def _protecting(kernels: str, _: Any) -> float:
    from sfumato.data.sample import write_sample

    with tempfile.TemporaryDirectory() as folder:
        write_sample(folder, rows=2_000)
        command = [*_program(), "protect", "people.csv", "--schema", "people.toml", "--k", "5", "--quiet"]
        return _milliseconds(command, cwd=folder, env={**os.environ, "SFUMATO_KERNELS": kernels})


def _program() -> list[str]:
    script = Path(sys.executable).with_name("sfumato")
    plain = [sys.executable, "-c", "from sfumato.cli.main import main; main()"]
    return [str(script)] if script.exists() else plain


def _milliseconds(command: list[str], **options: Any) -> float:
    """Thousandths of a second that a process computes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
