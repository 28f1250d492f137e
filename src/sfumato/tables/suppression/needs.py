"""What each adversary must not learn, one need after the other, and the tables that show that somebody cannot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfumato.tables.system import Real, SuppressionProblem

#: A level below this share of the value is next to nothing; the width of the interval counts then.
_NOTHING = 1e-7


class Need(NamedTuple):
    """A sensitive cell must stay open by `amount` above (side 1), below (-1) or from end to end (0), for those who know the
    cells of a group (-1: for everybody)."""

    cell: int
    side: int
    amount: float
    group: int = -1


def needs_of(problem: SuppressionProblem) -> list[Need]:
    """The needs for outsiders, cell after cell."""
    listed = []
    for cell in np.flatnonzero(problem.primary).tolist():
        least = _NOTHING * max(1.0, abs(float(problem.values[cell])))
        sides = ((1, problem.upper[cell]), (-1, problem.lower[cell]))
        listed += [Need(cell, side, float(amount)) for side, amount in sides if amount > least]
        if problem.spread[cell] > problem.upper[cell] + problem.lower[cell]:
            listed.append(Need(cell, 0, float(problem.spread[cell])))
    return listed


def one_sided(problem: SuppressionProblem) -> tuple[Real, Real]:
    """Levels below and above that imply the widths: what a width needs beyond them is split as evenly as outside knowledge
    allows."""
    lower, upper = problem.lower, problem.upper
    if problem.whole:
        lower, upper = np.ceil(lower), np.ceil(upper)
    short = problem.primary & (problem.spread > lower + upper)
    half = problem.spread / 2
    if problem.whole:
        half = np.ceil(half)
    below = np.maximum(lower, np.minimum(half, problem.room_below))
    above = np.maximum(upper, np.minimum(problem.spread - below, problem.room_above))
    below = np.maximum(below, np.minimum(problem.spread - above, problem.room_below))
    return np.where(short, below, np.where(problem.primary, lower, 0.0)), np.where(
        short, above, np.where(problem.primary, upper, 0.0)
    )
