"""All tables that may lie behind one released class: which group of people has how many of which value, counted exactly.

A world gives every person of the class one of its values. Worlds that agree in how many people of each group have each
value are counted together (multinomial coefficients), so what is gone through are tables of counts with the known margins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any

Counts = tuple[int, ...]


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
class Worlds:
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


def worlds_of_class(sizes: Sequence[int], counts: Mapping[Any, int], requirement: Requirement, limit: int) -> Worlds:
    """Go through the tables of counts behind a class of groups of these sizes with these values."""
    sizes, values, margins = tuple(sizes), tuple(counts), tuple(counts.values())
    # Values that stand for "all others" are no texts and carry no constraint.
    constrained = [isinstance(value, str | None) for value in values]
    keeps = requirement.holds(margins, constrained)
    finer = _finer(sizes, requirement)
    if len(sizes) > 1 and not finer:
        return Worlds(sizes, values, margins, keeps, forced=True, total=1, kept=0)
    found = [[0] * len(values) for _ in sizes]
    kept_found = [[0] * len(values) for _ in sizes]
    total = kept = 0
    for number, (table, weight) in enumerate(_tables(sizes, margins)):
        if number >= limit:
            return Worlds(sizes, values, margins, keeps, too_large=True)
        fine = len(sizes) == 1 or any(_all_hold(table, blocks, requirement, constrained) for blocks in finer)
        total += weight
        kept += weight * fine
        for group, row in enumerate(table):
            for place, count in enumerate(row):
                found[group][place] += weight * count
                kept_found[group][place] += weight * count * fine
    return Worlds(sizes, values, margins, keeps, total=total, kept=kept, sums=found, kept_sums=kept_found)


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
    if len(sizes) == 1:
        yield (margins,), _ways(margins)
        return
    for row in _rows(sizes[0], margins):
        left = tuple(margin - count for margin, count in zip(margins, row, strict=True))
        ways = _ways(row)
        for rest, weight in _tables(sizes[1:], left):
            yield (row, *rest), ways * weight


def _rows(people: int, margins: Counts) -> Iterator[Counts]:
    """All ways to give so many people values without exceeding the margins."""
    if len(margins) == 1:
        if people <= margins[0]:
            yield (people,)
        return
    rest = sum(margins[1:])
    for count in range(max(0, people - rest), min(people, margins[0]) + 1):
        for row in _rows(people - count, margins[1:]):
            yield (count, *row)


def _ways(row: Counts) -> int:
    """How many different assignments of values to the people of a group these counts stand for."""
    ways, people = 1, 0
    for count in row:
        people += count
        ways *= math.comb(people, count)
    return ways
