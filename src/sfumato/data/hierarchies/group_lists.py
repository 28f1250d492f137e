"""Groups of values as somebody wrote them: one group in a line (`Group: a, b, c`), or two columns, value and group.

Values are looked up as they are written, and where that finds none, by their plain words (`similar_values.plain_words`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from sfumato.core.errors import HierarchyError, all_at_once
from sfumato.core.files import read_plain
from sfumato.data.hierarchies.similar_values import plain_words

_BETWEEN_COLUMNS = ("\t", ";", ",")


def read_groups(path: str | Path) -> dict[str, str]:
    """The group of each value, from a file."""
    file = Path(path)
    try:
        text = read_plain(file, HierarchyError, what="list of groups").decode("utf-8-sig")
    except FileNotFoundError:
        raise HierarchyError(f"there is no list of groups '{file}'") from None
    except UnicodeDecodeError:
        raise HierarchyError(f"the list of groups '{file.name}' is not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise HierarchyError(f"cannot read the list of groups '{file.name}': {type(error).__name__}") from None
    return parse_groups(text, name=f"list of groups '{file.name}'")


def parse_groups(text: str, *, name: str = "list of groups") -> dict[str, str]:
    """The group of each value; all faults at once, with their lines.

    >>> parse_groups("Health: nurse, doctor\\nTrade: 'cook, pastry', seller") == parse_groups(
    ...     "nurse;Health\\ndoctor;Health\\ncook, pastry;Trade\\nseller;Trade")
    True
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise HierarchyError(f"{name}: there is no group in it. Write `Group: a, b, c`, or value and group in two columns.")
    separator = _separator(lines[0][1])
    groups: dict[str, str] = {}
    faults: list[str] = []
    for number, line in lines:
        parts = _listed(line) if separator is None else _columns(line, separator)
        if parts is None:
            form = "`Group: a, b, c`" if separator is None else "value and group in two columns"
            faults.append(f"line {number} is not written as {form}, like the first line")
            continue
        group, values = parts
        for value in values:
            if groups.setdefault(value, group) != group:
                faults.append(f"line {number}: {value!r} is in a group already ({groups[value]!r})")
    all_at_once(HierarchyError, name, faults)
    return groups


def _separator(first: str) -> str | None:
    """What stands between two columns; None for lists behind the name of their group."""
    if ":" in first and not any(mark in first.partition(":")[0] for mark in _BETWEEN_COLUMNS):
        return None
    return next((mark for mark in _BETWEEN_COLUMNS if mark in first), ";")


def _listed(line: str) -> tuple[str, list[str]] | None:
    group, colon, rest = line.partition(":")
    quote = "'" if rest.lstrip().startswith("'") else '"'
    values = _cells(rest, ",", quote)
    return (group.strip(), values) if colon and group.strip() and values else None


def _columns(line: str, separator: str) -> tuple[str, list[str]] | None:
    cells = _cells(line, separator, '"')
    return (cells[1], [cells[0]]) if len(cells) == 2 else None


def _cells(line: str, separator: str, quote: str) -> list[str]:
    """The cells of a line that are not empty; none where it cannot be read."""
    try:
        rows = list(csv.reader(io.StringIO(line), delimiter=separator, skipinitialspace=True, quotechar=quote))
    except csv.Error:
        return []
    return [cell.strip() for row in rows for cell in row if cell.strip()]


def looked_up(groups: Mapping[str, tuple[str, ...]], values: Iterable[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """What stands above each value that is listed, and the values that are listed in another spelling. A spelling that stands for
    several entries with other groups is not used."""
    plain: dict[str, tuple[str, ...] | None] = {}
    for listed, group in groups.items():
        words = plain_words(listed)
        plain[words] = group if plain.get(words, group) == group else None
    placed: dict[str, tuple[str, ...]] = {}
    respelt = []
    for value in values:
        if value in groups:
            placed[value] = groups[value]
        elif (words := plain_words(value)) and (above := plain.get(words)) is not None:
            placed[value] = above
            respelt.append(value)
    return placed, tuple(respelt)
