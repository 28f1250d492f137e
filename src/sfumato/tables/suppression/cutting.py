"""The cutting-plane method: the relaxation first, then integer programmes, until no adversary learns too much.

Every pattern on the way that is not safe yet is completed by the heuristic and trimmed, so that there is always a best pattern
and a proved bound on the cost of all patterns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from sfumato.core.progress import Progress, silent
from sfumato.tables.suppression.completing import complete
from sfumato.tables.suppression.cuts import Separation, single_equation_cuts
from sfumato.tables.suppression.master import Master, Relaxed
from sfumato.tables.suppression.needs import Need, needs_of
from sfumato.tables.system import Flags, Real, SuppressionProblem

#: Rounds of the linear and of the integer programme, nodes of one of these, and cuts of one round.
ROUNDS, WHOLE_ROUNDS, NODES, CUTS = 200, 60, 5_000, 2_000
#: Rounds of the linear programme in which the bound may stand nearly still, and the share of it that counts as still.
_STILL, _SLOW = 40, 1e-6
#: By how much of the gap a round must raise the bound if the relaxation only guides the heuristic.
_WORTH = 0.01
#: What a cell that the relaxation chose fully saves of its weight when the heuristic chooses.
_GUIDANCE = 0.95
#: A pattern that is not safe yet is completed in every so many rounds.
_COMPLETED = 4
#: Slack cuts are dropped in every so many rounds.
_FORGOTTEN = 5
#: How much of the cheapest cells the first programme looks at.
_FIRST_SHARE = 0.2
_ROUNDING = 1e-6
#: By how much a cut must be missed by a pattern of whole cells.
_EXACT = 1e-8


@dataclass
class Bounded:
    """The best pattern so far, its cost, and the proved lower bound on the cost of every pattern."""

    pattern: Flags | None
    cost: float
    bound: float

    def gap(self) -> float:
        """How much of the cost may be too much."""
        return 0.0 if self.cost <= self.bound else (self.cost - self.bound) / self.cost if np.isfinite(self.cost) else 1.0


def solve_with_cuts(
    problem: SuppressionProblem,
    start: Flags | None,
    *,
    gap: float,
    seconds: float | None,
    extra: list[Need],
    whole_rounds: int = WHOLE_ROUNDS,
    nodes: int = NODES,
    cycles: bool = True,
    progress: Progress = silent,
) -> Bounded:
    """The cheapest pattern within a gap, from a first pattern on; `extra` are adversaries who know cells of their own."""
    work = _Cutting(problem, start, gap, seconds, extra, cycles, progress)
    work.relax(quick=not whole_rounds)
    if whole_rounds:
        if not work.done():
            work.decide(whole_rounds, nodes)
        work.tidy()
    return work.best


class _Cutting:
    def __init__(
        self,
        problem: SuppressionProblem,
        start: Flags | None,
        gap: float,
        seconds: float | None,
        extra: list[Need],
        cycles: bool,
        progress: Progress,
    ) -> None:
        self.problem, self.aim, self.progress = problem, gap, progress
        self.until = None if seconds is None else time.monotonic() + seconds
        self.base = float(problem.weights[problem.primary].sum())
        cost = np.inf if start is None else float(problem.weights[start].sum())
        self.best = Bounded(start, cost, self.base)
        self.extra, self.cycles = extra, cycles
        self.separation = Separation(problem)
        self.needs = needs_of(problem) + extra
        weights, candidates = problem.weights, self.separation.candidates
        first = candidates.copy()
        if np.count_nonzero(candidates) > 4_000:
            first &= weights <= np.quantile(weights[candidates], _FIRST_SHARE)
            first |= candidates & (start if start is not None else False)
        self.master = Master(weights, candidates, np.flatnonzero(first))
        self.master.add(single_equation_cuts(problem, self.needs, self.separation))
        self.integral = bool((weights % 1 == 0).all())
        self.relaxed: Relaxed | None = None

    def left(self) -> float | None:
        return None if self.until is None else max(self.until - time.monotonic(), 0.0)

    def done(self) -> bool:
        """Whether the best pattern is within the gap, or the time is over."""
        return self.best.gap() <= self.aim or self.left() == 0.0

    def _raise(self, bound: float) -> None:
        bound += self.base
        if self.integral:
            bound = float(np.ceil(bound - _ROUNDING * max(1.0, abs(bound))))
        self.best.bound = max(self.best.bound, min(bound, self.best.cost))

    def _offer(self, pattern: Flags | None) -> None:
        if pattern is not None and (cost := float(self.problem.weights[pattern].sum())) < self.best.cost - _ROUNDING:
            self.best.pattern, self.best.cost = pattern, cost

    def _complete(self, pattern: Flags, weights: Real | None = None) -> Flags | None:
        """A safe pattern that begins with this one, without what it does not need."""
        answer, hopeless = complete(self.problem, pattern, extra=self.extra, weights=weights, cycles=self.cycles)
        return None if hopeless.size else answer

    def relax(self, quick: bool) -> None:
        """CuttingPlane the linear programme until nothing is missed, and let its solution guide the heuristic.

        If no integer programme follows, cuts that hardly raise the bound are not worth their time.
        """
        still, bound = 0, -np.inf
        for number in range(ROUNDS):
            self.progress("cutting", number, ROUNDS)
            self.relaxed = self.master.solve()
            self._raise(self.relaxed.cost)
            least = _WORTH * (self.best.cost - self.best.bound) if quick else _SLOW * abs(bound)
            still = 0 if self.relaxed.cost > bound + least else still + 1
            bound = max(bound, self.relaxed.cost)
            share = np.maximum(self.relaxed.share, self.problem.primary)
            if self.done() or still > (0 if quick else _STILL):
                break
            cuts = self.separation.missed(share, self.needs, CUTS)
            if not cuts:
                cuts = self.separation.bridges(share, CUTS) if share.size <= _BRIDGES else []
            if not cuts:
                break
            if number % _FORGOTTEN == _FORGOTTEN - 1:
                self.master.forget_slack(self.relaxed.share)
            self.master.add(cuts)
        before = self.best.pattern
        if self.relaxed is not None:
            guided = self.problem.weights * (1.0 - _GUIDANCE * self.relaxed.share)
            self._offer(self._complete(self.problem.primary, guided))
        if quick and before is not None and self.best.pattern is before:
            self._offer(self._complete(before))

    def decide(self, rounds: int, nodes: int) -> None:
        """Integer programmes over the cells that a better pattern may use, cut again wherever one is not safe."""
        for number in range(rounds):
            self.progress("deciding", number, rounds)
            if self.relaxed is None or self.done():
                return
            room = self.best.cost - self.base - self.relaxed.cost + _ROUNDING * max(1.0, self.best.cost)
            kept = np.flatnonzero(self.separation.candidates & (self.relaxed.reduced <= room))
            start = self.best.pattern
            chosen, bound = self.master.solve_whole(kept, start, self.aim / 2, self.left(), nodes)
            self._raise(min(bound, self.best.cost - self.base))
            if chosen is None:
                return
            pattern = chosen | self.problem.primary
            cuts = self.separation.missed(pattern.astype(np.float64), self.needs, CUTS, _EXACT)
            if not cuts:
                self._offer(pattern)
                return
            if number % _COMPLETED == 0:
                self._offer(self._complete(pattern))
            self.master.add(cuts)
            if number % _COMPLETED == 0:
                self.relax_again()

    def tidy(self) -> None:
        """Publish again what costs nothing and helps nobody: an optimum by weight may hold such cells."""
        pattern, free = self.best.pattern, self.problem.weights == 0
        if pattern is None or not (pattern & free & ~self.problem.primary).any():
            return
        trimmed, hopeless = complete(self.problem, pattern, extra=self.extra, cycles=self.cycles, only=free)
        if not hopeless.size and float(self.problem.weights[trimmed].sum()) <= self.best.cost + _ROUNDING:
            self.best.pattern = trimmed

    def relax_again(self) -> None:
        """The linear programme with the cuts that the integer ones brought."""
        for _ in range(20):
            self.relaxed = self.master.solve()
            self._raise(self.relaxed.cost)
            cuts = self.separation.missed(np.maximum(self.relaxed.share, self.problem.primary), self.needs, CUTS)
            if not cuts:
                return
            self.master.add(cuts)


#: Bridgeless cuts are looked for in tables up to this size.
_BRIDGES = 3_000
