"""Runs the examples of pages, each page as a reader does who starts Python in an empty folder.

A fresh interpreter for every page and every command would spend its time on importing libraries. This process imports them once,
in a single thread, and forks: what it forks has the libraries and no names, no files and no home folder but an empty one. The
Python blocks of a page run one after another in one such process; each command line is a process of its own.

Reads one JSON object per line: `folder`, `home` and `pieces`, each `["python", source, line]` or
`["command", {words, code, shown}, line]`: the exit code that the page states, and a pattern of what it shows. Answers with one
line: `{"failed": text}`, null where the page ran.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBRARIES = (
    "numpy numba scipy.stats scipy.spatial scipy.sparse scipy.optimize pyarrow.parquet pyarrow.csv pyarrow.compute duckdb "
    "sqlglot pydantic tomlkit sklearn.tree typer rich.console polars pandas matplotlib.figure matplotlib.backends.backend_svg "
    "highspy cryptography sfumato.cli.main sfumato.workflow.verifying.verify sfumato.workflow.comparing.compare "
    "sfumato.workflow.protect sfumato.workflow.attacking.releases sfumato.dp.session sfumato.report.card sfumato.engines.sources"
).split()


def forked(work: Callable[[], object], log: Path) -> int:
    """The exit code of a process that does this and nothing else, its output in the log."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        sys.stdin = open(os.devnull)
        sys.stdout, sys.stderr = (open(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
        code = int(work() or 0)  # type: ignore[call-overload]
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def type_in(words: list[str]) -> None:
    """One command line, as the shell would start it: `sfumato …`, or `python -c …`."""
    if words[0] == "sfumato":
        from sfumato.cli.main import main

        sys.argv = words
        main()
    elif words[:2] == ["python", "-c"]:
        exec(compile(words[2], "-c", "exec"), {"__name__": "__main__"})
    else:
        raise SystemExit(f"{words[0]}: command not found")


def notebook(pieces: list[list[Any]], wait: int, tell: int) -> None:
    """The Python blocks of a page, each when it is called for; all share the names that the page itself makes."""
    names: dict[str, object] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        for _, source, line in (piece for piece in pieces if piece[0] == "python"):
            if not os.read(wait, 1):  # the reader stopped
                return
            exec(compile("\n" * (line - 1) + source, "page", "exec"), names)
            os.write(tell, b".")


def read_along(pieces: list[list[Any]], log: Path) -> str | None:
    """Everything that a page asks its reader to run, in its order; what went wrong, if anything did."""
    (wait, call), (heard, tell) = os.pipe(), os.pipe()
    reader = os.fork()
    if not reader:
        os.close(heard)
        os.close(call)
        os._exit(forked(lambda: notebook(pieces, wait, tell), log) % 256)
    os.close(tell)
    os.close(wait)
    try:
        for kind, what, line in pieces:
            if kind == "python":
                os.write(call, b".")
                if not os.read(heard, 1):
                    return f"the Python example at line {line} fails:\n{log.read_text('utf-8')[-3000:]}"
                continue
            before = log.stat().st_size if log.exists() else 0
            code = forked(lambda words=what["words"]: type_in(words), log)  # type: ignore[misc]
            answered = log.read_bytes()[before:].decode()
            if code != what["code"]:
                return f"line {line}: `{' '.join(what['words'])}` ends with {code}, not {what['code']}:\n{answered[-3000:]}"
            if not re.search(what["shown"], " ".join(answered.split())):
                return f"line {line}: `{' '.join(what['words'])}` does not answer what the page shows:\n{answered[-3000:]}"
        return None
    finally:
        os.close(call)
        os.close(heard)
        os.waitpid(reader, 0)


def main() -> None:
    """Import, then serve until the input ends."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for variable in [name for name in os.environ if name.startswith(("SFUMATO_", "XDG_"))]:
        del os.environ[variable]
    os.cpu_count = lambda: 1  # a machine with one core, on which a comparison starts no further processes
    gc.collect()
    gc.freeze()  # the collector of a page leaves alone what all pages share
    for request in sys.stdin:
        asked = json.loads(request)
        os.environ["HOME"] = asked["home"]
        os.chdir(asked["folder"])
        failed = read_along(asked["pieces"], Path(asked["home"]) / "log.txt")
        print(json.dumps({"failed": failed}), flush=True)


if __name__ == "__main__":
    main()
