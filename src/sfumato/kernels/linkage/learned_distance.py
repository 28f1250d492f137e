"""Distances with parameters: an aggregation of differences per attribute, linear in its parameters, and the linkage it yields.

A distance is θ·φ(x, y): φ holds the squared differences per attribute, the same in descending order, or minima and maxima of
them. `nearest_wrong` compares every seeking record with all sought ones in linear memory. Abril, Navarro-Arribas, Torra,
"Improving record linkage with supervised learning for disclosure risk assessment", Information Fusion 13(4), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.compiled import kernel

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

#: Two distances that differ by less than rounding errors are equal.
RELATIVE, ABSOLUTE = 1e-12, 1e-15
_BLOCK = 1_000_000


@dataclass(frozen=True, eq=False)
class Terms:
    """How the terms of φ come from the differences. `ordered`: these are sorted first, largest first.

    The first terms are the differences; each further one is the smaller (`largest` 0) or the larger (1) of two earlier terms,
    at the positions `left` and `right`.
    """

    attributes: int
    ordered: bool
    left: Int
    right: Int
    largest: Int

    @classmethod
    def of(cls, attributes: int, steps: list[tuple[int, int, int]] | None = None, *, ordered: bool = False) -> Terms:
        """Differences, then one term for each step (left, right, 0 for the smaller or 1 for the larger)."""
        table = np.array(steps or [], dtype=np.int64).reshape(-1, 3)
        left, right, largest = (np.ascontiguousarray(table[:, column]) for column in range(3))
        return cls(attributes, ordered, left, right, largest)

    @property
    def size(self) -> int:
        """How many terms there are."""
        return self.attributes + int(self.left.size)

    def needed(self, theta: Real) -> tuple[Terms, Real]:
        """The same distance without further terms that no weight needs: fewer steps for every pair of records."""
        used = np.asarray(theta) != 0.0
        for step in range(self.left.size - 1, -1, -1):
            if used[self.attributes + step]:
                used[self.left[step]] = used[self.right[step]] = True
        used[: self.attributes] = True
        place = np.cumsum(used) - 1
        kept = used[self.attributes :]
        steps = (place[self.left[kept]], place[self.right[kept]], self.largest[kept])
        return Terms(self.attributes, self.ordered, *steps), np.asarray(theta)[used]


def differences(first: Real, second: Real, category: Bool) -> Real:
    """Squared differences per attribute (last axis); 1 or 0 for categories that differ or agree."""
    gap = first - second
    return np.asarray(np.where(category, gap != 0.0, gap * gap), dtype=np.float64)


def terms_of(gaps: Real, terms: Terms) -> Real:
    """φ of squared differences per attribute (last axis)."""
    values = np.empty((*gaps.shape[:-1], terms.size))
    values[..., : terms.attributes] = -np.sort(-gaps, axis=-1) if terms.ordered else gaps
    for step in range(terms.left.size):
        choose = np.maximum if terms.largest[step] else np.minimum
        values[..., terms.attributes + step] = choose(values[..., terms.left[step]], values[..., terms.right[step]])
    return values


@dataclass(frozen=True, eq=False)
class Links:
    """Per seeking record: the distance to its partner, the nearest other records with their distances (nearest first), and
    the chance that picking the nearest record, at random among equally near ones, picks the partner."""

    own: Real
    wrong: Int
    distances: Real
    share: Real

    @property
    def rate(self) -> float:
        """The expected share of right links."""
        return float(self.share.mean()) if self.share.size else 0.0

    def linked(self, margin: float) -> Bool:
        """Whose partner is nearer than everybody else by at least the margin."""
        if self.distances.shape[1] == 0:
            return np.ones(self.own.size, dtype=np.bool_)
        return np.asarray(self.distances[:, 0] - self.own >= margin)


def links(seeking: Real, sought: Real, category: Bool, partner: Int, terms: Terms, theta: Real, nearest: int) -> Links:
    """Compare every seeking record with every sought one; `partner[i]` is the record to be found."""
    terms, theta = terms.needed(theta)
    own, closer, tied, wrong, distances = nearest_wrong(
        np.ascontiguousarray(seeking),
        np.ascontiguousarray(sought),
        category.astype(np.int64),
        np.ascontiguousarray(partner, dtype=np.int64),
        int(terms.ordered),
        terms.left,
        terms.right,
        terms.largest,
        np.ascontiguousarray(theta),
        min(nearest, max(sought.shape[0] - 1, 0)),
    )
    return Links(own, wrong, distances, np.where(closer == 0, 1.0 / (1.0 + tied), 0.0))


def _nearest_wrong_numpy(
    seeking: Real,
    sought: Real,
    category: Int,
    partner: Int,
    ordered: int,
    left: Int,
    right: Int,
    largest: Int,
    theta: Real,
    keep: int,
) -> tuple[Real, Int, Int, Int, Real]:
    terms = Terms(seeking.shape[1], bool(ordered), left, right, largest)
    kinds = category.astype(np.bool_)
    rows, count = seeking.shape[0], sought.shape[0]
    own = np.empty(rows)
    closer, tied = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    wrong, distances = np.full((rows, keep), -1, dtype=np.int64), np.full((rows, keep), np.inf)
    step = max(_BLOCK // max(count * max(theta.size, 1), 1), 1)
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        gaps = differences(seeking[part][:, None, :], sought[None, :, :], kinds)
        far = terms_of(gaps, terms) @ theta
        here = np.arange(far.shape[0])
        true = far[here, partner[part]]
        own[part] = true
        slack = (RELATIVE * np.abs(true) + ABSOLUTE)[:, None]
        far[here, partner[part]] = np.inf
        closer[part] = np.count_nonzero(far < true[:, None] - slack, axis=1)
        tied[part] = np.count_nonzero(far <= true[:, None] + slack, axis=1) - closer[part]
        if keep:
            order = np.argsort(far, axis=1, kind="stable")[:, :keep]
            wrong[part], distances[part] = order, np.take_along_axis(far, order, axis=1)
    return own, closer, tied, wrong, distances


@kernel(
    "Tuple((float64[::1], int64[::1], int64[::1], int64[:,::1], float64[:,::1]))(float64[:,::1], float64[:,::1], int64[::1],"
    " int64[::1], int64, int64[::1], int64[::1], int64[::1], float64[::1], int64)",
    twin=_nearest_wrong_numpy,
)
def nearest_wrong(
    seeking: Real,
    sought: Real,
    category: Int,
    partner: Int,
    ordered: int,
    left: Int,
    right: Int,
    largest: Int,
    theta: Real,
    keep: int,
) -> tuple[Real, Int, Int, Int, Real]:
    """Own distance, how many others are closer and equally close, and the `keep` nearest others (ties by position)."""
    rows, count, width, size = seeking.shape[0], sought.shape[0], seeking.shape[1], theta.size
    own = np.empty(rows)
    closer = np.zeros(rows, dtype=np.int64)
    tied = np.zeros(rows, dtype=np.int64)
    wrong = np.full((rows, keep), -1, dtype=np.int64)
    distances = np.full((rows, keep), np.inf)
    term = np.empty(size)
    for i in range(rows):
        true = 0.0
        slack = 0.0
        for step in range(count + 1):
            j = partner[i] if step == 0 else step - 1
            if step > 0 and j == partner[i]:
                continue
            for a in range(width):
                gap = seeking[i, a] - sought[j, a]
                if category[a] != 0:
                    term[a] = 1.0 if gap != 0.0 else 0.0
                else:
                    term[a] = gap * gap
            if ordered != 0:
                for a in range(1, width):
                    moved = term[a]
                    place = a
                    while place > 0 and term[place - 1] < moved:
                        term[place] = term[place - 1]
                        place -= 1
                    term[place] = moved
            for t in range(size - width):
                one, other = term[left[t]], term[right[t]]
                term[width + t] = max(one, other) if largest[t] != 0 else min(one, other)
            far = 0.0
            for t in range(size):
                far += theta[t] * term[t]
            if step == 0:
                true = far
                own[i] = far
                slack = 1e-12 * abs(far) + 1e-15
                continue
            if far < true - slack:
                closer[i] += 1
            elif far <= true + slack:
                tied[i] += 1
            if keep > 0 and far < distances[i, keep - 1]:
                place = keep - 1
                while place > 0 and distances[i, place - 1] > far:
                    distances[i, place] = distances[i, place - 1]
                    wrong[i, place] = wrong[i, place - 1]
                    place -= 1
                distances[i, place] = far
                wrong[i, place] = j
    return own, closer, tied, wrong, distances
