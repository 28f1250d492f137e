"""Specialising classes: split a class over the children of one shown value as long as every part keeps the
promises.

The engine of top-down specialisation and of the refinement after a local recoding. All classes are tried at once,
attribute by attribute; each takes the split it prefers, and only classes that split are tried again. Ordered attributes that
may show ranges of their own are cut in two, the others split over the children of their common ancestor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises
from sfumato.anonymity.search.base import Problem
from sfumato.anonymity.search.classes import tight_levels
from sfumato.anonymity.search.ranges import ActiveClasses, Cutting, cut, saved_in_ranges
from sfumato.core.progress import Progress
from sfumato.kernels.classes.grouping import group_keys
from sfumato.kernels.classes.rollup import add_up

Int = NDArray[np.int64]
Heuristic = Literal["loss", "fewest_children"]


@dataclass
class _Split:
    """A possible split of the active classes over one attribute: the part of every tuple, the score of every class
    (-inf: impossible)."""

    part: Int  # per member: 0 when it stays in the class, otherwise 1 + number of its sub-class
    score: NDArray[np.float64]


def specialise(
    problem: Problem,
    promises: Promises,
    totals: Int,
    class_of: Int,
    *,
    partial: bool,
    heuristic: Heuristic = "loss",
    cutting: Cutting | None = None,
    progress: Progress,
) -> Int:
    """Class of every tuple (negative ones are left alone) after splitting as long as possible.

    With `partial`, children that fail may stay behind together in the more general class, if that still keeps the
    promises. `cutting` says along which attributes classes are cut in two.
    """
    result = class_of.copy()
    members = np.flatnonzero(result >= 0)
    next_class = int(result.max(initial=-1)) + 1
    rounds = 0
    while members.size:
        progress("refining classes", rounds, 0)
        rounds += 1
        classes = _active(problem, promises, totals, members, result)
        order, numbers = classes.order, classes.numbers
        if not order.size:
            return result
        splits = _all_splits(problem, promises, classes, partial, heuristic, cutting)
        scores = np.stack([split.score for split in splits])
        best = np.argmax(scores, axis=0)
        split_classes = scores[best, np.arange(classes.count)] > -np.inf
        if not split_classes.any():
            return result
        part = np.stack([split.part for split in splits])[best[numbers], np.arange(order.size)]
        active = split_classes[numbers]
        moved = active & (part > 0)
        # a sub-class is (class, part); the members that stay behind keep the class number
        keys = numbers[moved] * (int(part.max(initial=0)) + 1) + part[moved]
        fresh, _ = group_keys(np.ascontiguousarray(keys))
        result[order[moved]] = next_class + fresh
        next_class += int(fresh.max(initial=-1)) + 1
        members = order[active]
    return result


def _active(problem: Problem, promises: Promises, totals: Int, members: Int, class_of: Int) -> ActiveClasses:
    """The classes of these members that are large enough to be split into two."""
    order = members[np.argsort(class_of[members], kind="stable")]
    starts = _starts(class_of[order])
    if promises.layout.population < 0:  # with a population a part may have people and no record
        sizes = np.add.reduceat(totals[order, 0], starts) if order.size else np.zeros(0, dtype=np.int64)
        order = order[np.repeat(sizes >= 2 * promises.k, np.diff(np.append(starts, order.size)))]
        starts = _starts(class_of[order])
    numbers = np.repeat(np.arange(starts.size, dtype=np.int64), np.diff(np.append(starts, order.size)))
    table = problem.table
    return ActiveClasses(order, numbers, starts, np.ascontiguousarray(totals[order]), table.codes[:, order], table.weights)


def _starts(sorted_classes: Int) -> Int:
    """Where each class starts in a sorted list of classes."""
    return np.flatnonzero(np.append(True, np.diff(sorted_classes) != 0)[: sorted_classes.size])


def _all_splits(
    problem: Problem,
    promises: Promises,
    active: ActiveClasses,
    partial: bool,
    heuristic: Heuristic,
    cutting: Cutting | None,
) -> list[_Split]:
    order, numbers, classes, member_totals = active.order, active.numbers, active.count, active.totals
    levels = tight_levels(problem, order, numbers, classes)
    splits = []
    for a, tree in enumerate(problem.table.hierarchies):
        places = None if cutting is None else cutting.places[a]
        if cutting is not None and places is not None:
            part, score = cut(active, promises, a, places, balanced=cutting.balanced)
            if cutting.every:
                score = np.where(score > -np.inf, saved_in_ranges(active, part, cutting), -np.inf)
            splits.append(_Split(part, score))
            continue
        codes = active.codes[a]
        level = np.where(levels[a] < 0, tree.height + 1, levels[a])[numbers]
        can = level > 0
        # the children that really occur: one level below the lowest common ancestor
        child = tree.node_of[np.maximum(level - 1, 0), codes].astype(np.int64)
        shown = tree.node_of[np.minimum(level, tree.height), codes]
        gain = float(problem.table.weights[a]) * np.where(can, tree.loss[shown] - tree.loss[child], 0.0)
        keys = numbers * len(tree.labels) + child
        subs, first = group_keys(np.ascontiguousarray(keys))
        sub_totals = add_up(subs, member_totals, first.size)
        sub_class = numbers[first]
        allowed = can[first]
        good = promises.holds(sub_totals) & allowed
        records = member_totals[:, 0]
        stays, possible = _decide(promises, sub_totals, sub_class, child[first], good, classes, partial)
        goes = ~stays[subs] & possible[numbers] & can
        # rounded, because sums that differ only in the order of their terms must compare equal whatever the order of rows
        saved: NDArray[np.float64] = np.round(np.bincount(numbers, weights=gain * records * goes, minlength=classes), 9)
        if heuristic == "fewest_children":
            children = np.bincount(sub_class, minlength=classes)
            saved = np.where(possible, 1.0 / np.maximum(children, 1), 0.0)
        worthwhile = possible & (np.bincount(numbers, weights=goes, minlength=classes) > 0)
        part = np.where(goes, subs + 1, 0)
        if cutting is not None and cutting.every:
            saved = np.asarray(saved + saved_in_ranges(active, part, cutting))
        splits.append(_Split(part, np.where(worthwhile, saved, -np.inf)))
    return splits


def _decide(
    promises: Promises,
    sub_totals: Int,
    sub_class: Int,
    sub_node: Int,
    good: NDArray[np.bool_],
    classes: int,
    partial: bool,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which sub-classes stay behind, and which classes can be split at all."""
    bad_count = np.bincount(sub_class[~good], minlength=classes)
    good_count = np.bincount(sub_class[good], minlength=classes)
    stays = ~good
    possible = (bad_count == 0) & (good_count > 1)
    if not partial:
        return stays, possible
    behind = np.flatnonzero((bad_count > 0) & (good_count > 0))
    if not behind.size:
        return stays, possible
    rest = add_up(sub_class[stays], np.ascontiguousarray(sub_totals[stays]), classes)
    rest_good = promises.holds(rest)
    mended = behind[rest_good[behind]]
    possible[mended] = True
    # where the rest is too small, the smallest good child stays behind with it, if another child remains to go
    open_classes = behind[~rest_good[behind] & (good_count[behind] > 1)]
    if open_classes.size:
        candidates = np.flatnonzero(good & np.isin(sub_class, open_classes))
        # equal sizes are distinguished by their node, so that the order of rows does not matter
        ranked = candidates[np.lexsort((sub_node[candidates], sub_totals[candidates, 0], sub_class[candidates]))]
        smallest = ranked[np.unique(sub_class[ranked], return_index=True)[1]]
        wider = rest[sub_class[smallest]] + sub_totals[smallest]
        fine = promises.holds(np.ascontiguousarray(wider))
        stays[smallest[fine]] = True
        possible[sub_class[smallest[fine]]] = True
    return stays, possible
