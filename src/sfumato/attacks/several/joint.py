"""Joint combinations of classes of several releases, and how many people are in each.

With the original rows a combination is what a real person has; without them it is whatever the hierarchies
allow, and each record is spread evenly over the records of the next release that can be the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.several.coverage import covering, overlapping
from sfumato.attacks.tables.candidates import matching
from sfumato.attacks.tables.classes import Ids, ReleasedClasses, encoded, grouped
from sfumato.attacks.tables.meaning import meanings
from sfumato.core.errors import MissingColumn, Unsupported

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

#: Most combinations of classes that are enumerated without the original.
MAX_COMBINATIONS = 20_000_000
#: Combinations over which records are spread at once.
_BATCH = 200_000


@dataclass(frozen=True, eq=False)
class Groups:
    """Sets of classes of one release: group g is the classes `classes[offsets[g]:offsets[g + 1]]`."""

    offsets: Ids = field(repr=False)
    classes: Ids = field(repr=False)


@dataclass(frozen=True, eq=False)
class Joint:
    """Combination j puts a person into group `groups_of[r][j]` of release r; `people[j]` is how many people
    have it."""

    groups: tuple[Groups, ...] = field(repr=False)
    groups_of: tuple[Ids, ...] = field(repr=False)
    people: NDArray[np.float64] = field(repr=False)
    exact: bool
    #: people who are missing from some release and in another, per combination of classes; known with the original
    suppressed_somewhere: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    #: releases × these combinations: whether they are in the release
    shown_in: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_), repr=False)

    def distinct_alone(self, release: int, rows: csr_matrix, distinct: Ids) -> Ids:
        """Different values that one release alone leaves in each combination; `rows` and `distinct` are by
        class."""
        groups = self.groups[release]
        if np.array_equal(groups.offsets, np.arange(groups.classes.size + 1)):
            return distinct[groups.classes][self.groups_of[release]]
        gathered = membership(groups, rows.shape[0]) @ rows
        gathered.eliminate_zeros()
        values: Ids = np.diff(gathered.indptr)[self.groups_of[release]].astype(np.int64)
        return values


def membership(groups: Groups, classes: int) -> csr_matrix:
    """Groups × classes, 1 where the class belongs to the group."""
    from scipy.sparse import csr_matrix

    ones = np.ones(groups.classes.size, dtype=np.int64)
    return csr_matrix((ones, groups.classes, groups.offsets), shape=(groups.offsets.size - 1, classes))


@dataclass(frozen=True, eq=False)
class LookedUp:
    """Per release the sets of classes that the people of the original match, and the set of each distinct person (-1: none);
    how many people each of these stands for."""

    groups: tuple[Groups, ...] = field(repr=False)
    of_person: tuple[Ids, ...] = field(repr=False)
    people: NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, releases: Sequence[ReleasedClasses], original: pa.Table, counts: Ids | None = None) -> LookedUp:
        """Look everybody up in every release; row i of the original stands for `counts[i]` people."""
        names = sorted({name for classes in releases for name in classes.quasi})
        missing = [name for name in names if name not in original.column_names]
        if missing:
            raise MissingColumn(f"the original, or the register, lacks quasi-identifiers of a release: {', '.join(missing)}")
        columns = {name: encoded(original, name) for name in names}
        tuple_of_person, first = grouped([columns[name].codes for name in names], original.num_rows)
        people = np.bincount(tuple_of_person, weights=counts, minlength=first.size).astype(np.float64)
        looked_up: list[tuple[Groups, Ids]] = []
        for classes in releases:
            used = [columns[name] for name in classes.quasi]
            coverings = [covering(meanings(classes, a), column.values) for a, column in enumerate(used)]
            batches = list(matching([column.codes[first] for column in used], coverings, classes.shown))
            person = np.concatenate([batch[0] for batch in batches]) if batches else np.zeros(0, dtype=np.int64)
            klass = np.concatenate([batch[1] for batch in batches]) if batches else np.zeros(0, dtype=np.int64)
            looked_up.append(_as_groups(person, klass, first.size))
        return cls(tuple(groups for groups, _ in looked_up), tuple(of_person for _, of_person in looked_up), people)

    def joint(self, chosen: Sequence[int]) -> Joint:
        """The combinations that people have in these releases; who matches no class of one of them is left out."""
        classes = [self.of_person[place] for place in chosen]
        everywhere = np.logical_and.reduce([of_tuple >= 0 for of_tuple in classes])
        ids, starts = grouped([of_tuple[everywhere] for of_tuple in classes], int(everywhere.sum()))
        suppressed, shown_in = _missing_somewhere(classes, self.people)
        return Joint(
            groups=tuple(self.groups[place] for place in chosen),
            groups_of=tuple(of_tuple[everywhere][starts] for of_tuple in classes),
            people=np.bincount(ids, weights=self.people[everywhere], minlength=starts.size).astype(np.float64),
            exact=True,
            suppressed_somewhere=suppressed,
            shown_in=shown_in,
        )


def joint_by_overlap(
    releases: Sequence[ReleasedClasses], values: Sequence[csr_matrix], unread: frozenset[str] = frozenset()
) -> Joint:
    """The combinations that the texts allow; in `unread` columns any text may stand for any value.

    `values` has per release the records of each class by their values in the columns that all show as they are. A record is
    taken to be, with the same chance, any record of the next release in an overlapping class that has its values: combinations
    without a common record hold nobody.
    """
    from scipy.sparse import csr_matrix, diags, vstack

    shared = set.intersection(*(set(classes.quasi) for classes in releases)) - unread
    start = releases[0]
    combination: list[Ids] = [np.arange(start.sizes.size, dtype=np.int64)]
    spread = diags(start.units / start.sizes) @ values[0].astype(np.float64)
    for following, records in zip(releases[1:], values[1:], strict=True):
        last = _pairs_meeting(releases, combination, following, shared)
        met = csr_matrix((np.ones(last[0].size), last), shape=(combination[0].size, following.sizes.size))
        chance = (met @ records).tocsr()
        chance.data = 1 / chance.data
        each = spread.multiply(chance).tocsr()
        parts = [
            each[last[0][begin : begin + _BATCH]].multiply(records[last[1][begin : begin + _BATCH]]).tocsr()
            for begin in range(0, max(last[0].size, 1), _BATCH)
        ]
        spread = vstack(parts).tocsr()
        combination = [*(ids[last[0]] for ids in combination), last[1]]
    people = np.asarray(spread.sum(axis=1), dtype=np.float64).reshape(-1)
    single = tuple(
        Groups(np.arange(classes.sizes.size + 1, dtype=np.int64), np.arange(classes.sizes.size, dtype=np.int64))
        for classes in releases
    )
    return Joint(single, tuple(combination), people, exact=False)


def classes_meeting(first: ReleasedClasses, second: ReleasedClasses) -> tuple[Ids, Ids]:
    """Pairs of a class of each release that may hold the same person."""
    everyone = np.arange(first.sizes.size, dtype=np.int64)
    return _pairs_meeting([first], [everyone], second, set(first.quasi) & set(second.quasi))


def _missing_somewhere(of_release: Sequence[Ids], people: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    present = np.array([of_tuple >= 0 for of_tuple in of_release])
    partly = present.any(axis=0) & ~present.all(axis=0)
    ids, starts = grouped([of_tuple[partly] + 1 for of_tuple in of_release], int(partly.sum()))
    return np.bincount(ids, weights=people[partly], minlength=starts.size).astype(np.float64), present[:, partly][:, starts]


def _pairs_meeting(
    releases: Sequence[ReleasedClasses], combination: Sequence[Ids], following: ReleasedClasses, shared: set[str]
) -> tuple[Ids, Ids]:
    """Pairs (combination so far, class of the next release) that may hold the same person."""
    count = combination[0].size
    if not shared:
        _refuse_too_many(count * following.sizes.size)
        classes = np.arange(following.sizes.size, dtype=np.int64)
        return np.repeat(np.arange(count), classes.size), np.tile(classes, count)
    names = [name for name in following.quasi if name in shared]
    first: tuple[Ids, Ids] | None = None
    for earlier, ids in zip(releases, combination, strict=False):
        values = [earlier.shown[earlier.quasi.index(name)][ids] for name in names]
        coverings = [
            overlapping(meanings(earlier, earlier.quasi.index(name)), meanings(following, following.quasi.index(name)))
            for name in names
        ]
        shown = [following.shown[following.quasi.index(name)] for name in names]
        meetings: list[tuple[Ids, Ids]] = []
        total = 0
        for batch in matching(values, coverings, shown):
            total += batch[0].size
            _refuse_too_many(total)
            meetings.append(batch)
        nothing = np.zeros(0, dtype=np.int64)  # no combination is left, or a release has no rows
        pairs = np.concatenate([nothing, *(b[0] for b in meetings)]), np.concatenate([nothing, *(b[1] for b in meetings)])
        if first is None:
            first = pairs
        else:
            width = following.sizes.size
            both = np.intersect1d(first[0] * width + first[1], pairs[0] * width + pairs[1])
            first = both // width, both % width
    assert first is not None  # noqa: S101  (there is at least one earlier release)
    return first


def _as_groups(person: Ids, klass: Ids, people: int) -> tuple[Groups, Ids]:
    """The different sets of classes that people match, and the set of each person (-1: none)."""
    counts = np.bincount(person, minlength=people)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    of_person = np.full(people, -1, dtype=np.int64)
    single = counts == 1
    alone, inverse = np.unique(klass[offsets[:-1][single]], return_inverse=True)
    of_person[single] = inverse.reshape(-1)
    sets: dict[bytes, int] = {}
    members: list[Ids] = []
    for p in np.flatnonzero(counts > 1).tolist():
        several = np.sort(klass[offsets[p] : offsets[p + 1]])
        key = several.tobytes()
        if key not in sets:
            sets[key] = alone.size + len(members)
            members.append(several)
        of_person[p] = sets[key]
    sizes = np.concatenate([np.ones(alone.size, dtype=np.int64), [m.size for m in members]]).astype(np.int64)
    return Groups(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([alone, *members]).astype(np.int64)), of_person


def _refuse_too_many(combinations: int) -> None:
    if combinations > MAX_COMBINATIONS:
        raise Unsupported(
            f"the releases allow more than {MAX_COMBINATIONS:,} combinations of classes, too many to go "
            "through. Run the attack with the original (OtherReleases(views, original=…)), which looks at real people only."
        )
