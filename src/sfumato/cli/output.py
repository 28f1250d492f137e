"""What the commands print: results to standard output, progress and complaints to standard error, all of it
harmless to a terminal.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.core.certificate import plain
from sfumato.core.errors import SourceError
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.progress import Progress, silent

if TYPE_CHECKING:
    from sfumato.report.headline import Headline

#: What an answer says besides in JSON: the options that nobody typed (`cli.defaults`).
beside: ContextVar[Mapping[str, str]] = ContextVar("beside")
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON and nothing else.")]
NOWHERE = "standard output is closed, so there is nowhere to print the result. Send it to a file, or to /dev/null."
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Strict = Annotated[bool, typer.Option("--strict", help="End with 1 unless the verdict is `kept`: warnings count as failures.")]

#: The same where something is made: it is refused before anything is written.
StrictlyMade = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse (1) before anything is written, entered or charged, unless the verdict will be `kept`: warnings count as "
        "failures. What others enter in the ledger at that very moment shows only afterwards, and the command ends with 1.",
    ),
]


def say(lines: str | Iterable[str]) -> None:
    """Print lines; control characters in them are made visible."""
    from sfumato.report.markup import terminal

    parts = lines.split("\n") if isinstance(lines, str) else [part for line in lines for part in line.split("\n")]
    put("".join(f"{terminal(line)}\n" for line in parts))


def put(text: str) -> None:
    """Write to standard output, now: a reader that went away is a `BrokenPipeError`, any other failure is said."""
    if sys.stdout is None:
        raise SourceError(NOWHERE)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise _unprinted(error) from None


def _unprinted(error: OSError | ValueError) -> SourceError:
    reason = getattr(error, "strerror", None) or "it is closed"
    return SourceError(f"standard output cannot be written: {reason}. Send it to a place with room for it.")


def finish(code: int) -> int:
    """Write out what is left for standard output; the exit code is that of the command unless this fails."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        pacify()
        return code or 141
    except (OSError, ValueError) as error:
        pacify()
        if code == 0:
            complain(f"error: {_unprinted(error)}")
        return code or SourceError.exit_code
    return code


def fill_standard_streams() -> None:
    """Closed standard streams lead to nowhere, so that the next file that is opened does not take the place of one."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def show_every_character() -> None:
    """A character that the encoding of the output lacks, such as ε in latin-1, is shown by its number: no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def complain(text: str) -> None:
    """Print to standard error."""
    from sfumato.report.markup import terminal

    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # nowhere left to say it
            sys.stderr.write("".join(f"{terminal(line)}\n" for line in text.split("\n")))
            sys.stderr.flush()


def answer(value: Plain, lines: str | Iterable[str], as_json: bool) -> None:
    """Print a result as JSON or in words."""
    if as_json:
        if isinstance(value, Mapping) and beside.get({}):
            value = {**value, "defaults": dict(beside.get({}))}
        put(json.dumps(plain(value), indent=2, ensure_ascii=True, allow_nan=False) + "\n")
    else:
        say(lines)


def conclude(
    value: PlainDict,
    lines: Iterable[str],
    verdict: Headline,
    as_json: bool,
    *,
    strict: bool,
    failed: bool = False,
    last: bool = False,
) -> None:
    """Print a result under its verdict, or over it where that comes `last`, and end with 1 if it failed or, where somebody is
    strict, is anything but kept."""
    if not as_json:
        head, *warnings = verdict.lines
        if last:
            say(lines)
        put(f"{_coloured(head, verdict)}\n")
        say(warnings if last else [*warnings, *lines])
    else:
        answer({**verdict.to_mapping(), **value}, (), as_json)
    if failed or (strict and verdict.word != "kept"):
        raise typer.Exit(1)


def _coloured(head: str, verdict: Headline) -> str:
    """The headline with its word in colour where somebody looks and wants colours; the word says it anyway."""
    from sfumato.report.headline import COLOURS
    from sfumato.report.markup import terminal

    line = terminal(head)
    wanted = (
        sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    return line.replace(verdict.word, f"\x1b[1;{COLOURS[verdict.word]}m{verdict.word}\x1b[0m", 1) if wanted else line


@contextmanager
def shown_progress(as_json: bool, quiet: bool = False) -> Iterator[Progress]:
    """A receiver of progress: a bar on standard error when somebody is looking, silence otherwise."""
    if as_json or quiet or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=None)

        def receive(phase: str, done: int, total: int) -> None:
            bars.update(task, description=phase, completed=done, total=total or None)

        yield receive


@contextmanager
def notices_in_commands() -> Iterator[None]:
    """Commands print the notices of what they made; those that no command knows of go to standard error."""
    import warnings

    from sfumato.core.errors import NotCompiled, SfumatoWarning

    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, NotCompiled):
                complain(f"notice: {message}")
            else:
                usual(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("ignore", SfumatoWarning)
        warnings.simplefilter("always", NotCompiled)
        yield


def table_lines(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, whole_last: bool = False) -> list[str]:
    """Columns under each other, the first to the left and numbers to the right; long cells are cut, but not of a `whole_last`."""
    from sfumato.report.markup import shorten

    last = len(heads) - 1 if whole_last else len(heads)
    cells = [tuple(shorten(cell, 60) if i < last else cell for i, cell in enumerate(row)) for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if not _numeric(cell) else cell.rjust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    ]


def pacify() -> None:
    """The reader of our output went away: say nothing more, not even at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _numeric(cell: str) -> bool:
    return bool(cell) and cell.rstrip("%").strip().replace(",", "").replace(".", "", 1).isdigit()
