"""The `sfumato` command: 0 done, 1 guarantee not met or claim disproved, 2 usage or input, 3 budget refused,
130 stopped.

Commands are registered without importing what they run, so that `sfumato --help` stays quick. Errors are
one clean message; SFUMATO_DEBUG=1 shows where they came from, without the values they were about.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence

import typer
from typer.exceptions import Abort, TyperException

from sfumato.cli import (
    budgets,
    compare,
    cubes,
    doctor,
    hierarchies,
    house,
    inspect,
    keys,
    ledger,
    publish,
    query,
    refute,
    releases,
    rules,
    signals,
    tables,
)
from sfumato.cli.help import CommandGroup
from sfumato.cli.output import (
    NOWHERE,
    complain,
    fill_standard_streams,
    finish,
    notices_in_commands,
    pacify,
    put,
    show_every_character,
)
from sfumato.cli.usage import Misuse, command_of, explained, with_hint
from sfumato.core import files
from sfumato.core.errors import InputError, SfumatoError, SourceError
from sfumato.core.stopping import stop_behind
from sfumato.core.texts import is_unicode

app = typer.Typer(
    name="sfumato",
    help="Publish data about people without giving anyone away.",
    epilog="sfumato demo\nsfumato inspect people.csv\nsfumato protect --help",
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: a third of the start-up time
    context_settings={"help_option_names": ["-h", "--help"]},
)
inspect.register(app)
tables.register(app)
cubes.register(app)
hierarchies.register(app)
releases.register(app)
compare.register(app)
query.register(app)
publish.register(app)
rules.register(app)
budgets.register(ledger.register(app))
refute.register(app)
keys.register(app)
house.register(app)
doctor.register(app)

_NO_SUCH_PLACE = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STOPPED = "stopped; nothing was left half-written"


def main() -> None:
    """Run the command line and leave with its exit code."""
    signals.install()
    fill_standard_streams()
    show_every_character()
    files.sweep()
    try:
        code = finish(run(sys.argv[1:]))
    except SystemExit as leaving:
        if not isinstance(leaving.code, int) or leaving.code not in signals.STOPPED:
            raise
        code = finish(leaving.code)
    signals.ignore()
    if code in signals.STOPPED:
        signals.leave(code)
    sys.exit(code)


@functools.cache
def commands() -> Callable[..., object]:
    """All commands with their options, read from their functions once however many are run."""
    return typer.main.get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    as_json = "--json" in arguments
    if sys.stdout is None:  # said before the work, not after it
        return _failed(SourceError(NOWHERE), NOWHERE, SourceError.exit_code, False)
    if not all(map(is_unicode, arguments)):
        text = "an argument is no text in UTF-8: rename the file, or write the value in UTF-8"
        return _failed(InputError(text), text, InputError.exit_code, as_json)
    try:
        with notices_in_commands():
            code = commands()(args=list(arguments), prog_name="sfumato", standalone_mode=False)
    except (KeyboardInterrupt, Abort) as error:
        return _failed(error, _STOPPED, 130, as_json)
    except SystemExit as leaving:
        if not isinstance(leaving.__context__, BrokenPipeError):
            raise
        pacify()  # the library of the commands would leave with 1, which says that a guarantee is not met
        return 141
    except Exception as error:
        stop = stop_behind(error)
        if signals.interrupted() or isinstance(stop, KeyboardInterrupt):  # some libraries make an error of their own of it
            return _failed(error, _STOPPED, 130, as_json)
        if stop is not None:
            raise stop from None
        if (heard := signals.stopped_by()) is not None:
            raise SystemExit(128 + heard) from None
        return _reported(error, as_json, arguments)
    if code == 130:
        complain(_STOPPED)
    return code if isinstance(code, int) else 0


def _reported(error: Exception, as_json: bool, arguments: Sequence[str]) -> int:
    if isinstance(error, (TyperException, Misuse)):
        path, command = command_of(commands(), arguments)
        misuse = error if isinstance(error, Misuse) else Misuse(explained(error, command)).with_traceback(error.__traceback__)
        return _failed(misuse, with_hint(str(misuse), path), misuse.exit_code, as_json)
    if isinstance(error, SfumatoError):
        return _failed(error, str(error), error.exit_code, as_json)
    if isinstance(error, BrokenPipeError):
        pacify()
        return 141
    if isinstance(error, OSError) and error.errno in _NO_SUCH_PLACE:
        return _failed(error, f"a file or folder cannot be used: {os.strerror(error.errno)}", 2, as_json)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return _failed(error, f"something could not be written: {os.strerror(error.errno)}. Free some space.", 2, as_json)
    # A fault of the program: its message might hold a value, so it is not shown.
    text = f"an internal error happened ({type(error).__name__}). Set SFUMATO_DEBUG=1 to see where."
    return _failed(error, text, 70, as_json)


def _failed(error: BaseException, text: str, code: int, as_json: bool) -> int:
    if not (as_json and _put_json({"error": text, "kind": type(error).__name__, "exit_code": code})):
        complain(f"error: {text}" if code != 130 else text)
    if os.environ.get("SFUMATO_DEBUG") == "1":
        for line in _places(error):
            complain(line)
    return code


def _put_json(value: dict[str, object]) -> bool:
    try:
        put(json.dumps(value, ensure_ascii=True) + "\n")
    except (SfumatoError, OSError):
        pacify()
        return False
    return True


def _places(error: BaseException | None) -> list[str]:
    """Where an error came from: files and lines of the program, no message and no value."""
    lines = []
    while error is not None:
        lines.append(f"{type(error).__name__} raised at:")
        frames = traceback.extract_tb(error.__traceback__)
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return lines
