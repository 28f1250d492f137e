"""Which raw values a released text stands for: itself, the leaves below it in a hierarchy, or the
numbers of an interval.

Needed wherever a release is matched with people whose raw values are known (a population register).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.texts.values import as_numbers

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf"
_INTERVAL = re.compile(rf"^\s*([\[(\]])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\])\[])\s*$")


def interval_of(text: str) -> tuple[float, float, bool, bool] | None:
    """Bounds of an interval in text form, and whether each bound belongs to it: `[20, 30)` gives (20,
    30, True, False).
    """
    match = _INTERVAL.match(text)
    if match is None:
        return None
    low, high = float(match.group(2)), float(match.group(3))
    return low, high, match.group(1) == "[", match.group(4) == "]"


def covered(text: str | None, values: Sequence[str | None], tree: Hierarchy | None) -> NDArray[np.bool_]:
    """For each raw value whether the released text may stand for it; a text on several levels is read as
    the most general.
    """
    mask = np.array([value == text for value in values], dtype=np.bool_)
    if text is None:
        return mask
    if text == ROOT:
        return np.ones(len(values), dtype=np.bool_)
    if tree is not None:
        below = leaves_below(tree, text)
        mask |= np.array([tree.index.get(value, -1) in below for value in values], dtype=np.bool_)
    span = interval_of(text)
    numbers = as_numbers(values) if span is not None else None
    if span is not None and numbers is not None:
        low, high, with_low, with_high = span
        array = np.array(numbers, dtype=np.float64)
        mask |= (array >= low if with_low else array > low) & (array <= high if with_high else array < high)
    return mask


def leaves_below(tree: Hierarchy, text: str) -> frozenset[int]:
    """The leaves below the highest node that shows this text; empty when none does."""
    for level in range(tree.height, -1, -1):
        nodes = tree.node_of[level].tolist()
        leaves = frozenset(i for i, node in enumerate(nodes) if tree.labels[node] == text)
        if leaves:
            return leaves
    return frozenset()
