"""Differencing: what is left of a class of one release when the classes of another that lie in it are taken away.

A release that suppresses fewer records than another about the same people shows, by subtraction, those whom the
other left out: both keep k, the difference may be one person. Denning, "Cryptography and data security", 1982,
chapter 6 (inference controls).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.several.coverage import containing
from sfumato.attacks.several.joint import Joint, classes_meeting
from sfumato.attacks.tables.candidates import matching
from sfumato.attacks.tables.classes import Ids, ReleasedClasses
from sfumato.attacks.tables.meaning import meanings
from sfumato.core.errors import Unsupported


@dataclass(frozen=True)
class Differences:
    """Groups of people, smaller than any class of the release that they are in, that subtraction singles out.

    `searched` of the `classes` of all releases are known to consist of whole classes of another release: outsiders have
    only these to subtract from. `of_today` is True where the people of the original were looked up besides.
    """

    groups: int = 0
    people: int = 0
    smallest: int = 0
    searched: int = 0
    classes: int = 0
    of_today: bool = False

    @classmethod
    def of(cls, sizes: Ids, limits: Ids) -> Differences:
        """From the sizes of what is left, and the smallest class of the release that it is left in."""
        small = sizes[(sizes > 0) & (sizes < limits)]
        return cls(int(small.size), int(small.sum()), int(small.min()) if small.size else 0)

    def sentence(self, *, records: bool = False) -> str:
        """What was found, for the end of a finding; `records` where they cannot be called people."""
        if not self.groups and not self.searched:
            return (
                "Differences between the releases were not searched: no class of one is known to consist of classes of another."
                if not self.of_today
                else "Differences between the releases were only searched among the people of the table of today, and no group "
                "smaller than any class of the release that it is in was found."
            )
        if not self.groups:
            today = " Nor was one found among the people of the table of today." if self.of_today else ""
            return (
                f"{self.searched:,} of the {self.classes:,} classes of the releases are known to consist of whole classes of "
                "another, and subtracting these leaves no group smaller than any class of the release that it is in."
                f"{today} Other differences were not searched."
            )
        groups = f"{self.groups:,} groups" if self.groups > 1 else "a group"
        one, many = ("record", "records") if records else ("person", "people")
        people = f"{self.people:,} {one if self.people == 1 else many}"
        least = f", the smallest of {self.smallest:,}" if self.groups > 1 else ""
        which = "they are" if self.groups > 1 else "it is"
        return (
            f"If the releases were made from the same records, subtracting one from another singles out {groups} smaller than "
            f"any class of the release that {which} in, {people} in all{least}: missing from one release, present in another."
        )


def differences(
    releases: Sequence[ReleasedClasses], joint: Joint, unread: frozenset[str] = frozenset(), *, everybody: bool = False
) -> Differences:
    """The small differences that classes lying within each other show, of the two releases that show the smallest; where the
    joint combinations are those of `everybody` in the original also those of real people, if they are worse.

    A person of the original counts as suppressed where no class fits; after local recoding another class may
    still fit, and then the person is not among those counted here. Who left the table is seen by the classes alone.
    """
    smallest = np.array([int(classes.sizes.min()) if classes.sizes.size else 0 for classes in releases], dtype=np.int64)
    composed = [np.zeros(classes.sizes.size, dtype=np.bool_) for classes in releases]
    pairs = []
    for pair in combinations(range(len(releases)), 2):
        sizes, limits = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        twins = np.full(releases[pair[1]].sizes.size, -1, dtype=np.int64)  # per class of the second, the same class of the first
        for inner, outer in (pair, pair[::-1]):
            if unread & set(releases[outer].quasi):
                continue
            which, left, only = remainders(releases[inner], releases[outer])
            composed[outer] |= which
            if outer == pair[1]:
                twins[which] = only
                new = np.ones(left.size, dtype=np.bool_)
            else:  # two classes that are the same class differ once, whichever is taken for the whole
                new = (only < 0) | (twins[only] != np.flatnonzero(which))
            sizes.append(np.abs(left[new]))
            # who is missing from the parts is in the whole, and the other way round
            limits.append(np.where(left[new] > 0, smallest[outer], smallest[inner]))
        pairs.append(Differences.of(np.concatenate(sizes), np.concatenate(limits)))
    if everybody:
        limits_of_today = (joint.shown_in * smallest[:, None]).max(axis=0, initial=0)
        pairs.append(Differences.of(joint.suppressed_somewhere.astype(np.int64), limits_of_today))
    worst = min(pairs, key=lambda each: (not each.groups, each.smallest, -each.people))
    searched, classes = sum(int(each.sum()) for each in composed), sum(each.size for each in composed)
    return replace(worst, searched=searched, classes=classes, of_today=everybody)


def remainders(inner: ReleasedClasses, outer: ReleasedClasses) -> tuple[NDArray[np.bool_], Ids, Ids]:
    """Which classes of `outer` consist of whole classes of `inner` and a remainder, the size of each remainder (below zero
    where the parts have more records than the whole), and the part of each that has only one, -1 of the others.

    A class of `inner` is subtracted where all its people must be in one class of `outer`: it lies within that
    one and meets no other. Classes of `outer` that others meet in part are left out.
    """
    nothing = np.zeros(outer.sizes.size, dtype=np.bool_), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if not set(outer.quasi) <= set(inner.quasi):
        return nothing
    try:
        meets, met = classes_meeting(inner, outer)
    except Unsupported:  # too many combinations to look at
        return nothing
    within, whole = _lying_within(inner, outer)
    sole = np.bincount(meets, minlength=inner.sizes.size)[within] == 1
    within, whole = within[sole], whole[sole]
    parts = np.bincount(whole, minlength=outer.sizes.size)
    composed = (parts > 0) & (parts == np.bincount(met, minlength=outer.sizes.size))
    inside = np.bincount(whole, weights=inner.sizes[within], minlength=outer.sizes.size).astype(np.int64)
    left: Ids = (outer.sizes - inside)[composed]
    single = np.full(outer.sizes.size, -1, dtype=np.int64)
    single[whole] = within
    return composed, left, np.where(parts == 1, single, -1)[composed]


def _lying_within(inner: ReleasedClasses, outer: ReleasedClasses) -> tuple[Ids, Ids]:
    """Pairs of a class of `inner` and a class of `outer` that contains it in every column."""
    places = [inner.quasi.index(name) for name in outer.quasi]
    coverings = [containing(meanings(inner, place), meanings(outer, column)) for column, place in enumerate(places)]
    batches = list(matching([inner.shown[place] for place in places], coverings, outer.shown))
    nothing = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([batch[0] for batch in batches] or [nothing]),
        np.concatenate([batch[1] for batch in batches] or [nothing]),
    )
