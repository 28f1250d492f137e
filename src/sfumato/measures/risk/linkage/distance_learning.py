"""Learning a distance for many records: smooth descent over the pairs that matter, then a small integer programme.

The number of records that are nearer to somebody else is smoothed (a sigmoid of how much nearer) and lowered by Frank-Wolfe
steps, sharper and sharper; then the number itself by steps towards and away from single terms. Each round evaluates the
parameters on all records of the sample and takes in the nearest wrong records they show. Last, the records on the verge are
given to the integer programme. Work is counted in operations, not in time, so that every machine learns the same.
Frank, Wolfe, "An algorithm for quadratic programming", Naval Research Logistics Quarterly 3, 1956.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.kernels.linkage.learned_distance import Links
from sfumato.measures.risk.linkage.aggregations import Aggregation
from sfumato.measures.risk.linkage.aligned_files import AlignedFiles
from sfumato.measures.risk.linkage.programme import PairPool, solve_known, widest

Real = NDArray[np.float64]

_SHARPNESS = (1.0, 0.3, 0.1, 0.03)
_STEPS = tuple(2.0**-power for power in range(10))
_AWAY = (0.5, 0.2, 0.05, -0.05, -0.2, -0.5)
_DESCENTS, _SWEEPS, _ROUNDS = 15, 3, 8
#: Wrong records taken in per record and round, and people the parameters are learnt on (parameters are few, so these suffice).
_NEAREST, LEARNT_ON = 6, 2_000
#: Records on the verge for the integer programme, how far it may move a parameter, its nodes, and the time that nothing but a
#: solver gone astray takes.
_VERGE, _WITHIN, _NODES, _SAFETY = 20, 0.1, 50, 60.0
#: Products and comparisons of a usual machine in a second.
_PER_SECOND = 5e8


@dataclass
class Effort:
    """How much work is left, in operations."""

    left: float

    @classmethod
    def of_seconds(cls, seconds: float) -> Effort:
        """What a usual machine does in about this time."""
        return cls(seconds * _PER_SECOND)

    def spend(self, operations: float) -> None:
        """Count some work."""
        self.left -= operations

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0


@dataclass
class WeightSearch:
    """The best parameters so far, by the expected share of right links over the files, and the pairs seen."""

    files: AlignedFiles
    family: Aggregation
    pool: PairPool
    best: Real
    links: Links
    plain: Links
    effort: Effort
    tried: int = 1

    @classmethod
    def begin(cls, files: AlignedFiles, family: Aggregation, margin: float, effort: Effort) -> WeightSearch:
        """From the plain distance and the other starts of the family."""
        plain = family.links(files, family.plain, _NEAREST)
        search = cls(files, family, PairPool(files, family, margin), family.plain, plain, plain, effort)
        search.pool.add_nearest(plain, np.ones(files.size, dtype=np.bool_), _NEAREST)
        everybody = np.arange(files.size, dtype=np.int64)
        for theta in family.starts(family.features(files, everybody, everybody))[1:]:
            search.try_out(family.repaired(theta))
        return search

    def try_out(self, theta: Real) -> bool:
        """Evaluate parameters on the files and remember what they show; True where they are the best so far."""
        links = self.family.links(self.files, theta, _NEAREST)
        self.pool.add_nearest(links, np.ones(self.files.size, dtype=np.bool_), _NEAREST)
        self.effort.spend(self.files.size**2 * self.family.steps)
        self.tried += 1
        if links.rate <= self.links.rate:
            return False
        self.best, self.links = theta, links
        return True

    def improve(self) -> None:
        """Rounds of descent, until two bring nothing; then the integer programme around the best parameters."""
        idle = 0
        for _ in range(_ROUNDS):
            if idle == 2 or self.effort.spent:
                break
            learner = _Learner(self.family, self.pool, self.plain, self.effort)
            smooth = learner.descend(self.best)
            counted = learner.sweep(smooth)
            better = self.try_out(counted)
            better = self.try_out(smooth) or better
            idle = 0 if better else idle + 1
        for _ in range(3):
            if self.effort.spent or not self._verge():
                break

    def _verge(self) -> bool:
        learner = _Learner(self.family, self.pool, self.plain, self.effort)
        lead = learner.lead(self.best)
        chosen = np.zeros(self.files.size, dtype=np.bool_)
        for side in (lead >= 0, lead < 0):
            records = learner.records[side]
            chosen[records[np.argsort(np.abs(lead[side]), kind="stable")[:_VERGE]]] = True
        part = self.pool.of(chosen & ~self.pool.hopeless)
        if not part.rows.size:
            return False
        answer = solve_known(part, self.best, _SAFETY, within=_WITHIN, nodes=_NODES)
        self.effort.spend(_PER_SECOND)
        if answer is None or answer[0][np.unique(part.rows)].all():
            return False
        theta = widest(self.family, part.gaps[~answer[0][part.rows]])[1]
        better = self.try_out(self.family.repaired(answer[2]))
        return self.try_out(self.family.repaired(theta)) or better


class _Learner:
    """The pairs of a pool in the order of their records, so that the least lead of each record is one reduction."""

    def __init__(self, family: Aggregation, pool: PairPool, plain: Links, effort: Effort) -> None:
        self.effort = effort
        order = np.argsort(pool.rows, kind="stable")
        self.family = family
        self.rows, self.gaps = pool.rows[order], np.ascontiguousarray(pool.gaps[order])
        self.records, self.first = np.unique(self.rows, return_index=True)
        typical = plain.own + float(plain.own.mean()) * 1e-3 + 1e-12
        self.scale = typical[self.records]
        self.margin = pool.margin

    def lead(self, theta: Real) -> Real:
        """By how much the partner of each record is nearer than the nearest of the known others, in units of its distance."""
        self.effort.spend(self.gaps.size)
        if not self.rows.size:
            return np.zeros(0)
        return np.asarray((np.minimum.reduceat(self.gaps @ theta, self.first) - self.margin) / self.scale)

    def descend(self, theta: Real) -> Real:
        """Frank-Wolfe on the smoothed number of records that are not linked."""
        if not self.rows.size:
            return theta
        counts = np.diff(np.append(self.first, self.rows.size))
        for sharpness in _SHARPNESS:
            for _ in range(_DESCENTS):
                self.effort.spend(self.gaps.size + 30 * self.rows.size)
                slack = self.gaps @ theta
                least = np.minimum.reduceat(slack, self.first)
                nearest = np.flatnonzero(slack == np.repeat(least, counts))
                nearest = nearest[np.unique(self.rows[nearest], return_index=True)[1]]
                chance = _sigmoid(-(least - self.margin) / self.scale / sharpness)
                pull = chance * (1.0 - chance) / (sharpness * self.scale)
                towards = self.family.lowest(-(pull @ self.gaps[nearest])) - theta
                along = self.gaps @ towards
                losses = [self._loss(slack + step * along, sharpness) for step in _STEPS]
                place = int(np.argmin(losses))
                if losses[place] >= float(chance.sum()) - 1e-9:
                    break
                theta = theta + _STEPS[place] * towards
        return self.family.repaired(theta)

    def sweep(self, theta: Real) -> Real:
        """Steps towards and away from extreme parameters that raise the number of linked records."""
        if not self.rows.size:
            return theta
        count = np.count_nonzero(self.lead(theta) >= 0)
        for _ in range(_SWEEPS):
            before = count
            for corner in self.family.corners(theta):
                for step in _AWAY:
                    if self.effort.spent:
                        return theta
                    other = self.family.repaired(theta + step * (corner - theta))
                    linked = np.count_nonzero(self.lead(other) >= 0)
                    if linked > count:
                        theta, count = other, linked
            if count == before:
                break
        return theta

    def _loss(self, slack: Real, sharpness: float) -> float:
        least = (np.minimum.reduceat(slack, self.first) - self.margin) / self.scale
        return float(_sigmoid(-least / sharpness).sum())


def _sigmoid(values: Real) -> Real:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))
