"""What an analyst may spend on a dataset and whom that protects, what was reserved, and what was answered.

An account holds one grant, the most the analyst may ever spend on the dataset; a cap is the same for everybody
together. A spend is reserved before noise is drawn and then committed with its answer or rolled back. A
reservation that nobody closes stays spent.

A budget protects one kind of unit under one neighbour relation, for everybody who spends on a dataset. Losses add up only
where they are about the same: ε for one record says nothing of a patient who has a hundred, and ε for replaced patients
nothing of one patient more. A ledger knows units by their names and not how they lie inside each other, so that whatever is
not the same is refused, finer or coarser. The owner may change what a budget is about; what was spent is carried over
(`unit_changes`).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

from sfumato.core.declared import Declared
from sfumato.core.errors import BudgetRefused, ParameterError
from sfumato.core.guarantees.loss import RECORD, LossGuarantee, Neighbours, PureDP
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import Made
from sfumato.ledger.amounts import SYMBOLS, Kind, LossAmount
from sfumato.ledger.chain import NAME_LIMIT

State = Literal["reserved", "committed", "rolled back"]

#: The option of a question for each kind of loss, and the argument in Python.
_ASKED_WITH: dict[Kind, str] = {
    "pure": "--epsilon (epsilon=)",
    "approx": "--epsilon and --delta (epsilon=, delta=)",
    "zcdp": "--rho (rho=)",
}
#: The account of a cap: what everybody together may spend on a dataset. No analyst has this name.
EVERYBODY = "*"


#: What the owner may do where a budget is about something else.
_OWNER_CHANGES = "Or have the owner change what the budget is about, which carries over what was spent"


def _printable(name: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_LIMIT or not name.isprintable():
        raise ParameterError("not a name")
    return name


@dataclass(frozen=True)
class Protected(Declared):
    """A unit, by the name of its column or `record`, and which databases count as neighbours.

    >>> str(Protected("patient"))
    'one patient added or removed'
    """

    unit: Annotated[
        str,
        Made(_printable, f"a name, such as that of its column, of 1 to {NAME_LIMIT} printable characters"),
        "who is protected",
    ] = RECORD
    neighbours: Annotated[Neighbours, "which databases are compared"] = "add_remove"

    @classmethod
    def of(cls, guarantee: LossGuarantee) -> Protected:
        """What a guarantee is about."""
        return cls(guarantee.unit, guarantee.neighbours)

    @property
    def short(self) -> str:
        """The unit, with the relation where it is not the usual one."""
        return self.unit if self.neighbours == "add_remove" else f"{self.unit} (replaced)"

    def __str__(self) -> str:
        return self._loss.compared

    @property
    def formerly(self) -> str:
        """In the words of earlier versions, which notices of their certificates state."""
        return self._loss.formerly_compared

    @property
    def _loss(self) -> LossGuarantee:
        return PureDP(0, neighbours=self.neighbours, unit=self.unit)

    def to_mapping(self) -> dict[str, str]:
        """Plain data, as entries hold it."""
        return {"neighbours": self.neighbours, "unit": self.unit}

    @classmethod
    def plain(cls, protected: Protected | None) -> dict[str, str | None]:
        """Plain data also where it is unknown."""
        return {"neighbours": None, "unit": None} if protected is None else {**protected.to_mapping()}

    @classmethod
    def from_mapping(cls, mapping: Plain) -> Protected | None:
        """What an entry says; None for one that does not, as those of earlier versions."""
        if "unit" not in mapping and "neighbours" not in mapping:
            return None
        return cls(mapping["unit"], mapping["neighbours"])


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
class StoredAnswer:
    """An answer as it was shown the first time, and the hash of the entry that holds it; `part` is the digest of its first table
    where the entry holds several answers."""

    value: Any = field(repr=False)
    entry: str
    time: str
    part: str | None = None


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
    answer: StoredAnswer | None = None


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
class Charges:
    """All that counts as spent by an analyst, or by everybody, one amount for each reservation, and the δ that grants allow."""

    amounts: tuple[LossAmount, ...]
    allowed: Fraction
    protected: Protected | None


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
        if not loss.converts_to(self.granted.kind):
            raise self._of_another_kind(loss)
        spent = self.spent.plus(loss)
        if not spent.within(self.granted):
            short, of = ("cap for everybody together", "cap") if self.is_cap else ("budget", "grant")
            if not self.spent.within(self.granted):
                raise BudgetRefused(
                    f"nothing is left of the {short}: what was spent amounts to {self.spent} about {self.protected}, more than "
                    f"the {of} of {self.granted}. Reuse an answer given before (it costs nothing)",
                    "The owner allows enough with",
                    self._grant(spent),
                )
            raise BudgetRefused(
                f"the {short} does not suffice: the question costs {loss.converted(self.granted.kind)}, "
                f"and {self.remaining} is left of a {of} of {self.granted}. "
                "Ask for less, or reuse an answer given before (it costs nothing)",
                "The owner allows enough with",
                self._grant(spent),
            )
        return replace(self, spent=spent)

    def _grant(self, amount: LossAmount) -> str:
        """What the owner types to allow this much in all."""
        whom = "cap" if self.is_cap else "grant"
        names = [self.dataset] if self.is_cap else [self.dataset, self.analyst]
        return f"sfumato ledger {whom} {shlex.join(names)} {amount.options}"

    def _of_another_kind(self, loss: LossAmount) -> BudgetRefused:
        """A loss that cannot be stated in the kind of the grant: the grant can, where what was spent can."""
        kind = self.granted.kind
        whose = "the cap for everybody together: it" if self.is_cap else "the budget"
        options = " or ".join(dict.fromkeys(_ASKED_WITH[each] for each in ("pure", kind)))
        text = f"{whose} is held in {SYMBOLS[kind]}, and {loss} has no exact counterpart in it. Ask with {options}"
        if not self.spent.converts_to(loss.kind) and self.spent != LossAmount.nothing(kind):
            return BudgetRefused(f"{text}; {self.spent} is spent, which cannot be restated in {SYMBOLS[loss.kind]}")
        spent = self.spent.converted(loss.kind) if self.spent.converts_to(loss.kind) else LossAmount.nothing(loss.kind)
        enough = spent.plus(loss)
        if self.granted.converts_to(loss.kind):  # a grant takes the place of the one before
            enough = enough.at_least(self.granted.converted(loss.kind))
        return BudgetRefused(text, f"The owner allows enough in {SYMBOLS[loss.kind]} with", self._grant(enough))

    def refunded(self, loss: LossAmount) -> Account:
        """The account after a reservation was rolled back."""
        return replace(self, spent=self.spent.minus(loss))


def not_granted(dataset: str, analyst: str, asked: LossAmount) -> BudgetRefused:
    """What is said to an analyst without a grant, who asks for this much."""
    return BudgetRefused(
        f"no budget was granted to '{analyst}' on dataset '{dataset}'",
        "The owner grants it with",
        f"sfumato ledger grant {shlex.join([dataset, analyst])} {asked.options}",
    )


def agreed(budget: Protected | None, asked: Protected, dataset: str) -> Protected:
    """What the budget is about once this is spent: a budget about nothing yet takes what comes first."""
    if budget is None or budget == asked:
        return asked
    if budget.unit == asked.unit:
        raise BudgetRefused(
            f"the budget on dataset '{dataset}' is about {budget}, and this would be about {asked}: such losses do not add up. "
            f"Ask with neighbours='{budget.neighbours}'",
            _OWNER_CHANGES,
            change_command(dataset, budget, asked),
        )
    advice = (
        "Ask about each record: unit='record' or --unit record, and no role = \"unit\" in the schema"
        if budget.unit == RECORD
        else f"Name that unit: unit='{budget.unit}', --unit, or role = \"unit\" in the schema"
    )
    raise BudgetRefused(
        f"the budget on dataset '{dataset}' protects one {budget.unit}, and this would protect one {asked.unit}: losses about "
        f"different units do not add up. {advice}",
        _OWNER_CHANGES,
        change_command(dataset, budget, asked),
    )


def restated(budget: Protected | None, stated: Protected, dataset: str, *, spent: bool) -> Protected:
    """What the budget is about once the owner says so: anything, as long as nothing was spent on something else."""
    if spent and budget is not None and budget != stated:
        raise BudgetRefused(
            f"what was spent on dataset '{dataset}' is about {budget}, so that a grant cannot make its budget be about {stated}",
            "Grant without a unit, or carry over what was spent",
            change_command(dataset, budget, stated),
        )
    return stated


def change_command(dataset: str, before: Protected, after: Protected) -> str:
    """What the owner types to make a budget be about something else."""
    members = before.unit != after.unit and after.unit != RECORD
    relation = "" if after.neighbours == "add_remove" else f" --neighbours {after.neighbours}"
    most = " --rows-per-unit MOST" if members else ""
    return f"sfumato ledger unit {shlex.quote(dataset)} --unit {shlex.quote(after.unit)}{relation}{most}"
