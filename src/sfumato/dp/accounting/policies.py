"""Spending policies: how much of a budget each question gets; and a budget as a value that says what is left.

Uniform gives each of n known questions an n-th; geometric gives a half, a quarter, an eighth, …, so that no number of
questions exhausts the budget, at the price of growing noise. Amounts are exact losses of the budget's own kind.
Dwork, Roth, "The algorithmic foundations of differential privacy", 2014; McSherry, "Privacy integrated queries", SIGMOD 2009.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import Annotated

from sfumato.core.declared import Declared, require
from sfumato.core.errors import BudgetRefused, Unsupported
from sfumato.core.exact import AMOUNT_BITS, Number, exact, shown
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.ranges import Count, Instance
from sfumato.dp.accounting.composition import parts_of, sequential, with_parts
from sfumato.dp.accounting.conversion import kind_of
from sfumato.dp.accounting.disjoint import composed
from sfumato.dp.ranges import PART
from sfumato.engines.expressions import Expression


def share(total: LossGuarantee, fraction: Number) -> LossGuarantee:
    """That fraction of a loss, exact: ε, δ and ρ alike."""
    part = exact(fraction, "fraction")
    require(0 <= part <= 1, "a fraction of a budget lies between 0 and 1")
    return with_parts(total, {name: value * part for name, value in parts_of(total).items()})


@dataclass(frozen=True)
class UniformPolicy(Declared):
    """Equal amounts of a `total` for a known number of `questions`.

    >>> import sfumato as sf
    >>> [amount.epsilon for amount in UniformPolicy(sf.PureDP(1), 4)]
    [Fraction(1, 4), Fraction(1, 4), Fraction(1, 4), Fraction(1, 4)]
    """

    total: Annotated[LossGuarantee, Instance(LossGuarantee, "a loss"), "what all questions may cost together"]
    questions: Annotated[Count, "how many questions there are"]

    def coherent(self) -> Iterable[str]:
        kind_of(self.total)  # refuses a loss of which there are no parts
        return ()

    def __iter__(self) -> Iterator[LossGuarantee]:
        amount = share(self.total, Fraction(1, self.questions))
        return (amount for _ in range(self.questions))


@dataclass(frozen=True)
class GeometricPolicy(Declared):
    """Falling amounts of a `total` for any number of questions: each gets the same `fraction` of what is left.

    The sum stays below the total for ever. The amounts end where a number would grow too fine to be held exactly; with
    a half each time that is after more than two hundred questions, with noise far beyond any use.
    """

    total: Annotated[LossGuarantee, Instance(LossGuarantee, "a loss"), "what all questions may cost together"]
    fraction: Annotated[Number, PART, "the part of what is left that each question gets"] = Fraction(1, 2)

    def coherent(self) -> Iterable[str]:
        kind_of(self.total)  # refuses a loss of which there are no parts
        return ()

    def __iter__(self) -> Iterator[LossGuarantee]:
        part, left = Fraction(self.fraction), Fraction(1)
        while all(_fits(value * left * part) for value in parts_of(self.total).values()) and _fits(left * part):
            yield share(self.total, left * part)
            left *= 1 - part

    def spent(self, questions: int) -> LossGuarantee:
        """The loss after so many questions.

        >>> spent = GeometricPolicy(PureDP(1)).spent(3)
        >>> spent.epsilon
        Fraction(7, 8)
        """
        return sequential(share(self.total, 0), *islice(self, questions))


@dataclass(frozen=True)
class Budget:
    """A total and what has been spent of it, as a value: `spend` returns the next budget or refuses.

    Questions with conditions on disjoint rows are charged in parallel. A plan for one process; what must survive it, and
    who may spend, is kept by the ledger.
    """

    total: LossGuarantee
    questions: tuple[tuple[Expression | None, LossGuarantee], ...] = ()
    constant: frozenset[str] = field(default=frozenset(), kw_only=True)

    @property
    def spent(self) -> LossGuarantee:
        """The loss of all questions so far, in the kind of the total."""
        nothing = share(self.total, 0)
        if not self.questions:
            return nothing
        return composed([(None, nothing), *self.questions], constant=self.constant)

    @property
    def remaining(self) -> LossGuarantee:
        """What a further question about all rows may cost."""
        left = parts_of(self.spent)
        return with_parts(
            self.total, {name: max(value - left[name], Fraction(0)) for name, value in parts_of(self.total).items()}
        )

    def affords(self, loss: LossGuarantee, where: Expression | None = None) -> bool:
        """True when the question fits into what is left."""
        after = replace(self, questions=(*self.questions, (where, loss))).spent
        if kind_of(after) != kind_of(self.total):
            raise Unsupported(f"a question that costs {loss.name} cannot be paid from a budget of {self.total.name}")
        limit = parts_of(self.total)
        return all(value <= limit[name] for name, value in parts_of(after).items())

    def spend(self, loss: LossGuarantee, where: Expression | None = None) -> Budget:
        """The budget after this question about the rows of a condition, or a refusal."""
        if not self.affords(loss, where):
            left = ", ".join(f"{name} = {shown(value)}" for name, value in parts_of(self.remaining).items())
            raise BudgetRefused(f"the budget does not suffice: {left} is left. Ask with a smaller loss or ask fewer questions")
        return replace(self, questions=(*self.questions, (where, loss)))


def _fits(value: Fraction) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) <= AMOUNT_BITS
