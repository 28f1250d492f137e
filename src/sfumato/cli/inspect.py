"""The command that looks at a table before anything is done with it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.cli.help import LOOK, add
from sfumato.cli.output import Json, answer, table_lines
from sfumato.cli.reading import options_of, reads_a_table
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import percent


def register(app: typer.Typer) -> None:
    """Add the command."""
    add(
        app,
        reads_a_table(inspect),
        "sfumato inspect people.csv",
        "sfumato inspect people.csv --quasi age --quasi city --overwrite",
        "sfumato inspect people.csv --schema people.toml",
        task=LOOK,
    )


def inspect(
    source: Annotated[str, typer.Argument(help="A file, or the URL of a database.")],
    table: Annotated[str | None, typer.Option("--table", help="The table of the database.")] = None,
    schema_out: Annotated[
        str | None,
        typer.Option("--schema-out", "-o", help="Where to write the starting schema; by default the source's name with .toml."),
    ] = None,
    no_schema: Annotated[bool, typer.Option("--no-schema", help="Write no schema.")] = False,
    schema: Annotated[
        str | None,
        typer.Option("--schema", help="A schema to check: counts the values that cannot be read as their declared type."),
    ] = None,
    quasi: Annotated[
        list[str] | None,
        typer.Option("--quasi", help="A column to generalise, where you have decided which; other suggested ones become plain."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="The id of the dataset in the schema; by default the source's name.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the schema file, and what was edited in it.")] = False,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Profile a table: what each column holds, who stands out, and a schema to start from; or check a schema against it."""
    from sfumato.data.profiling.suggested_schema import proposal_reasons, with_quasi
    from sfumato.report.wording import counted
    from sfumato.workflow.inspect import about_many, dataset_id
    from sfumato.workflow.inspect import inspect as run
    from sfumato.workflow.recipe import without_secrets

    asked, kept = schema_out, None
    if schema_out is None and schema is None and not no_schema:
        schema_out = f"{dataset_id(source, table)}.toml"
        if Path(schema_out).exists() and not overwrite:
            kept, schema_out = schema_out, None
    described = {} if schema is None else {"schema": schema}
    options = {**described, **reading}
    profile = run(source, schema_out=schema_out, table=table, dataset=dataset, overwrite=overwrite, quasi=quasi, **options)
    profile = with_quasi(profile, quasi)
    reasons = proposal_reasons(profile) if schema is None else {}
    of_table = [] if table is None else ["--table", table]
    again: list[str] = []  # in place of a schema that is given, its owner edits it
    if schema is None:
        places = {"--schema-out": asked, "--dataset": dataset}
        words = [word for option, text in places.items() if text is not None for word in (option, text)]
        last = "--no-schema" if no_schema else "--overwrite"
        again = ["sfumato", "inspect", without_secrets(source), *of_table, *words, *options_of(reading), last]
    many = [] if quasi is not None else about_many(profile, again)
    facts = {**profile.to_mapping(), "schema_file": schema_out, "proposals": reasons, "many": many}
    rows = [
        (
            column["name"],
            str(column["type"]),
            f"{column['distinct']:,}",
            percent(column["unique_share"]),
            column["role"],
            column["reason"],
        )
        for column in facts["columns"]
    ]
    lines = [f"{counted(facts['rows'], 'record')}, {counted(len(rows), 'column')}", ""]
    by_unit = any(column["role"] == "unit" for column in facts["columns"])
    unique = "of one unit only" if by_unit else "unique"
    lines += table_lines(("column", "type", "distinct", unique, "suggested role", "because"), rows, whole_last=True)
    lines += ["", *_standing_out(facts)]
    lines += [
        f"read: {key} = {_shown(facts['read'][key])} ({why})"
        for key, why in facts["read_because"].items()
        if why and key in facts["read"]
    ]
    lines += [f"decide: {question}" for question in facts["questions"]]
    lines += [f"many: {text}" for text in many]
    lines += [f"proposed: '{name}': {reason}" for name, reason in reasons.items()]
    lines += [f"unit: {facts['unit'] or 'none named'}; {facts['unit_reason']}"]
    lines += [f"note: {note}" for note in facts.get("notes", ())]
    lines += [] if schema is None else ["every value can be read as the type that the schema declares"]
    if kept is not None:
        lines += ["", f"'{kept}' exists already and was kept; --schema-out names another file, --overwrite replaces it"]
    sensitive = [column["name"] for column in facts["columns"] if column["role"] == "sensitive"]
    facts["warnings"] = _sensitive(sensitive)
    lines += [f"warning: {each}" for each in facts["warnings"]]
    if schema_out is not None:
        several = [column["name"] for column in facts["columns"] if column["role"] == "sensitive" and column["distinct"] > 1]
        promises = ["--k", "5", *(word for name in several for word in ("--l", f"{name}=2"))]
        command = ["sfumato", "protect", without_secrets(source), *of_table, "--schema", schema_out, *promises]
        read = 'check every role in it, delete its line roles = "proposed", then'
        lines += ["", f"wrote {schema_out}; {read}: {shlex.join(command)}"]
    answer(facts, lines, json)


def _sensitive(names: list[str]) -> list[str]:
    """One warning, however many columns look sensitive."""
    if not names:
        return []
    if len(names) == 1:
        return [
            f"'{names[0]}' looks sensitive, and k-anonymity promises nothing about it: promise something about it as well, "
            f"such as --l '{names[0]}=2'"
        ]
    listed = ", ".join(f"'{name}'" for name in names)
    return [
        f"{len(names):,} columns look sensitive ({listed}), and k-anonymity promises nothing about them: promise something about "
        f"each as well, such as --l '{names[0]}=2' for the first"
    ]


def _shown(value: Any) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, list) else repr(value)


def _standing_out(facts: dict[str, Any]) -> list[str]:
    lines = []
    unit = facts["unit"] if any(column["role"] == "unit" for column in facts["columns"]) else None
    counted = f", counted in '{unit}'" if unit else ""
    alone = f"of one '{unit}' only in their" if unit else "alone in their"
    if facts.get("k") is not None:
        lines.append(f"k of the raw table over the suggested quasi-identifiers{counted}: {facts['k']:,}")
    for combination in facts.get("combinations", ())[:5]:
        names = ", ".join(combination["columns"])
        lines.append(f"{percent(combination['unique_share'])} of the records are {alone} combination of {names}")
    telling = [(name, count) for name, count in facts.get("contributions", {}).items() if count][:5]
    if telling:
        listed = ", ".join(f"{name} ({count:,})" for name, count in telling)
        lines.append(f"columns that single people out most (records unique only because of them): {listed}")
    return lines
