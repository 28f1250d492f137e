"""What an analyst may spend on a dataset, what was reserved, and what was answered.

An account holds one grant, the most the analyst may ever spend on the dataset; a cap is the same for everybody
together. A spend is reserved before noise is drawn and then committed with its answer or rolled back. A
reservation that nobody closes stays spent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from sfumato.core.errors import BudgetRefused
from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.protected import Protected

State = Literal["reserved", "committed", "rolled back"]

#: The account of a cap: what everybody together may spend on a dataset. No analyst has this name.
EVERYBODY = "*"


@dataclass(frozen=True)
class Charge:
    """What a question costs: how much is lost, and about whom.

    >>> from sfumato.core.guarantees.loss import PureDP
    >>> Charge.of(PureDP("0.1", unit="patient")) == Charge(LossAmount.pure("0.1"), Protected("patient"))
    True
    """

    loss: LossAmount
    protected: Protected = Protected()

    @classmethod
    def of(cls, guarantee: LossGuarantee) -> Charge:
        """What a guarantee costs those whom it protects."""
        return cls(LossAmount.of(guarantee), Protected.of(guarantee))

    def to_mapping(self) -> dict[str, object]:
        """Plain data, as entries hold it."""
        return {"loss": self.loss.to_mapping(), **self.protected.to_mapping()}


@dataclass(frozen=True)
class Answer:
    """An answer as it was shown the first time, and the hash of the entry that holds it."""

    value: Any = field(repr=False)
    entry: str
    time: str


@dataclass(frozen=True)
class Reservation:
    """Budget set aside for one question.

    When the question was answered before, `answer` is that answer and nothing was charged.
    """

    token: str
    dataset: str
    analyst: str
    question: str
    charge: Charge
    answer: Answer | None = None


@dataclass(frozen=True)
class Spend:
    """A reservation and what became of it; `closed_by` is the sequence number of the entry that closed it, `sequence` that of
    the entry that made it, and `protected` what that says it is about.
    """

    token: str
    dataset: str
    analyst: str
    question: str
    loss: LossAmount
    state: State = "reserved"
    closed_by: int | None = None
    sequence: int = 0
    protected: Protected | None = None


@dataclass(frozen=True)
class Spending:
    """One spend as it is shown: who spent what when on which question of which dataset, and what became of it.

    `reserved` means spent without an answer: the process stopped in between, or is still at work. `reserved_by` and
    `closed_by` are hashes of entries. What it `protected` is unknown of spends that earlier versions entered.
    """

    time: str
    dataset: str
    analyst: str
    question: str
    loss: LossAmount
    state: State
    reserved_by: str
    closed_by: str | None = None
    protected: Protected | None = None


@dataclass(frozen=True)
class Account:
    """One analyst's grant on one dataset and what is spent of it, both in the kind of the grant.

    The account of `EVERYBODY` is the cap on the dataset: it is charged with what any analyst spends. What is `protected` is
    the same for all accounts on a dataset; None until a grant states it or something is spent.
    """

    dataset: str
    analyst: str
    granted: LossAmount
    spent: LossAmount
    protected: Protected | None = None

    @property
    def is_cap(self) -> bool:
        """True for the account that everybody shares."""
        return self.analyst == EVERYBODY

    @property
    def remaining(self) -> LossAmount:
        """What may still be spent."""
        return self.granted.minus(self.spent)

    def charged(self, loss: LossAmount) -> Account:
        """The account after a further spend, or a refusal that says which account is short."""
        try:
            spent = self.spent.plus(loss)
        except BudgetRefused as refused:
            raise BudgetRefused(f"the cap for everybody together: {refused}" if self.is_cap else str(refused)) from None
        if not spent.within(self.granted):
            short, of = ("cap for everybody together", "cap") if self.is_cap else ("budget", "grant")
            if not self.spent.within(self.granted):
                raise BudgetRefused(
                    f"nothing is left of the {short}: what was spent amounts to {self.spent} about {self.protected}, more than "
                    f"the {of} of {self.granted}. Reuse an answer given before (it costs nothing), or ask the owner for a "
                    f"larger {of}."
                )
            raise BudgetRefused(
                f"the {short} does not suffice: the question costs {loss.converted(self.granted.kind)}, "
                f"and {self.remaining} is left of a {of} of {self.granted}. "
                f"Ask for less, reuse an answer given before (it costs nothing), or ask the owner for a larger {of}."
            )
        return replace(self, spent=spent)

    def refunded(self, loss: LossAmount) -> Account:
        """The account after a reservation was rolled back."""
        return replace(self, spent=self.spent.minus(loss))
