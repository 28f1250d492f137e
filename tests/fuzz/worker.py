"""Try damaged inputs, one after the other, in a process that may crash: `python -m tests.fuzz.worker KIND FIRST COUNT FOLDER`.

Before each input its number is written to a file, so that whoever started this knows which one ended it. Each fault is
one line of JSON on standard output: an exception that is none of ours, a mark of a record in what was said, an exit
code of 70, an input that takes too long.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path

from sfumato.core.errors import SfumatoError
from tests.fuzz.kinds import CANARY, Kind
from tests.fuzz.kinds import kind as chosen
from tests.fuzz.mutations import mutated

#: Seconds of computing that an input may take, and of waiting: a busy machine computes little in a second.
SECONDS, PATIENCE = 30, 600
MEMORY = 12 << 30
#: One in so many inputs also goes through the command line.
COMMANDS = 20


class TooLong(BaseException):
    """An input kept the program busy for too long."""


def fuzz(name: str, kind: Kind, number: int, folder: Path, taken: list[int]) -> dict[str, object] | None:
    """Try one input; returns the fault that it brought to light."""
    draw = random.Random(f"{name} {number}")
    path = folder / f"input{kind.ending}"
    content = mutated(kind.seeds, draw, kind.mutations)
    path.write_bytes(content)
    told, place = "", ""
    try:
        kind.attempt(path, number)
        taken.append(number)
    except SfumatoError as error:
        told = "" if error.owner_only else _chain(error)
    except TooLong:
        return _fault(name, number, "took too long", "")
    except BaseException as error:
        frame = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if "sfumato" in f.filename), None)
        place = f"{Path(frame.filename).name}:{frame.lineno}" if frame else ""
        return _fault(name, number, f"{type(error).__name__}: {str(error)[:200]}", place)
    if CANARY in told and not _named(name, content):
        return _fault(name, number, "a record's value was said", told[:400])
    return _through_the_command_line(name, kind, number, path, content) if number % COMMANDS == 0 else None


def _through_the_command_line(name: str, kind: Kind, number: int, path: Path, content: bytes) -> dict[str, object] | None:
    from sfumato.cli.main import run

    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = run(kind.command(path))
    if code == 70:
        return _fault(name, number, "exit code 70", complained.getvalue()[:300])
    text = complained.getvalue() + (said.getvalue() if code else "")
    if CANARY in text and not _named(name, content) and name not in ("hierarchy", "schema"):  # those are for the owner's eyes
        return _fault(name, number, "a record's value was printed", text[:400])
    return None


def _chain(error: BaseException) -> str:
    """Everything that a log would show of an error and of what was behind it."""
    texts, seen = [], error
    while seen is not None:
        texts.append("".join(traceback.format_exception_only(seen)) + repr(seen) + repr(seen.args))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)  # type: ignore[assignment]
    return "\n".join(texts)


def _named(name: str, content: bytes) -> bool:
    """Whether the mark stands where a name does: in the line of column names, or in what the owner or the analyst wrote."""
    if name == "parquet":
        return content[-3000:].count(CANARY.encode()) > 8  # a name in the footer, beside the statistics
    if name != "csv":
        return CANARY.encode() in content
    text = content.replace(b"\0", b"").decode("latin-1").lstrip("\ufeffÿþï»¿ \t\r\n")
    try:
        names = next(csv.reader(io.StringIO(text, newline="")), [])  # a quote that stays open takes rows in
    except csv.Error:
        return True
    return any(CANARY in each for each in names)


def _fault(name: str, number: int, what: str, where: str) -> dict[str, object]:
    return {"kind": name, "number": number, "what": what, "where": where}


def _ring(number: int, frame: object) -> None:
    raise TooLong


def main(name: str, first: int, count: int, folder: Path) -> None:
    """Try the inputs with these numbers."""
    import os

    os.environ["SFUMATO_KEY"] = str(folder / "owner.key")
    warnings.simplefilter("ignore")
    for ring in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(ring, _ring)
    kind = chosen(name, folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    taken: list[int] = []
    for number in range(first, first + count):
        (folder / "number").write_text(str(number))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(PATIENCE)
        try:
            found = fuzz(name, kind, number, folder, taken)
        except TooLong:
            found = _fault(name, number, "took too long", "")
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        if found:
            print(json.dumps(found), flush=True)
    print(json.dumps({"kind": name, "tried": count, "taken": len(taken)}), flush=True)
    (folder / "number").write_text("done")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
