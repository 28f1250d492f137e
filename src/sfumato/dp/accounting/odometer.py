"""How much was lost so far, at a time that somebody chose by looking at the answers.

For every λ the product of e^(λ·loss − λ(λ+1)ρ) over the questions is a supermartingale, whatever was asked next and why; weighted
over a fixed list of λ it exceeds 1/δ at some time with probability at most δ (Ville). So with probability 1 − δ no moment comes
at which the loss is above the reading. A bound for a fixed number of questions does not give that: who stops at the worst
moment breaks it. The argument is in docs/theory/adaptive-questions.md.
Rogers, Roth, Ullman, Vadhan, "Privacy odometers and filters: pay-as-you-go composition", NIPS 2016; Whitehouse, Ramdas, Rogers,
Wu, "Fully-adaptive composition in differential privacy", ICML 2023; Howard, Ramdas, McAuliffe, Sekhon, "Time-uniform Chernoff
bounds via nonnegative supermartingales", Probability Surveys 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from sfumato.core.declared import Declared
from sfumato.core.errors import ParameterError
from sfumato.core.exact import Number, shown
from sfumato.core.guarantees.loss import ApproxDP, LossGuarantee
from sfumato.core.plain_data import PlainDict
from sfumato.core.ranges import Number as Amount
from sfumato.dp.accounting.conversion import kind_of
from sfumato.dp.accounting.enclosure import Enclosure
from sfumato.dp.accounting.zcdp import log_of

#: The fixed list of λ: 6·(3/2)^k for every whole k, of which only so many are looked at; any of them bounds the loss.
_MIDDLE, _RATIO, _STEPS = Fraction(6), Fraction(3, 2), 60
_SMALL = Amount(at_least=0, below=1, exact=True)


@dataclass(frozen=True)
class OdometerReading:
    """What was lost by all answers so far: at most ε, except with probability δ, whenever one looks.

    `questions` were charged, a batch counting as one; `added` says that ε is their sum, which holds without an exception of its
    own. `not_covered` are sentences about earlier charges for another unit, whose loss for this one is not known.
    """

    epsilon: Fraction
    delta: Fraction
    questions: int
    added: bool
    not_covered: tuple[str, ...] = ()

    def to_mapping(self) -> PlainDict:
        """Plain data, ready for JSON."""
        return {
            "epsilon": f"{self.epsilon.numerator}/{self.epsilon.denominator}",
            "delta": f"{self.delta.numerator}/{self.delta.denominator}",
            "questions": self.questions,
            "added": self.added,
            "not_covered": list(self.not_covered),
        }

    def __str__(self) -> str:
        exception = "" if self.delta == 0 else f", except with probability {shown(self.delta)}"
        if not self.questions and self.not_covered:
            return "; but ".join(["no answer since then was charged", *self.not_covered])
        answers = f"{self.questions:,} charged question{'' if self.questions == 1 else 's'}"
        lost = f"the answers to {answers} have lost at most ε = {shown(self.epsilon)}{exception}, at whatever time one looks"
        return "; but ".join([lost, *self.not_covered])


@dataclass(frozen=True)
class Odometer(Declared):
    """Reads the privacy loss so far; the bound holds at all times together, also at one chosen by looking at the answers.

    `delta` is the probability that the loss ever exceeds the reading; with 0 losses are added, which ρ does not allow. `allowed`
    limits the sum of the questions' own δ and is fixed beforehand, as a grant is.

    >>> from sfumato.core.guarantees.loss import ConcentratedDP
    >>> float(Odometer(delta="1e-6").reading([ConcentratedDP("0.001")] * 100).epsilon)
    2.68747276414
    """

    delta: Annotated[Number, _SMALL, "the probability that the loss ever exceeds the reading"] = Fraction(1, 10**6)
    allowed: Annotated[Number, _SMALL, "what the questions' own δ may add up to"] = Fraction(0)

    def reading(self, losses: Iterable[LossGuarantee]) -> OdometerReading:
        """The reading after these losses, which may have been chosen one by one by looking at earlier answers."""
        own, allowed = Fraction(self.delta), Fraction(self.allowed)
        total, rho, excepted, questions, pure = Fraction(0), Fraction(0), Fraction(0), 0, True
        for loss in losses:
            questions += 1
            kind = kind_of(loss)
            if kind == "renyi":
                raise ParameterError("a Rényi loss of one order has no reading; account for it as zCDP or as (ε, δ)")
            if kind == "zcdp":
                pure = False
                rho += Fraction(loss.rho)  # type: ignore[attr-defined]
                continue
            epsilon = Fraction(loss.epsilon)  # type: ignore[attr-defined]
            total, rho = total + epsilon, rho + epsilon**2 / 2
            excepted += Fraction(loss.delta) if isinstance(loss, ApproxDP) else 0
        if excepted > allowed:
            raise ParameterError(
                f"the questions' own δ add up to {shown(excepted)}, and {shown(allowed)} was allowed beforehand: a limit that is "
                "set after looking at answers limits nothing. State allowed= as it was granted"
            )
        bound = at_any_time(rho, own) if own > 0 else None
        if pure and (bound is None or total <= bound):
            return OdometerReading(total, allowed, questions, added=True)
        if bound is None:
            raise ParameterError("what was charged in ρ has no ε without a δ: say delta='1e-6'")
        return OdometerReading(bound, min(allowed + own, Fraction(1)), questions, added=False)


def at_any_time(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε, rounded up, that the loss stays within at all times together, except with probability δ, where ρ was spent so far.

    >>> float(at_any_time(Fraction(1, 10), Fraction(1, 10**6)))
    2.68747276414
    """
    if rho == 0:
        return Fraction(0)
    spent, tail = float(rho), -log_of(delta)

    def cost(step: int) -> float:
        rate = float(_MIDDLE) * float(_RATIO) ** step
        return (1 + rate) * spent + (tail - math.log(_weight(step))) / rate

    best = min(range(-_STEPS, _STEPS + 1), key=cost)
    rate = _MIDDLE * _RATIO**best
    return (-Enclosure.of(_weight(best) * delta).ln() / rate + (1 + rate) * rho).up()


def _weight(step: int) -> Fraction:
    """How much of δ the λ of a step gets; over all steps these add up to 1."""
    far = abs(step)
    return Fraction(2, 3 * (far + 1) * (far + 2))
