"""Whom a budget protects: one kind of unit under one neighbour relation, for everybody who spends on a dataset.

Losses add up only where they are about the same: ε for one record says nothing of a patient who has a hundred, and ε
for replaced patients nothing of one patient more. A ledger knows units by their names and not how they lie inside each
other, so that whatever is not the same is refused, finer or coarser. The owner may change what a budget is about; what was
spent is carried over (`unit_changes`).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from sfumato.core.errors import BudgetRefused, InputError
from sfumato.core.guarantees.loss import RECORD, LossGuarantee, Neighbours, PureDP
from sfumato.ledger.chain import NAME_LIMIT


@dataclass(frozen=True)
class Protected:
    """A unit, by the name of its column or `record`, and which databases count as neighbours.

    >>> str(Protected("patient"))
    'one patient more or less'
    """

    unit: str = RECORD
    neighbours: Neighbours = "add_remove"

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not 0 < len(self.unit) <= NAME_LIMIT or not self.unit.isprintable():
            raise InputError(f"the name of a unit, such as its column's, has 1 to {NAME_LIMIT} printable characters")
        if self.neighbours not in get_args(Neighbours):
            raise InputError(f"neighbours is one of {', '.join(get_args(Neighbours))}")

    @classmethod
    def of(cls, guarantee: LossGuarantee) -> Protected:
        """What a guarantee is about."""
        return cls(guarantee.unit, guarantee.neighbours)

    @property
    def short(self) -> str:
        """The unit, with the relation where it is not the usual one."""
        return self.unit if self.neighbours == "add_remove" else f"{self.unit} (replaced)"

    def __str__(self) -> str:
        return PureDP(0, neighbours=self.neighbours, unit=self.unit).compared

    def to_mapping(self) -> dict[str, str]:
        """Plain data, as entries hold it."""
        return {"neighbours": self.neighbours, "unit": self.unit}

    @classmethod
    def told(cls, protected: Protected | None) -> dict[str, str | None]:
        """Plain data also where it is unknown."""
        return {"neighbours": None, "unit": None} if protected is None else {**protected.to_mapping()}

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Protected | None:  # plain data
        """What an entry says; None for one that does not, as those of earlier versions."""
        if "unit" not in given and "neighbours" not in given:
            return None
        return cls(given["unit"], given["neighbours"])


def agreed(budget: Protected | None, asked: Protected, dataset: str) -> Protected:
    """What the budget is about once this is spent: a budget about nothing yet takes what comes first."""
    if budget is None or budget == asked:
        return asked
    if budget.unit == asked.unit:
        raise BudgetRefused(
            f"the budget on dataset '{dataset}' is about {budget}, and this would be about {asked}: such losses do not add up. "
            f"Ask with neighbours='{budget.neighbours}', or {_owner_changes(dataset, budget, asked)}"
        )
    advice = (
        "Ask about each record: unit='record' or --unit record, and no role = \"unit\" in the schema"
        if budget.unit == RECORD
        else f"Name that unit: unit='{budget.unit}', --unit, or role = \"unit\" in the schema"
    )
    raise BudgetRefused(
        f"the budget on dataset '{dataset}' protects one {budget.unit}, and this would protect one {asked.unit}: losses about "
        f"different units do not add up. {advice}, or {_owner_changes(dataset, budget, asked)}"
    )


def restated(budget: Protected | None, stated: Protected, dataset: str, *, spent: bool) -> Protected:
    """What the budget is about once the owner says so: anything, as long as nothing was spent on something else."""
    if spent and budget is not None and budget != stated:
        raise BudgetRefused(
            f"what was spent on dataset '{dataset}' is about {budget}, so that a grant cannot make its budget be about {stated}. "
            f"Grant without a unit, or carry over what was spent: {change_command(dataset, budget, stated)}"
        )
    return stated


def change_command(dataset: str, before: Protected, after: Protected) -> str:
    """What the owner types to make a budget be about something else."""
    members = before.unit != after.unit and after.unit != RECORD
    relation = "" if after.neighbours == "add_remove" else f" --neighbours {after.neighbours}"
    most = " --rows-per-unit MOST" if members else ""
    return f"sfumato ledger unit {shlex.quote(dataset)} --unit {shlex.quote(after.unit)}{relation}{most}"


def _owner_changes(dataset: str, before: Protected, after: Protected) -> str:
    return (
        "have the owner change what the budget is about, which carries over what was spent: "
        f"{change_command(dataset, before, after)}"
    )
