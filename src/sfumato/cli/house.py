"""Commands about the installation: demo, warm, version."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.keys import propose
from sfumato.cli.output import Json, Quiet, answer, shown_progress


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(demo)
    app.command()(warm)
    app.command()(version)
    app.callback()(options)


def _leave_with_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_leave_with_version, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options of the whole program."""


def demo(
    folder: Annotated[str, typer.Argument(help="Where the demonstration goes.")] = "sfumato-demo",
    rows: Annotated[int, typer.Option("--rows", min=100, help="How many people are generated.")] = 50_000,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Protect a generated table of people and say what came out."""
    from sfumato.workflow.demo import demo as run

    with shown_progress(json, quiet) as progress:
        facts, lines = run(folder, rows=rows, progress=progress)
    propose(facts, lines, None)
    answer(facts, lines, json)


def warm(
    remove: Annotated[bool, typer.Option("--remove", help="Remove the compiled kernels, which uninstalling leaves.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compile the numerical kernels once: until then NumPy computes the same numbers, more slowly."""
    from sfumato.kernels.compiled import remove as clear
    from sfumato.kernels.compiled import warm as run

    if remove:
        files = clear()
        answer({"removed": files}, [f"{files} files of compiled kernels were removed"], json)
        return
    with shown_progress(json, quiet) as progress:
        kernels = run(progress)
    answer({"kernels": kernels}, [f"{kernels} kernels are compiled"], json)


def version(json: Json = False) -> None:
    """Print the version."""
    import sfumato

    answer({"version": sfumato.__version__}, [f"sfumato {sfumato.__version__}"], json)
