"""Protect a cube by leaving cells blank: rules say which are sensitive, secondary suppression which others, an audit whether
it is enough.

>>> from sfumato.tables import Dimension, MinimumFrequency, TableCube
>>> rows, columns = Dimension.flat("town", ["A", "B", "C"]), Dimension.flat("sex", ["f", "m"])
>>> cells = {("A", "f"): 1, ("A", "m"): 20, ("B", "f"): 15, ("B", "m"): 9, ("C", "f"): 8, ("C", "m"): 30}
>>> protect_cube(TableCube.from_cells(cells, [rows, columns]), [MinimumFrequency(3)]).blank_cells
4
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, ParameterError
from sfumato.core.outcome import Outcome
from sfumato.core.progress import ProgressLike, shown
from sfumato.core.texts import counted
from sfumato.tables.audit.auditing import Audit, audit
from sfumato.tables.cube import TableCube
from sfumato.tables.promises import BlanksStayOpen
from sfumato.tables.published import PublishedTable, written
from sfumato.tables.published_witnesses import with_witnesses
from sfumato.tables.sensitivity import Sensitive, SensitivityRule, sensitive_cells
from sfumato.tables.suppression.suppress import Method, Suppression, suppress
from sfumato.tables.system import SuppressionProblem

Costs = Literal["value", "count", "contributors"]
COSTS: tuple[Costs, ...] = ("value", "count", "contributors")

_MOST_LISTED = 50
#: Sizes that solvers of linear programmes are at ease with.
_COMFORTABLE = 1e7
_LEAST = 1e-3
#: What the owner's copy calls a cell.
PRIMARY, SECONDARY, PUBLISHED, EMPTY = "primary", "secondary", "published", "empty"


#: What an audit finds, and about whom.
NARROWED = "outsiders, and the contributors that were counted, narrow no sensitive cell down further than its level allows"


@dataclass(frozen=True, eq=False)
class ProtectedCube:
    """A cube with the cells that are blank: the owner's, since it holds their values and why they are blank. `published` is what
    may be given away."""

    cube: TableCube
    sensitive: Sensitive = field(repr=False)
    suppression: Suppression = field(repr=False)

    def __repr__(self) -> str:
        return f"ProtectedCube({counted(self.cube.size, 'cell')}, {self.blank_cells:,} blank, {self.suppression.method})"

    @property
    def blank(self) -> NDArray[np.bool_]:
        """Which cells are blank."""
        return self.suppression.suppressed

    @property
    def blank_cells(self) -> int:
        """How many cells are blank."""
        return int(self.blank.sum())

    def status(self, cell: int) -> str:
        """What became of a cell, and the rule that fired: `primary: fewer than 3 contributors`."""
        if self.sensitive.rule[cell] >= 0:
            return f"{PRIMARY}: {self.sensitive.status(cell)}"
        if self.blank[cell]:
            return SECONDARY
        return PUBLISHED if self.cube.units[cell] else EMPTY

    @property
    def statuses(self) -> list[str]:
        """The status of every cell."""
        return [self.status(cell) for cell in range(self.cube.size)]

    @property
    def published(self) -> PublishedTable:
        """The table as everybody may have it."""
        shape = self.cube.shape
        units = np.where(self.blank, 0, self.cube.units)
        method = {"name": "Suppression"}
        return PublishedTable(self.cube.grid, shape.value, shape.decimals, units, self.blank.copy(), shape.dataset, method)

    def outcome(self) -> Outcome[PublishedTable]:
        """What `sf.publish` takes: the published table with witnesses for its blanks, which are computed from it alone, and for
        the owner the true cells with their status and the intervals of the audit."""
        table = with_witnesses(self.published)
        lines = io.StringIO()
        rows = csv.writer(lines, lineterminator="\n")
        rows.writerow([*(each.name for each in self.cube.dimensions), "value", "status", "low", "high"])
        ends = self.intervals
        for cell, row in enumerate(self.owner_rows()):
            rows.writerow([*row, *ends.get(cell, ("", ""))])
        owner = {
            "cells.csv": lines.getvalue(),
            "statuses.html": self.owner_page(),
            "protection.txt": "\n".join(self.explain()) + "\n",
        }
        return Outcome(table, (BlanksStayOpen(),), {"name": "Suppression"}, {"owner": owner})

    @property
    def intervals(self) -> dict[int, tuple[str, str]]:
        """Between which values each blank lies for outsiders, as far as the audit computed them."""
        audit, scale, decimals = self.suppression.audit, _scale(self.cube), self.cube.shape.decimals

        ends = zip(audit.cells.tolist(), (audit.low * scale).tolist(), (audit.high * scale).tolist(), strict=True)
        return {cell: (_end(low, decimals), _end(high, decimals)) for cell, low, high in ends}

    def owner_page(self) -> str:
        """The published table as a page with the status of each blank: the owner's, who tells primary and secondary apart."""
        marks = [self.status(cell) if self.blank[cell] else "" for cell in range(self.cube.size)]
        return f'<!doctype html>\n<meta charset="utf-8"><title>For the owner</title>\n{self.published.to_html(marks)}'

    def owner_rows(self) -> list[tuple[str, ...]]:
        """One line per cell for the owner: codes, true value, status."""
        codes = [dimension.codes for dimension in self.cube.dimensions]
        return [
            (
                *(listed[code] for listed, code in zip(codes, row, strict=True)),
                written(int(self.cube.units[cell]), self.cube.shape.decimals),
                self.status(cell),
            )
            for cell, row in enumerate(self.cube.grid.coordinates.tolist())
        ]

    def explain(self) -> list[str]:
        """What was done, in words."""
        result, primary = self.suppression, int(self.sensitive.cells.sum())
        least = "the least" if result.gap <= 0 else f"at most {result.gap * 100:.3g} % above the least"
        gap = f"; {least}, where no cell is off by more than 100 times the largest level"  # which the solver supposes
        fired: dict[str, int] = {}
        for place in self.sensitive.rule[self.sensitive.rule >= 0].tolist():
            words = self.sensitive.rules[place].words
            fired[words] = fired.get(words, 0) + 1
        return [
            f"{counted(self.cube.size, 'cell')}: {primary:,} sensitive, {self.blank_cells - primary:,} more are blank",
            *(f"  {words}: {counted(count, 'cell')}" for words, count in fired.items()),
            f"method {result.method}, cost {result.cost:,.10g}{gap}" if np.isfinite(result.gap) else f"method {result.method}",
            f"audited: {NARROWED}",
        ]


def protect_cube(
    cube: TableCube,
    rules: Sequence[SensitivityRule],
    *,
    method: Method = "auto",
    cost: Costs | NDArray[np.float64] = "value",
    keep: Iterable[int] = (),
    blank: Iterable[int] = (),
    levels: Mapping[int, tuple[float, float]] | None = None,
    prior: float | None = None,
    contributors: bool = True,
    gap: float = 0.0,
    seconds: float | None = None,
    progress: ProgressLike = False,
) -> ProtectedCube:
    """Leave sensitive cells blank, and as many others as it takes.

    cost: what a blank costs: its `value`, 1 (`count`), its `contributors`, or a weight for every cell. keep: cells that must stay
    published. blank: cells that are sensitive for reasons of the owner. levels: lower and upper protection levels of some cells
    in place of those of the rules, in units of the last digit. prior: within how many percent of its value an outsider knows
    every cell beforehand; without it, only that no value is negative. contributors: whether those who are alone in
    a cell are adversaries too. seconds: how long to search for better patterns.
    """
    problem, sensitive = problem_of(cube, rules, cost=cost, keep=keep, blank=blank, levels=levels, prior=prior)
    if not contributors:
        problem = replace(problem, singles=())
    with shown(progress) as receive:
        if cube.system.equations:
            suppression = suppress(problem, method, gap=gap, seconds=seconds, progress=receive, name_of=cube.name_of)
        else:
            suppression = _without_sums(problem, cube)
    return ProtectedCube(cube, sensitive, suppression)


@dataclass(frozen=True, eq=False)
class AuditedTable:
    """What an audit found about a table that somebody protected: the owner's, since it names who comes how close."""

    cube: TableCube
    sensitive: Sensitive = field(repr=False)
    audit: Audit = field(repr=False)

    @property
    def safe(self) -> bool:
        """Whether every sensitive cell is as open as its levels ask."""
        return self.audit.safe

    def explain(self) -> list[str]:
        """The verdict in plain words: which cell, for whom, how close."""
        decimals, places = self.cube.shape.decimals, self.sensitive.cells
        lines = [f"{counted(int(places.sum()), 'sensitive cell')}, {counted(int(self.audit.cells.size), 'blank')}"]
        for each in self.audit.broken[:_MOST_LISTED]:
            who = "anybody" if each.group < 0 else "the one contributor of another cell"
            low, high = (_end(value * _scale(self.cube), decimals) for value in (each.low, each.high))
            why = self.sensitive.status(each.cell) or "sensitive"
            lines.append(
                f"{self.cube.name_of(each.cell)} ({why}): {who} can tell that it lies between {low} and {high}; {each.why}"
            )
        if len(self.audit.broken) > _MOST_LISTED:
            lines.append(f"… and {len(self.audit.broken) - _MOST_LISTED:,} more")
        verdict = f"kept: {NARROWED}"
        return [*lines, verdict if self.safe else f"not safe: {counted(len(self.audit.broken), 'way')} to come too close"]

    def to_mapping(self) -> dict[str, object]:
        """The same as plain data."""
        broken = [
            {"cell": self.cube.name_of(each.cell), "contributor": each.group >= 0, "why": each.why} for each in self.audit.broken
        ]
        return {"safe": self.safe, "cells": self.cube.size, "blank": int(self.audit.cells.size), "broken": broken}


def audited(
    cube: TableCube,
    rules: Sequence[SensitivityRule],
    blanks: Iterable[int],
    *,
    blank: Iterable[int] = (),
    levels: Mapping[int, tuple[float, float]] | None = None,
    prior: float | None = None,
    progress: ProgressLike = False,
) -> AuditedTable:
    """Audit a pattern, whoever made it: `blanks` are the blank cells. The other parameters are those of `protect_cube`."""
    problem, sensitive = problem_of(cube, rules, blank=blank, levels=levels, prior=prior)
    pattern = np.zeros(cube.size, dtype=np.bool_)
    pattern[list(blanks)] = True
    with shown(progress) as receive:
        return AuditedTable(cube, sensitive, audit(problem, pattern, progress=receive))


def _end(value: float, decimals: int) -> str:
    return written(int(np.floor(value + 0.5)), decimals) if np.isfinite(value) else "no end"


def problem_of(
    cube: TableCube,
    rules: Sequence[SensitivityRule],
    *,
    cost: Costs | NDArray[np.float64] = "value",
    keep: Iterable[int] = (),
    blank: Iterable[int] = (),
    levels: Mapping[int, tuple[float, float]] | None = None,
    prior: float | None = None,
) -> tuple[SuppressionProblem, Sensitive]:
    """The cube as a problem of suppression, and which rule fired where."""
    if cube.contributions is None:
        raise InputError(
            "nothing is known of the contributors behind these cells. Give counts= (and largest= for dominance, p % and pq)."
        )
    sensitive = sensitive_cells(cube.contributions, rules)
    upper, lower, rule = sensitive.upper.copy(), sensitive.lower.copy(), sensitive.rule.copy()
    for cell in blank:
        if rule[cell] < 0:
            rule[cell], upper[cell] = len(sensitive.rules), 1.0
            lower[cell] = min(1.0, float(cube.units[cell]))
    for cell, (below, above) in (levels or {}).items():
        lower[cell], upper[cell] = below, above
    by_owner = (ByOwner(),) if bool((rule == len(sensitive.rules)).any()) else ()
    sensitive = Sensitive((*sensitive.rules, *by_owner), rule, upper, lower)
    fixed = np.zeros(cube.size, dtype=np.bool_)
    fixed[list(keep)] = True
    fixed |= (cube.units == 0) & ~sensitive.cells
    scale = _scale(cube)
    values = cube.units if scale == 1 else cube.units / scale
    margin = np.inf if prior is None else np.maximum(values * prior / 100.0, 1.0 / scale)
    problem = SuppressionProblem.of(
        cube.system,
        values,
        sensitive.cells,
        fixed=fixed,
        weights=_weights(cube, cost) / scale,
        known_low=np.maximum(values - margin, 0.0),
        known_high=values + margin,
        lower=np.where(sensitive.cells, lower, 0.0) / scale,
        # a level that a solver cannot tell from 0 is raised to one that it can
        upper=np.where(sensitive.cells, np.maximum(upper / scale, _LEAST if scale > 1 else 0.0), 0.0),
        # of a sum, a single contributor knows the cell; of a count, nobody knows that he is the only one
        singles=() if cube.shape.value is None else cube.singles,
        whole=cube.shape.value is None,
    )
    return problem, sensitive


def _scale(cube: TableCube) -> float:
    """What large sums are divided by before they reach a solver: more digits than these are lost in it anyway."""
    beyond = float(cube.units.max()) / _COMFORTABLE
    return 1.0 if cube.shape.value is None or beyond <= 1 else float(10.0 ** np.ceil(np.log10(beyond)))


def _without_sums(problem: SuppressionProblem, cube: TableCube) -> Suppression:
    """Where nothing adds up to anything, sensitive cells alone are blank, and nobody learns more of them than before."""
    problem.refuse_faults(cube.name_of)
    cells = np.flatnonzero(problem.primary)
    ends = np.ones((2, cells.size), dtype=np.bool_)
    left = Audit(cells, problem.known_low[cells], problem.known_high[cells], ends, ())
    cost = float(problem.weights[cells].sum())
    return Suppression(problem.primary, "sensitive cells alone", cost, cost, 0.0, left)


class ByOwner(SensitivityRule):
    """Not a rule: the owner says that the cell is sensitive."""

    def excess(self, cells: object) -> NDArray[np.float64]:
        """Nothing fires by itself."""
        raise ParameterError("the owner names cells; there is nothing to compute")

    upper = excess

    @property
    def words(self) -> str:
        """As the status names it."""
        return "by its owner"


def _weights(cube: TableCube, cost: Costs | NDArray[np.float64]) -> NDArray[np.float64]:
    if not isinstance(cost, str):
        return np.asarray(cost, dtype=np.float64)
    if cost == "count":
        return np.ones(cube.size)
    if cost == "contributors" and cube.contributions is not None:
        return np.maximum(cube.contributions.count.astype(np.float64), 1.0)
    if cost != "value":
        raise ParameterError(f"cost must be one of {', '.join(COSTS)}, or a weight for every cell")
    return np.maximum(cube.units.astype(np.float64), 1.0)
