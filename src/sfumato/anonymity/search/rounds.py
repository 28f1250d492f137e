"""Rounds of local recoding: settle first what can be settled at the most specific levels.

In every round the level vector with the least loss is taken among those that settle at least a given number of the
records that are left. A node that settles too little rules out all nodes below it, and does so in later rounds too,
when fewer records are left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.sweep import Levels, Sweep


class Round(Sweep):
    """One round over the records that are left: `limit` of them may stay unsettled; `dead` marks nodes ruled out so far."""

    def __init__(self, tables: NodeTables, limit: int, dead: NDArray[np.bool_]) -> None:
        super().__init__(tables, limit)
        self.dead = dead
        # equal losses must compare equal, however their sums were rounded: the first node in order is taken
        self.bounds = np.round(self.bounds, 12)
        self.bounds[dead] = np.inf

    def best(self) -> Levels | None:
        """The most specific node, by loss, that settles enough; None when no node does."""
        flat = self.bounds.reshape(-1)
        while True:
            lowest = int(np.argmin(flat))
            if flat[lowest] == np.inf:
                return None
            node = tuple(int(x) for x in np.unravel_index(lowest, self.shape))
            if self._settles(node):
                return node
            self._rule_out_below(self._path_up(node))

    def _rule_out_below(self, path: list[Levels]) -> None:
        """Find the most general node of a path upward that settles too little: it rules out most."""
        low, high = 0, len(path) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._settles(path[middle]):
                high = middle - 1
            else:
                low = middle

    def _settles(self, node: Levels) -> bool:
        known = self.checked.get(node)
        if known is not None:
            return known == 0.0
        suppressed, least = self.tables.suppressed(node)
        enough = suppressed <= self.limit
        if not enough:
            below = tuple(slice(0, level + 1) for level in node) if least > self.limit else node
            self.dead[below] = True
            self.bounds[below] = np.inf
        self.checked[node] = 0.0 if enough else np.inf
        return enough
