"""Rules of sensitivity: which cells would let somebody estimate a contribution too closely, and how far they must stay open.

Every rule looks at the contributors behind a cell. The protection level is how far the value that an outsider may still believe
must reach above the true one, so that the rule would no longer call the cell sensitive. Cox, "Linear sensitivity measures in
statistical disclosure control", Journal of Statistical Planning and Inference 5, 1981; Hundepool et al., "Statistical disclosure
control", Wiley 2012, chapter 4.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import Declared, parameters
from sfumato.core.errors import InputError
from sfumato.core.ranges import Number, Whole
from sfumato.tables.contributions import Contributions

Flags = NDArray[np.bool_]
Real = NDArray[np.float64]


@dataclass(frozen=True)
class SensitivityRule(Declared, ABC):
    """When a cell is sensitive, and up to where the value that others believe must then reach."""

    #: Whether the rule needs the largest contributions, and not only how many there are.
    needs_largest: ClassVar[bool] = True

    @abstractmethod
    def excess(self, cells: Contributions) -> Real:
        """How far the largest contributors go beyond what the rule allows: above 0 the cell is sensitive."""

    @abstractmethod
    def upper(self, cells: Contributions) -> Real:
        """The upper protection level of every cell."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The rule as the status of a cell names it."""

    def sensitive(self, cells: Contributions) -> Flags:
        """The cells that the rule calls sensitive: those that have contributors and go beyond it."""
        return np.asarray((self.excess(cells) > 0) & (cells.count > 0))


@dataclass(frozen=True)
class MinimumFrequency(SensitivityRule):
    """A cell with contributors, but fewer than `n` of them, is sensitive.

    Of counts the level reaches up to n; of sums it is `percent` of the value.

    >>> MinimumFrequency(3).sensitive(Contributions.of([[5], [5, 5, 5]])).tolist()
    [True, False]
    """

    needs_largest: ClassVar[bool] = False

    n: Annotated[int, Whole(at_least=2), "contributors that a cell must have to be published"] = 3
    percent: Annotated[float, Number(above=0, at_most=100), "the protection level of a sum, as a share of it in percent"] = 30

    def excess(self, cells: Contributions) -> Real:
        """n − contributors."""
        return np.asarray(self.n - cells.count, dtype=np.float64)

    def upper(self, cells: Contributions) -> Real:
        """Up to n for a count, a share of the value for a sum."""
        counts = np.array_equal(cells.totals, cells.count)
        return np.asarray(self.n - cells.totals if counts else cells.totals * self.percent / 100.0)

    @property
    def words(self) -> str:
        """As the status names it."""
        return f"fewer than {self.n} contributors"


@dataclass(frozen=True)
class Dominance(SensitivityRule):
    """(n,k)-dominance: the `n` largest contributors give more than the share `k` of the total.

    Sensitive iff x1 + … + xn > k · X; level (x1 + … + xn)/k − X.

    >>> Dominance(1, 0.6).sensitive(Contributions.of([[350, 5, 5, 2, 1]])).tolist()
    [True]
    """

    n: Annotated[int, Whole(at_least=1, at_most=10), "the largest contributors that are added up"] = 1
    k: Annotated[float, Number(above=0, below=1), "the share of the total that they may have"] = 0.75

    def excess(self, cells: Contributions) -> Real:
        """x1 + … + xn − k · X."""
        return cells.leading(self.n) - self.k * cells.totals

    def upper(self, cells: Contributions) -> Real:
        """(x1 + … + xn)/k − X."""
        return np.asarray(cells.leading(self.n) / self.k - cells.totals)

    @property
    def words(self) -> str:
        """As the status names it."""
        who = "the largest contributor" if self.n == 1 else f"the {self.n} largest contributors"
        return f"{who} above {self.k * 100:g} %"


@dataclass(frozen=True)
class PPercent(SensitivityRule):
    """p % rule: the second largest contributor can estimate the largest within `p` percent.

    Sensitive iff X − x1 − x2 < p/100 · x1; level p/100 · x1 − (X − x1 − x2).

    >>> PPercent(10).sensitive(Contributions.of([[50, 30, 10, 10], [90, 8, 1, 1]])).tolist()
    [False, True]
    """

    p: Annotated[float, Number(above=0, at_most=100), "percent within which no contribution may be estimated"] = 10

    def excess(self, cells: Contributions) -> Real:
        """p · x1 − 100 · (X − x1 − x2), which is exact for whole numbers."""
        return np.asarray(self.p * cells.leading(1) - 100.0 * _rest(cells))

    def upper(self, cells: Contributions) -> Real:
        """p/100 · x1 − (X − x1 − x2)."""
        return np.asarray(self.p / 100.0 * cells.leading(1) - _rest(cells))

    @property
    def words(self) -> str:
        """As the status names it."""
        return f"the largest contributor within {self.p:g} %"


@dataclass(frozen=True)
class PQ(SensitivityRule):
    """pq or prior-posterior rule: everybody could estimate contributions within `q` percent before, and within `p` afterwards.

    Sensitive iff q/100 · (X − x1 − x2) < p/100 · x1; level p/q · x1 − (X − x1 − x2).

    >>> PQ(10, 50).sensitive(Contributions.of([[50, 30, 10, 10], [90, 8, 1, 1]])).tolist()
    [False, True]
    """

    p: Annotated[float, Number(above=0, at_most=100), "percent within which no contribution may be estimated afterwards"] = 10
    q: Annotated[float, Number(above=0, at_most=1000), "percent within which everybody could before"] = 100

    def coherent(self) -> Iterable[str]:
        """p lies below q."""
        if not self.p < self.q:
            yield f"p is {self.p:g} and q {self.q:g}; p must lie below q"

    def excess(self, cells: Contributions) -> Real:
        """p · x1 − q · (X − x1 − x2), which is exact for whole numbers."""
        return np.asarray(self.p * cells.leading(1) - self.q * _rest(cells))

    def upper(self, cells: Contributions) -> Real:
        """p/q · x1 − (X − x1 − x2)."""
        return np.asarray(self.p / self.q * cells.leading(1) - _rest(cells))

    @property
    def words(self) -> str:
        """As the status names it."""
        return f"the largest contributor within {self.p:g} % (before: {self.q:g} %)"


def _rest(cells: Contributions) -> Real:
    """What all contributors but the two largest give."""
    return cells.totals - cells.leading(2)


@dataclass(frozen=True, eq=False)
class Sensitive:
    """Which cells are sensitive: `rule[cell]` is the place of the first rule that fired, -1 where none did; `upper` and `lower`
    are the protection levels."""

    rules: tuple[SensitivityRule, ...]
    rule: NDArray[np.int16]
    upper: Real
    lower: Real

    @property
    def cells(self) -> Flags:
        """The sensitive cells."""
        return np.asarray(self.rule >= 0)

    def status(self, cell: int) -> str:
        """Why a cell is sensitive; empty where it is not."""
        place = int(self.rule[cell])
        return self.rules[place].words if place >= 0 else ""


def sensitive_cells(cells: Contributions, rules: Sequence[SensitivityRule]) -> Sensitive:
    """Ask every rule. A cell's levels are the largest of the rules that fired, at least 1 unit of the last digit; below, not more
    than what the largest contributor cannot rule out: that the others gave nothing."""
    if not rules:
        raise InputError("name at least one rule of sensitivity, such as MinimumFrequency(3) or PPercent(10)")
    fired = np.full(cells.totals.shape, -1, dtype=np.int16)
    level = np.zeros(cells.totals.shape)
    for place, rule in reversed(list(enumerate(rules))):
        sensitive = rule.sensitive(cells)
        fired[sensitive] = place
        level = np.where(sensitive, np.maximum(level, np.maximum(np.ceil(rule.upper(cells)), 1.0)), level)
    others = np.where(cells.count > 1, cells.totals - cells.largest[:, 0], cells.totals)
    most = np.where(others > 0, others, cells.totals) if cells.largest.any() else cells.totals
    return Sensitive(tuple(rules), fired, level, np.minimum(level, np.minimum(most, cells.totals)))


def described(rules: Sequence[SensitivityRule]) -> list[dict[str, object]]:
    """The rules as plain data, for the owner's files."""
    return [{"name": type(each).__name__, **parameters(each)} for each in rules]
