"""What a node of a lattice costs, and what the nodes below it cost at least, by the mean loss or by another objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.search.node_tables import NodeTables
from sfumato.anonymity.search.objectives import Objective, level_losses
from sfumato.anonymity.search.sweep import Levels, Sweep
from sfumato.anonymity.search.verdicts import NodeVerdict
from sfumato.core.progress import Progress, silent
from sfumato.data.class_table import ClassTable

Real = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodeCost:
    """A checked node: what it costs, what of it suppression adds, and what suppression adds at least below it."""

    verdict: NodeVerdict
    loss: float
    penalty: float
    least_below: float | Real
    ties: tuple[float, ...] = ()


class Costs(Protocol):
    """Costs of nodes, with `parts` by attribute and level that say which levels differ most."""

    parts: list[Real]
    ordered_ties: bool  # whether nodes of the same cost are to be told apart

    def of(self, node: Levels) -> NodeCost:
        """Check a node."""

    def bound(self, node: Levels, least_below: float | Real) -> float:
        """What a node costs at least, if suppression adds no less than this."""


class MeanLoss:
    """The mean loss of cells, weighed by the importance of columns."""

    def __init__(self, tables: NodeTables) -> None:
        self.tables = tables
        self.parts = tables.base_losses()
        self.ordered_ties = False

    def of(self, node: Levels) -> NodeCost:
        """Check a node."""
        verdict = self.tables.verdict(node)
        return NodeCost(verdict, self.bound(node, verdict.penalty), verdict.penalty, verdict.least_penalty)

    def bound(self, node: Levels, least_below: float | Real) -> float:
        """The loss without suppression, and what suppression adds."""
        return float(sum(part[level] for part, level in zip(self.parts, node, strict=True))) + float(least_below)


class ObjectiveCosts:
    """Costs by an objective: the losses of the columns are kept apart until they are aggregated."""

    def __init__(self, tables: NodeTables, table: ClassTable, objective: Objective) -> None:
        self.tables = tables
        self.objective = objective
        self.ordered_ties = objective.aggregate in ("maximum", "rank")
        self.columns = [objective.of_kept * part for part in tables.measure(level_losses(table, objective.measured))]
        self.parts = [float(w) * part for w, part in zip(objective.weights, self.columns, strict=True)]

    def of(self, node: Levels) -> NodeCost:
        """Check a node."""
        checked = self.tables.by_column(node, self.objective)
        without = self._without(node)
        losses = without + checked.added
        loss = self.objective.of_one(losses)
        penalty = loss - self.objective.of_one(without)
        return NodeCost(checked.verdict, loss, penalty, checked.least_added, self.objective.ties(losses))

    def bound(self, node: Levels, least_below: float | Real) -> float:
        """The aggregate of the least losses of the columns."""
        return self.objective.of_one(self._without(node) + least_below)

    def _without(self, node: Levels) -> Real:
        return np.array([part[level] for part, level in zip(self.columns, node, strict=True)])


class ObjectiveSweep(Sweep):
    """The border sweep for an objective: what suppression adds at least is kept by column."""

    def __init__(self, tables: NodeTables, costs: ObjectiveCosts, limit: int, progress: Progress = silent) -> None:
        super().__init__(tables, limit, progress)
        self.costs = costs
        self.parts = costs.parts
        self.steps = [np.diff(part).tolist() for part in self.parts]
        self.base = costs.objective.of_all_nodes(costs.columns)
        self.bounds = self.base.copy()
        self.lowest = int(np.argmin(self.bounds))
        self.least: dict[Levels, float | Real] = {}

    def _has_families(self) -> bool:
        return False  # they add up the loss of all columns

    def _bound(self, node: Levels, above: Levels) -> float:
        least = self.least[above]
        return float("inf") if isinstance(least, float) else self.costs.bound(node, least)

    def _look(self, node: Levels) -> None:
        cost = self.costs.of(node)
        self._note(node, cost.loss, cost.verdict, cost.ties)
        below = tuple(slice(0, level + 1) for level in node)
        if cost.verdict.least_suppressed > self.limit:
            self.least[node] = float("inf")
            self.bounds[below] = np.inf
        else:
            self.least[node] = least = np.asarray(cost.least_below)
            if least.any():
                raised = [part[: level + 1] + more for part, level, more in zip(self.costs.columns, node, least, strict=True)]
                np.maximum(self.bounds[below], self.costs.objective.of_all_nodes(raised), out=self.bounds[below])
        self.bounds[node] = np.inf
        self.lowest = int(np.argmin(self.bounds))
