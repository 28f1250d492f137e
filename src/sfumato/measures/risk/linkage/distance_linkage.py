"""Distance-based record linkage: how many people an intruder with the original values finds in the masked file.

Every original record is linked to the nearest masked one; where several are equally near, one of them is guessed.
Pagliuca, Seri, "Some results of individual ranking method on the system of enterprise accounts annual survey", Esprit
SDC project 1999; Domingo-Ferrer, Torra, "A quantitative comparison of disclosure control methods for microdata", in:
Confidentiality, disclosure and data access, North-Holland 2001.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.ranges import DIFFERENT_COLUMNS, Either, OneOf
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, Masked, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records
from sfumato.kernels.linkage.points import own_is_nearest
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.linked import linked_score, owners_of, with_assumption, with_classes
from sfumato.measures.risk.linkage.spaces import Distance, LinkageDistance, space_of

Int = NDArray[np.int64]

#: As many subsets of the columns are all tried; beyond, runs of neighbouring columns stand for them.
_ALL_SUBSETS = 64
SUBSETS = "average over subsets"


@dataclass(frozen=True)
class DistanceLinkage(Measure[Microdata, Compared]):
    """Share of masked records that the nearest-neighbour rule gives back to their person, ties shared.

    Against an intruder who holds the original values of the `columns` compared: all of them (`knowledge=None`), those named in
    `knowledge`, or `"average over subsets"`: one column, two columns, … all of them, the mean over how many are
    known (up to six columns every combination; beyond, every run of neighbouring columns, cyclically). `distance` is
    "euclidean" (standardised), "mahalanobis", "gower" or "auto" (Gower as soon as there are categories).
    A record that was published several times is found when any of its rows is. Only people in the release are sought. A bare
    table is taken to stand in the order of the original. The floor is exactly 1/(masked
    records) where everybody has one row.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> DistanceLinkage(columns=("age", "income")).score(people, people).better
    'lower'
    """

    distance: LinkageDistance = "auto"
    knowledge: Annotated[
        tuple[str, ...] | str | None,
        Either((OneOf((SUBSETS,)), DIFFERENT_COLUMNS)),
        "the columns that the intruder knows, or the average over subsets; all of them where left out",
    ] = None
    columns: ComparedColumns = None
    key: ClassVar[str] = "distance_linkage"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The share; with subsets the parts tell it by how many columns are known."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        owner = owners_of(masked)
        meaning = "share of people whom the nearest masked record gives away to an intruder with their original values"
        meaning = with_assumption(meaning, released)
        if self.knowledge == SUBSETS:
            return self._over_subsets(left, right, masked, meaning)
        if isinstance(self.knowledge, tuple):
            missing = [name for name in self.knowledge if name not in left.names]
            require(not missing, f"DistanceLinkage: knowledge names columns that are not compared: {', '.join(missing)}")
            left, right = _only(left, self.knowledge), _only(right, self.knowledge)
        credit = with_classes(linkage_credit(left, right, self.distance, owner), masked, left.names)
        return linked_score(self.key, credit, owner, meaning)

    def per_record(self, original: Microdata, released: Compared) -> NDArray[np.float64]:
        """For each masked record the chance that it is linked to its person, all compared columns being known."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        return with_classes(linkage_credit(left, right, self.distance, owners_of(masked)), masked, left.names)

    def _over_subsets(self, left: Records, right: Records, masked: Masked, meaning: str) -> Score:
        names, owner = left.names, owners_of(masked)
        total = np.zeros(left.size)
        parts, tried = {}, 0
        for size in range(1, len(names) + 1):
            chosen = list(_subsets(names, size))
            credit = np.zeros(left.size)
            for subset in chosen:
                linked = linkage_credit(_only(left, subset), _only(right, subset), self.distance, owner)
                credit += with_classes(linked, masked, subset)
            parts[f"{size} known"] = float(credit.mean() / len(chosen))
            total += credit / len(chosen)
            tried += len(chosen)
        return linked_score(self.key, total / len(names), owner, meaning, {**parts, "subsets": float(tried)})


def linkage_credit(
    original: Records, masked: Records, distance: Distance = "auto", owner: Int | None = None
) -> NDArray[np.float64]:
    """Per aligned record the chance of being linked correctly: where an own row is nearest, the own among the masked records
    tied, else 0. `owner` says whose a row is where somebody has several."""
    space = space_of(original, masked, distance)
    return own_is_nearest(space.original, space.released, space.metric, owner)


def _subsets(names: tuple[str, ...], size: int) -> Iterator[tuple[str, ...]]:
    if 2 ** len(names) <= _ALL_SUBSETS:
        yield from combinations(names, size)
    elif size == len(names):
        yield names
    else:
        for start in range(len(names)):
            yield tuple(names[(start + step) % len(names)] for step in range(size))


def _only(records: Records, names: tuple[str, ...]) -> Records:
    by_name = {column.name: column for column in records.columns}
    return Records(tuple(by_name[name] for name in names), records.size)
