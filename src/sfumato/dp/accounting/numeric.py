"""Tight composition by numbers: the distribution of the privacy loss of many noisy answers, convolved.

A pessimistic discretisation of each answer's privacy-loss distribution, composed by fast Fourier transforms; what is rounded
is rounded towards more loss, and floating point adds errors far below the digits shown. Needs the extra `accounting`.
Koskela, Jälkö, Honkela, "Computing tight differential privacy guarantees using FFT", AISTATS 2020; Doroshenko, Ghazi, Kamath,
Kumar, Manurangsi, "Connect the dots: tighter discrete approximations of privacy loss distributions", PoPETs 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from sfumato.core import ranges
from sfumato.core.declared import Declared, require
from sfumato.core.errors import MissingExtra, Unsupported
from sfumato.core.exact import Number, exact
from sfumato.core.guarantees.loss import ApproxDP, Neighbours
from sfumato.core.ranges import Count
from sfumato.dp.accounting.enclosure import shortened
from sfumato.dp.ranges import POSITIVE

Noise = Literal["laplace", "gaussian", "discrete_laplace", "discrete_gaussian"]

#: Width of the grid of privacy losses: finer is tighter and slower.
_GRID = 1e-4

#: Digits of a result, rounded up; the computation behind it is in floating point.
_DIGITS = 9


@dataclass(frozen=True)
class NoisyAnswer(Declared):
    """One kind of `noise` on a value, drawn `times` times on fresh questions.

    `scale` is the Laplace scale or the deviation, `sensitivity` the largest change of the value under the relation that
    the events are accounted for. With `sampling` below 1 each answer reads a Poisson sample of the units.
    """

    noise: Annotated[Noise, "the law of the noise"]
    scale: Annotated[Number, POSITIVE, "the Laplace scale, or the deviation"]
    sensitivity: Annotated[Number, POSITIVE, "the largest change of the value"] = 1
    times: Annotated[Count, "how often such an answer is given"] = 1
    sampling: Annotated[Number, ranges.Number(above=0, at_most=1, exact=True), "the probability that a unit is read"] = 1

    def coherent(self) -> Iterable[str]:
        if self.noise.startswith("discrete") and Fraction(self.sensitivity).denominator != 1:
            yield "whole numbers change by whole numbers"


@dataclass(frozen=True)
class Events:
    """Noisy answers about the same data, in any order, accounted for under one neighbour relation and unit.

    >>> events = Events().then(NoisyAnswer("gaussian", 10)).then(NoisyAnswer("laplace", 20, times=3))
    >>> len(list(events))
    2
    """

    answers: tuple[NoisyAnswer, ...] = ()
    neighbours: Neighbours = "add_remove"
    unit: str = "record"

    def __iter__(self) -> Iterator[NoisyAnswer]:
        return iter(self.answers)

    def then(self, *answers: NoisyAnswer) -> Events:
        """These events and further answers."""
        return replace(self, answers=(*self.answers, *answers))

    def epsilon(self, delta: Number) -> ApproxDP:
        """The smallest ε for this δ, as numeric composition finds it."""
        chance = exact(delta, "delta")
        require(0 < chance < 1, "delta must lie strictly between 0 and 1, for example 1e-6")
        epsilon = float(self._distribution().get_epsilon_for_delta(float(chance)))
        if not math.isfinite(epsilon):
            raise Unsupported("no epsilon goes with so small a delta in numeric composition; name a larger delta")
        bound = shortened(Fraction(max(epsilon, 0.0)), upward=True, digits=_DIGITS)
        return ApproxDP(bound, chance, neighbours=self.neighbours, unit=self.unit)

    def delta(self, epsilon: Number) -> ApproxDP:
        """The smallest δ for this ε, as numeric composition finds it."""
        loss = exact(epsilon, "epsilon")
        require(loss >= 0, "epsilon must not be negative")
        delta = float(self._distribution().get_delta_for_epsilon(float(loss)))
        bound = min(shortened(Fraction(max(delta, 0.0)), upward=True, digits=_DIGITS), Fraction(1))
        return ApproxDP(loss, bound, neighbours=self.neighbours, unit=self.unit)

    def _distribution(self) -> Any:
        require(bool(self.answers), "there is no answer to account for")
        return _composed(_one(answer, self.neighbours) for answer in self.answers)


def _composed(distributions: Iterable[Any]) -> Any:
    total: Any = None
    for each in distributions:
        total = each if total is None else total.compose(each)
    return total


def _one(answer: NoisyAnswer, neighbours: Neighbours) -> Any:
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        raise MissingExtra("dp-accounting", "accounting", "numeric composition") from None
    scale, sensitivity, sampling = (float(Fraction(value)) for value in (answer.scale, answer.sensitivity, answer.sampling))
    # Without sampling the relation is inside the sensitivity; with it, the pair of laws depends on the relation.
    if answer.sampling != 1 and neighbours == "replace":
        raise Unsupported(
            "sampled answers are accounted for under add_remove; state the result for 'replace' with sfumato.dp.between"
        )
    grid = {"value_discretization_interval": _GRID, "sampling_prob": sampling}
    match answer.noise:
        case "gaussian":
            if answer.sampling == 1:  # many Gaussian answers are one with less noise
                return pld.from_gaussian_mechanism(scale / math.sqrt(answer.times), sensitivity=sensitivity, **grid)
            one = pld.from_gaussian_mechanism(scale, sensitivity=sensitivity, **grid)
        case "laplace":
            one = pld.from_laplace_mechanism(scale, sensitivity=sensitivity, **grid)
        case "discrete_laplace":
            one = pld.from_discrete_laplace_mechanism(1 / scale, sensitivity=int(sensitivity), **grid)
        case "discrete_gaussian":
            one = pld.from_discrete_gaussian_mechanism(scale, sensitivity=int(sensitivity), **grid)
    return one.self_compose(answer.times) if answer.times > 1 else one
