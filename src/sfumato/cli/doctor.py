"""The command doctor: what an engine can do here, before anything is asked of it."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.help import PROGRAM, add
from sfumato.cli.output import Json, answer


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(
        app,
        doctor,
        "sfumato doctor people.csv",
        "sfumato doctor postgresql://localhost/clinic --table patients",
        task=PROGRAM,
    )


def doctor(
    place: Annotated[str, typer.Argument(help="A postgresql:// URL, a file, spark: or spark:sc://host.")],
    table: Annotated[str | None, typer.Option("--table", help="A table to look up as well.")] = None,
    destination: Annotated[
        str | None, typer.Option("--destination", help="A place to publish into: a folder, a file or a postgresql:// URL.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what an engine can do here: versions, rights, snapshots, limits. Nothing is read and nothing is written."""
    from sfumato.engines.doctor.examination import doctor as run

    diagnosis = run(place, table=table, destination=destination)
    answer(diagnosis.to_mapping(), diagnosis.lines(), json)
    if not diagnosis.usable:
        raise typer.Exit(1)
