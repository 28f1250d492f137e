"""Distances between two distributions of a sensitive attribute.

P is the class, Q the table; the order of the arguments matters for the Kullback-Leibler divergence.
Written for reading: the measurement of whole tables computes the same numbers from counts, see
`t_closeness`. Li, Li, Venkatasubramanian, "t-closeness", ICDE 2007; Rubner, Tomasi, Guibas, "The earth
mover's distance", IJCV 40(2), 2000.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.declared import require
from sfumato.data.hierarchies.hierarchy import Hierarchy

_SUM_SLACK = 1e-9
#: How far the solver may be off: the least that it takes.
_EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def variational(p: ArrayLike, q: ArrayLike) -> float:
    """Half the sum of absolute differences, in [0, 1]."""
    left, right = _pair(p, q)
    return float(np.abs(left - right).sum() / 2)


def kl(p: ArrayLike, q: ArrayLike, *, base: float = math.e) -> float:
    """Kullback-Leibler divergence of P from Q: Σ p ln(p/q), with 0 ln 0 = 0; infinite when some q = 0 < p."""
    left, right = _pair(p, q)
    present = left > 0
    if np.any(right[present] == 0):
        return math.inf
    return float((left[present] * np.log(left[present] / right[present])).sum() / math.log(base))


def emd_equal(p: ArrayLike, q: ArrayLike) -> float:
    """Earth mover's distance with all values equally far apart: the variational distance."""
    return variational(p, q)


def emd_ordered(p: ArrayLike, q: ArrayLike, *, normalised: bool = True) -> float:
    """Earth mover's distance with values in order, neighbours at distance 1, or 1/(m - 1) when normalised."""
    left, right = _pair(p, q)
    raw = float(np.abs(np.cumsum(left - right)[:-1]).sum())
    return raw / (left.size - 1) if normalised and left.size > 1 else raw


def emd_hierarchical(p: ArrayLike, q: ArrayLike, tree: Hierarchy, leaves: Sequence[str | None] | None = None) -> float:
    """Earth mover's distance over a hierarchy: two leaves are as far apart as their lowest common
    ancestor is high.

    Equal to the mean, over the levels below the root, of the variational distance of the distributions
    on that level. `leaves` names the value of each entry of P and Q (all leaves of the tree by default).
    """
    left, right = _pair(p, q)
    named = tree.leaves if leaves is None else leaves
    positions = np.array([tree.index[leaf] for leaf in named], dtype=np.int64)
    levels, height = levels_below_root(tree)
    total = 0.0
    for level in levels:
        nodes = level[positions]
        width = int(nodes.max()) + 1
        moved = np.bincount(nodes, weights=left - right, minlength=width)
        total += float(np.abs(moved).sum() / 2)
    return total / height if height else 0.0


def hierarchical_ground(tree: Hierarchy) -> NDArray[np.float64]:
    """The matrix of ground distances between the leaves of a hierarchy."""
    levels, height = levels_below_root(tree)
    count = len(tree.leaves)
    apart = np.zeros((count, count))
    for level in levels:
        apart += level[:, None] != level[None, :]
    return apart / height if height else apart


def emd_general(p: ArrayLike, q: ArrayLike, ground: ArrayLike) -> float:
    """Earth mover's distance for any matrix of ground distances: the cheapest transport of P onto Q, as a linear programme.

    Exact up to the tolerance of the solver: 1e-10 of the largest ground distance for each value and each route.
    """
    left, right = _pair(p, q)
    cost = np.ascontiguousarray(ground, dtype=np.float64)
    require(
        cost.shape == (left.size, right.size),
        "the ground distances must be a square matrix, one row per value",
    )
    require(bool(np.all(cost >= 0)), "ground distances cannot be negative")
    require(bool(np.all(np.isfinite(cost))), "ground distances must be finite")
    largest = float(cost.max())
    if largest == 0:
        return 0.0
    givers, takers = np.flatnonzero(left), np.flatnonzero(right)
    return largest * _cheapest(left[givers], right[takers], cost[np.ix_(givers, takers)] / largest)


def _cheapest(supplies: NDArray[np.float64], demands: NDArray[np.float64], cost: NDArray[np.float64]) -> float:
    """What the cheapest transport costs that empties all supplies and meets all demands, both adding up to the same."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, identity, kron, vstack

    rows, columns = cost.shape
    sent = kron(identity(rows), np.ones((1, columns)))
    received = kron(np.ones((1, rows)), identity(columns))
    amounts = np.concatenate([supplies / supplies.sum(), demands / demands.sum()])
    # the last demand follows from the others: left in, rounding could make the equations contradict each other
    equations = csr_array(vstack([sent, received]))[:-1]
    solved = linprog(cost.ravel(), A_eq=equations, b_eq=amounts[:-1], method="highs", options=_EXACT)
    if solved.x is None:
        raise ArithmeticError("the cheapest transport was not found")
    return float(cost.ravel() @ np.clip(solved.x, 0, None))


def levels_below_root(tree: Hierarchy) -> tuple[list[NDArray[np.int32]], int]:
    """The rows of nodes below the root and the height; a forest is read as if one root stood above it."""
    if tree.has_root:
        return [tree.node_of[level] for level in range(tree.height)], tree.height
    return [tree.node_of[level] for level in range(tree.height + 1)], tree.height + 1


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
    left, right = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    require(left.ndim == 1 and left.shape == right.shape and left.size > 0, "P and Q must list the same values")
    require(bool(np.all(left >= 0) and np.all(right >= 0)), "a distribution has no negative shares")
    both = abs(float(left.sum()) - 1) < _SUM_SLACK and abs(float(right.sum()) - 1) < _SUM_SLACK
    require(both, "the shares of a distribution add up to 1")
    return left, right
