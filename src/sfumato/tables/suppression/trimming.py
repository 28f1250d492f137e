"""Blanks that are not needed are published again."""

from __future__ import annotations

import numpy as np

from sfumato.core.progress import Progress, silent
from sfumato.tables.suppression.linear import CheapestDeviation
from sfumato.tables.system import Flags


def trim(model: CheapestDeviation, pattern: Flags, only: Flags | None = None, progress: Progress = silent) -> int:
    """Publish every secondary cell, the dearest first, without which all sensitive cells stay open; returns how many."""
    problem, proofs = model.problem, model.proofs
    secondary = np.flatnonzero(pattern & ~problem.primary & (True if only is None else only))
    order = secondary[np.argsort(-problem.weights[secondary], kind="stable")]
    users, removed = proofs.users(), 0
    for done, cell in enumerate(order.tolist()):
        progress("publishing again", done, order.size)
        lost = proofs.relying(users[cell])
        pattern[cell] = False
        if lost.size:
            state = proofs.drop(lost, users[cell])
            if not all(model.protect(other, pattern, only=pattern) for other in lost.tolist()):
                pattern[cell] = True
                proofs.restore(state)
                continue
            for number in range(state.deviations, len(proofs.cells)):
                for other in proofs.cells[number].tolist():
                    users[other].append(number)
        removed += 1
    return removed
