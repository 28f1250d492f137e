"""Exact hiding: the fewest itemsets lost, and among these the fewest items removed, as an integer programme.

Every basket with a listed itemset decides which of its listed items leave. An itemset on the list has to lose enough baskets;
another frequent itemset is lost when it loses more than it can spare. Menon, Sarkar, Mukherjee, "Maximizing accuracy of shared
databases when concealing sensitive patterns", Information Systems Research 16(3), 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from sfumato.core.errors import Infeasible, InputError
from sfumato.core.ranges import Seconds, Whole
from sfumato.rules.hiding.base import Hiding, Task, Working
from sfumato.rules.mining import frequent

_UNLIMITED = 1e30


@dataclass(frozen=True)
class ExactHiding(Hiding):
    """Lower the support of every itemset on the list with the fewest other frequent itemsets lost, and of all such ways the one
    with the fewest items removed: proven, for small data. The solver has `seconds`; at its limit the best way found so far is
    taken, and the gap is told. A programme of more than `most_variables` is refused."""

    seconds: Annotated[Seconds, "the time of the solver"] = 60.0
    most_variables: Annotated[int, Whole(at_least=1), "the variables of the programme, at the most"] = 200_000

    def hide(self, working: Working, task: Task) -> dict[str, object]:
        programme = _HidingProgramme()
        removals = self._written(programme, working, task)
        if not removals:
            return {"steps": 0, "lost": 0, "least_possible": 0, "optimal": True}
        values, cost, bound = programme.solved(self.seconds)
        chosen = [key for key, variable in removals.items() if values[variable] > 0.5]
        for code in sorted({code for _, code in chosen}):
            working.remove(np.array(sorted(row for row, each in chosen if each == code), dtype=np.int64), code)
        weight = len(removals) + 1  # of an itemset lost, beside an item removed
        least = -(-max(round(bound), 0) // weight) if bound > 0 else 0
        lost = round(cost) // weight
        return {"steps": len(chosen), "lost": lost, "least_possible": min(least, lost), "optimal": round(cost) <= bound + 0.999}

    def _written(self, programme: _HidingProgramme, working: Working, task: Task) -> dict[tuple[int, int], int]:
        """Write the programme; the variable of each item that may leave a basket."""
        removals: dict[tuple[int, int], int] = {}
        for codes in task.unions:
            rows = np.flatnonzero(working.having_all(codes))
            if rows.size < task.minimum:
                continue
            hits = []
            for row in rows.tolist():
                choices = [removals.setdefault((row, code), -1) for code in codes]
                for place, code in enumerate(codes):
                    if choices[place] < 0:
                        removals[row, code] = choices[place] = programme.variable(1.0, whole=True)
                hit = programme.variable(0.0, whole=True)
                programme.row([*choices, hit], [*[1.0] * len(choices), -1.0], 0.0, _UNLIMITED)
                hits.append(hit)
                self._refuse_large(programme)
            programme.row(hits, [1.0] * len(hits), float(rows.size - task.minimum + 1), _UNLIMITED)
        if removals:
            self._spare_others(programme, working, task, removals)
        return removals

    def _spare_others(
        self, programme: _HidingProgramme, working: Working, task: Task, removals: dict[tuple[int, int], int]
    ) -> None:
        listed, weight = [set(codes) for codes in task.unions], float(len(removals) + 1)
        items = {code for _, code in removals}
        sets, supports = frequent(working.transactions, task.minimum)
        for codes, support in zip(sets, supports.tolist(), strict=True):
            if items.isdisjoint(codes) or any(each <= set(codes) for each in listed):
                continue
            ways = []
            for row in np.flatnonzero(working.having_all(codes)).tolist():
                touching = [removals[row, code] for code in codes if (row, code) in removals]
                if touching:
                    ways.append(touching)
            spare = support - task.minimum
            if len(ways) <= spare:
                continue
            losing = []
            for touching in ways:
                gone = programme.variable(0.0)
                losing.append(gone)
                for removal in touching:
                    programme.row([gone, removal], [1.0, -1.0], 0.0, _UNLIMITED)
                self._refuse_large(programme)
            lost = programme.variable(weight, whole=True)
            programme.row([*losing, lost], [*[1.0] * len(losing), -float(len(ways) - spare)], -_UNLIMITED, float(spare))

    def _refuse_large(self, programme: _HidingProgramme) -> None:
        if len(programme.costs) > self.most_variables:
            raise InputError(
                f"the programme has more than {self.most_variables:,} variables: ExactHiding is for small data. Hide with "
                "BorderBased, or raise most_variables"
            )


@dataclass
class _HidingProgramme:
    """An integer programme in the making: variables from 0 to 1, rows between two numbers."""

    costs: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    entries: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def variable(self, cost: float, *, whole: bool = False) -> int:
        """A further variable; its number."""
        if whole:
            self.whole.append(len(self.costs))
        self.costs.append(cost)
        return len(self.costs) - 1

    def row(self, index: Sequence[int], entries: Sequence[float], lower: float, upper: float) -> None:
        """A further row."""
        self.starts.append(len(self.index))
        self.index += index
        self.entries += entries
        self.lower.append(lower)
        self.upper.append(upper)

    def solved(self, seconds: float) -> tuple[Any, float, float]:  # an array of values
        """The values of the best solution, its cost and a bound below every cost."""
        import highspy

        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.silent()
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("time_limit", float(min(seconds, 1e9)))
        solver.setOptionValue("mip_abs_gap", 0.999)  # costs are whole numbers
        solver.setOptionValue("mip_rel_gap", 0.0)
        count, nothing = len(self.costs), np.zeros(0, dtype=np.int32)
        solver.addCols(
            count, np.array(self.costs), np.zeros(count), np.ones(count), 0, np.zeros(count, np.int32), nothing, np.zeros(0)
        )
        solver.changeColsIntegrality(len(self.whole), np.array(self.whole, np.int32), np.ones(len(self.whole), np.uint8))
        solver.addRows(
            len(self.lower),
            np.array(self.lower),
            np.array(self.upper),
            len(self.index),
            np.array(self.starts, np.int32),
            np.array(self.index, np.int32),
            np.array(self.entries),
        )
        solver.run()
        info = solver.getInfo()
        if info.primal_solution_status != 2:  # a feasible point, in the solver's words
            raise Infeasible(f"the solver found no way within {seconds:g} s; give it more, or hide with BorderBased")
        return np.asarray(solver.getSolution().col_value), float(info.objective_function_value), float(info.mip_dual_bound)
