"""Is a shown text true of the value it replaces?"""

from __future__ import annotations

import re

from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy

_RANGE = re.compile(r"^\[(-?[\d.]+), (-?[\d.]+)([\])])$")


def covers(shown: str | None, raw: str | None, tree: Hierarchy, order: tuple[str, ...] | None) -> bool:
    """The text is the value, one of its ancestors, or a range that contains it."""
    if shown == raw or shown == ROOT:
        return True
    if shown is None or raw is None:
        return shown in {tree.labels[int(node)] for node in tree.node_of[:, tree.index[raw]]}
    if shown in {tree.labels[int(node)] for node in tree.node_of[:, tree.index[raw]]}:
        return True
    if match := _RANGE.match(shown):
        low, high, closed = float(match[1]), float(match[2]), match[3] == "]"
        return low <= float(raw) <= high if closed else low <= float(raw) < high
    if " … " in shown:
        first, last = shown.split(" … ")
        ranks = {leaf: rank for rank, leaf in enumerate(order or tree.leaves)}
        return ranks[first] <= ranks[raw] <= ranks[last]
    return False
