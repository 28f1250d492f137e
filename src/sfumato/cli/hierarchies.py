"""Commands about hierarchies: show the levels of those that there are, begin a new one from the values of a column."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.help import LOOK, CommandGroup, add, group
from sfumato.cli.output import Json, answer, table_lines
from sfumato.cli.reading import reads_a_table
from sfumato.cli.usage import Misuse
from sfumato.core.errors import InputError
from sfumato.core.plain_data import PlainDict
from sfumato.core.texts import percent

if TYPE_CHECKING:
    from sfumato.data.hierarchies.level_sizes import LevelSize
    from sfumato.data.hierarchies.proposed_hierarchy import ProposedHierarchy
    from sfumato.data.schema import HierarchySpec

_SHOW = "show"
_MOST_SHOWN = 20


class _ShownByDefault(CommandGroup):
    """`sfumato hierarchy SCHEMA` is `sfumato hierarchy show SCHEMA`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # a context of the library of commands
        """Put the command in where none is named."""
        named = bool(args) and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if named or not args else [_SHOW, *args])


def register(app: typer.Typer) -> None:
    """Add the commands."""
    hierarchies = group(
        "The levels of the hierarchies of a schema or file; `new` begins one from the values of a column.",
        "sfumato hierarchy people.toml --data people.csv",
        "sfumato hierarchy new occupation --data people.csv",
        cls=_ShownByDefault,
    )
    add(
        hierarchies,
        reads_a_table(show),
        "sfumato hierarchy people.toml",
        "sfumato hierarchy people.toml --column age --data people.csv --k 10",
        name=_SHOW,
    )
    add(
        hierarchies,
        reads_a_table(new),
        "sfumato hierarchy new occupation --data people.csv",
        "sfumato hierarchy new occupation --data people.csv --as isco08 --schema people.toml --write",
        "sfumato hierarchy new city --data people.csv --groups regions.txt",
    )
    app.add_typer(hierarchies, name="hierarchy", rich_help_panel=LOOK)


K = Annotated[int, typer.Option("--k", min=1, help="Count the groups with fewer than so many records.")]


def show(
    schema: Annotated[str, typer.Argument(help="A schema (TOML), or a hierarchy file (.csv).")],
    column: Annotated[str | None, typer.Option("--column", "-c", help="Only this column.")] = None,
    data: Annotated[str | None, typer.Option("--data", "-d", help="Check it against the values of this table.")] = None,
    k: K = 5,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Preview and validate hierarchies: how many values are left at each level, with examples; with data also how many records
    the groups have."""
    from sfumato.report.wording import counted
    from sfumato.workflow.hierarchies import preview

    if reading and data is None:
        stated = ", ".join(f"--{name.replace('_', '-')}" for name in reading)
        raise Misuse(f"{stated}: say how --data is read; pass --data as well.")
    levels_by_column = preview(schema, column=column, data=data, k=k, **reading)
    lines = []
    for name, levels in levels_by_column.items():
        lines += [f"{name}: {counted(levels[0]['values'], 'value')}, {counted(len(levels) - 1, 'level')} of generalisation"]
        heads = ("level", "values", "loss", *(("smallest", f"records below {k}") if data is not None else ()), "examples")
        rows = [
            (
                str(level["level"]),
                f"{level['values']:,}",
                f"{level['loss']:.3f}",
                *((f"{level['smallest']:,}", f"{level['small_records']:,}") if data is not None else ()),
                "  ".join(level["examples"]),
            )
            for level in levels
        ]
        lines += [*(f"  {line}" for line in table_lines(heads, rows)), ""]
    answer(levels_by_column, lines, json)


def new(
    column: Annotated[str, typer.Argument(help="The column of the table.")],
    data: Annotated[str, typer.Option("--data", "-d", help="The table: a file, or the URL of a database.")],
    schema: Annotated[str | None, typer.Option("--schema", "-s", help="The schema (TOML) of the table.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; by default COLUMN.csv.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="What they are: ages, countries, dates, icd10, isco08, nace2, postcodes, telephones; or auto, which looks.",
        ),
    ] = None,
    country: Annotated[str | None, typer.Option("--country", help="The country of postcodes, in two letters.")] = None,
    groups: Annotated[
        str | None, typer.Option("--groups", help="A list of groups: `Group: a, b, c` in each line, or value and group.")
    ] = None,
    similar: Annotated[bool, typer.Option("--similar", help="Put values together that may be the same, as a proposal.")] = False,
    tree: Annotated[str | None, typer.Option("--from", help="An earlier hierarchy file, to add the values to.")] = None,
    levels: Annotated[int, typer.Option("--levels", help="How many empty levels a template has.")] = 1,
    table: Annotated[str | None, typer.Option("--table", help="The table of the database.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Write the hierarchy into the schema as well.")] = False,
    declared: Annotated[
        bool,
        typer.Option("--declared", help="Declare the list: the values are those that may occur, and no secret."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files and the hierarchy in the schema.")] = False,
    k: K = 5,
    json: Json = False,
    *,
    reading: PlainDict,
) -> None:
    """Begin a hierarchy from the values of a column: a file to edit, a preview of its levels, and the line for the schema."""
    from sfumato.data.schema_edits import edited_schema, hierarchy_line, write_hierarchy
    from sfumato.workflow.new_hierarchy import new_hierarchy

    if write and schema is None:
        raise Misuse("--write edits a schema: name it with --schema.")
    target = Path(output or _file_name(column))
    _refuse_inputs(target, (data, schema, groups, tree))
    begun = new_hierarchy(
        data,
        column,
        schema=schema,
        kind=kind,
        country=country,
        groups=groups,
        similar=similar,
        tree=tree,
        levels=levels,
        table=table,
        **reading,
    )
    spec = begun.spec(_beside(target, schema))
    spec = spec.model_copy(update={"leaves": "declared"}) if declared else spec
    sizes = begun.preview(k)
    if write and schema is not None:
        edited_schema(Path(schema), column, spec, overwrite=overwrite)  # refused before anything is written
    files = begun.save(target, overwrite=overwrite)
    if write and schema is not None:
        write_hierarchy(schema, column, spec, overwrite=overwrite)
    line = hierarchy_line(spec)
    facts = _facts(begun, sizes, k) | {"files": [str(file) for file in files], "line": line, "written": write}
    answer(facts, _lines(begun, sizes, k, files, spec, None if not write else schema), json)


def _file_name(column: str) -> str:
    """A file for a column in this folder, whatever the column is called."""
    from sfumato.workflow.inspect import dataset_id

    return f"{dataset_id(column.replace('.', '-'))}.csv"


def _refuse_inputs(target: Path, inputs: Sequence[str | None]) -> None:
    """What is read is never written over, not even when overwriting is asked for."""
    outputs = (target, target.with_suffix(".values.csv"))
    if any(source is not None and os.path.realpath(source) == os.path.realpath(file) for source in inputs for file in outputs):
        raise InputError("the file to write is one of those that are read. Name another one with --output.")


def _beside(target: Path, schema: str | None) -> str:
    """The file as the schema names it, from the folder of the schema."""
    folder = Path(schema).resolve().parent if schema is not None else Path.cwd()
    return os.path.relpath(target.resolve(), folder)


def _facts(begun: ProposedHierarchy, sizes: Sequence[LevelSize], k: int) -> dict[str, Any]:
    return {
        "column": begun.column,
        "made_by": begun.made_by,
        "proposed_kind": begun.proposed_kind,
        "values": len(begun.values),
        "records": begun.records,
        "missing": begun.missing,
        "levels": [{**vars(size), "examples": list(size.examples)} for size in sizes],
        "k": k,
        "unplaced": {value: begun.nearest.get(value) for value in begun.unplaced},
        "unplaced_records": begun.unplaced_records,
        "spelt_otherwise": list(begun.respelt),
        "evidence": [
            {"kind": each.kind.name, **{name: value for name, value in vars(each).items() if name != "kind"}}
            for each in begun.evidence
        ],
        "notes": list(begun.notes),
    }


def _lines(
    begun: ProposedHierarchy,
    sizes: Sequence[LevelSize],
    k: int,
    files: Sequence[Path],
    spec: HierarchySpec,
    schema: str | None,
) -> list[str]:
    from sfumato.data.schema_edits import hierarchy_line
    from sfumato.report.wording import counted

    lines = [f"{begun.column}: {counted(len(begun.values), 'value')} in {counted(begun.records, 'record')}, {_how(begun)}", ""]
    heads = ("level", "values", "loss", "smallest", f"records below {k}", "examples")
    rows = [
        (
            str(size.level),
            f"{size.values:,}",
            f"{size.loss:.3f}",
            f"{size.smallest:,}",
            f"{size.small_records:,}",
            "  ".join(size.examples),
        )
        for size in sizes
    ]
    lines += [*(f"  {line}" for line in table_lines(heads, rows)), ""]
    lines += _about_unplaced(begun)
    if begun.respelt:
        lines.append(f"{counted(len(begun.respelt), 'value')} placed in another spelling; the values file names them")
    lines += _about_kinds(begun)
    lines += [f"note: {note}" for note in begun.notes]
    lines += [f"wrote {file} (for your eyes only)" for file in files]
    if spec.leaves == "data":
        lines.append(
            "A release publishes the hierarchy file, and so which values occur. Look through it, then declare it: delete "
            'leaves = "data", which protect refuses (--declared leaves it out).'
        )
    if schema is not None:
        lines.append(f"wrote into {schema}: {hierarchy_line(spec)}")
    else:
        lines.append(f"in the schema, below [columns.{_toml_key(begun.column)}]: {hierarchy_line(spec)}")
    return lines


def _how(begun: ProposedHierarchy) -> str:
    if begun.made_by == "template":
        return "a template to fill in"
    by = {"groups": "the list of groups", "similar": "likeness, a proposal to edit", "tree": "the earlier hierarchy"}
    return f"placed by {by.get(begun.made_by, begun.made_by)}"


def _about_unplaced(begun: ProposedHierarchy) -> list[str]:
    from sfumato.report.wording import counted

    if begun.made_by == "template" or not begun.unplaced:
        return []
    shown = [
        f"{value!r}" + (f" (nearest: {begun.nearest[value]!r})" if value in begun.nearest else "")
        for value in begun.unplaced[:_MOST_SHOWN]
    ]
    more = f" and {len(begun.unplaced) - _MOST_SHOWN:,} more" if len(begun.unplaced) > _MOST_SHOWN else ""
    todo = "correct them or declare them as missing" if begun.parameters is not None else "they end the file, to fill in"
    return [
        f"{counted(len(begun.unplaced), 'value')} in {counted(begun.unplaced_records, 'record')} "
        f"placed nowhere; {todo}: {', '.join(shown)}{more}"
    ]


def _about_kinds(begun: ProposedHierarchy) -> list[str]:
    """What the values look like, where nobody said what they are, with what speaks against it."""
    from sfumato.report.wording import counted

    if begun.made_by not in ("template", begun.proposed_kind):
        return []
    lines = [
        f"{each.kind.name}: {percent(each.share)} of the records fit, {counted(each.other_values, 'other value')}; "
        f"the column is {'called so' if each.named else 'not called so'}"
        for each in begun.evidence[:3]
        if each.share >= 0.5
    ]
    if begun.made_by == "template" and begun.proposed_kind is not None:
        lines.append(f"for the tree of these values, add: --as {begun.proposed_kind}")
    return lines


def _toml_key(column: str) -> str:
    import tomlkit

    return tomlkit.key(column).as_string()
