"""Sensitivities for trees: a count of vertices with a property changes by a whole tree, or by one vertex."""

from __future__ import annotations

from typing import Literal

from sfumato.core.declared import require
from sfumato.core.guarantees.loss import Neighbours
from sfumato.dp.sensitivity.base import Sensitivity


def matching_vertices(
    differing: Literal["tree", "vertex"], *, most: int = 1, neighbours: Neighbours = "add_remove"
) -> Sensitivity:
    """How many vertices have a property, when one tree (one person's records) holds at most `most` of them.

    Births in a year: most is 1. Enrolments in one course: how often it may be repeated. Enrolments in a family of courses:
    how many of them one person may take. Adding or removing one vertex changes it by 1.
    """
    require(isinstance(most, int) and most >= 1, "the most such vertices in one tree is a whole number of at least 1")
    require(differing in {"tree", "vertex"}, "differing is 'tree' or 'vertex'")
    change = most if differing == "tree" else 1
    return Sensitivity.of(change, neighbours, unit=differing, why=f"one {differing} holds at most {change} such vertices")
