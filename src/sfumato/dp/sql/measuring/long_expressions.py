"""Long expressions asked for in parts: what clamps and products would repeat is computed once, in a column below.

An engine that is given a variance of a product as one text is given megabytes of it, because every clamp writes out three times
what it looks at. Values do not change: expressions are deterministic and defined for every row.
"""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.engines import expressions as e
from sfumato.engines import plan as p
from sfumato.engines.sql.values import written_size
from sfumato.engines.substitution import with_children

#: What is longer when written out is computed in parts.
LONG = 500


def in_parts(plan: p.Plan, inputs: Mapping[str, e.Expression]) -> tuple[p.Plan, dict[str, e.Expression]]:
    """The same inputs over a plan that has columns for their parts; both as they are where nothing is long."""
    if all(written_size(expression) <= LONG for expression in inputs.values()):
        return plan, dict(inputs)
    parts = _Parts(frozenset(p.columns(plan)))
    shorter = {name: parts.shortened(expression) for name, expression in inputs.items()}
    for layer in range(1, max(parts.layer.values(), default=0) + 1):
        kept = [p.Named(name, e.Reference(name)) for name in p.columns(plan)]
        computed = [p.Named(name, part) for part, name in parts.names.items() if parts.layer[name] == layer]
        plan = p.Project(plan, (*kept, *computed))
    return plan, shorter


class _Parts:
    """Parts that have a column: its name, and above how many others it stands."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = taken
        self.names: dict[e.Expression, str] = {}
        self.layer: dict[str, int] = {}
        self._done: dict[int, tuple[e.Expression, e.Expression]] = {}

    def shortened(self, expression: e.Expression) -> e.Expression:
        """The expression with its parts replaced by their columns, where it is long."""
        if id(expression) in self._done:
            return self._done[id(expression)][1]
        below = tuple(self.shortened(child) for child in e.children(expression))
        shorter = with_children(expression, below)
        if written_size(shorter) > LONG:
            shorter = with_children(expression, tuple(self._column(child) for child in below))
        self._done[id(expression)] = (expression, shorter)  # the first keeps its id from being used again
        return shorter

    def _column(self, expression: e.Expression) -> e.Expression:
        if isinstance(expression, (e.Reference, e.Literal)):
            return expression
        if expression not in self.names:
            number = len(self.names)
            while (name := f"part {number}") in self._taken:
                number += 1
            self._taken |= {name}
            self.names[expression] = name
            self.layer[name] = 1 + max((self.layer.get(column, 0) for column in e.columns_of(expression)), default=0)
        return e.Reference(self.names[expression])
