"""Commands about a table that is to be published: protect it, check it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import defaults
from sfumato.cli.help import CHECK, PUBLISH, add
from sfumato.cli.keys import propose
from sfumato.cli.output import Json, Quiet, Strict, StrictlyMade, complain, conclude, shown_progress, table_lines
from sfumato.cli.reading import reads_a_table
from sfumato.cli.usage import Misuse
from sfumato.core.errors import ParameterError
from sfumato.core.plain_data import PlainDict

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.workflow.labels import Called
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
    add(
        app,
        reads_a_table(protect),
        "sfumato protect people.csv --schema people.toml --k 5 --l diagnosis=2",
        "sfumato protect people.csv --schema people.toml --method 'KAnonymity(k=10) by Mondrian'",
        "sfumato protect people.csv --schema people.toml --method 'Mdav(k=5)' --output masked",
        "sfumato protect recipe.toml --overwrite",
        task=PUBLISH,
    )
    add(
        app,
        reads_a_table(check),
        "sfumato check released.csv --schema people.toml",
        "sfumato check released.csv --schema people.toml --k 5 --l diagnosis=2 --original people.csv",
        task=CHECK,
    )


def protect(
    source: Annotated[str, typer.Argument(help="A recipe (.toml), or a table with --schema and guarantees.")],
    schema: Schema = None,
    k: K = None,
    l: L = None,  # noqa: E741
    t: T = None,
    guarantee: Guarantees = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            help="A search or a mask, as 'Lattice, suppression=0.05' or 'Mdav(k=5)', or what compare prints, as "
            "'KAnonymity(k=10) by Mondrian' and 'RankSwapping(p=25) + Pram(stay=0.8)'.",
        ),
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
    strict: StrictlyMade = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Protect a table, verify what was written and save the release."""
    from sfumato.data.readers.read_result import NAMED_BY_A_RECORD, are_numbers
    from sfumato.engines.write import DEFAULT_TABLE

    said = None if method is None else _called(method)
    besides = () if said is None else said.guarantees
    options: dict[str, Any] = {
        "schema": schema,
        "guarantee": [*_promises(k, l, t, guarantee), *besides] or None,
        "method": None if said is None else _entry(said),
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
    recipe = _recipe(source, {name: value for name, value in options.items() if value is not None}, json)
    if said is not None and len(said.methods) > 1 and not all(each.get("columns") for each in said.methods):
        recipe = _with_columns(recipe, said)
    if not json and not strict:  # what a strict run refuses for, it says once
        _warn_before(recipe)
    with shown_progress(json, quiet) as progress:
        release = recipe.run(progress, strict=strict)
    from sfumato.report.summary import summary, summary_lines
    from sfumato.workflow.verdicts import release_verdict

    folder = recipe.destination_folder() or (None if recipe.output is None else recipe.place(recipe.output))
    verdict = release_verdict(release)
    facts, lines = summary(release, folder), summary_lines(release, folder, verdict.warnings)
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
    conclude(facts, lines, verdict, json, strict=strict)


def _called(text: str) -> Called:
    """What `--method` calls for: every name is looked up before anything else is asked for."""
    from sfumato.core import registry
    from sfumato.workflow.labels import called

    said = called(text)
    if not said.methods:
        name = said.guarantees[0]["name"]
        raise Misuse(f"{name} is a guarantee: write --guarantee '{text}', or '{text} by Mondrian' with a search of your choice")
    for entry in said.methods:
        registry.find("method" if len(said.methods) == 1 else "mask", entry["name"])
    return said


def _entry(said: Called) -> PlainDict:
    """The method of a recipe."""
    return said.methods[0] if len(said.methods) == 1 else {"name": "Combined", "masks": list(said.methods)}


def _with_columns(recipe: Recipe, said: Called) -> Recipe:
    """The recipe with the columns of masks that share the quasi-identifiers: it says which mask changed what."""
    from sfumato.core import registry
    from sfumato.masking.base import Mask
    from sfumato.workflow.comparing.grid import Shared, placed

    mask = placed(Shared(tuple(registry.make("mask", each) for each in said.methods)), recipe.people())
    return recipe.with_changes({"method": mask.described()}) if isinstance(mask, Mask) else recipe


def _warn_before(recipe: Recipe) -> None:
    """What is known to be missing before the long work: sensitive columns about which nothing is promised, roles unread."""
    from sfumato.data.schema import Schema as Description
    from sfumato.report.headline import unpromised_before, unread

    place = Path(recipe.place(recipe.schema_file))
    if place.is_file():
        schema = Description.load(place)
        for warning in [*unread(schema), *unpromised_before(schema, recipe.guarantees())]:
            complain(f"warning: {warning}")


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
    strict: Strict = False,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Measure every guarantee on a table and explain what each number means."""
    from sfumato.workflow import named
    from sfumato.workflow.check import check as run
    from sfumato.workflow.verdicts import check_verdict

    entries = _promises(k, l, t, guarantee)
    guarantees = named.guarantees(entries, "command line") if entries else None
    measured = run(source, schema, guarantees, original=original, population=population, **reading)
    facts, lines = measured.to_mapping(), [measured.explain()]
    if show_failing is not None:
        failing = measured.failing_by_guarantee(show_failing)
        facts["failing"] = {name: classes.to_pylist() for name, classes in failing.items()}
        lines += _failing_lines(failing)
    conclude(facts, lines, check_verdict(measured), json, strict=strict, failed=not measured.holds)


def _recipe(source: str, options: dict[str, Any], as_json: bool) -> Recipe:
    from sfumato.core import registry
    from sfumato.workflow.recipe import LEDGER, Recipe

    if Path(source).suffix == ".toml":
        loaded = Recipe.load(source, notice=lambda hint: complain(f"notice: {hint}"))
        options = defaults.beside_a_recipe(options, loaded.model_fields_set, as_json=as_json)
        extra = set(options) - {*_OF_THIS_RUN}
        if extra:
            named = ", ".join(_option(name) for name in sorted(extra))
            raise Misuse(f"a recipe says this itself: leave out {named}, or edit the recipe.")
        if "read" in options:
            options = {**options, "read": loaded.read.overridden(options["read"]).to_mapping()}
        return loaded.with_changes({name: _from_here(name, value) for name, value in options.items()})
    needed = {"schema": "--schema"}
    if not registry.has("mask", (options.get("method") or {}).get("name")):
        needed["guarantee"] = "a promise (--k, --l, --t or --guarantee)"
    missing = [option for name, option in needed.items() if name not in options]
    if missing:
        raise Misuse(f"protecting a table needs {' and '.join(missing)}; or name a recipe (a .toml file).")
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
            raise Misuse("--l takes a whole number, as ATTRIBUTE=3. For another reading use --guarantee.")
        entries.append({"name": "DistinctLDiversity", "l": int(number), "attribute": attribute})
    for text in closeness or ():
        attribute, number = _pair(text, "--t")
        entries.append({"name": "TCloseness", "t": number, "attribute": attribute})
    _check_ranges(entries)
    return [*entries, *(_inline(text) for text in others or ())]


def _check_ranges(entries: list[dict[str, Any]]) -> None:
    """Numbers out of range, by the option that was typed: each guarantee declares its own range."""
    from sfumato.workflow import named

    faults = []
    for entry in entries:
        try:
            named.guarantee(entry)
        except ParameterError as error:
            faults.append("--" + str(error).removeprefix(f"{entry['name']}: "))
    if faults:
        raise Misuse("; ".join(dict.fromkeys(faults)))


def _pair(text: str, option: str) -> tuple[str, float]:
    attribute, mark, number = text.rpartition("=")
    try:
        if not mark or not attribute:
            raise ValueError
        return attribute, float(number)
    except ValueError:
        raise Misuse(f"{option} is written as ATTRIBUTE=NUMBER, for instance {option} occupation=3") from None


def _levels(texts: list[str] | None, option: str) -> dict[str, int] | None:
    levels = dict(_pair(text, option) for text in texts or ())
    if not all(level.is_integer() and level >= 0 for level in levels.values()):
        raise Misuse(f"{option} takes a whole number of at least 0, for instance {option} age=1")
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
            raise Misuse("--write-table and --write-overwrite say how --write-to writes; give --write-to as well.")
        return None
    return {"to": to, "overwrite": overwrite, **({} if table is None else {"table": table})}


def _failing_lines(failing: dict[str, pa.Table]) -> list[str]:
    lines = []
    for name, classes in failing.items():
        rows = [tuple("" if cell is None else str(cell) for cell in row.values()) for row in classes.to_pylist()]
        lines += ["", f"Failing classes of {name}, the smallest first (for your eyes only):"]
        lines += table_lines(tuple(classes.column_names), rows)
    return lines
