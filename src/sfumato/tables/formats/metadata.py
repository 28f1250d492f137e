"""τ-ARGUS metadata (.rda): which columns a table file has, what each of them is, and how its codes form a hierarchy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.core.errors import SourceError
from sfumato.tables.dimension import TOTAL

MOST_LINES = 10_000
_KEYWORD = re.compile(r"<(\w+)>\s*(.*)")
#: Keywords that say what a column holds, by our word for it.
_ROLES = {
    "RECODEABLE": "dimension",
    "FREQUENCY": "count",
    "SHADOW": "shadow",
    "COSTVAR": "cost",
    "MAXSCORE": "largest",
    "STATUS": "status",
    "LOWERPL": "lower",
    "UPPERPL": "upper",
    "NUMERIC": "value",
}


@dataclass
class ColumnFacts:
    """One column: its role (`dimension`, `value`, `count`, …), the code of its total, its missing code and its hierarchy file."""

    name: str
    role: str = ""
    total: str = TOTAL
    missing: tuple[str, ...] = ()
    decimals: int | None = None
    hierarchy_file: str | None = None
    lead: str = "@"
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """The columns in order, and what separates them."""

    columns: tuple[ColumnFacts, ...]
    separator: str = ";"
    notes: tuple[str, ...] = field(default=())

    def of_role(self, role: str) -> list[int]:
        """The places of the columns with a role."""
        return [place for place, each in enumerate(self.columns) if each.role == role]


def metadata_in(text: str, name: str = "metadata file") -> Metadata:
    """Read it; a keyword that says nothing about tables is passed over."""
    columns: list[ColumnFacts] = []
    separator, lines = ";", text.splitlines()
    if len(lines) > MOST_LINES:
        raise SourceError(f"{name} has more than {MOST_LINES:,} lines, which no metadata file has")
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped:
            continue
        keyword = _KEYWORD.match(stripped)
        if keyword is None:
            words = [word.strip('"') for word in stripped.split()]
            columns.append(ColumnFacts(words[0], missing=tuple(words[1:])))
        elif keyword[1] == "SEPARATOR":
            separator = keyword[2].strip().strip('"') or ";"
            if len(separator) != 1:
                raise SourceError(f"{name}: line {number}: the separator must be one character")
        elif not columns:
            raise SourceError(f"{name}: line {number} is about a column, and none is named before it")
        else:
            for word, value in _pairs(stripped):
                _take(columns[-1], word, value, f"{name}: line {number}")
    if not any(each.role == "dimension" for each in columns):
        raise SourceError(f"{name} names no column by which cells are formed (<RECODEABLE>)")
    if sum(each.role == "value" for each in columns) > 1:
        raise SourceError(f"{name} names several values; one table holds one. Mark the others <SHADOW> or <COSTVAR>.")
    return Metadata(tuple(columns), separator)


def _pairs(line: str) -> list[tuple[str, str]]:
    return [(word, value.strip().strip('"')) for word, value in re.findall(r"<(\w+)>\s*([^<]*)", line)]


def _take(column: ColumnFacts, word: str, value: str, where: str) -> None:
    if word in _ROLES:
        if not (word == "NUMERIC" and column.role):  # the more telling word decides
            column.role = _ROLES[word]
    elif word == "TOTCODE":
        column.total = value
    elif word == "HIERCODELIST":
        column.hierarchy_file = value
    elif word == "HIERLEADSTRING":
        column.lead = value
    elif word in ("DECIMALS", "HIERLEVELS"):
        numbers = value.split()
        if not numbers or not all(each.isdigit() for each in numbers):
            raise SourceError(f"{where}: <{word}> needs whole numbers")
        if word == "DECIMALS":
            column.decimals = min(int(numbers[0]), 9)
        else:
            column.levels = tuple(map(int, numbers))


def as_text(metadata: Metadata) -> str:
    """The metadata as such a file."""
    words: Mapping[str, str] = {
        "dimension": "    <RECODEABLE>",
        "value": "    <NUMERIC>",
        "cost": "    <NUMERIC> <COSTVAR>",
        "shadow": "    <NUMERIC> <SHADOW>",
        "lower": "    <NUMERIC> <LOWERPL>",
        "upper": "    <NUMERIC> <UPPERPL>",
        "count": "    <FREQUENCY>",
        "largest": "    <MAXSCORE>",
        "status": "    <STATUS>",
    }
    lines = [f'   <SEPARATOR> "{metadata.separator}"']
    for each in metadata.columns:
        lines += [each.name, words[each.role]]
        if each.role == "dimension":
            lines.append(f'    <TOTCODE> "{each.total}"')
            if each.hierarchy_file is not None:
                lines += ["    <HIERARCHICAL>", f'    <HIERCODELIST> "{each.hierarchy_file}"']
                lines.append(f'    <HIERLEADSTRING> "{each.lead}"')
        elif each.decimals is not None:
            lines.append(f"    <DECIMALS> {each.decimals}")
    return "\n".join(lines) + "\n"
