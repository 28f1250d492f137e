"""What earlier charges mean once a budget is about another unit: the loss of as many steps as the change needs.

The owner says how many rows one unit has at most; a charge per record then counts as the loss of that many together. Where
that is unknown the charge stays as it is, and later answers say that it is not covered. A charge about whole
patients counts twice for one of their records: the patient goes and comes back without it. The argument is in
docs/theory/units-and-groups.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sfumato.core.errors import BudgetRefused, InputError
from sfumato.core.guarantees.loss import RECORD
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.ledger.accounts import Account, Protected, Spend
from sfumato.ledger.amounts import LossAmount
from sfumato.ledger.chain import Entry
from sfumato.ledger.group_loss import MOST, grouped


@dataclass(frozen=True)
class UnitChange:
    """The budget was about `before` and is about `after` from this entry on, of which one has at most `most` of before.

    >>> UnitChange(7, Protected("record"), Protected("patient"), 8).steps
    8
    """

    sequence: int
    before: Protected | None
    after: Protected
    most: int | None = None

    @property
    def counts_members(self) -> bool:
        """True where `most` is needed: one record belongs to one unit, and a unit to itself."""
        return self.before is not None and self.before.unit != self.after.unit and self.after.unit != RECORD

    @property
    def can_be_covered(self) -> bool:
        """False where no number of steps leads from one relation to the other: see `dp.between`."""
        return self.before is not None and self.before.neighbours == "add_remove"

    @property
    def steps(self) -> int | None:
        """How many steps of `before` one step of `after` takes at most; None where nobody knows."""
        if self.before is None or not self.can_be_covered:
            return None
        if self.counts_members and self.most is None:
            return None
        members = (self.most or 1) if self.counts_members else 1
        # Rows come and go whole. Other units may be there with other rows too: each goes, and comes back changed.
        whole = self.before.unit in (RECORD, self.after.unit)
        return members * (1 if whole else 2) * (2 if self.after.neighbours == "replace" else 1)

    def to_mapping(self) -> PlainDict:
        """Plain data, as the ledger keeps it beside the chain."""
        before = None if self.before is None else self.before.to_mapping()
        return {"after": self.after.to_mapping(), "before": before, "most": self.most, "sequence": self.sequence}

    @classmethod
    def from_mapping(cls, mapping: Plain) -> UnitChange:
        """Read plain data back."""
        before = None if mapping["before"] is None else Protected.from_mapping(mapping["before"])
        after = Protected.from_mapping(mapping["after"])
        if after is None or type(mapping["sequence"]) is not int or type(mapping["most"]) not in (int, type(None)):
            raise InputError("not a change of unit")
        return cls(mapping["sequence"], before, after, mapping["most"])


Changes = Sequence[UnitChange]


def changed(
    changes: Changes, current: Protected | None, stated: Protected, most: int | None, sequence: int, dataset: str
) -> tuple[UnitChange, ...]:
    """The changes with one more; stated again with another maximum, the last one is corrected."""
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST):
        raise InputError(f"the most rows of one unit is a whole number from 1 to {MOST:,}")
    if stated != current:
        last = UnitChange(sequence, current, stated, most)
        earlier = tuple(changes)
    elif changes and most is not None and changes[-1].counts_members:
        last, earlier = replace(changes[-1], most=most), tuple(changes[:-1])
    else:
        raise InputError(f"the budget on dataset '{dataset}' is about {stated} already")
    if most is not None and last.before is None:
        raise InputError(
            f"nobody said what was spent on dataset '{dataset}' is about, so that it cannot be carried over. Say it first, by a "
            "grant with --unit, or leave the maximum out"
        )
    if most is not None and not last.counts_members:
        raise InputError(f"from {last.before} to {stated} no maximum of rows is needed. Leave it out")
    if most is not None and not last.can_be_covered:
        raise InputError(
            f"what was spent on dataset '{dataset}' is about {last.before}, which does not bound a unit that comes or goes, "
            "however few rows it has. Leave the maximum out: later answers then say that those charges are not covered"
        )
    return (*earlier, last)


def steps_since(spend: Spend, changes: Changes) -> int | None:
    """How many steps of what a charge was about one step of the budget takes now; None where nobody knows."""
    later = [change for change in changes if change.sequence > spend.sequence]
    about = spend.protected or (later[0].before if later else None)
    # Where the budget was about the same again, whatever lay in between neither adds to the charge nor takes from it.
    back = max((place for place, change in enumerate(later, 1) if change.after == about), default=0)
    position = 1
    for change in later[back:]:
        if change.steps is None:
            return None
        position *= change.steps
    return position


def carried(spend: Spend, changes: Changes) -> LossAmount:
    """What a charge counts in the budget as it is now; one that nobody can carry over counts as it was entered."""
    steps = steps_since(spend, changes)
    if steps is not None and steps > MOST:
        raise BudgetRefused("the earlier charges would count for more rows than anybody has; state a smaller maximum")
    return grouped(spend.loss, steps or 1)


def opened(dataset: str, analyst: str, granted: LossAmount, earlier: Iterable[Spend], changes: Changes = ()) -> Account:
    """The account under a grant; earlier spends count, restated in the kind of this and for the unit of now."""
    spent = LossAmount.nothing(granted.kind)
    for spend in earlier:
        if spend.state != "rolled back":
            spent = spent.plus(carried(spend, changes))
    return Account(dataset, analyst, granted, spent)


#: How every notice begins about charges that are not covered.
NOT_COVERED = "not covered: "


@dataclass(frozen=True)
class Uncovered:
    """Charges about something else than the budget is about now, not carried over; `protected` is None if nobody noted it."""

    losses: tuple[LossAmount, ...]
    protected: Protected | None
    current: Protected

    def __str__(self) -> str:
        about = "without saying for whom" if self.protected is None else f"for {self.protected}"
        return f"{self._charged} {about}; what that means for {self.current} is not known and comes on top"

    @property
    def formerly(self) -> str:
        """In the words of earlier versions, which notices of their certificates state."""
        about = "without saying about whom" if self.protected is None else f"about {self.protected.formerly}"
        return f"{self._charged} {about}; what that tells of {self.current.formerly} is not known and comes on top"

    @property
    def _charged(self) -> str:
        return f"{NOT_COVERED}{' and '.join(str(loss) for loss in self.losses)} was charged earlier on this data set"


def owner_said(fixed: Entry | None) -> int:
    """Up to which entry the owner said what charges were about: only the entry that fixed the unit says what came before it; a
    later grant repeats what the budget is about."""
    return fixed.sequence if fixed is not None and fixed.kind == "grant" else 0


def is_covered(spend: Spend, changes: Changes, said: int) -> bool:
    """Whether a charge is about the unit of now, or can be restated for it; `said` is what `owner_said` says."""
    unsaid = spend.protected is None and spend.sequence > said and all(each.sequence < spend.sequence for each in changes)
    return not unsaid and steps_since(spend, changes) is not None


def uncovered(
    spends: Iterable[Spend], changes: Changes, current: Protected | None, first: Entry | None, fixed: Entry | None
) -> tuple[Uncovered, ...]:
    """What is not covered, by what it was about; `first` is the first charge, `fixed` the first entry that says what the budget
    is about.
    """
    if current is None or first is None or (not changes and "unit" in first.payload):
        return ()
    said = owner_said(fixed)
    totals: dict[tuple[Protected | None, str], LossAmount] = {}
    for spend in spends:
        if spend.state == "rolled back" or is_covered(spend, changes, said):
            continue
        later = [change for change in changes if change.sequence > spend.sequence]
        about = spend.protected or (later[0].before if later else None)
        key = (about, spend.loss.kind)
        totals[key] = totals[key].plus(spend.loss) if key in totals else spend.loss
    abouts = dict.fromkeys(about for about, _ in totals)
    return tuple(
        Uncovered(tuple(totals[key] for key in sorted(totals, key=_kind) if key[0] == each), each, current) for each in abouts
    )


def _kind(key: tuple[Protected | None, str]) -> str:
    return key[1]
