"""How much memory the cells of a table take in this process, before they are grouped.

A search holds the distinct combinations of quasi-identifiers and promised values, never the rows. Where the rows are so many
that even one cell each would fit, nothing is asked; otherwise the engine counts the cells, and too many are refused with
numbers and with the columns that make them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.errors import InputError, ParameterError
from sfumato.core.memory_limit import memory_limit
from sfumato.engines.class_queries import ROWS
from sfumato.engines.expressions import Reference
from sfumato.engines.plan import AggregateColumn, Group, Scan
from sfumato.engines.plannable import plannable

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata

#: What a cell takes while a search runs, for up to a dozen columns: keys, codes, roll-ups and the recoding.
BYTES_PER_CELL = 500
#: What it takes besides for each different value of a sensitive column that a promise names: their histograms, of several nodes.
BYTES_PER_VALUE = 50
#: The share of the memory at hand that the cells may take where nobody says how much.
_USUAL_SHARE = 0.5
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_MOST_NAMED = 4


def memory_of(text: int | str | None) -> int:
    """An amount of memory in bytes: a number, a text such as '2GB', or None for half of what is at hand."""
    if text is None:
        return int(_USUAL_SHARE * _at_hand())
    if isinstance(text, int) and not isinstance(text, bool) and text > 0:
        return text
    matched = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    if matched is None or not float(matched[1]):
        raise ParameterError("memory is an amount such as '2GB' or '500MB': what the cells of the table may take in this process")
    return int(float(matched[1]) * _UNITS[matched[2].upper()])


def refuse_too_many_cells(people: Microdata, promised: Sequence[str], memory: int) -> None:
    """Raise where the cells of quasi-identifiers and `promised` sensitive columns would not fit into this much memory."""
    names = list(dict.fromkeys([*people.schema.quasi, *promised]))
    if people.relation.engine == "memory":
        return
    sensitive = list(dict.fromkeys(promised))
    values = sum(_different_values(people, sensitive).values()) if sensitive else 0
    each = BYTES_PER_CELL + BYTES_PER_VALUE * values
    if len(people) * each <= memory:
        return
    cells = _counted(people, names)
    if cells * each <= memory:
        return
    different = _different_values(people, names)
    most = sorted(names, key=lambda name: -different[name])[:_MOST_NAMED]
    listed = ", ".join(f"'{name}' has {different[name]:,} different values" for name in most)
    raise InputError(
        f"the table has {cells:,} different combinations of {len(names)} columns, which take about "
        f"{_amount(cells * each)} in this process ({each:,} bytes each) where {_amount(memory)} may be used. "
        f"What makes them: {listed}. Coarsen such a column in the source (years instead of days, regions instead of places), "
        "leave it out, or allow more memory (memory=, --memory)."
    )


def _counted(people: Microdata, names: Sequence[str]) -> int:
    """The distinct combinations, counted by the engine."""
    relation = plannable(people.relation)
    rows = Scan(ROWS, tuple(relation.fields[name] for name in names))
    answer = relation.run(Group(Group(rows, tuple(names), ()), (), (AggregateColumn("cells", "count"),)))
    return int(answer.column(0)[0].as_py())


def _different_values(people: Microdata, names: Sequence[str]) -> dict[str, int]:
    relation = plannable(people.relation)
    rows = Scan(ROWS, tuple(relation.fields[name] for name in names))
    counts = tuple(AggregateColumn(f"values {place}", "count_distinct", Reference(name)) for place, name in enumerate(names))
    answer = relation.run(Group(rows, (), counts))
    return {name: int(answer.column(place)[0].as_py()) for place, name in enumerate(names)}


def _at_hand() -> int:
    """Memory that this process could still have: what the system has free, and no more than its own limits."""
    free = 4 * 2**30
    try:
        about = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines() if ":" in line)
        free = int(about["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    return min(free, memory_limit() or free)


def _amount(size: int) -> str:
    for name, unit in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20)):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:,} bytes"
