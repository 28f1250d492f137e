"""Local recoding by repeated optimal search: every part of the table gets the levels that suit it.

The best level vector with free suppression is found; its classes are kept and the suppressed records are searched
again, until none are left. A refinement then splits classes wherever all parts still keep the promises. The same
value may be generalised differently in different classes, which loses far less than one level vector for all.
Prasser, Kohlmayer, Kuhn, "The importance of context: risk-based de-identification of biomedical data", 2016
(iterated search).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.base import Problem, Search, Step, Suppression
from sfumato.anonymity.search.classes import show
from sfumato.anonymity.search.infeasible import refuse
from sfumato.anonymity.search.lattice import search
from sfumato.anonymity.search.levels import coarsest
from sfumato.anonymity.search.node_tables import NodeTables, node_tables
from sfumato.anonymity.search.ranges import Cutting
from sfumato.anonymity.search.specialise import specialise
from sfumato.anonymity.search.sweep import Levels, Sweep
from sfumato.core.progress import Progress
from sfumato.data.recoding import SUPPRESSED, Recoding
from sfumato.kernels.classes.rollup import add_up

Int = NDArray[np.int64]
Origin = TypeVar("Origin")
MAX_NODES = 1_000_000
FEW_TUPLES = 5_000


@dataclass(frozen=True, eq=False)
class Start:
    """Classes of all tuples from which a refinement starts, how they came about, and after how many rounds."""

    name: Literal["rounds", "one class", "levels"]
    class_of: Int = field(repr=False)
    rounds: int = 0


@dataclass(frozen=True)
class LocalRecoding(Search):
    """Classes with their own hierarchy levels, as little loss as possible, at most `suppression` of the records suppressed.

    `step` is the smallest share of the records that a round of the search must settle: smaller steps lose less and
    take longer. `refine` splits classes afterwards.
    """

    suppression: Suppression = 0.05
    step: Step = 0.01
    refine: Annotated[bool, "classes are split afterwards"] = True
    makes_ranges = False

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        limit = problem.allowed(self.suppression)
        recodings = [(self.refined(problem, start, progress), start) for start in self.starts(problem, limit, progress)]
        recoding, start = least(problem, recodings, limit, self.suppression, lambda each, _: each.loss(problem.table.weights))
        return recoding, {"rounds": start.rounds, "optimal": False}

    def starts(self, problem: Problem, limit: int, progress: Progress) -> list[Start]:
        """Classes to refine: those of the rounds where they suppress few enough records, and everything in one class or, where
        that breaks a promise, the best single level vector.

        Rounds that suppress nothing are good enough for large tables. Where they suppress, the other start is tried as well,
        which is what is left if nothing may be suppressed: allowing more never loses more.
        """
        totals = problem.promises.totals()
        starts: list[Start] = []
        possible = np.prod([tree.height + 1.0 for tree in problem.table.hierarchies]) <= MAX_NODES
        if possible and not problem.promises.no_suppression and not problem.promises.moving:
            class_of, rounds = self._rounds(problem, totals, progress)
            suppressed = int(problem.table.counts[class_of == SUPPRESSED].sum())
            starts += [Start("rounds", class_of, rounds)] if suppressed <= limit else []
            few = problem.table.tuples <= FEW_TUPLES
            if starts and not (self.refine and (few or suppressed)):
                return starts
        whole = in_one(problem)
        if whole is not None:
            # rounds settle by levels of the whole table, which is coarse when there are few records
            starts.append(whole)
        else:
            starts += self._levels(problem, totals, {0, limit}, progress)
        return starts

    def refined(self, problem: Problem, start: Start, progress: Progress, cutting: Cutting | None = None) -> Recoding:
        """Split classes as far as the promises allow, and say what each shows."""
        class_of = start.class_of
        if self.refine:
            totals = problem.promises.totals()
            kept = problem.promises.settled(totals[class_of >= 0].sum(axis=0))
            # what stays behind covers the people of the parts that went, too many for a smallest chance of presence
            partial = not problem.promises.no_suppression
            class_of = specialise(problem, kept, totals, class_of, partial=partial, cutting=cutting, progress=progress)
        klass = class_of[problem.table.tuple_of_cell]
        cells = np.arange(klass.size, dtype=np.int64)
        ranges = None if cutting is None else np.array([places is not None for places in cutting.places])
        return show(problem, cells, np.zeros_like(cells), problem.table.cell_counts, klass, ranges, class_of=class_of)

    def _rounds(self, problem: Problem, totals: Int, progress: Progress) -> tuple[Int, int]:
        """Search again and again among the records that are left."""
        table = problem.table
        class_of = np.full(table.tuples, SUPPRESSED, dtype=np.int64)
        left = np.flatnonzero(table.counts > 0)
        least = max(math.ceil(self.step * table.records), 1)
        tables = node_tables(table, problem.promises, totals, left)
        dead = np.zeros([height + 1 for height in tables.heights], dtype=np.bool_)
        rounds = classes = 0
        while left.size:
            remaining = int(table.counts[left].sum())
            progress("recoding locally", table.records - remaining, table.records)
            levels = Round(tables, remaining - min(least, remaining), dead).best()
            if levels is None:
                if least == 1:
                    return class_of, rounds
                least = 1  # the rest is too mixed for steps of that size
                dead[...] = False
                continue
            keys = tables.keys_of_tuples(levels)
            node_keys, _, failing = tables.failing_keys(levels)
            by_key = np.argsort(node_keys)
            position = by_key[np.searchsorted(node_keys, keys, sorter=by_key)]
            good = ~failing[position]
            class_of[left[good]] = classes + position[good]
            classes += node_keys.size
            left = left[~good]
            rounds += 1
            tables = tables.among(~good)
        return class_of, rounds

    def _levels(self, problem: Problem, totals: Int, limits: Iterable[int], progress: Progress) -> list[Start]:
        """The best single level vector within each of these limits."""
        tables = node_tables(problem.table, problem.promises, totals)
        chosen = {search(tables, limit, progress).levels for limit in limits}
        starts = []
        for levels in sorted(each for each in chosen if each is not None):
            node_keys, _, failing = tables.failing_keys(levels)
            by_key = np.argsort(node_keys)
            position = by_key[np.searchsorted(node_keys, tables.keys_of_tuples(levels), sorter=by_key)]
            starts.append(Start("levels", np.where(failing[position], SUPPRESSED, position)))
        return starts


def in_one(problem: Problem) -> Start | None:
    """Everything in one class, or in as few as the greatest levels allow; None where a promise is broken so."""
    class_of = coarsest(problem.table) if problem.table.limits else np.zeros(problem.table.tuples, dtype=np.int64)
    totals = add_up(class_of, problem.promises.totals(), int(class_of.max(initial=0)) + 1)
    return Start("one class", class_of) if problem.promises.holds(totals).all() else None


def least(
    problem: Problem,
    recodings: Sequence[tuple[Recoding, Origin]],
    limit: int,
    suppression: float,
    measure: Callable[[Recoding, Origin], float],
) -> tuple[Recoding, Origin]:
    """The recoding that measures least among those that suppress few enough records, the first of equal ones."""
    within = [each for each in recodings if each[0].suppressed <= limit]
    if recodings and not within:
        raise refuse(
            problem,
            f"more than {suppression:.2%} of the records would have to be suppressed. Allow more or ask for less.",
        )
    if not within:
        raise refuse(
            problem,
            f"no recoding reaches this with at most {suppression:.2%} of the records suppressed. "
            "Allow more suppression, ask for less, or give the hierarchies a common root.",
        )
    return min(within, key=lambda each: (round(measure(*each), 12), each[0].suppressed))


class Round(Sweep):
    """One round over the records that are left: `limit` of them may stay unsettled; `dead` marks nodes ruled out so far.

    Settled first is what can be settled at the most specific levels: the level vector with the least loss is taken among those
    that settle enough. A node that settles too little rules out all nodes below it, and does so in later rounds too, when fewer
    records are left.
    """

    def __init__(self, tables: NodeTables, limit: int, dead: NDArray[np.bool_]) -> None:
        super().__init__(tables, limit)
        self.dead = dead
        # equal losses must compare equal, however their sums were rounded: the first node in order is taken
        self.bounds = np.round(self.bounds, 12)
        self.bounds[dead] = np.inf

    def best(self) -> Levels | None:
        """The most specific node, by loss, that settles enough; None when no node does."""
        flat = self.bounds.reshape(-1)
        while True:
            lowest = int(np.argmin(flat))
            if flat[lowest] == np.inf:
                return None
            node = tuple(int(x) for x in np.unravel_index(lowest, self.shape))
            if self._settles(node):
                return node
            self._rule_out_below(self._path_up(node))

    def _rule_out_below(self, path: list[Levels]) -> None:
        """Find the most general node of a path upward that settles too little: it rules out most."""
        low, high = 0, len(path) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self._settles(path[middle]):
                high = middle - 1
            else:
                low = middle

    def _settles(self, node: Levels) -> bool:
        loss = self.checked.get(node)
        if loss is not None:
            return loss == 0.0
        suppressed, least = self.tables.suppressed(node)
        enough = suppressed <= self.limit
        if not enough:
            below = tuple(slice(0, level + 1) for level in node) if least > self.limit else node
            self.dead[below] = True
            self.bounds[below] = np.inf
        self.checked[node] = 0.0 if enough else np.inf
        return enough
