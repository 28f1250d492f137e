"""Secondary suppression: choose a method, make a pattern, audit it by another model, and mend what the audit breaks.

Nothing leaves here that the audit did not pass. The audit's model shares no code with the methods.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from sfumato.core.errors import Infeasible, ParameterError
from sfumato.core.progress import Progress, silent
from sfumato.tables.audit.auditing import FEW, Audit, Break, audit
from sfumato.tables.suppression.completing import complete
from sfumato.tables.suppression.cutting import NODES, WHOLE_ROUNDS, solve_with_cuts
from sfumato.tables.suppression.cycles import Network
from sfumato.tables.suppression.full import solve_full
from sfumato.tables.suppression.linear import CheapestDeviation
from sfumato.tables.suppression.modular import solve_in_pieces
from sfumato.tables.suppression.needs import Need, needs_of
from sfumato.tables.suppression.proofs import Proofs
from sfumato.tables.system import Flags, SuppressionProblem

Method = Literal["auto", "full", "cuts", "flow", "lp", "modular"]
METHODS: tuple[str, ...] = get_args(Method)

#: Tables that `auto` solves by cutting planes: two-dimensional ones up to so many cells, others up to so many.
_CUTS_FLAT, _CUTS = 30_000, 1_600
#: Tables whose cost is bounded from below by the relaxation, if another method made the pattern.
_BOUNDED = 100_000
#: Rounds of integer programmes for `auto` beyond two dimensions, cells times nodes of one, and nodes of the
#: full programme.
_AUTO_ROUNDS, _AUTO_WORK, _FULL_NODES = 8, 200_000, 100_000
#: How often a pattern is mended before it is given up.
_MENDED = 12


@dataclass(frozen=True, eq=False)
class Suppression:
    """A pattern that the audit passed.

    suppressed: the blank cells, sensitive ones included. method: what made it. cost: the weights of all blank cells. bound: no
    pattern that is safe costs less, as far as proved. gap: (cost - bound) / cost. audit: what the published table leaves open.
    """

    suppressed: Flags
    method: str
    cost: float
    bound: float
    gap: float
    audit: Audit

    @property
    def proved(self) -> bool:
        """Whether no pattern that is safe costs less."""
        return self.gap <= _EQUAL


_EQUAL = 1e-9


def suppress(
    problem: SuppressionProblem,
    method: Method = "auto",
    *,
    gap: float = 0.0,
    seconds: float | None = None,
    progress: Progress = silent,
    name_of: Callable[[int], str] = "cell {}".format,
) -> Suppression:
    """Choose which cells are blank beside the sensitive ones, so that each stays as open as its levels ask.

    method: `full` is the integer programme written out, `cuts` cutting planes (both exact), `flow` cheapest cycles of a table
    with two dimensions, `lp` one linear programme for each sensitive cell, `modular` sub-table by sub-table, `auto` cutting
    planes where they are likely to end and else the fastest of the others. gap: stop when the cost is proved to be so near to
    the least, as a share. seconds: stop then with the best pattern so far; without it the same table gets the same pattern on
    every machine.

    >>> from sfumato.tables.system import LinearSystem
    >>> rows = [(3, [0, 1, 2]), (7, [4, 5, 6]), (11, [8, 9, 10])]
    >>> table = LinearSystem.of([*rows, *((8 + column, [column, 4 + column]) for column in range(4))], 12)
    >>> values = np.array([20, 50, 10, 80, 8, 19, 22, 49, 28, 69, 32, 129])
    >>> problem = SuppressionProblem.of(table, values, np.arange(12) == 4, weights=values, lower=5.0, upper=5.0)
    >>> suppress(problem).cost
    60.0
    """
    if method not in METHODS:
        raise ParameterError(f"`method` is one of {', '.join(METHODS)}")
    if not 0 <= gap < 1:
        raise ParameterError(f"`gap` is {gap}; it must be a share of at least 0 and below 1")
    if seconds is not None and not seconds > 0:
        raise ParameterError(f"`seconds` is {seconds}; it must be a number above 0")
    problem.refuse_faults(name_of)
    return _Choice(problem, method, gap, seconds, progress, name_of).result()


class _Choice:
    def __init__(
        self,
        problem: SuppressionProblem,
        method: Method,
        gap: float,
        seconds: float | None,
        progress: Progress,
        name_of: Callable[[int], str],
    ) -> None:
        self.problem, self.gap, self.progress, self.name_of = problem, gap, progress, name_of
        self.until = None if seconds is None else time.monotonic() + seconds
        self.flat = Network.of(problem.system) is not None
        self.asked = method
        self.method = self._chosen(method)

    def _chosen(self, method: Method) -> str:
        if method == "flow" and not self.flat:
            raise ParameterError("`method` is 'flow', and the table does not have two dimensions. Use 'lp' or 'auto'.")
        if method != "auto":
            return method
        size = self.problem.system.size
        return "cuts" if size <= (_CUTS_FLAT if self.flat else _CUTS) else "flow" if self.flat else "lp"

    def left(self) -> float | None:
        return None if self.until is None else max(self.until - time.monotonic(), 0.05)

    def result(self) -> Suppression:
        pattern, bound = self._solve([])
        passed = audit(self.problem, pattern, exact=False, progress=self.progress)
        extra: list[Need] = []
        for _ in range(_MENDED):
            if passed.safe:
                break
            if self.method == "cuts" and (more := self._adversaries(passed.broken, extra)):
                extra += more
                pattern, bound = self._solve(extra)
            else:
                self._mend(pattern, passed.broken)
            passed = audit(self.problem, pattern, exact=False, progress=self.progress)
        if not passed.safe:
            raise Infeasible(self._hopeless([each.cell for each in passed.broken]))
        if passed.cells.size <= FEW and not passed.exact.all():
            passed = audit(self.problem, pattern, progress=self.progress)
        cost = float(self.problem.weights[pattern].sum())
        bound = min(bound, cost)
        share = 0.0 if cost <= bound + _EQUAL * max(1.0, cost) else (cost - bound) / cost
        return Suppression(pattern, self.method, cost, bound, share, passed)

    def _solve(self, extra: list[Need]) -> tuple[Flags, float]:
        """A pattern that is safe for outsiders, and a proved bound on the cost of all that are."""
        base = float(self.problem.weights[self.problem.primary].sum())
        if self.method == "full":
            answer = solve_full(self.problem, self.gap, self.left(), _FULL_NODES)
            if answer.pattern is not None:
                return answer.pattern, answer.bound
            if answer.finished:
                raise Infeasible(self._hopeless(np.flatnonzero(self.problem.primary).tolist()))
            return self._heuristic("lp", extra), max(answer.bound, base)
        start = self._heuristic(self.method, extra)
        rounds = WHOLE_ROUNDS if self.asked == "cuts" or self.flat else _AUTO_ROUNDS
        if self.method != "cuts":
            if self.problem.system.size > _BOUNDED:
                return start, base
            rounds = 0
        bounded = solve_with_cuts(
            self.problem,
            start,
            gap=self.gap,
            seconds=self.left(),
            extra=extra,
            whole_rounds=rounds,
            nodes=NODES if self.asked == "cuts" or self.flat else max(_AUTO_WORK // self.problem.system.size, 20),
            cycles=self.method != "lp",
            progress=self.progress,
        )
        return start if bounded.pattern is None else bounded.pattern, bounded.bound

    def _heuristic(self, method: str, extra: list[Need]) -> Flags:
        """A pattern by a heuristic; cells that nothing protects are an error."""
        if method == "modular":
            pattern, hopeless = solve_in_pieces(self.problem, extra, self.progress)
        else:
            pattern, hopeless = complete(
                self.problem,
                self.problem.primary,
                extra=extra,
                cycles=method != "lp",
                trimmed=self.problem.system.size > _BOUNDED,  # the relaxation leads to a better one
                progress=self.progress,
            )
        if hopeless.size:
            raise Infeasible(self._hopeless(hopeless.tolist()))
        return pattern

    def _adversaries(self, broken: tuple[Break, ...], extra: list[Need]) -> list[Need]:
        """Contributors who learn too much, as adversaries for the cutting planes."""
        asked = {(each.cell, each.group) for each in broken if each.group >= 0}
        of_cell = needs_of(self.problem)
        listed = [need._replace(group=group) for cell, group in asked for need in of_cell if need.cell == cell]
        return sorted(set(listed) - set(extra), key=lambda need: (need.group, need.cell, need.side))

    def _mend(self, pattern: Flags, broken: tuple[Break, ...]) -> None:
        """More blanks, for those whom the audit found to learn too much."""
        model = CheapestDeviation(self.problem, Proofs(self.problem), self.problem.weights, cycles=False)
        hopeless = []
        for each in broken:
            held = self.problem.singles[each.group] if each.group >= 0 else np.zeros(0, dtype=np.int64)
            if not model.protect(each.cell, pattern, held=held):
                hopeless.append(each.cell)
        if hopeless:
            raise Infeasible(self._hopeless(hopeless))

    def _hopeless(self, cells: list[int]) -> str:
        names = ", ".join(dict.fromkeys(self.name_of(cell) for cell in cells))
        return (
            f"no pattern protects {names}: even with every cell blank that may be, somebody comes too close. Let more cells be"
            " blank, lower the protection levels, or publish a table with fewer cells."
        )
