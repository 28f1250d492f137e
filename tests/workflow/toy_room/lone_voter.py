"""Guess who voted for an item, knowing that one of its voters is in the room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.core.view import Attack, AttackResult, View
from sfumato.data.schema import Schema


@dataclass(frozen=True)
class LoneVoter(Attack[View[Mapping[str, int], Schema], None]):
    """The best guess about the item with the fewest votes."""

    def fits(self, view: View[object, object]) -> bool:
        return view.certificate.get("content") == "Ballot"

    def run(self, view: View[Mapping[str, int], Schema], knowledge: None = None) -> AttackResult:
        best = 1 / min(view.result.values())
        return AttackResult("LoneVoter", best, 1 / sum(view.result.values()), (best, best), 1, "a voter of the rarest item")
