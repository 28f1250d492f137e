"""Nearest record to a growing cluster, by the loss of the class that would result."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Int = NDArray[np.int64]
Int32 = NDArray[np.int32]
Real = NDArray[np.float64]


def _cheapest_numpy(codes: Int32, left: Int, tables: Real, starts: Int, widths: Int, nodes: Int) -> tuple[int, float]:
    cost = np.zeros(codes.shape[1])
    for attribute in range(codes.shape[0]):
        offset = starts[attribute] + nodes[attribute] * widths[attribute]
        cost += tables[offset + codes[attribute]]
    cost[left == 0] = np.inf
    best = int(np.argmin(cost)) if np.any(left) else -1
    return best, float(cost[best]) if best >= 0 else np.inf


@kernel(
    "Tuple((int64, float64))(int32[:,::1], int64[::1], float64[::1], int64[::1], int64[::1], int64[::1])", twin=_cheapest_numpy
)
def cheapest(codes: Int32, left: Int, tables: Real, starts: Int, widths: Int, nodes: Int) -> tuple[int, float]:
    """The entry with records left whose joining makes the cheapest class, and that class's loss per record.

    `tables[starts[a] + node * widths[a] + leaf]` is the weighted loss of the lowest common ancestor of node and
    leaf; `nodes[a]` is the node the cluster shows now. Ties go to the lowest entry.
    """
    best = -1
    lowest = np.inf
    attributes = codes.shape[0]
    for entry in range(codes.shape[1]):
        if left[entry] == 0:
            continue
        cost = 0.0
        for attribute in range(attributes):
            cost += tables[starts[attribute] + nodes[attribute] * widths[attribute] + codes[attribute, entry]]
            if cost >= lowest:
                break
        if cost < lowest:
            lowest = cost
            best = entry
    return best, lowest


def _farthest_numpy(codes: Int32, left: Int, tables: Real, starts: Int, widths: Int, nodes: Int) -> int:
    cost = np.zeros(codes.shape[1])
    for attribute in range(codes.shape[0]):
        cost += tables[starts[attribute] + nodes[attribute] * widths[attribute] + codes[attribute]]
    cost[left == 0] = -1.0
    return int(np.argmax(cost)) if np.any(left) else -1


@kernel("int64(int32[:,::1], int64[::1], float64[::1], int64[::1], int64[::1], int64[::1])", twin=_farthest_numpy)
def farthest(codes: Int32, left: Int, tables: Real, starts: Int, widths: Int, nodes: Int) -> int:
    """The entry with records left that is most expensive to join: where the next cluster starts."""
    best = -1
    highest = -1.0
    for entry in range(codes.shape[1]):
        if left[entry] == 0:
            continue
        cost = 0.0
        for attribute in range(codes.shape[0]):
            cost += tables[starts[attribute] + nodes[attribute] * widths[attribute] + codes[attribute, entry]]
        if cost > highest:
            highest = cost
            best = entry
    return best
