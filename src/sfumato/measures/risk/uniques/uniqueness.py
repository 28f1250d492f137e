"""Uniqueness: the share of people who are alone with a combination of attributes.

Sweeney, "Simple demographics often identify people uniquely", Carnegie Mellon University, working paper, 2000.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from sfumato.core.declared import require
from sfumato.measures.guarantees.classes import CodedColumn, combined, require_columns


def unique_share(classes_by_size: Mapping[int, int]) -> float:
    """The share of people who are alone, from how many combinations are held by 1, 2, 3 … people."""
    require(
        all(size >= 1 and count >= 0 for size, count in classes_by_size.items()),
        "unique_share: sizes are at least 1 and counts at least 0",
    )
    people = sum(size * count for size, count in classes_by_size.items())
    return classes_by_size.get(1, 0) / people if people else 0.0


def class_sizes(table: pa.Table, columns: Sequence[str]) -> dict[int, int]:
    """How many combinations of the columns are held by 1, 2, 3 … records.

    >>> class_sizes(pa.table({"zip": ["1", "1", "2"]}), ["zip"])
    {1: 1, 2: 1}
    """
    names = tuple(columns)
    require(bool(names), "class_sizes: name at least one column")
    require_columns(table, names)
    keys, count = combined([CodedColumn.of(table.column(name)) for name in names], table.num_rows)
    sizes, classes = np.unique(np.bincount(keys, minlength=count), return_counts=True)
    return dict(zip(sizes.tolist(), classes.tolist(), strict=True))
