"""The exchange format of τ-ARGUS: a table file (.tab) described by a metadata file (.rda), with hierarchy files (.hrc).

Read: values, counts, largest contributions, costs, levels and statuses; the cells form a cube, and what the statuses ask for is
kept beside it. Written: the same, for a program that goes on from there. Such a file holds true values: it is the owner's.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sfumato.core.errors import InputError, SourceError, all_at_once, as_name, forgetting
from sfumato.core.files import read_plain
from sfumato.tables.cube import TableCube
from sfumato.tables.dimension import Dimension
from sfumato.tables.formats import hierarchy_file, metadata
from sfumato.tables.formats.metadata import ColumnFacts, Metadata
from sfumato.tables.published import written

MOST_BYTES, MOST_ROWS = 256 * 1024 * 1024, 2_000_000
#: Levels are rounded up, unless they are whole up to the error of floats.
_SLACK = 1e-6
#: What a status says: safe, sensitive, must be published, blank beside others, empty.
SAFE, UNSAFE, KEPT, SECONDARY, EMPTY = "S", "U", "P", "M", "E"
_STATUSES = frozenset({SAFE, UNSAFE, KEPT, SECONDARY, EMPTY, "Z", ""})


@dataclass(frozen=True, eq=False)
class ExchangedTable:
    """A cube with what its file says of single cells: `status`, `lower` and `upper` levels (in units of the last digit) and
    `costs`, by number of the cell."""

    cube: TableCube
    status: Mapping[int, str] = field(default_factory=dict, repr=False)
    levels: Mapping[int, tuple[float, float]] = field(default_factory=dict, repr=False)
    costs: Mapping[int, float] = field(default_factory=dict, repr=False)

    @property
    def keep(self) -> tuple[int, ...]:
        """The cells that must stay published."""
        return tuple(cell for cell, each in self.status.items() if each == KEPT)

    @property
    def unsafe(self) -> tuple[int, ...]:
        """The cells that the file calls sensitive."""
        return tuple(cell for cell, each in self.status.items() if each == UNSAFE)


@forgetting()
def read_exchange(table: str | Path, described_by: str | Path | None = None, *, rounding: int = 1) -> ExchangedTable:
    """Read a table file with its metadata, by default the file of the same name that ends in .rda; hierarchy files lie beside it.

    `rounding`: by how many units of the last digit, per part, a total may differ from the sum of its parts.
    """
    file = Path(table)
    beside = Path(described_by) if described_by is not None else file.with_suffix(".rda")
    facts = metadata.metadata_in(text_of_file(beside, "metadata file"), f"metadata file '{beside.name}'")
    trees = {
        each.name: hierarchy_file.parents_in(
            text_of_file(_near(beside, each.hierarchy_file), "hierarchy file"),
            lead=each.lead,
            total=each.total.strip(),
            name=f"hierarchy file '{Path(each.hierarchy_file).name}'",
        )
        for each in facts.columns
        if each.hierarchy_file is not None
    }
    return table_in(text_of_file(file, "table file"), facts, trees, name=f"table file '{file.name}'", rounding=rounding)


def table_in(
    text: str, facts: Metadata, trees: Mapping[str, Mapping[str, str]], *, name: str = "table file", rounding: int = 1
) -> ExchangedTable:
    """The table that a text holds."""
    rows = _rows(text, facts, name)
    by = facts.of_role("dimension")
    dimensions = [
        _dimension(facts.columns[at], trees.get(facts.columns[at].name), [row[at].strip() for row in rows]) for at in by
    ]
    coordinates = [tuple(row[at].strip() for at in by) for row in rows]
    described = facts.of_role("value") or facts.of_role("count")
    if not described:
        raise SourceError(f"{name}: neither a value nor a count is described")
    value = described[0]
    amounts = _column(rows, value, name)
    decimals = facts.columns[value].decimals
    decimals = _decimals([row[value] for row in rows]) if decimals is None else decimals
    magnitude = facts.columns[value].role == "value"
    counts = _column(rows, facts.of_role("count")[0], name) if facts.of_role("count") else None
    tops = [_column(rows, at, name) for at in facts.of_role("largest")]
    cube = TableCube.from_cells(
        list(zip(coordinates, amounts, strict=True)),
        dimensions,
        value=facts.columns[value].name if magnitude else None,
        decimals=decimals,
        counts={key: int(n) for key, n in zip(coordinates, counts, strict=True)} if magnitude and counts is not None else None,
        largest={key: [top[i] for top in tops] for i, key in enumerate(coordinates)} if magnitude and tops else None,
        rounding=rounding,
    )
    cells = [cube.cell(*key) for key in coordinates]
    return ExchangedTable(cube, _statuses(rows, facts, cells, name), *_levels(rows, facts, cells, name, 10.0**decimals))


def exchange_files(table: ExchangedTable, stem: str = "table") -> dict[str, bytes]:
    """The table, its metadata and its hierarchies as files by name."""
    cube = table.cube
    columns: list[ColumnFacts] = []
    files: dict[str, bytes] = {}
    for each in cube.dimensions:
        flat = all(total == each.total for total, _ in each.sums)
        file = None if flat else f"{stem}_{len(columns) + 1}.hrc"
        if file is not None:
            files[file] = hierarchy_file.as_text(each).encode()
        columns.append(ColumnFacts(each.name, "dimension", total=each.codes[each.total], hierarchy_file=file))
    kept = 0 if cube.contributions is None or cube.shape.value is None else cube.contributions.kept
    if cube.shape.value is not None:
        columns.append(ColumnFacts(cube.shape.value, "value", decimals=cube.shape.decimals))
    if cube.shape.value is None or cube.contributions is not None:
        columns.append(ColumnFacts("Freq", "count"))
    columns += [ColumnFacts(f"Top{rank + 1}", "largest") for rank in range(kept)]
    named = (("Cost", "cost"), ("Status", "status"), ("Lower", "lower"), ("Upper", "upper"))
    columns += [ColumnFacts(name, role) for name, role in named]
    out = io.StringIO()
    lines = csv.writer(out, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    for cell, codes in enumerate(cube.grid.coordinates.tolist()):
        names = [each.codes[code] for each, code in zip(cube.dimensions, codes, strict=True)]
        lines.writerow([*names, *_numbers(table, cell, kept)])
    files[f"{stem}.tab"] = out.getvalue().encode()
    files[f"{stem}.rda"] = metadata.as_text(Metadata(tuple(columns))).encode()
    return files


def _numbers(table: ExchangedTable, cell: int, kept: int) -> list[str]:
    cube, decimals = table.cube, table.cube.shape.decimals
    held = cube.contributions
    numbers = [written(int(cube.units[cell]), decimals)] if cube.shape.value is not None or held is None else []
    if held is not None:
        numbers.append(str(int(held.count[cell] if cube.shape.value is not None else cube.units[cell])))
        numbers += [written(int(np.floor(held.largest[cell, rank] + 0.5)), decimals) for rank in range(kept)]
    lower, upper = table.levels.get(cell, (0.0, 0.0))
    default = SAFE if cube.units[cell] else EMPTY
    cost = table.costs.get(cell, float(cube.values[cell]))
    levels = [written(int(np.ceil(each - _SLACK)), decimals) for each in (lower, upper)]
    return [*numbers, f"{cost:.{decimals}f}", table.status.get(cell, default), *levels]


def text_of_file(file: Path, what: str) -> str:
    """The text of a file of at most 256 MiB, in UTF-8 or, as older programs write, in the encoding of Western Europe."""
    try:
        raw = read_plain(file, SourceError, limit=MOST_BYTES, what=what)
    except FileNotFoundError:
        raise SourceError(f"there is no {what} '{file.name}'. Name it, or put it beside the table.") from None
    except OSError as error:
        raise SourceError(f"cannot read the {what} '{file.name}': {type(error).__name__}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def _near(beside: Path, file: str) -> Path:
    """A file that is named in another one lies beside it, whatever folder it names."""
    return beside.parent / Path(file.replace("\\", "/")).name


def _rows(text: str, facts: Metadata, name: str) -> list[list[str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=facts.separator) if row]
    except csv.Error as error:
        raise SourceError(f"{name} is not a table of texts: {error}") from None
    if len(rows) > MOST_ROWS:
        raise SourceError(f"{name} has more than {MOST_ROWS:,} lines")
    width = len(facts.columns)
    short = [number for number, row in enumerate(rows, 1) if len(row) != width]
    all_at_once(
        SourceError, name, [f"line {number} has {len(rows[number - 1])} entries in place of {width}" for number in short[:10]]
    )
    return rows


def _dimension(column: ColumnFacts, tree: Mapping[str, str] | None, codes: Sequence[str]) -> Dimension:
    total = column.total.strip()
    parents = {**(tree or {})}
    for code in dict.fromkeys(codes):
        if code != total and code not in parents:
            if tree is not None and code not in {each.strip() for each in column.missing}:
                raise InputError(f"{as_name(code)} is no code of the hierarchy of {as_name(column.name)}")
            parents[code] = total
    return Dimension.tree(column.name, parents, total=total)


def _column(rows: Sequence[Sequence[str]], at: int, name: str) -> list[float]:
    numbers, faults = [], []
    for number, row in enumerate(rows, 1):
        try:
            numbers.append(float(row[at].strip().replace(",", ".") or 0))
        except ValueError:
            faults.append(f"line {number}: entry {at + 1} is no number")
    all_at_once(SourceError, name, faults[:10])
    return numbers


def _decimals(texts: Sequence[str]) -> int:
    return min(max((len(each.strip().replace(",", ".").partition(".")[2]) for each in texts), default=0), 9)


def _statuses(rows: Sequence[Sequence[str]], facts: Metadata, cells: Sequence[int], name: str) -> dict[int, str]:
    places = facts.of_role("status")
    if not places:
        return {}
    status = {cell: row[places[0]].strip().upper() for cell, row in zip(cells, rows, strict=True)}
    strange = sum(each not in _STATUSES for each in status.values())
    if strange:
        raise SourceError(f"{name}: {strange:,} cells have a status that is none of S, U, P, M, E, Z")
    return status


def _levels(
    rows: Sequence[Sequence[str]], facts: Metadata, cells: Sequence[int], name: str, scale: float
) -> tuple[dict[int, tuple[float, float]], dict[int, float]]:
    lower, upper, cost = (facts.of_role(role) for role in ("lower", "upper", "cost"))
    levels = {}
    if lower and upper:
        ends = zip(_column(rows, lower[0], name), _column(rows, upper[0], name), strict=True)
        levels = {
            cell: (round(low * scale, 6), round(high * scale, 6))
            for cell, (low, high) in zip(cells, ends, strict=True)
            if low or high
        }
    costs = dict(zip(cells, _column(rows, cost[0], name), strict=True)) if cost else {}
    return levels, costs
