"""Pairs of ranks: as the definition says, rank by rank, with exactly the probabilities it gives."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.changes.rank_swapping import bucket_partners, distance_partners, stable_order, window_partners
from tests.kernels import swapping_inputs

Pairing = tuple[int, ...]
Choice = tuple[int, Fraction]


def law(count: int, choices: Callable[[int, list[int]], list[Choice]]) -> dict[Pairing, Fraction]:
    """The probability of every pairing: ranks in turn, `choices` says with whom an unswapped rank swaps and how likely."""
    found: Counter[Pairing] = Counter()

    def walk(rank: int, partner: list[int], probability: Fraction) -> None:
        if rank == count:
            found[tuple(partner)] += probability
            return
        open_ranks = [other for other in range(rank + 1, count) if partner[other] == other]
        options = choices(rank, open_ranks) if partner[rank] == rank else []
        if not options:
            walk(rank + 1, partner, probability)
        for other, share in options:
            swapped = partner.copy()
            swapped[rank], swapped[other] = other, rank
            walk(rank + 1, swapped, probability * share)

    walk(0, list(range(count)), Fraction(1))
    return dict(found)


def equally(ranks: list[int], share: Fraction = Fraction(1)) -> list[Choice]:
    return [(rank, share / len(ranks)) for rank in ranks]


def grid(cells: int) -> list[float]:
    return [(cell + 0.5) / cells for cell in range(cells)]


@pytest.mark.parametrize(("count", "window", "cells"), [(5, 1, 1), (6, 2, 2), (5, 3, 6), (6, 3, 6), (4, 4, 12), (4, 9, 6)])
def test_partners_in_a_window_are_exactly_uniform(count: int, window: int, cells: int) -> None:
    """Every combination of draws on a grid that divides evenly by any number of candidates: counts are probabilities."""
    found = Counter(
        tuple(window_partners(np.array(draws), window).tolist()) for draws in itertools.product(grid(cells), repeat=count)
    )
    expected = law(count, lambda rank, free: equally([other for other in free if other <= rank + window]))
    assert {pairing: Fraction(times, cells**count) for pairing, times in found.items()} == expected


def bucket_choices(width: int) -> Callable[[int, list[int]], list[Choice]]:
    def choices(rank: int, free: list[int]) -> list[Choice]:
        steps = {other // width - rank // width for other in free}
        total = sum(Fraction(1, 2**step) for step in steps)
        members = {step: [other for other in free if other // width - rank // width == step] for step in steps}
        return [choice for step in steps for choice in equally(members[step], Fraction(1, 2**step) / total)]

    return choices


def bucket_laws(count: int, width: int, bucket_cells: int, cells: int) -> Iterator[tuple[Pairing, Fraction]]:
    """All draws that matter: a rank that an earlier one has taken draws nothing."""
    steps = list(itertools.product(grid(bucket_cells), grid(cells)))

    def walk(rank: int, first: np.ndarray, second: np.ndarray, probability: Fraction) -> Iterator[tuple[Pairing, Fraction]]:
        partner = bucket_partners(first, second, width)
        if rank == count:
            yield tuple(partner.tolist()), probability
        elif partner[rank] < rank or rank == count - 1:
            yield from walk(rank + 1, first, second, probability)
        else:
            for first[rank], second[rank] in steps:
                yield from walk(rank + 1, first.copy(), second.copy(), probability / len(steps))

    yield from walk(0, np.zeros(count), np.zeros(count), Fraction(1))


@pytest.mark.parametrize(
    ("count", "width", "bucket_cells", "cells"), [(3, 1, 3, 1), (4, 1, 105, 1), (4, 2, 3, 2), (6, 3, 3, 6), (5, 9, 1, 12)]
)
def test_partners_by_buckets_have_exactly_the_stated_probabilities(count: int, width: int, bucket_cells: int, cells: int) -> None:
    found: Counter[Pairing] = Counter()
    for pairing, probability in bucket_laws(count, width, bucket_cells, cells):
        found[pairing] += probability
    assert dict(found) == law(count, bucket_choices(width))


def nearest_by_definition(distances: list[int]) -> list[int]:
    partner = list(range(len(distances)))
    done: set[int] = set()
    for rank, distance in enumerate(distances):
        others = [other for other in range(len(distances)) if other not in done and other != rank]
        if rank in done or not others:
            continue
        other = min(others, key=lambda other: (abs(other - (rank + distance)), -other))
        partner[rank], partner[other] = other, rank
        done |= {rank, other}
    return partner


@given(swapping_inputs.distances())
def test_partners_by_distance_are_the_nearest_unswapped_ranks(arguments: tuple[np.ndarray]) -> None:
    assert distance_partners(*arguments).tolist() == nearest_by_definition(arguments[0].tolist())


@given(
    st.one_of(
        swapping_inputs.window().map(lambda drawn: window_partners(*drawn)),
        swapping_inputs.distances().map(lambda drawn: distance_partners(*drawn)),
        swapping_inputs.buckets().map(lambda drawn: bucket_partners(*drawn)),
    )
)
def test_partners_are_mutual(partner: np.ndarray) -> None:
    assert partner[partner].tolist() == list(range(partner.size))


@given(swapping_inputs.window())
def test_only_the_last_ranks_can_be_left_without_a_partner(arguments: tuple[np.ndarray, int]) -> None:
    draws, window = arguments
    partner = window_partners(draws, window)
    alone = np.flatnonzero(partner == np.arange(partner.size))
    assert np.all(alone >= partner.size - window)
    assert np.all(np.abs(partner - np.arange(partner.size)) <= window)


@given(
    st.one_of(
        swapping_inputs.distances().map(lambda drawn: distance_partners(*drawn)),
        swapping_inputs.buckets().map(lambda drawn: bucket_partners(*drawn)),
    )
)
def test_without_a_hard_window_at_most_one_rank_is_left(partner: np.ndarray) -> None:
    assert np.count_nonzero(partner == np.arange(partner.size)) == partner.size % 2


@given(swapping_inputs.values())
def test_the_order_is_that_of_a_stable_sort(arguments: tuple[np.ndarray]) -> None:
    (values,) = arguments
    assert stable_order(values).tolist() == sorted(range(values.size), key=lambda i: values[i])


def test_the_order_of_many_values_is_that_of_a_stable_sort() -> None:
    values = np.random.default_rng(5).normal(size=20_000).round(2)
    assert np.array_equal(stable_order(values), np.argsort(values, kind="stable"))
