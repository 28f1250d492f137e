"""The commands of aggregate tables: protect and audit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.help import PUBLISH, add, group
from sfumato.cli.output import Json, Quiet, answer, shown_progress
from sfumato.cli.query import Overwrite, Sign, check_output
from sfumato.cli.reading import reads_a_table
from sfumato.cli.usage import Misuse
from sfumato.core.plain_data import PlainDict

if TYPE_CHECKING:
    from sfumato.tables.cube import TableCube
    from sfumato.tables.formats.exchange import ExchangedTable
    from sfumato.tables.sensitivity import SensitivityRule

Data = Annotated[str, typer.Argument(help="People (a file or database), cells (with --cells), or a τ-ARGUS table (.tab).")]
By = Annotated[str | None, typer.Option("--by", help="The columns by which cells are formed, separated by commas.")]
Value = Annotated[str | None, typer.Option("--value", help="The column that is added up; without it records are counted.")]
Cells = Annotated[bool, typer.Option("--cells", help="Each row of the data is a cell, not a person.")]
Count = Annotated[str | None, typer.Option("--count", help="With --cells: the column with the number of contributors.")]
Largest = Annotated[str | None, typer.Option("--largest", help="With --cells: columns with the largest contributions, in order.")]
Holding = Annotated[str | None, typer.Option("--holding", help="The column that says whose contributions count as one.")]
Weight = Annotated[str | None, typer.Option("--weight", help="The column with sampling weights.")]
Schema = Annotated[str | None, typer.Option("--schema", "-s", help="The schema (TOML) of the people.")]
Trees = Annotated[
    list[str] | None, typer.Option("--hierarchy", help="COLUMN=FILE.hrc, a τ-ARGUS hierarchy of a column; may be repeated.")
]
Rules = Annotated[
    list[str] | None,
    typer.Option("--rule", "-r", help="A rule, such as 'MinimumFrequency(n=3)', 'PPercent(p=10)'; may be repeated."),
]
Apriori = Annotated[str | None, typer.Option("--apriori", help="A τ-ARGUS a-priori file (.hst) about single cells.")]
Rounding = Annotated[
    int, typer.Option("--rounding", min=0, help="Units of the last digit, per part, by which a stated total may be off.")
]
Decimals = Annotated[int | None, typer.Option("--decimals", min=0, max=9, help="Digits after the point that the table shows.")]


def register(app: typer.Typer) -> None:
    """Add the commands under their word."""
    commands = group(
        "Protect tables of counts and sums, and audit them.",
        "sfumato table protect people.csv --by sex,diagnosis",
        "sfumato table audit cells.csv --cells --by row,column --value salary --count people --blank flag",
    )
    add(
        commands,
        reads_a_table(protect),
        "sfumato table protect people.csv --by sex,diagnosis",
        "sfumato table protect firms.csv --by region,branch --value turnover --holding group -r 'PPercent(p=10)'",
        "sfumato table protect table.tab --apriori table.hst --output out",
    )
    add(
        commands,
        reads_a_table(audit),
        "sfumato table audit table.tab",
        "sfumato table audit cells.csv --cells --by row,column --value salary --count people --blank flag",
    )
    app.add_typer(commands, name="table", rich_help_panel=PUBLISH)


def protect(
    data: Data,
    by: By = None,
    value: Value = None,
    cells: Cells = False,
    count: Count = None,
    largest: Largest = None,
    holding: Holding = None,
    weight: Weight = None,
    schema: Schema = None,
    hierarchy: Trees = None,
    rule: Rules = None,
    apriori: Apriori = None,
    rounding: Rounding = 1,
    decimals: Decimals = None,
    method: Annotated[str, typer.Option("--method", "-m", help="auto, full, cuts, flow, lp or modular.")] = "auto",
    cost: Annotated[str, typer.Option("--cost", help="What a blank costs: value, count or contributors.")] = "value",
    seconds: Annotated[float | None, typer.Option("--seconds", min=0.1, help="How long to search for fewer blanks.")] = None,
    output: Annotated[str, typer.Option("--output", "-o", help="The folder of the release.")] = "out",
    ledger: Annotated[str | None, typer.Option("--ledger", "-l", help="The ledger in which the release is entered.")] = None,
    sign: Sign = None,
    overwrite: Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Leave sensitive cells blank, and as many others as it takes that nobody can compute them; audit and publish the table."""
    check_output(output, "csv", sign, overwrite)
    from sfumato.tables.protection import protect_cube
    from sfumato.workflow.publishing.publish import publish

    held = _cube(data, by, value, cells, count, largest, holding, weight, schema, hierarchy, apriori, rounding, decimals, reading)
    rules = _rules(rule, held.cube)
    with shown_progress(json, quiet) as progress:
        protected = protect_cube(
            held.cube,
            rules,
            method=method,  # type: ignore[arg-type]  # refused by name where it is none
            cost=cost,  # type: ignore[arg-type]
            keep=held.keep,
            blank=held.unsafe,
            levels={cell: pair for cell, pair in held.levels.items() if cell in set(held.unsafe)},
            seconds=seconds,
            progress=progress,
        )
        release = publish(protected.outcome(), ledger)
        release.save(output, format="csv", sign=sign, overwrite=overwrite)
    result, sensitive = protected.suppression, int(protected.sensitive.cells.sum())
    facts = {
        "cells": held.cube.size,
        "sensitive": sensitive,
        "blank": protected.blank_cells,
        "method": result.method,
        "cost": result.cost,
        "gap": result.gap,
        "safe": result.audit.safe,
        "folder": output,
    }
    lines = [
        *protected.explain(),
        f"saved     {output}/public to give away, {output}/owner to keep (true values, statuses, intervals)",
        f"check     {shlex.join(['sfumato', 'verify', output])}",
    ]
    answer(facts, lines, json)


def audit(
    data: Data,
    by: By = None,
    value: Value = None,
    cells: Cells = False,
    count: Count = None,
    largest: Largest = None,
    holding: Holding = None,
    weight: Weight = None,
    schema: Schema = None,
    hierarchy: Trees = None,
    rule: Rules = None,
    apriori: Apriori = None,
    rounding: Rounding = 1,
    decimals: Decimals = None,
    blank: Annotated[
        str | None, typer.Option("--blank", help="With --cells: the column whose entries mark the cells that are blank.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    reading: PlainDict,
) -> None:
    """Audit a table that was protected elsewhere, from its true values and what is blank; exit code 1 when it is not safe.

    Of a τ-ARGUS table the cells with the status U or M are blank. Only the owner has the true values: the output is the owner's.
    """
    from sfumato.tables.protection import audited

    held = _cube(data, by, value, cells, count, largest, holding, weight, schema, hierarchy, apriori, rounding, decimals, reading)
    blanks = _blanks(held, data, by, cells, blank, reading)
    with shown_progress(json, quiet) as progress:
        outcome = audited(held.cube, _rules(rule, held.cube), blanks, blank=held.unsafe, levels=held.levels, progress=progress)
    answer(outcome.to_mapping(), outcome.explain(), json)
    if not outcome.safe:
        raise typer.Exit(1)


def _cube(
    data: str,
    by: str | None,
    value: str | None,
    cells: bool,
    count: str | None,
    largest: str | None,
    holding: str | None,
    weight: str | None,
    schema: str | None,
    hierarchy: Sequence[str] | None,
    apriori: str | None,
    rounding: int,
    decimals: int | None,
    reading: PlainDict,
) -> ExchangedTable:
    from sfumato.engines.sources import read
    from sfumato.tables.counting import count_cube
    from sfumato.tables.formats.apriori import with_apriori
    from sfumato.tables.formats.cell_rows import cube_of_rows
    from sfumato.tables.formats.exchange import ExchangedTable, read_exchange

    if data.lower().endswith(".tab"):
        table = read_exchange(data, rounding=rounding)
    elif by is None:
        raise Misuse("name the columns by which cells are formed: --by region,sex")
    elif cells:
        rows, listed = read(data, **reading).table(), [] if largest is None else _split(largest)
        cube = cube_of_rows(
            [rows],
            _split(by),
            value=value,
            count=count,
            largest=listed,
            decimals=decimals,
            dimensions=_trees(hierarchy),
            rounding=rounding,
        )
        table = ExchangedTable(cube)
    else:
        people = read(data, schema=schema, **reading)
        cube = count_cube(
            people,
            _split(by),
            value=value,
            holding=holding,
            weight=weight,
            decimals=decimals,
            dimensions=_trees(hierarchy),
        )
        table = ExchangedTable(cube)
    return table if apriori is None else with_apriori(table, apriori)


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _trees(texts: Sequence[str] | None) -> dict[str, dict[str, str]]:
    from pathlib import Path

    from sfumato.tables.formats.exchange import text_of_file
    from sfumato.tables.formats.hierarchy_file import parents_in

    trees = {}
    for text in texts or ():
        name, equals, file = text.partition("=")
        if not equals or not name.strip() or not file:
            raise Misuse("--hierarchy is written as COLUMN=FILE, for instance --hierarchy region=region.hrc")
        trees[name.strip()] = parents_in(text_of_file(Path(file), "hierarchy file"), name=f"hierarchy file '{Path(file).name}'")
    return trees


def _rules(texts: Sequence[str] | None, cube: TableCube) -> list[SensitivityRule]:
    from sfumato.core import registry
    from sfumato.tables.cross_tables import COUNTS, SUMS
    from sfumato.workflow import named

    if texts:
        return [registry.make("sensitivity", named.inline(text)) for text in texts]
    several = cube.shape.value is not None and cube.contributions is not None and cube.contributions.kept > 1
    return list(SUMS if several else COUNTS)


def _blanks(held: ExchangedTable, data: str, by: str | None, cells: bool, blank: str | None, reading: PlainDict) -> list[int]:
    """The cells that are blank: those that a column marks, or by their status."""
    if blank is None:
        marked = [cell for cell, status in held.status.items() if status in ("U", "M")]
        if not marked:
            raise Misuse("say which cells are blank: --cells with --blank COLUMN, or a τ-ARGUS table with statuses U and M")
        return marked
    if not cells or by is None:
        raise Misuse("--blank names a column of a table of cells: use it with --cells and --by")
    from sfumato.core.errors import MissingColumn, as_name
    from sfumato.core.texts import text_of
    from sfumato.engines.sources import read

    rows = read(data, **reading).table().to_pylist()
    if rows and blank not in rows[0]:
        raise MissingColumn(f"there is no column {as_name(blank)}")
    return [held.cube.cell(*(text_of(row[name]) or "*" for name in _split(by))) for row in rows if row[blank] not in (None, "")]
