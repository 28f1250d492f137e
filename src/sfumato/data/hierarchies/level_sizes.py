"""What each level of a hierarchy makes of a column: values left, loss, and how many records the groups have.

The smallest group is the k of the column alone; together with other columns classes are smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.data.hierarchies.hierarchy import Hierarchy

_EXAMPLES = 4


@dataclass(frozen=True)
class LevelSize:
    """One level: `values` are groups that records have, `loss` is the mean over records, `small_groups` have fewer than k records
    and `small_records` are in them. `examples` are groups, the owner's to see."""

    level: int
    values: int
    loss: float
    smallest: int
    small_groups: int
    small_records: int
    examples: tuple[str, ...]


def level_sizes(tree: Hierarchy, values: Sequence[str | None], counts: Sequence[int], k: int) -> tuple[LevelSize, ...]:
    """The sizes at every level, counted on the records; `values` are leaves of the tree, `counts` how many records have each."""
    leaves = np.array([tree.index[value] for value in values], dtype=np.int64)
    weights = np.array(counts, dtype=np.int64)
    sizes = []
    for level in range(tree.height + 1):
        nodes = tree.node_of[level, leaves]
        records = np.zeros(len(tree.labels), dtype=np.int64)
        np.add.at(records, nodes, weights)
        shown = np.flatnonzero(records)
        small = records[shown] < k
        largest = shown[np.argsort(-records[shown], kind="stable")]
        sizes.append(
            LevelSize(
                level,
                int(shown.size),
                float(np.dot(tree.loss[nodes], weights) / max(int(weights.sum()), 1)),
                int(records[shown].min()) if shown.size else 0,
                int(np.count_nonzero(small)),
                int(records[shown][small].sum()),
                tuple(tree.labels[int(node)] or "missing" for node in largest[:_EXAMPLES]),
            )
        )
    return tuple(sizes)
