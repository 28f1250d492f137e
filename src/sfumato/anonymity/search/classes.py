"""From an assignment of records to classes to what each class shows.

Every class shows the lowest node above all its values, never higher than needed. Classes that come to show the same
values are one class in the release; they are merged and checked once more, and suppressed if a guarantee that does
not survive merging fails.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import cautious_units
from sfumato.anonymity.search.base import Problem
from sfumato.data.class_table import ClassTable
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy
from sfumato.data.recoding import SUPPRESSED, Recoding, Shown
from sfumato.data.texts.values import as_numbers
from sfumato.kernels.classes.grouping import group_columns
from sfumato.kernels.classes.rollup import add_up

Int = NDArray[np.int64]


def tight_levels(problem: Problem, members: Int, klass: Int, classes: int) -> Int:
    """`levels[a, c]`: the lowest hierarchy level of attribute a on which all tuples of class c agree.

    `members` are tuple numbers, `klass` the class of each, sorted by class.
    """
    starts = np.searchsorted(klass, np.arange(classes))
    levels = np.zeros((len(problem.table.hierarchies), classes), dtype=np.int64)
    for a, tree in enumerate(problem.table.hierarchies):
        codes = problem.table.codes[a, members]
        undecided = np.ones(classes, dtype=np.bool_)
        for level in range(tree.height + 1):
            nodes = tree.node_of[level, codes]
            agree = np.minimum.reduceat(nodes, starts) == np.maximum.reduceat(nodes, starts)
            levels[a, undecided & agree] = level
            undecided &= ~agree
            if not undecided.any():
                break
        levels[a, undecided] = -1
    return levels


def canonical_cells(table: ClassTable) -> Int:
    """The cells that hold records, ordered by their codes, so that the order of rows does not matter."""
    keys = [*table.sensitive_codes[::-1], *table.codes[::-1][:, table.tuple_of_cell]]
    order = np.lexsort(keys) if keys else np.zeros(0, dtype=np.int64)
    return order[table.cell_counts[order] > 0].astype(np.int64)


def show(
    problem: Problem,
    cell: Int,
    first: Int,
    count: Int,
    klass: Int,
    ranges: NDArray[np.bool_] | None = None,
    class_of: Int | None = None,
) -> Recoding:
    """The recoding of entries (cells or parts of cells) assigned to classes.

    `ranges[a]` shows attribute a as a range of its order. `class_of` is the class of every tuple: people of the
    population who were counted in a class without a record of theirs must be covered by what it shows.
    """
    table = problem.table
    kept = np.flatnonzero(klass != SUPPRESSED)
    order = kept[np.argsort(klass[kept], kind="stable")]
    if not order.size:
        empty = tuple(table.shown_at(a, np.zeros(0, np.int32)) for a in range(len(table.quasi)))
        return Recoding(cell, first, count, np.full(klass.size, SUPPRESSED), empty, 0)
    labels, inverse = np.unique(klass[order], return_inverse=True)
    numbers = inverse.reshape(-1).astype(np.int64)
    classes = int(numbers[-1]) + 1
    recorded = _renumber(klass, order, numbers)
    members, others = table.tuple_of_cell[cell[order]], np.zeros(classes, dtype=np.int64)
    if class_of is not None and problem.promises.layout.population > 0:
        alone = np.flatnonzero((table.counts == 0) & np.isin(class_of, labels))
        place = np.searchsorted(labels, class_of[alone])
        np.add.at(others, place, table.population[alone])
        members, numbers = np.concatenate([members, alone]), np.concatenate([numbers, place])
        order = np.argsort(numbers, kind="stable")
        members, numbers = members[order], numbers[order]
    levels = tight_levels(problem, members, numbers, classes)
    representative = members[np.searchsorted(numbers, np.arange(classes))]
    shown = []
    for a in range(len(table.quasi)):
        if ranges is not None and ranges[a] and table.quasi[a] not in table.set_valued:  # a range is no set
            shown.append(_ranges(problem, a, members, numbers, classes))
        else:
            shown.append(_nodes(problem, a, levels[a], table.codes[a, representative]))
    return _merge(problem, Recoding(cell, first, count, recorded, tuple(shown), classes), others)


def _nodes(problem: Problem, a: int, levels: Int, leaves: NDArray[np.int32]) -> Shown:
    """Show the common ancestors; values that have none (level -1) become `*`."""
    tree = problem.table.hierarchies[a]
    rootless = levels < 0
    shown = problem.table.shown_at(a, tree.node_of[np.maximum(levels, 0), leaves])
    if not rootless.any():
        return shown
    return Shown(
        (*shown.labels, ROOT),
        np.append(shown.loss, 1.0),
        np.append(shown.sizes, tree.total),
        np.append(shown.leaf, False),
        np.where(rootless, len(shown.labels), shown.of_class).astype(np.int32),
    )


def _renumber(klass: Int, order: Int, numbers: Int) -> Int:
    result = np.full(klass.size, SUPPRESSED, dtype=np.int64)
    result[order] = numbers
    return result


def _ranges(problem: Problem, a: int, members: Int, numbers: Int, classes: int) -> Shown:
    """Show the range of values in the attribute's order: `[28, 36)` for whole numbers, `[1.5, 2.5]` for other numbers,
    `low … high` for a declared order; `*` where a missing value is among them."""
    tree = problem.table.hierarchies[a]
    numeric = in_numeric_order(tree)
    whole = numeric and all(_is_whole(leaf) for leaf in tree.leaves if leaf is not None)
    codes = problem.table.codes[a, members]
    starts = np.searchsorted(numbers, np.arange(classes))
    low = np.minimum.reduceat(codes, starts)
    high = np.maximum.reduceat(codes, starts)
    pairs, of_class = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    labels = [_range_label(tree.leaves[int(lo)], tree.leaves[int(hi)], numeric, whole) for lo, hi in pairs]
    everything = np.array([label == ROOT for label in labels], dtype=np.bool_)
    most = len(tree.leaves) - 1
    width = np.where(everything, most, pairs[:, 1] - pairs[:, 0]).astype(np.float64)
    return Shown(tuple(labels), width / max(most, 1), width + 1.0, width == 0, of_class.reshape(-1).astype(np.int32))


def in_numeric_order(tree: Hierarchy) -> bool:
    """True when the leaves are numbers from small to large, missing values aside."""
    numbers = as_numbers([leaf for leaf in tree.leaves if leaf is not None])
    return numbers is not None and numbers == sorted(numbers)


def _range_label(low: str | None, high: str | None, numeric: bool, whole: bool) -> str | None:
    if low == high:
        return low
    if low is None or high is None:
        return ROOT
    if not numeric:
        return f"{low} … {high}"
    if whole:  # among fractions `[0, 2)` would cover more than 0 and 1
        return f"[{int(low)}, {int(high) + 1})"
    return f"[{low}, {high}]"


def _is_whole(text: str) -> bool:
    """A whole number written as usual; a code with leading zeros is none."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")


def _merge(problem: Problem, recoding: Recoding, others: Int) -> Recoding:
    """Merge classes that show the same texts; suppress merged classes that fail (possible only for non-monotone
    guarantees).

    `others` are the people of the population in each class who share no combination with a record.
    """
    texts = []
    for shown in recoding.shown:
        index: dict[str | None, int] = {}
        texts.append(np.array([index.setdefault(label, len(index)) for label in shown.labels], dtype=np.int32)[shown.of_class])
    numbers, first = group_columns(texts, [max(len(shown.labels), 1) for shown in recoding.shown])
    if first.size == recoding.classes and problem.promises.monotone:
        return recoding
    klass = np.where(recoding.klass >= 0, numbers[np.maximum(recoding.klass, 0)], SUPPRESSED)
    shown_once = tuple(Shown(s.labels, s.loss, s.sizes, s.leaf, s.of_class[first]) for s in recoding.shown)
    merged = Recoding(recoding.cell, recoding.first, recoding.count, klass, shown_once, int(first.size))
    if problem.promises.monotone:
        return merged
    return _drop_failing(problem, merged, add_up(numbers, others[:, None], int(first.size))[:, 0])


def _drop_failing(problem: Problem, recoding: Recoding, others: Int) -> Recoding:
    kept = recoding.klass >= 0
    totals = add_up(recoding.klass[kept], entry_totals(problem, recoding.cell[kept], recoding.count[kept]), recoding.classes)
    if problem.promises.layout.population > 0:
        totals[:, problem.promises.layout.population] += others
    good = problem.promises.holds(totals)
    if good.all():
        return recoding
    number = np.where(good, np.cumsum(good) - 1, SUPPRESSED)
    klass = np.where(kept, number[np.maximum(recoding.klass, 0)], SUPPRESSED)
    shown = tuple(Shown(s.labels, s.loss, s.sizes, s.leaf, s.of_class[good]) for s in recoding.shown)
    return Recoding(recoding.cell, recoding.first, recoding.count, klass, shown, int(good.sum()))


def entry_totals(problem: Problem, cell: Int, count: Int) -> Int:
    """Totals of entries: records, units and population (of the whole tuple, once per tuple),
    one-hot histograms."""
    table, layout = problem.table, problem.promises.layout
    totals = np.zeros((cell.size, layout.columns), dtype=np.int64)
    totals[:, 0] = count
    if layout.units:
        share = cautious_units(table, problem.promises.enough)[table.tuple_of_cell[cell]]
        firsts = np.unique(table.tuple_of_cell[cell], return_index=True)[1]
        totals[firsts, layout.units] = share[firsts]
    if layout.population > 0:
        firsts = np.unique(table.tuple_of_cell[cell], return_index=True)[1]
        totals[firsts, layout.population] = table.population[table.tuple_of_cell[cell]][firsts]
    for name, start in layout.starts.items():
        values = table.sensitive_codes[table.sensitive_index(name), cell]
        places = layout.places.get(name)
        totals[np.arange(cell.size), start + (values if places is None else places[values])] = count
    return totals
