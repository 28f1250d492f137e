"""Commands about a table that is not published yet: inspect, protect, check."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.keys import propose
from sfumato.cli.output import Json, Quiet, answer, complain, shown_progress, table_lines
from sfumato.cli.reading import reads_a_table
from sfumato.core.errors import ParameterError
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import percent

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.workflow.recipe import Recipe

Schema = Annotated[str | None, typer.Option("--schema", "-s", help="The schema (TOML) of the table.")]
K = Annotated[int | None, typer.Option("--k", help="k-anonymity: the smallest class.")]
L = Annotated[list[str] | None, typer.Option("--l", help="Distinct l-diversity, as ATTRIBUTE=L; may be repeated.")]
T = Annotated[list[str] | None, typer.Option("--t", help="t-closeness, as ATTRIBUTE=T; may be repeated.")]
Guarantees = Annotated[
    list[str] | None,
    typer.Option(
        "--guarantee",
        "-g",
        help="Any guarantee, as 'EntropyLDiversity, l=3, attribute=\"job\"'; may be repeated.",
    ),
]
Population = Annotated[
    str | None,
    typer.Option("--population", help="The population table that k-map and δ-presence compare with."),
]


#: Options that say how a recipe is run, and not what it makes.
_OF_THIS_RUN = "output format overwrite ledger draft seed sign write destination destination_table memory engine read".split()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(reads_a_table(inspect))
    app.command()(reads_a_table(protect))
    app.command()(reads_a_table(check))


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

    kept = None
    if schema_out is None and schema is None and not no_schema:
        schema_out = f"{dataset_id(source, table)}.toml"
        if Path(schema_out).exists() and not overwrite:
            kept, schema_out = schema_out, None
    described = {} if schema is None else {"schema": schema}
    profile = run(source, schema_out=schema_out, table=table, overwrite=overwrite, quasi=quasi, **described, **reading)
    profile = with_quasi(profile, quasi)
    reasons = proposal_reasons(profile) if schema is None else {}
    many = [] if quasi is not None else about_many(profile)
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
    lines += table_lines(("column", "type", "distinct", "unique", "suggested role", "because"), rows)
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
    if schema_out is not None:
        of_table = [] if table is None else ["--table", table]
        lines += [
            "",
            f"wrote {schema_out}; check every role in it, then: "
            f"{shlex.join(['sfumato', 'protect', without_secrets(source), *of_table, '--schema', schema_out, '--k', '5'])}",
        ]
    answer(facts, lines, json)


def protect(
    source: Annotated[str, typer.Argument(help="A recipe (.toml), or a table with --schema and guarantees.")],
    schema: Schema = None,
    k: K = None,
    l: L = None,  # noqa: E741
    t: T = None,
    guarantee: Guarantees = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", help="A search or a mask, as 'Lattice, suppression=0.05' or 'Mdav(k=5)'.")
    ] = None,
    least_level: Annotated[
        list[str] | None,
        typer.Option("--least-level", help="Generalise a column at least to this level, as COLUMN=LEVEL; may be repeated."),
    ] = None,
    greatest_level: Annotated[
        list[str] | None,
        typer.Option("--greatest-level", help="Generalise a column at most to this level, as COLUMN=LEVEL; may be repeated."),
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="The folder of the release.")] = None,
    format: Annotated[str | None, typer.Option("--format", help="parquet or csv.")] = None,
    population: Population = None,
    population_public: Annotated[
        bool,
        typer.Option(
            "--population-public",
            help="Declare that everybody can have the population, so that what is learnt from it may be published.",
        ),
    ] = False,
    table: Annotated[str | None, typer.Option("--table", help="The table of the database.")] = None,
    attack: Annotated[list[str] | None, typer.Option("--attack", help="An attack to run on it; may be repeated.")] = None,
    utility: Annotated[
        list[str] | None,
        typer.Option("--utility", help="A measure of usefulness, as 'machine_learning, target=\"salary\"'; may be repeated."),
    ] = None,
    risk: Annotated[list[str] | None, typer.Option("--risk", help="A measure of risk; may be repeated.")] = None,
    ledger: Annotated[str | None, typer.Option("--ledger", help="The ledger's file or URL.")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Do not enter the release in a ledger.")] = False,
    draft: Annotated[
        bool,
        typer.Option("--draft", help="Make it to look at: nothing is entered in the ledger, and it calls itself a draft."),
    ] = False,
    seed: Annotated[str | None, typer.Option("--seed", help="Make a repeatable demonstration.")] = None,
    sign: Annotated[str | None, typer.Option("--sign", help="Sign with the key in this file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier release.")] = False,
    write_to: Annotated[
        str | None, typer.Option("--write-to", help="Write the rows into this DuckDB file or PostgreSQL URL as well.")
    ] = None,
    write_table: Annotated[str | None, typer.Option("--write-table", help="The table there; by default release.")] = None,
    write_overwrite: Annotated[bool, typer.Option("--write-overwrite", help="Replace that table.")] = False,
    destination: Annotated[
        str | None,
        typer.Option(
            "--destination",
            help="Let the engine write the rows, none of which comes into this process: a new folder, a DuckDB file "
            "or a PostgreSQL URL.",
        ),
    ] = None,
    destination_table: Annotated[
        str | None, typer.Option("--destination-table", help="The table of the destination; by default release.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", help="What the cells of the table may take in this process, such as 2GB.")
    ] = None,
    sample: Annotated[int | None, typer.Option("--sample", help="Protect a uniform sample of so many records.")] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", help="Where a file is read: memory, or duckdb, which leaves its rows in it.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Protect a table, verify what was written and save the release."""
    from sfumato.data.readers.read_result import NAMED_BY_A_RECORD, are_numbers
    from sfumato.engines.write import DEFAULT_TABLE

    described = None if method is None else _inline(method)
    options: dict[str, Any] = {
        "schema": schema,
        "guarantee": _promises(k, l, t, guarantee) or None,
        "method": described,
        "least_level": _levels(least_level, "--least-level"),
        "greatest_level": _levels(greatest_level, "--greatest-level"),
        "output": output,
        "format": format,
        "population": population,
        "population_public": population_public or None,
        "table": table,
        "ledger": False if no_ledger else ledger,
        "draft": draft or None,
        "seed": int(seed) if seed is not None and seed.isdecimal() else seed,
        "sign": sign,
        "overwrite": overwrite or None,
        "checks": _checks(attack, utility, risk),
        "write": _write(write_to, write_table, write_overwrite),
        "destination": destination,
        "destination_table": destination_table,
        "memory": memory,
        "sample": sample,
        "engine": engine,
        "read": reading or None,
    }
    recipe = _recipe(source, {name: value for name, value in options.items() if value is not None})
    with shown_progress(json, quiet) as progress:
        release = recipe.run(progress)
    from sfumato.report.summary import summary, summary_lines

    folder = recipe.destination_folder() or (None if recipe.output is None else recipe.place(recipe.output))
    facts, lines = summary(release, folder), summary_lines(release, folder)
    if recipe.write is not None:
        place = recipe.to_mapping()["write"]["to"]  # without its password
        facts["written"] = {"to": place, "table": recipe.write.table}
        lines.append(f"written   {place}, table {recipe.write.table}")
    if recipe.destination is not None and recipe.destination_folder() is None:
        place, held = recipe.to_mapping()["destination"], recipe.destination_table or DEFAULT_TABLE
        facts["stored"] = {"in": place, "table": held}
        lines = [line for line in lines if not line.startswith("verify ")]
        lines.append(f"stored    {place}, table {held}")
        if folder is not None:
            check = ["sfumato", "verify", str(folder), "--data", place, "--table", held]
            lines.append(f"verify    {shlex.join(check)}")
    if are_numbers(release.data.column_names):
        facts["names"] = f"{NAMED_BY_A_RECORD}, and its values are published as names"
        lines.append(f"names     {facts['names']}")
    facts["draft"] = recipe.draft
    if recipe.draft:
        unknown = not release.certificate.composition and recipe.ledger_place() is not None
        lines += ["earlier   not compared: there is no such ledger yet"] if unknown else []
        lines.append("draft     nothing was entered; without --draft the release is made that may be given away")
    elif folder is not None:
        propose(facts, lines, recipe.sign)
    answer(facts, lines, json)


def check(
    source: Annotated[str, typer.Argument(help="The table to measure, whichever tool made it.")],
    schema: Schema = None,
    k: K = None,
    l: L = None,  # noqa: E741
    t: T = None,
    guarantee: Guarantees = None,
    original: Annotated[str | None, typer.Option("--original", help="The table it was made from.")] = None,
    population: Population = None,
    show_failing: Annotated[
        int | None,
        typer.Option("--show-failing", min=1, help="Show this many failing classes per guarantee (for the owner only)."),
    ] = None,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Measure every guarantee on a table and explain what each number means."""
    from sfumato.workflow import named
    from sfumato.workflow.check import check as run

    entries = _promises(k, l, t, guarantee)
    guarantees = named.guarantees(entries, "command line") if entries else None
    measured = run(source, schema, guarantees, original=original, population=population, **reading)
    facts, lines = measured.to_mapping(), [measured.explain()]
    if show_failing is not None:
        failing = measured.failing_by_guarantee(show_failing)
        facts["failing"] = {name: classes.to_pylist() for name, classes in failing.items()}
        lines += _failing_lines(failing)
    answer(facts, lines, json)
    if not measured.holds:
        raise typer.Exit(1)


def _recipe(source: str, options: dict[str, Any]) -> Recipe:
    from sfumato.core import registry
    from sfumato.workflow.recipe import LEDGER, Recipe

    if Path(source).suffix == ".toml":
        loaded = Recipe.load(source, notice=lambda hint: complain(f"notice: {hint}"))
        extra = set(options) - {*_OF_THIS_RUN}
        if extra:
            named = ", ".join(_option(name) for name in sorted(extra))
            raise ParameterError(f"a recipe says this itself: leave out {named}, or edit the recipe.")
        if "read" in options:
            options = {**options, "read": loaded.read.overridden(options["read"]).to_mapping()}
        return loaded.with_changes({name: _from_here(name, value) for name, value in options.items()})
    needed = {"schema": "--schema"}
    if not registry.has("mask", (options.get("method") or {}).get("name")):
        needed["guarantee"] = "--k, --l, --t or --guarantee"
    missing = [option for name, option in needed.items() if name not in options]
    if missing:
        raise ParameterError(f"protecting a table needs {' and '.join(missing)}; or name a recipe (a .toml file).")
    usual = {"output": "out", "ledger": LEDGER}
    recipe = Recipe.parse({"data": source, **usual, **options}, folder=Path.cwd(), name="command line")
    if "output" not in options and recipe.destination_folder() is not None:  # the destination is the folder of the release
        recipe = recipe.with_changes({"output": None})
    return recipe


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _from_here(name: str, value: Any) -> Any:
    """Paths on the command line are relative to where it is typed, those in a recipe to the recipe."""
    if name == "write":
        return {**value, "to": _from_here("output", value["to"])}
    places = ("output", "sign", "ledger", "destination")
    is_path = name in places and isinstance(value, str) and "://" not in value and not value.startswith("spark:")
    return str(Path(value).absolute()) if is_path else value


def _promises(
    k: int | None, diversity: list[str] | None, closeness: list[str] | None, others: list[str] | None
) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = [] if k is None else [{"name": "KAnonymity", "k": k}]
    for text in diversity or ():
        attribute, number = _pair(text, "--l")
        if not number.is_integer():
            raise ParameterError("--l takes a whole number, as ATTRIBUTE=3. For another reading use --guarantee.")
        entries.append({"name": "DistinctLDiversity", "l": int(number), "attribute": attribute})
    for text in closeness or ():
        attribute, number = _pair(text, "--t")
        entries.append({"name": "TCloseness", "t": number, "attribute": attribute})
    return [*entries, *(_inline(text) for text in others or ())]


def _pair(text: str, option: str) -> tuple[str, float]:
    attribute, mark, number = text.rpartition("=")
    try:
        if not mark or not attribute:
            raise ValueError
        return attribute, float(number)
    except ValueError:
        raise ParameterError(f"{option} is written as ATTRIBUTE=NUMBER, for instance {option} occupation=3") from None


def _levels(texts: list[str] | None, option: str) -> dict[str, int] | None:
    levels = dict(_pair(text, option) for text in texts or ())
    if not all(level.is_integer() and level >= 0 for level in levels.values()):
        raise ParameterError(f"{option} takes a whole number of at least 0, for instance {option} age=1")
    return {name: int(level) for name, level in levels.items()} or None


def _inline(text: str) -> dict[str, Any]:
    """`Lattice, suppression=0.05` or `Mdav(k=5)` as a mapping; the parameters are TOML."""
    from sfumato.workflow.named import inline

    return inline(text)


def _checks(attacks: list[str] | None, utility: list[str] | None, risk: list[str] | None) -> dict[str, Any] | None:
    checks = {"attacks": attacks, "utility": utility, "risk": risk}
    return {name: [_inline(text) for text in texts] for name, texts in checks.items() if texts} or None


def _write(to: str | None, table: str | None, overwrite: bool) -> dict[str, Any] | None:
    if to is None:
        if table is not None or overwrite:
            raise ParameterError("--write-table and --write-overwrite say how --write-to writes; give --write-to as well.")
        return None
    return {"to": to, "overwrite": overwrite, **({} if table is None else {"table": table})}


def _failing_lines(failing: dict[str, pa.Table]) -> list[str]:
    lines = []
    for name, classes in failing.items():
        rows = [tuple("" if cell is None else str(cell) for cell in row.values()) for row in classes.to_pylist()]
        lines += ["", f"Failing classes of {name}, the smallest first (for your eyes only):"]
        lines += table_lines(tuple(classes.column_names), rows)
    return lines


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
