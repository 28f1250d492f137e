"""The command that compares methods on a table."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer

from sfumato.cli.help import LOOK, add
from sfumato.cli.output import Json, Quiet, answer, shown_progress
from sfumato.cli.reading import reads_a_table
from sfumato.cli.usage import Misuse
from sfumato.core.plain_data import PlainDict

Method = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        "-m",
        help="A mask, as 'Mdav(k=[3, 5, 10])', or guarantees and a search, as 'KAnonymity(k=[3, 10]) by Mondrian'; lists are "
        "tried one by one; may be repeated.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(
        app,
        reads_a_table(compare),
        "sfumato compare people.csv --schema people.toml",
        "sfumato compare people.csv --schema people.toml -m 'Mdav(k=[3, 5, 10])' -m 'KAnonymity(k=5) by Mondrian'",
        "sfumato compare people.csv --schema people.toml --most-loss 0.3 -o map.html -o map.svg",
        task=LOOK,
    )


def compare(
    source: Annotated[str, typer.Argument(help="The table: a file, or the URL of a database.")],
    methods: Method = None,
    schema: Annotated[
        str | None, typer.Option("--schema", "-s", help="The schema (TOML); without one, roles are suggested.")
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="The table of the database.")] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write the map, .html or .svg; by default map.html; may be repeated."
        ),
    ] = None,
    risk: Annotated[
        str | None,
        typer.Option("--risk", help="The measure of risk, disclosure_risk by default; its gain is the axis."),
    ] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="The measure of loss, overall_loss by default.")] = None,
    also: Annotated[list[str] | None, typer.Option("--also", help="A further measure; may be repeated.")] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Draw each method this often: means and error bars.")] = 4,
    seed: Annotated[str, typer.Option("--seed", help="The seed of the draws.")] = "compare",
    most_risk: Annotated[float | None, typer.Option("--most-risk", help="Recommend nothing above this gain over chance.")] = None,
    most_loss: Annotated[float | None, typer.Option("--most-loss", help="Recommend nothing above this loss (a share).")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes; by default one per core.")] = None,
    cache: Annotated[str | None, typer.Option("--cache", help="The folder that stores scores.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Remember nothing.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Compare masks and searches on a table: risk and loss of each, the map, and which to take."""
    from sfumato.report.comparison_words import COMMAND
    from sfumato.report.wording import counted
    from sfumato.workflow.comparing.compare import USUAL_LOSS, USUAL_RISK, check_map
    from sfumato.workflow.comparing.compare import compare as run
    from sfumato.workflow.named import inline

    if cache is not None and no_cache:
        raise Misuse("--cache and --no-cache contradict each other")
    for path in output or ():
        check_map(path)
    people, notes = _people(source, schema, table, reading)
    with shown_progress(json, quiet) as progress:
        comparison = run(
            people,
            methods or None,
            risk=USUAL_RISK if risk is None else inline(risk),
            loss=USUAL_LOSS if loss is None else inline(loss),
            also=[inline(text) for text in also or ()],
            runs=runs,
            seed=seed,
            most_risk=most_risk,
            most_loss=most_loss,
            workers=workers,
            cache=False if no_cache else cache or True,
            guessed=people.column_names if notes else (),
            progress=progress,
        )
    written = [str(comparison.save_map(path)) for path in output or ["map.html"]] if comparison.measured else []
    facts = {**comparison.to_mapping(), "written": written, "notes": notes}
    if comparison.typed is not None:
        facts["command"] = f"{_command(source, table, schema, reading)} {comparison.typed[0]}"
    choices = counted(len(comparison.points), "choice")
    lines = [f"{counted(comparison.records, 'record')} of '{comparison.dataset}', {choices}", "", *comparison.lines(), ""]
    reasons = [each.replace(COMMAND, _command(source, table, schema, reading)) for each in comparison.reasons]
    lines += [*reasons, *(f"optimum   {text}" for text in comparison.unproven)]
    lines += [*(f"note      {note}" for note in notes), *(f"look      {path}" for path in written)]
    answer(facts, lines, json)
    if not comparison.measured:
        raise typer.Exit(2)


def _command(source: str, table: str | None, schema: str | None, reading: PlainDict) -> str:
    """How the command begins that publishes this table: a schema that nobody wrote yet is named as `inspect` would."""
    from sfumato.cli.reading import options_of
    from sfumato.workflow.inspect import dataset_id
    from sfumato.workflow.recipe import without_secrets

    described = schema if schema is not None else f"{dataset_id(source, table)}.toml"
    of_table = [] if table is None else ["--table", table]
    return shlex.join(["sfumato", "protect", without_secrets(source), *of_table, "--schema", described, *options_of(reading)])


def _people(source: str, schema: str | None, table: str | None, reading: PlainDict) -> tuple[Any, list[str]]:
    """The table with its schema, or with the roles that `inspect` suggests."""
    from sfumato.engines.sources import read

    if schema is not None:
        return read(source, schema, table=table, **reading), []
    from sfumato.workflow.inspect import suggested

    people = suggested(source, table, **reading)
    listed = ", ".join(people.schema.quasi)
    return people, [
        f"no schema was given: roles were guessed, quasi-identifiers are {listed or 'none'}. Check them with `sfumato inspect`."
    ]
