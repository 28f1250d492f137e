"""Ballots: items with the number of people who voted for each; rare items are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from sfumato.core.declared import Declared
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.outcome import Outcome
from sfumato.core.ranges import Count


@dataclass(frozen=True)
class EnoughVotes(Guarantee):
    """Every published item has at least `k` votes."""

    k: Annotated[Count, "votes behind every item"]

    def claim(self) -> str:
        return f"every item has at least {self.k} votes"


@dataclass(frozen=True)
class DropRare(Declared):
    """Leave out the items with fewer than `k` votes."""

    k: Annotated[Count, "votes behind every item"]

    def run(self, votes: Mapping[str, int]) -> Outcome[dict[str, int]]:
        kept = {item: count for item, count in sorted(votes.items()) if count >= self.k}
        return Outcome(kept, (EnoughVotes(self.k),), {"name": "DropRare", "k": self.k})
