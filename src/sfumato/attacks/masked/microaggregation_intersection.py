"""Microaggregation intersection: clusters of different groups of attributes meet in few records.

Where attributes are microaggregated group by group, a person belongs to one cluster of each; the adversary finds the nearest
cluster of each group and intersects their members. Nin, Herranz, Torra, "On the disclosure risk of multivariate
microaggregation", Data and Knowledge Engineering 67(3), 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sfumato.attacks.masked.register_records import MaskPart, TransparencyAttack, agreeing, only_masked, result_of
from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.ranges import Count, Each, Text
from sfumato.core.view import AttackResult, Detail
from sfumato.data.masked import TableView
from sfumato.measures.risk.linkage.sides import Sides, by_stratum
from sfumato.measures.risk.linkage.transparent_picks import pick_by_clusters


@dataclass(frozen=True)
class MicroaggregationIntersection(TransparencyAttack):
    """The adversary knows which attributes were clustered together and intersects the nearest clusters.

    `groups` are those sets of columns (default: as published; otherwise every masked column by itself); of each the `nearest`
    clusters to a person's values are taken; a group of which the register knows no value of a person says nothing about that
    person. Unless `groups` are given, a record has to agree in the quasi-identifiers that were not masked. `knowledge`:
    `Register(table, truth=…)`. Success: the expected share of people whose
    record is picked, at random in the intersection, or as the nearest one where the clusters have no record in common. With one
    group of all quasi-identifiers the intersection is a whole cluster: at most 1/k succeeds.
    """

    groups: Annotated[
        tuple[tuple[str, ...], ...] | None,
        Each(Each(Text("the name of a column"), at_least=1), what="a list of groups, each naming at least one column"),
        "the columns that were clustered together; as published where left out",
    ] = None
    nearest: Annotated[Count, "clusters of each group that are taken"] = 1

    reads: ClassVar[tuple[str, ...]] = ("attribute_groups",)

    def exploits(self, part: MaskPart) -> bool:
        """Some of the columns still show the clusters."""
        return bool(_groups((part,)))

    def refusal(self, view: TableView) -> InputError | None:
        """Where no groups are published, every masked column is one."""
        return None if self.groups is not None else self.shared(view)

    def attacked(self, sides: Sides, view: TableView, parts: Sequence[MaskPart]) -> AttackResult:
        """Intersect the clusters of everybody."""
        name = "MicroaggregationIntersection"
        listed: Sequence[Sequence[str]] = _groups(parts) if self.groups is None else self.groups
        if self.groups is None and not listed:
            listed = [(column,) for column in only_masked(sides, view, None, name)]
        shared_groups = [[column for column in group if column in sides.names] for group in listed]
        groups = [group for group in shared_groups if group]
        if not groups:
            raise MissingColumn(f"{name}: the register holds none of the columns that were clustered")
        strata = parts[0].strata if parts else ()
        if self.groups is None:
            sides = agreeing(sides, view, (*strata, *(column for group in groups for column in group)))
        picked = by_stratum(sides, strata, lambda part: pick_by_clusters(part, groups, self.nearest))
        counted = picked.candidates[picked.candidates > 0]
        details: dict[str, Detail] = {
            "attribute_groups": len(groups),
            "single_candidate": int(np.count_nonzero(picked.candidates == 1)),
            "own_record_among_candidates": int(np.count_nonzero(picked.own_found)),
            "without_candidate": int(np.count_nonzero(picked.candidates == 0)),
            "mean_candidates": float(counted.mean()) if counted.size else 0.0,
        }
        words = f"{len(groups)} group{'s' * (len(groups) != 1)} of attributes"
        how = f"choosing in the intersection of the nearest clusters of {words}"
        return result_of(name, sides, picked, how, details)


def _groups(parts: Sequence[MaskPart]) -> list[list[str]]:
    """The columns that were clustered together, of those that nothing else has changed."""
    groups = [part.own(group) for part in parts for group in part.facts["attribute_groups"]]
    return [group for group in groups if group]
