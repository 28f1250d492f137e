"""Differencing: what is left of a class of one release when the classes of another that lie in it are taken away.

A release that suppresses fewer records than another about the same people shows, by subtraction, those whom the
other left out: both keep k, the difference may be one person. Denning, "Cryptography and data security", 1982,
chapter 6 (inference controls).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.attacks.candidates import matching
from sfumato.attacks.classes import Classes, Ids
from sfumato.attacks.coverage import containing
from sfumato.attacks.joint import Joint, classes_meeting
from sfumato.attacks.meaning import meanings
from sfumato.core.errors import Unsupported


@dataclass(frozen=True)
class Differences:
    """Groups of people, smaller than any class of the releases, that subtraction singles out.

    `searched` is False where the classes of no release lie within those of another, so that outsiders have
    nothing to subtract.
    """

    groups: int = 0
    people: int = 0
    smallest: int = 0
    searched: bool = False

    @classmethod
    def of(cls, sizes: Ids, limit: int, *, searched: bool) -> Differences:
        """From the sizes of what is left; only groups below the smallest class count."""
        small = sizes[(sizes > 0) & (sizes < limit)]
        return cls(int(small.size), int(small.sum()), int(small.min()) if small.size else 0, searched)

    def sentence(self, *, records: bool = False) -> str:
        """What was found, for the end of a finding; `records` where they cannot be called people."""
        if not self.searched:
            return (
                "Differences between the releases were not searched: no class of one is known to consist of classes of another."
            )
        if not self.groups:
            return "Subtracting one release from another, no group smaller than a class was found."
        groups = f"{self.groups:,} groups" if self.groups > 1 else "a group"
        one, many = ("record", "records") if records else ("person", "people")
        people = f"{self.people:,} {one if self.people == 1 else many}"
        least = f", the smallest of {self.smallest:,}" if self.groups > 1 else ""
        return (
            f"If the releases were made from the same records, subtracting one from another singles out {groups} smaller than "
            f"any class, {people} in all{least}: missing from one release, present in another."
        )


def differences(releases: Sequence[Classes], joint: Joint) -> Differences:
    """The small differences: those of real people where the original is at hand, otherwise those that classes
    lying within each other show.

    A person of the original counts as suppressed where no class fits; after local recoding another class may
    still fit, and then the person is not among those counted here.
    """
    limit = min((int(classes.sizes.min()) for classes in releases if classes.sizes.size), default=0)
    if joint.exact:
        return Differences.of(joint.suppressed_somewhere.astype(np.int64), limit, searched=True)
    left = [remainders(inner, outer) for inner in releases for outer in releases if inner is not outer]
    sizes = np.concatenate([sizes for sizes in left if sizes is not None] or [np.zeros(0, dtype=np.int64)])
    return Differences.of(sizes, limit, searched=any(sizes is not None for sizes in left))


def remainders(inner: Classes, outer: Classes) -> Ids | None:
    """For each class of `outer` that consists of whole classes of `inner` and a remainder, the size of the
    remainder; None where there is no such class.

    A class of `inner` is subtracted where all its people must be in one class of `outer`: it lies within that
    one and meets no other. Classes of `outer` that others meet in part are left out.
    """
    if not set(outer.quasi) <= set(inner.quasi):
        return None
    try:
        meets, met = classes_meeting(inner, outer)
    except Unsupported:  # too many combinations to look at
        return None
    within, whole = _lying_within(inner, outer)
    sole = np.bincount(meets, minlength=inner.sizes.size)[within] == 1
    within, whole = within[sole], whole[sole]
    parts = np.bincount(whole, minlength=outer.sizes.size)
    composed = (parts > 0) & (parts == np.bincount(met, minlength=outer.sizes.size))
    if not composed.any():
        return None
    taken = np.bincount(whole, weights=inner.sizes[within], minlength=outer.sizes.size).astype(np.int64)
    left: Ids = (outer.sizes - taken)[composed]
    return left


def _lying_within(inner: Classes, outer: Classes) -> tuple[Ids, Ids]:
    """Pairs of a class of `inner` and a class of `outer` that contains it in every column."""
    places = [inner.quasi.index(name) for name in outer.quasi]
    coverings = [containing(meanings(inner, place), meanings(outer, column)) for column, place in enumerate(places)]
    batches = list(matching([inner.shown[place] for place in places], coverings, outer.shown))
    nothing = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([batch[0] for batch in batches] or [nothing]),
        np.concatenate([batch[1] for batch in batches] or [nothing]),
    )
