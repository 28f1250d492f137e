"""Checks on the totals of classes, one for each kind of promise.

A check returns 0 for a class that keeps the promise; a positive number is a lower bound on the records that any finer
partition of the class must suppress; `NO_BOUND` marks a failing class about whose parts nothing is known. Where a class's
distribution is compared with a reference, that is the input, fixed before the search, or the released rows, which depend on
what is suppressed; `with_shares` gives the same check for another reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.core.guarantees.base import TOLERANCE
from sfumato.data.class_table import SensitiveAttribute
from sfumato.kernels.classes import checks as class_checks
from sfumato.kernels.classes.closeness import closeness

NO_BOUND = -1
#: From here on e^δ allows every share that is not 0, and e^-δ none less; beyond it numbers would be infinite.
_LARGEST_EXPONENT = 700.0

Int = NDArray[np.int64]
Real = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Check(Protocol):
    """Needed suppressions per class; `shares` replaces the reference distribution where the guarantee follows the
    released rows."""

    def __call__(self, totals: Int) -> Int: ...


@dataclass(frozen=True)
class AtLeast:
    """At least `k` in a column (units for k-anonymity, population for k-map)."""

    column: int
    k: int

    def __call__(self, totals: Int) -> Int:
        return class_checks.too_few(totals, self.column, self.k)


@dataclass(frozen=True)
class Presence:
    """The released share of a class's population lies in [minimum, maximum].

    A class below the minimum cannot be mended by suppression: it needs more records than there are (`hopeless`).
    """

    population: int
    minimum: float
    maximum: float
    hopeless: int

    def __call__(self, totals: Int) -> Int:
        people = np.maximum(totals[:, self.population], 1)
        share = totals[:, 0] / people
        peopled = totals[:, self.population] > 0
        over = (share > self.maximum + TOLERANCE) | (~peopled & (totals[:, 0] > 0))
        under = peopled & (share < self.minimum - TOLERANCE)
        return np.where(under, self.hopeless, np.where(over, 1, 0)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class DiversityCheck:
    """One reading of l-diversity on the histogram columns from `start` on.

    With protected values a class without any of them is exempt. For distinct values a failing class must still lose
    its protected records; for the other readings nothing is known about its parts. `alone`: the last column counts the records
    whose value nobody else has.
    """

    reading: Literal["distinct", "entropy", "recursive"]
    start: int
    width: int
    least: float
    c: float = 0.0
    protected: Mask | None = None
    alone: bool = False

    def __call__(self, totals: Int) -> Int:
        if self.reading == "distinct":
            need = class_checks.distinct(totals, self.start, self.width, int(self.alone), int(self.least))
        elif self.reading == "entropy":
            need = class_checks.entropy(totals, self.start, self.width, float(self.least))
        else:
            need = class_checks.recursive(totals, self.start, self.width, float(self.c), int(self.least))
        if self.protected is None:
            return need
        affected = totals[:, self.start : self.start + self.width][:, self.protected].sum(axis=1)
        bound = affected if self.reading == "distinct" else np.full_like(affected, NO_BOUND)
        return np.where((need != 0) & (affected > 0), bound, 0)


@dataclass(frozen=True, eq=False)
class Closeness:
    """t-closeness: `distance` decides how values are grouped; see `kernels.classes.closeness`."""

    distance: str
    start: int
    width: int
    t: float
    shares: Real
    levels: Int  # group of every value on every level of its hierarchy
    protected: Mask | None = None

    def with_shares(self, shares: Real) -> Closeness:
        """The same promise against another reference."""
        return replace(self, shares=shares)

    def __call__(self, totals: Int) -> Int:
        if self.protected is not None:
            return self._protected(totals)
        return self._plain(totals)

    def _plain(self, totals: Int) -> Int:
        if self.distance == "kl":
            return class_checks.divergence(totals, self.start, self.width, self.shares, self.t)
        if self.distance == "ordered":
            return self._ordered(totals)
        return self.among(totals, np.zeros(totals.shape[0], dtype=np.int64))

    def _ordered(self, totals: Int) -> Int:
        """Cuts between the values that the reference has: one that was suppressed everywhere is no step of the order."""
        values = np.flatnonzero(self.shares > 0)
        if values.size == self.width:
            return class_checks.ordered_closeness(totals, self.start, self.width, self.shares, self.t)
        counts = np.ascontiguousarray(totals[:, self.start + values])
        return class_checks.ordered_closeness(counts, 0, values.size, self.shares[values], self.t)

    @property
    def passes_over(self) -> bool:
        """Whether `among` can be asked."""
        return self.protected is None and self.distance not in ("kl", "ordered")

    def among(self, totals: Int, need: Int) -> Int:
        """Fill in what the classes need whose `need` is 0, without copying them."""
        groups, reference = self._grouped
        return closeness(totals, self.start, self.width, groups, reference, self.t, need)

    @cached_property
    def _grouped(self) -> tuple[Int, Real]:
        singles = np.arange(self.width, dtype=np.int64)
        groups = self.levels if self.distance == "hierarchical" else singles[None, :]
        if np.array_equal(np.sort(groups[0]), singles):  # each value by itself, under its own number
            groups = np.concatenate([singles[None, :], groups[1:]])
        reference = np.zeros(int(groups.max(initial=-1)) + 1)
        for level in groups:
            np.add.at(reference, level, self.shares)
        return np.ascontiguousarray(groups), reference

    @cached_property
    def fewest(self) -> int:
        """How many records a class within t has at least: s records show at most s groups of a level, at best the most frequent.

        1 where nothing follows: other distances, and promises about some values only.
        """
        if not self.passes_over:
            return 1
        groups, reference = self._grouped
        covered = np.zeros(self.width)
        for level in groups:
            largest = np.sort(reference[np.unique(level)])[::-1]
            covered += np.cumsum(np.pad(largest, (0, self.width - largest.size)))
        enough = covered / len(groups) >= 1.0 - self.t - TOLERANCE
        return int(np.argmax(enough)) + 1 if enough.any() else 1

    def _protected(self, totals: Int) -> Int:
        counts = totals[:, self.start : self.start + self.width]
        if self.distance in ("equal", "variational"):
            share = counts / np.maximum(counts.sum(axis=1), 1)[:, None]
            gap = 0.5 * np.abs(share - self.shares)[:, self.protected].sum(axis=1)
            return np.where((gap > self.t + TOLERANCE) & (totals[:, 0] > 0), NO_BOUND, 0).astype(np.int64)
        affected = counts[:, self.protected].sum(axis=1) > 0
        return np.where((self._plain(totals) != 0) & affected, NO_BOUND, 0).astype(np.int64)


def hierarchy_levels(attribute: SensitiveAttribute) -> Int:
    """The group of every value on each level below the root, groups of all levels numbered apart.

    A hierarchy without a common root is read as if one stood above it.
    """
    tree = attribute.hierarchy
    rows, offset = [], 0
    for level in range(max(tree.height, 1) if tree.has_root else tree.height + 1):
        _, numbers = np.unique(tree.node_of[level, attribute.leaf_of], return_inverse=True)
        rows.append(numbers.reshape(-1).astype(np.int64) + offset)
        offset += int(numbers.max(initial=-1)) + 1
    return np.stack(rows)


@dataclass(frozen=True, eq=False)
class Shares:
    """Every value's share stays between two limits that follow from its reference share."""

    start: int
    width: int
    shares: Real
    limits: Callable[[Real], tuple[Real, Real]]
    strict: bool = False
    protected: Mask | None = None

    def with_shares(self, shares: Real) -> Shares:
        """The same promise against another reference."""
        return replace(self, shares=shares)

    def __call__(self, totals: Int) -> Int:
        low, high = self.limits(self.shares)
        if self.protected is not None:
            low = np.where(self.protected, low, -1.0)
            high = np.where(self.protected, high, 2.0)
        return class_checks.shares_outside(totals, self.start, self.width, low, high, int(self.strict))


def beta_limits(beta: float, enhanced: bool) -> Callable[[Real], tuple[Real, Real]]:
    """β-likeness: p ≤ q (1 + β), or q (1 + min(β, -ln q)) when enhanced; the slack is one of the gain (p - q)/q, not of p."""

    def limits(shares: Real) -> tuple[Real, Real]:
        gain = np.full_like(shares, beta)
        if enhanced:
            gain = np.minimum(beta, -np.log(np.where(shares > 0, shares, 1e-300)))
        return np.full_like(shares, -1.0), shares * (1.0 + gain + TOLERANCE) - class_checks.SLACK

    return limits


def delta_limits(delta: float) -> Callable[[Real], tuple[Real, Real]]:
    """δ-disclosure: q e^-δ < p < q e^δ for every value of the reference; a tie breaks it, also one hidden by rounding."""
    exponent = min(float(delta), _LARGEST_EXPONENT)
    low, high = np.exp(-exponent) * (1.0 + TOLERANCE), np.exp(exponent) * (1.0 - TOLERANCE)

    def limits(shares: Real) -> tuple[Real, Real]:
        present = shares > 0
        return np.where(present, shares * low, -1.0), np.where(present, shares * high, 2.0)

    return limits


def alpha_limits(alpha: float) -> Callable[[Real], tuple[Real, Real]]:
    """(α,k): p ≤ α."""
    return lambda shares: (np.full_like(shares, -1.0), np.full_like(shares, alpha))
