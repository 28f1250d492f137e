"""τ-ARGUS hierarchy files (.hrc): one code per line, with one lead sign more for each level below the top.

The total is not listed. `A`, `@1`, `@2`, `B` is a tree of two groups, of which the first has two codes.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.core.errors import HierarchyError
from sfumato.tables.dimension import TOTAL, Dimension

#: Levels and codes that a file may have.
DEEPEST, MOST_CODES = 30, 1_000_000
LEAD = "@"


def parents_in(text: str, *, lead: str = LEAD, total: str = TOTAL, name: str = "hierarchy file") -> dict[str, str]:
    """The parent of each code. Blanks around codes are left out, since programs pad them to one width."""
    parents: dict[str, str] = {}
    path: list[str] = []
    if not lead:
        raise HierarchyError(f"{name}: the lead string is empty. It is `{LEAD}` in most files.")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        level = 0
        rest = line
        while rest.startswith(lead):
            level, rest = level + 1, rest[len(lead) :]
        code = rest.strip()
        if not code or level > len(path) or level > DEEPEST or number > MOST_CODES:
            why = "has no code" if not code else "is too far below the line before it" if level > len(path) else "is one too many"
            raise HierarchyError(f"{name}: line {number} {why} (at most {DEEPEST} levels and {MOST_CODES:,} codes)")
        if code in parents or code == total:
            raise HierarchyError(f"{name}: line {number} lists a code for the second time, or the total")
        parents[code] = path[level - 1] if level else total
        path = [*path[:level], code]
    if not parents:
        raise HierarchyError(f"{name}: there is no code in it")
    return parents


def as_text(dimension: Dimension, *, lead: str = LEAD) -> str:
    """The dimension as such a file; refused where it has several hierarchies."""
    parents: dict[int, int] = {}
    for total, parts in dimension.sums:
        for part in parts:
            if part in parents:
                raise HierarchyError(f"the dimension '{dimension.name}' has several hierarchies; write a file for each")
            parents[part] = total
    children: dict[int, list[int]] = {}
    for part, total in sorted(parents.items()):
        children.setdefault(total, []).append(part)
    lines: list[str] = []
    stack = [(each, 0) for each in reversed(children[dimension.total])]
    while stack:
        code, level = stack.pop()
        lines.append(f"{lead * level}{dimension.codes[code]}")
        stack.extend((each, level + 1) for each in reversed(children.get(code, [])))
    return "\n".join(lines) + "\n"


def is_flat(parents: Mapping[str, str]) -> bool:
    """Whether all codes have one parent."""
    return len(set(parents.values())) <= 1
