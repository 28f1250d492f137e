"""The price of a question: how a loss is shared among measurements, which noise each gets, and how far answers may be off.

Every measurement of a question gets the same share of the loss. What one unit can change is the number of its groups
times the rows it may have in each times the largest row; Laplace noise follows the L1 norm of that, Gaussian noise
the L2 norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Annotated, Literal

from sfumato.core.declared import Declared
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import ApproxDP, ConcentratedDP, LossGuarantee, PureDP
from sfumato.core.ranges import Because, Each, Text, Whole
from sfumato.core.ranges import Number as Amount
from sfumato.dp.algorithms.stability import gaussian_threshold
from sfumato.dp.algorithms.stability import threshold as least_shown
from sfumato.dp.sql.measuring.measurement import QueryMeasurement
from sfumato.dp.sql.question import Question

Law = Literal["laplace", "gaussian"]

#: Which units are shown when keys are discovered; also a measurement of its own where none counts units.
UNITS = "units shown"


#: How many rows or groups of one unit may count.
_Most = Annotated[int, Whole(at_least=1, at_most=1_000_000)]
_Method = Annotated[Literal["sample", "truncate"], "how rows are chosen where a unit has more"]
_Order = Annotated[tuple[str, ...], Each(Text("an expression", longest=10_000)), "the order in which the first rows are kept"]

_ORDER_ALONE = 'order is for bounding="truncate": the first rows in that order are kept'


@dataclass(frozen=True)
class Bounds(Declared):
    """What one unit may contribute: `rows` rows to each of `groups` groups, by `method`: a sample, or the first in `order`."""

    rows: Annotated[_Most, "rows of one unit in each group, at the most"] = 1
    groups: Annotated[_Most, "groups of one unit, at the most"] = 1
    method: _Method = "sample"
    order: _Order = ()

    def coherent(self) -> Iterator[str]:
        """An order says which rows are the first."""
        if self.order and self.method != "truncate":
            yield _ORDER_ALONE


@dataclass(frozen=True)
class DeclaredBounds(Declared):
    """What somebody said one unit may contribute; None where nobody did. A question asks for what it needs and no more.

    `max_rows` rows in each of `max_groups` groups, chosen by `bounding` (sampling, or the first ones in `order`).
    """

    max_rows: Annotated[_Most | None, "rows of one unit in each group, at the most"] = None
    max_groups: Annotated[_Most | None, "groups of one unit, at the most"] = None
    bounding: _Method = "sample"
    order: _Order = ()

    def coherent(self) -> Iterator[str]:
        """An order says which rows are the first."""
        if self.order and self.bounding != "truncate":
            yield _ORDER_ALONE

    def settled(self, question: Question) -> Bounds:
        """The bounds of a question, or a refusal where a bound that it needs was not declared."""
        if question.rows.single or question.rows.unit is None:
            # Each unit has one row by itself: nothing is left to bound.
            return Bounds()
        missing = []
        if self.max_rows is None and question.counts_rows:
            missing.append(f"how many rows of one {question.unit} count is not declared: say max_rows=… (--max-rows)")
        if self.max_groups is None and question.keys:
            missing.append(f"in how many groups one {question.unit} counts is not declared: say max_groups=… (--max-groups)")
        if missing:
            raise Unsupported(
                f"{'; '.join(missing)}. What is beyond a bound is left out and more noise is added for a larger one, so that "
                "none is assumed; session.contributions(epsilon=…) finds bounds privately"
            )
        return Bounds(self.max_rows or 1, self.max_groups or 1, self.bounding, self.order)


_Loss = Annotated[Number | None, Amount(at_least=Fraction(1, 10**9), at_most=10**15, exact=True)]


@dataclass(frozen=True)
class Request(Declared):
    """The loss that a question may cost, one of: `epsilon`; `epsilon` and `delta`; `rho`; `rho` and `delta` (for keys that
    are discovered).
    """

    epsilon: Annotated[_Loss, "ε: the loss, at the most"] = None
    delta: Annotated[
        Number | None,
        Because(
            Amount(at_least=Fraction(1, 10**100), below=1, exact=True),
            "it should be far below 1 over the number of people; leave it out for pure ε",
        ),
        "δ: what is added to every bound on a probability",
    ] = None
    rho: Annotated[_Loss, "ρ: the concentrated loss, at the most"] = None

    def coherent(self) -> Iterator[str]:
        """One kind of loss."""
        if (self.epsilon is None) == (self.rho is None):
            yield "say what the question may cost: epsilon=0.1 or rho=0.01, either with delta=1e-6 where keys are discovered"


def errors_in_margin(law: str, confidence: float) -> float:
    """How many standard errors a margin has, for noise of that law."""
    if law.startswith("laplace"):
        return math.log(1 / (1 - confidence)) / math.sqrt(2)
    return NormalDist().inv_cdf((1 + confidence) / 2)


@lru_cache(maxsize=64)
def errors_in_sum_margin(law: str, confidence: float) -> float:
    """How many standard errors a margin has, for a sum of several independent noises of that law.

    A sum lies between its law and the normal one, which it tends to: the larger of both margins is never too small.
    """
    return max(errors_in_margin(law, confidence), NormalDist().inv_cdf((1 + confidence) / 2))


def noise_margin(law: Law, amount: Fraction, step: Fraction, confidence: float) -> float:
    """Laplace noise of that scale, or Gaussian noise of that variance, stays within this with at least that probability."""
    if law == "gaussian":
        reach = math.sqrt(amount) * NormalDist().inv_cdf((1 + confidence) / 2)
        return math.ceil(reach) * float(step)
    # P(|x| > t) = 2 r^(t+1) / (1 + r) with r = e^(-1/scale)
    ratio = math.exp(-float(1 / amount))
    reach = -float(amount) * math.log((1 - confidence) * (1 + ratio) / 2) - 1
    return max(math.ceil(reach - 1e-9), 0) * float(step)


@dataclass(frozen=True)
class Noise:
    """The noise of one measurement, in its own steps: Laplace of that scale or Gaussian of that variance."""

    law: Law
    amount: Fraction
    l1: int
    l2_squared: int
    step: Fraction

    @property
    def deviation(self) -> float:
        """The standard deviation, in steps."""
        if self.law == "gaussian":
            return math.sqrt(self.amount)
        inverse = float(1 / (2 * self.amount))
        return 1 / (math.sqrt(2) * math.sinh(inverse)) if inverse < 300 else 0.0

    def margin(self, confidence: float) -> float:
        """Noise stays within this with at least that probability, in the units of the value."""
        return noise_margin(self.law, self.amount, self.step, confidence)


@dataclass(frozen=True)
class Price:
    """What a question costs and how noisy its measurements will be."""

    loss: LossGuarantee
    noises: Mapping[str, Noise]
    bounds: Bounds
    groups: int  # that one unit can be in
    threshold: int | None = None  # of units, where keys are discovered
    units: str | None = None  # the measurement that the threshold is applied to


def price(question: Question, request: Request, declared: DeclaredBounds) -> Price:
    """The noise that makes the question cost exactly the request, or a refusal."""
    bounds = declared.settled(question)
    measurements = list(question.measurements)
    units: str | None = None
    if question.discovers:
        if request.delta is None:
            raise Unsupported(_undeclared(question))
        plain = next((m for m in measurements if m.kind == "units" and m.where is None), None)
        units = UNITS if plain is None else plain.name
        if plain is None:
            measurements.append(QueryMeasurement(UNITS, "units"))
    groups = 1 if not question.keys else bounds.groups if question.groups is None else min(bounds.groups, question.groups)
    if question.rows.unit is None:
        groups = 1
    rows = bounds.rows if question.rows.unit is not None else 1
    law, loss, shares = _law(question, request, len(measurements), groups)
    noises = {m.name: _noise(m, law, shares, groups, rows) for m in measurements}
    threshold = None
    if units is not None and request.delta is not None:
        if noises[units].deviation > 10**12:
            raise Unsupported("the loss is too small to discover keys; ask with a larger ε or ρ, or declare the keys")
        threshold = _threshold(noises[units], Fraction(request.delta), groups)
    return Price(loss, noises, bounds, groups, threshold, units)


def _law(question: Question, request: Request, count: int, groups: int) -> tuple[Law, LossGuarantee, Fraction]:
    """Which noise, the guarantee it gives, and each measurement's share."""
    unit = question.unit
    if request.rho is not None and question.discovers and request.delta is not None:
        from sfumato.dp.accounting.zcdp import epsilon_for

        # Half of δ for what ρ means in ε, half for a group that would show its only unit.
        epsilon = epsilon_for(request.rho, Fraction(request.delta) / 2)
        return "gaussian", ApproxDP(epsilon, request.delta, unit=unit), Fraction(request.rho) / count
    if request.rho is not None:
        return "gaussian", ConcentratedDP(request.rho, unit=unit), Fraction(request.rho) / count
    if request.epsilon is None:
        raise ParameterError("epsilon or rho is needed")
    pure = PureDP(request.epsilon, unit=unit)
    share = Fraction(request.epsilon) / count
    if request.delta is None:
        return "laplace", pure, share
    approximate = ApproxDP(request.epsilon, request.delta, unit=unit)
    from sfumato.dp.accounting.zcdp import rho_for

    rho = rho_for(request.epsilon, Fraction(request.delta) / 2 if question.discovers else request.delta)
    # Deviations of the two laws for the same change in each of `groups` groups.
    laplace = math.sqrt(2) * groups * count / float(request.epsilon)
    if rho > 0 and math.sqrt(groups * count / (2 * float(rho))) < laplace:
        return "gaussian", approximate, rho / count
    return "laplace", approximate if question.discovers else pure, share


def _threshold(noise: Noise, delta: Fraction, groups: int) -> int:
    """The least noisy number of units at which a discovered group is shown: docs/theory/query-sensitivity.md."""
    if noise.law == "laplace":
        return least_shown(noise.amount, delta, keys=groups)
    return gaussian_threshold(noise.amount, delta / 2, keys=groups)


def _noise(measurement: QueryMeasurement, law: Law, share: Fraction, groups: int, rows: int) -> Noise:
    change = 1 if measurement.kind == "units" else rows * measurement.change
    l1 = groups * change * measurement.levels
    l2_squared = groups * change**2 * measurement.levels
    amount = Fraction(l1) / share if law == "laplace" else Fraction(l2_squared) / (2 * share)
    return Noise(law, amount, l1, l2_squared, measurement.step)


def _undeclared(question: Question) -> str:
    names = ", ".join(f"'{key.label[:60]}'" for key in question.keys if key.values is None)
    return (
        f"the values of the grouping key {names} are not declared, and finding them in the data needs a small δ. "
        "Give keys={…} with the question, declare the domain in the schema where the key is a column of a table, "
        "or ask with epsilon and delta (or rho and delta): groups of few units are then left out"
    )
