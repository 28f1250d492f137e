"""A pattern made safe: what is open is left, what is closed is protected, what is not needed is published again."""

from __future__ import annotations

import numpy as np

from sfumato.core.progress import Progress, silent
from sfumato.tables.suppression.deviations import Deviations
from sfumato.tables.suppression.linear import CheapestDeviation, protect_all
from sfumato.tables.suppression.needs import Need
from sfumato.tables.suppression.neighbourhood import Cells
from sfumato.tables.suppression.proofs import Proofs
from sfumato.tables.suppression.trimming import trim
from sfumato.tables.system import Flags, Real, SuppressionProblem

#: How much of a level rounding may take away.
_ROUNDING = 1e-7


def complete(
    problem: SuppressionProblem,
    pattern: Flags,
    *,
    extra: list[Need],
    weights: Real | None = None,
    cycles: bool = True,
    trimmed: bool = True,
    only: Flags | None = None,
    progress: Progress = silent,
) -> tuple[Flags, Cells]:
    """A safe pattern that began with this one, and the sensitive cells that nothing protects.

    `extra` are adversaries who know cells of their own; `weights` guide what becomes blank, in place of the costs. Without
    `trimmed`, what is not needed stays blank; `only` these cells are published again.
    """
    model = CheapestDeviation(problem, Proofs(problem), problem.weights if weights is None else weights, cycles=cycles)
    answer = pattern | problem.primary
    hopeless = protect_all(model, answer, inside=bool((answer & ~problem.primary).any()), progress=progress)
    if hopeless.size:
        return answer, hopeless
    if trimmed:
        trim(model, answer, only, progress)
    return answer, protect_from(model, answer, extra)


def protect_from(model: CheapestDeviation, pattern: Flags, extra: list[Need]) -> Cells:
    """Add blanks until adversaries who know cells of their own do not learn too much; returns what nothing protects."""
    hopeless = []
    for cell, group in dict.fromkeys((need.cell, need.group) for need in extra):
        held = model.problem.singles[group] if group >= 0 else np.zeros(0, dtype=np.int64)
        asked = [need for need in extra if (need.cell, need.group) == (cell, group)]
        if not _open(model, pattern, asked, held) and not model.protect(cell, pattern, held=held):
            hopeless.append(cell)
    return np.array(hopeless, dtype=np.int64)


def _open(model: CheapestDeviation, pattern: Flags, asked: list[Need], held: Cells) -> bool:
    columns = np.flatnonzero(pattern)
    reach = Deviations(model.problem.system, columns, model.proofs.room_below[columns], model.proofs.room_above[columns])
    reach.hold(held)
    far = {side: reach.furthest(asked[0].cell, side).far for side in (1, -1)}
    return all((far[need.side] if need.side else far[1] + far[-1]) >= need.amount * (1 - _ROUNDING) for need in asked)
