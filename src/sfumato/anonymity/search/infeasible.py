"""Why a table cannot keep what is asked: which guarantee fails at the most general level, and in which class.

A class is described by its size and never by its values. Each guarantee is looked at alone; where each can be kept and only all
of them together cannot, that is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises, promises_of
from sfumato.anonymity.search.base import Problem
from sfumato.anonymity.search.levels import capped, in_words
from sfumato.core.errors import Infeasible, SfumatoError
from sfumato.core.guarantees.risk import WholeTableGuarantee
from sfumato.kernels.classes.grouping import group_columns
from sfumato.kernels.classes.rollup import add_up

Int = NDArray[np.int64]


def refuse(problem: Problem, why: str) -> Infeasible:
    """The error of a search that found no release, with the guarantees that fail and a class that each fails in."""
    names = ", ".join(guarantee.key for guarantee in problem.guarantees)
    return Infeasible(" ".join([f"{names}: {why}", *_stronger(problem), *_failures(problem), *_limits(problem)]))


def _stronger(problem: Problem) -> list[str]:
    """What was asked for in place of promises about all records together."""
    together = [guarantee for guarantee in problem.guarantees if isinstance(guarantee, WholeTableGuarantee)]
    if not together or problem.promises.on_average:
        return []
    names = " and ".join(guarantee.key for guarantee in together)
    size = max(guarantee.sufficient_size for guarantee in together)
    return [f"For {names} every class was asked to have {size:,} records, which is enough and not always needed; Lattice may do."]


def as_classes(totals: Int) -> str:
    """How few classes there are at the least, in words."""
    return "one single class" if totals.shape[0] == 1 else f"the {totals.shape[0]:,} classes that its greatest levels leave"


def _limits(problem: Problem) -> list[str]:
    """What the greatest levels have to do with it: which of them would have to be raised."""
    table = problem.table
    columns = capped(table)
    if not columns:
        return []
    sentences = [in_words(table)]
    alone = [name for name in columns if _possible_above(problem, (name,))]
    if alone:
        listed = " or ".join(f"'{name}'" for name in alone)
        sentences.append(f"Without the limit of {listed} the table would keep it at the most general levels.")
    elif _possible_above(problem, columns):
        sentences.append("Without these limits together the table would keep it at the most general levels.")
    else:
        sentences.append("Even without these limits the most general levels break it.")
    return sentences


def _possible_above(problem: Problem, columns: tuple[str, ...]) -> bool:
    """Whether the most general table keeps all promises if these columns may go to the top of their hierarchies."""
    table = problem.table
    trees = tuple(
        table.limits[name].tree if name in columns else tree for name, tree in zip(table.quasi, table.hierarchies, strict=True)
    )
    above = Problem(replace(table, hierarchies=trees), problem.promises, problem.guarantees)
    return not _failing(above, problem.promises)


def _failures(problem: Problem) -> list[str]:
    """One sentence per guarantee that the most general table breaks, or one about all together."""
    sentences = []
    for guarantee in problem.guarantees:
        try:
            alone = promises_of((guarantee,), problem.table, at_once=True)
            failing = _failing(problem, alone)
        except SfumatoError:  # it can be posed together with others only
            continue
        if failing:
            sentences.append(f"{guarantee.key} fails even where everything is generalised as far as possible: {failing}.")
    if not sentences and len(problem.guarantees) > 1 and (failing := _failing(problem, problem.promises)):
        return [f"Each guarantee alone can be kept; together they fail at the most general level: {failing}."]
    return sentences


def _failing(problem: Problem, promises: Promises) -> str:
    """The classes of the most general table that break promises, in numbers; empty where none does."""
    table = problem.table
    top = [tree.node_of[-1, codes] for tree, codes in zip(table.hierarchies, table.codes, strict=True)]
    if not top:
        return ""
    numbers, first = group_columns(top, [len(tree.labels) for tree in table.hierarchies])
    totals = add_up(numbers, promises.totals(), int(first.size))
    broken = np.flatnonzero(~promises.holds(totals) & (totals[:, 0] > 0))
    if not broken.size:
        return ""
    if promises.on_average:
        return f"{int(totals[broken, 0].sum()):,} of {table.records:,} records would have to be suppressed there at the least"
    if int((totals[:, 0] > 0).sum()) == 1:
        return f"the one class of all {table.records:,} records breaks it"
    sizes = totals[broken, 0]
    classes = "1 class breaks" if broken.size == 1 else f"{broken.size:,} classes break"
    return f"{classes} it, with {int(sizes.sum()):,} of {table.records:,} records, the largest with {int(sizes.max()):,}"
