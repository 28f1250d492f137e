"""The command that tries to disprove a claim of differential privacy: refute."""

from __future__ import annotations

from typing import Annotated

import typer

from sfumato.cli.help import CHECK, add
from sfumato.cli.output import Json, Quiet, answer, shown_progress


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(
        app,
        refute,
        "sfumato refute mechanism.py:noisy_count --epsilon 0.5",
        "sfumato refute mechanism.py:noisy_count --neighbours neighbours.json --seconds 60",
        task=CHECK,
    )


def refute(
    target: Annotated[str, typer.Argument(help="The function, as module:function or file.py:function.")],
    neighbours: Annotated[
        str | None,
        typer.Option("--neighbours", "-n", help="Two databases: JSON, a .json file, or a .py file that sets NEIGHBOURS."),
    ] = None,
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="The claimed ε.")] = "1",
    delta: Annotated[str, typer.Option("--delta", "-d", help="The claimed δ.")] = "0",
    samples: Annotated[int | None, typer.Option("--samples", min=100, help="The most draws on each neighbour.")] = None,
    seconds: Annotated[float, typer.Option("--seconds", min=0.1, help="About how long to try.")] = 20.0,
    memory: Annotated[int, typer.Option("--memory", min=256, help="The most memory of the function, in MiB.")] = 4096,
    vectorised: Annotated[
        bool, typer.Option("--vectorised", help="The function takes (database, count) and returns that many outputs.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try to disprove that a function is differentially private; exit code 1 when it is disproved."""
    from sfumato.workflow.refuting.refute import refute_target

    with shown_progress(json, quiet) as progress:
        verdict = refute_target(
            target,
            neighbours=neighbours,
            epsilon=epsilon,
            delta=delta,
            samples=samples,
            seconds=seconds,
            memory=memory,
            vectorised=vectorised,
            progress=progress,
        )
    answer({"target": target, **verdict.to_mapping()}, verdict.explain(), json)
    if verdict.refuted:
        raise typer.Exit(1)
