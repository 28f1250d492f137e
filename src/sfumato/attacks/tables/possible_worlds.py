"""All tables that may lie behind one released class: which group of people has how many of which value, counted exactly.

A world gives every person of the class one of its values. Worlds that agree in how many people of each group have each
value are counted together (multinomial coefficients), so what is gone through are tables of counts with the known margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, combinations
from typing import Any

import numpy as np

Counts = tuple[int, ...]

#: Cells of tables, times splits, that are gone through for one class.
_MOST_STEPS = 10_000_000
#: Groups times people up to which the ways of one value are counted.
_QUICK = 100_000


@dataclass(frozen=True)
class Requirement:
    """What a class must keep: at least k people, and no value in more than 1/l of it (or, `distinct`, l different values).

    `any_split`: the algorithm would also have split the class in two, not only published the groups as they are.
    """

    l: int  # noqa: E741 - the name of the parameter in the literature
    k: int
    distinct: bool
    any_split: bool

    def holds(self, counts: Sequence[int], constrained: Sequence[bool]) -> bool:
        """Whether people with so many of each value may be a class."""
        people = sum(counts)
        if self.distinct:
            return sum(count > 0 for count in counts) >= self.l
        return all(count * self.l <= people for count, meant in zip(counts, constrained, strict=True) if meant)


@dataclass(frozen=True, eq=False)
class PossibleWorlds:
    """The worlds of one class: how many there are, how often they give each value to each group, and the same for those
    worlds (`kept`) in which a finer table would have kept the requirement.

    `forced`: the class had to be merged for k whatever the values. `too_large`: not gone through.
    """

    sizes: Counts
    values: tuple[Any, ...] = field(repr=False)
    margins: Counts = field(repr=False)
    released_keeps: bool
    forced: bool = False
    too_large: bool = False
    total: int = field(default=1, repr=False)
    kept: int = field(default=0, repr=False)
    sums: list[list[int]] = field(default_factory=list, repr=False)
    kept_sums: list[list[int]] = field(default_factory=list, repr=False)

    def shown(self) -> list[list[Fraction]]:
        """What the release alone says: for every group the shares of the values in the class."""
        people = sum(self.sizes)
        return [[Fraction(margin, people) for margin in self.margins] for _ in self.sizes]

    def refused(self) -> list[list[Fraction]]:
        """For every group the probability of each value, over the worlds in which no finer table was possible."""
        if len(self.sizes) == 1 or self.forced or self.too_large:
            return self.shown()
        left = self.total - self.kept
        if not left:
            from sfumato.core.errors import InputError

            raise InputError("minimality: no table behind a merged class would have needed merging, so this is not the algorithm")
        return [
            [Fraction(total - kept, left * size) for total, kept in zip(self.sums[group], self.kept_sums[group], strict=True)]
            for group, size in enumerate(self.sizes)
        ]

    def most_common_share(self) -> Fraction:
        """The largest share of a constrained value in the class as released."""
        meant = [margin for value, margin in zip(self.values, self.margins, strict=True) if isinstance(value, str | None)]
        return Fraction(max(meant, default=0), sum(self.sizes))

    def share_of(self, text: str) -> Fraction:
        """The share of one value in the class as released."""
        margins = [margin for value, margin in zip(self.values, self.margins, strict=True) if value == text]
        return Fraction(sum(margins), sum(self.sizes))


def worlds_of_class(
    sizes: Sequence[int],
    counts: Mapping[Any, int],  # of texts, None, and what stands for all others
    requirement: Requirement,
    limit: int,
) -> PossibleWorlds:
    """Go through the tables of counts behind a class of groups of these sizes with these values, unless there are more than
    the limit of them, or so many that it would take long."""
    sizes, values, margins = tuple(sizes), tuple(counts), tuple(counts.values())
    # Values that stand for "all others" are no texts and carry no constraint.
    constrained = [isinstance(value, str | None) for value in values]
    keeps = requirement.holds(margins, constrained)
    if _merged_for_k(sizes, requirement):
        return PossibleWorlds(sizes, values, margins, keeps, forced=True, total=1, kept=0)
    steps = len(sizes) * len(values) * _splits_to_try(len(sizes), requirement)
    most = min(limit, _MOST_STEPS // max(steps, 1))
    if _tables_at_least(sizes, margins, most) > most:
        return PossibleWorlds(sizes, values, margins, keeps, too_large=True)
    finer = _finer(sizes, requirement)
    totals = [[0] * len(values) for _ in sizes]
    kept_found = [[0] * len(values) for _ in sizes]
    total = kept = 0
    for number, (table, weight) in enumerate(_tables(sizes, margins)):
        if number >= most:
            return PossibleWorlds(sizes, values, margins, keeps, too_large=True)
        fine = len(sizes) == 1 or any(_all_hold(table, blocks, requirement, constrained) for blocks in finer)
        total += weight
        kept += weight * fine
        for group, row in enumerate(table):
            for place, count in enumerate(row):
                totals[group][place] += weight * count
                kept_found[group][place] += weight * count * fine
    return PossibleWorlds(sizes, values, margins, keeps, total=total, kept=kept, sums=totals, kept_sums=kept_found)


def _merged_for_k(sizes: Counts, requirement: Requirement) -> bool:
    """Whether no finer table would have had k people in every class."""
    if len(sizes) == 1:
        return False
    if not requirement.any_split:
        return min(sizes) < requirement.k
    # Two blocks of at least k: some sum of sizes lies between k and everybody less k.
    reached, most = 1, sum(sizes) - requirement.k
    if most < requirement.k:
        return True
    for size in sizes:
        reached |= reached << size
    return not (reached >> requirement.k) & ((1 << (most - requirement.k + 1)) - 1)


def _splits_to_try(groups: int, requirement: Requirement) -> int:
    """How many finer tables the algorithm may have preferred."""
    return max(1, (1 << (groups - 1)) - 1) if requirement.any_split else 1


def _tables_at_least(sizes: Counts, margins: Counts, enough: int) -> int:
    """A number of tables that there are at least, found without going through them; counted no further than `enough`."""
    present = tuple(margin for margin in margins if margin)
    bounds = ((groups, margin) for groups, others in ((sizes, present), (present, sizes)) for margin in sorted(set(others)))
    most = 1
    for groups, margin in bounds:
        most = max(most, _rows_at_least(groups, margin, enough))
        if most <= enough and len(groups) * margin <= _QUICK:
            most = max(most, _columns_of_counts(groups, margin))
        if most > enough:
            break
    return most


def _rows_at_least(groups: Counts, margin: int, enough: int) -> int:
    """From the number of groups alone. Give h of the g groups one person more with a value than the others: each choice of
    the h is another table. It needs h people who have the value, and room for the others who have it: all but one of each
    group."""
    count = len(groups)
    chosen = min(max(count // 2, margin - (sum(groups) - count)), margin)
    ways = 1
    for step in range(min(chosen, count - chosen)):
        ways = ways * (count - step) // (step + 1)
        if ways > enough:
            break
    return ways


def _columns_of_counts(groups: Counts, margin: int) -> int:
    """In how many ways a value that so many people have falls on the groups, up to a trillion; the other values fit around
    each."""
    ways = np.zeros(margin + 1)
    ways[0] = 1.0
    for size in groups:
        summed = np.cumsum(ways)
        summed[size + 1 :] -= summed[: max(0, margin - size)].copy()
        ways = np.minimum(summed, 1e12)
    return int(ways[margin])


def _finer(sizes: Counts, requirement: Requirement) -> list[tuple[tuple[int, ...], ...]]:
    """The finer classes that the algorithm would have preferred, as blocks of groups; only those with k people each."""
    everybody = range(len(sizes))
    if len(sizes) == 1:
        return []
    splits: list[tuple[tuple[int, ...], ...]] = [tuple((group,) for group in everybody)]
    if requirement.any_split:
        # Finer splits need not be tried: where their blocks keep the requirement, so do unions of them.
        splits = [
            (block, tuple(group for group in everybody if group not in block))
            for size in range(1, len(sizes))
            for block in combinations(everybody, size)
            if 0 in block
        ]
    return [blocks for blocks in splits if all(sum(sizes[group] for group in block) >= requirement.k for block in blocks)]


def _all_hold(
    table: Sequence[Counts], blocks: Sequence[tuple[int, ...]], requirement: Requirement, constrained: Sequence[bool]
) -> bool:
    return all(
        requirement.holds([sum(column) for column in zip(*(table[group] for group in block), strict=True)], constrained)
        for block in blocks
    )


def _tables(sizes: Counts, margins: Counts) -> Iterator[tuple[tuple[Counts, ...], int]]:
    """All tables with these row and column sums, each with the number of worlds it stands for."""
    # A stack in place of recursion: a class may have more groups than calls may be nested. Each level holds the rows of one
    # group that are still to be tried, what is left of the margins, and the number of worlds of the rows above.
    table: list[Counts] = []
    levels = [(_rows(sizes[0], margins), margins, 1)]
    while levels:
        rows, margins_left, worlds = levels[-1]
        if len(levels) == len(sizes):
            # Whoever is left has what is left.
            yield (*table, margins_left), worlds * _ways(margins_left)
            row = None
        else:
            row = next(rows, None)
        if row is None:
            levels.pop()
            if table:
                table.pop()
            continue
        table.append(row)
        left = tuple(margin - count for margin, count in zip(margins_left, row, strict=True))
        levels.append((_rows(sizes[len(levels)], left), left, worlds * _ways(row)))


def _rows(people: int, margins: Counts) -> Iterator[Counts]:
    """All ways to give so many people values without exceeding the margins."""
    after = [*accumulate(reversed(margins[1:]), initial=0)][::-1]
    row: list[int] = []
    levels = [_shares(people, margins[0], after[0])]
    while levels:
        count = next(levels[-1], None)
        if count is None:
            levels.pop()
            if row:
                people += row.pop()
            continue
        if len(levels) == len(margins):
            yield (*row, count)
            continue
        row.append(count)
        people -= count
        levels.append(_shares(people, margins[len(row)], after[len(row)]))


def _shares(people: int, margin: int, after: int) -> Iterator[int]:
    """How many of these people may have a value, when so many others are left for the values after it."""
    return iter(range(max(0, people - after), min(people, margin) + 1))


def _ways(row: Counts) -> int:
    """How many different assignments of values to the people of a group these counts stand for."""
    ways, people = 1, 0
    for count in row:
        people += count
        ways *= math.comb(people, count)
    return ways
