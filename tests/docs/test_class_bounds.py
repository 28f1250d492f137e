"""docs/theory/class-bounds.md holds: no kept part of a failing class is larger than its bound allows.

Every sub-multiset of a small class is tried, so a bound that asks for one record too many would be found.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.kernels.classes import checks as class_checks
from sfumato.kernels.classes.closeness import closeness
from sfumato.kernels.compiled import Kernel

Counts = tuple[int, ...]
Keeps = Callable[[np.ndarray], bool]

VALUES = 4
counts = st.lists(st.integers(0, 5), min_size=VALUES, max_size=VALUES).map(tuple).filter(any)
references = st.lists(st.integers(1, 6), min_size=VALUES, max_size=VALUES).map(lambda w: np.array(w, float) / sum(w))
tenths = st.integers(1, 9).map(lambda n: n / 10)


def in_both_forms(check: Callable[..., np.ndarray]) -> list[Callable[..., np.ndarray]]:
    """The compiled loop, run as plain Python, and its NumPy twin."""
    return [check.plain, check.twin] if isinstance(check, Kernel) else [check]


def holds_as_a_bound(check: Callable[..., np.ndarray], given_counts: Counts, keeps: Keeps, *arguments: object) -> None:
    """The check passes what keeps the promise, and asks for no more records than the best sub-multiset has to lose."""
    records = sum(given_counts)
    parts = (np.array(part) for part in product(*(range(count + 1) for count in given_counts)))
    largest = max((int(part.sum()) for part in parts if part.sum() and keeps(part)), default=0)
    totals = np.array([[records, *given_counts]], dtype=np.int64)
    for form in in_both_forms(check):
        need = int(form(totals, 1, VALUES, *copy.deepcopy(arguments))[0])  # some fill in what they are given
        assert (need == 0) == keeps(np.array(given_counts))
        assert need <= records - largest


def effective(part: np.ndarray) -> float:
    share = part[part > 0] / part.sum()
    return float(-(share * np.log(share)).sum())


@given(counts, st.integers(1, VALUES + 1))
def test_distinct(given_counts: Counts, least: int) -> None:
    holds_as_a_bound(class_checks.distinct, given_counts, lambda part: np.count_nonzero(part) >= least, 0, least)


@given(counts, st.integers(1, VALUES))
def test_distinct_where_one_column_counts_values_of_one_record(given_counts: Counts, least: int) -> None:
    def keeps(part: np.ndarray) -> bool:
        return bool(np.count_nonzero(part[:-1]) + part[-1] >= least)

    holds_as_a_bound(class_checks.distinct, given_counts, keeps, 1, least)


@given(counts, st.sampled_from([1.1, 1.5, 1.9, 2.3, 2.9, 3.3, 3.7]))
def test_entropy(given_counts: Counts, least: float) -> None:
    holds_as_a_bound(class_checks.entropy, given_counts, lambda part: effective(part) >= log(least), least)


@given(counts, st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]), st.integers(1, VALUES))
def test_recursive(given_counts: Counts, c: float, least: int) -> None:
    def keeps(part: np.ndarray) -> bool:
        ranked = np.sort(part)[::-1]
        return bool(ranked[0] < c * ranked[least - 1 :].sum())

    holds_as_a_bound(class_checks.recursive, given_counts, keeps, c, least)


@given(counts, references, tenths)
def test_equal_distance(given_counts: Counts, shares: np.ndarray, t: float) -> None:
    groups = np.arange(VALUES, dtype=np.int64)[None, :]

    def keeps(part: np.ndarray) -> bool:
        return 0.5 * np.abs(part / part.sum() - shares).sum() <= t + class_checks.SLACK

    holds_as_a_bound(closeness, given_counts, keeps, groups, shares, t, np.zeros(1, dtype=np.int64))


@given(counts, references, tenths)
def test_hierarchical_distance(given_counts: Counts, shares: np.ndarray, t: float) -> None:
    """Four values below two nodes below the root: two levels."""
    groups = np.array([[0, 1, 2, 3], [4, 4, 5, 5]], dtype=np.int64)
    reference = np.array([*shares, shares[:2].sum(), shares[2:].sum()])

    def keeps(part: np.ndarray) -> bool:
        share = part / part.sum()
        fine = 0.5 * np.abs(share - shares).sum()
        coarse = abs(share[:2].sum() - shares[:2].sum())
        return (fine + coarse) / 2 <= t + class_checks.SLACK

    holds_as_a_bound(closeness, given_counts, keeps, groups, reference, t, np.zeros(1, dtype=np.int64))


@given(counts, references, tenths)
def test_ordered_distance(given_counts: Counts, shares: np.ndarray, t: float) -> None:
    def keeps(part: np.ndarray) -> bool:
        gaps = np.cumsum(part / part.sum() - shares)[:-1]
        return np.abs(gaps).sum() / (VALUES - 1) <= t + class_checks.SLACK

    holds_as_a_bound(class_checks.ordered_closeness, given_counts, keeps, shares, t)


@given(counts, references, tenths)
def test_divergence(given_counts: Counts, shares: np.ndarray, t: float) -> None:
    def keeps(part: np.ndarray) -> bool:
        share = part / part.sum()
        present = share > 0
        return bool((share[present] * np.log(share[present] / shares[present])).sum() <= t + class_checks.SLACK)

    holds_as_a_bound(class_checks.divergence, given_counts, keeps, shares, t)


@given(counts, st.lists(tenths, min_size=VALUES, max_size=VALUES), st.lists(tenths, min_size=VALUES, max_size=VALUES))
def test_share_limits(given_counts: Counts, lower: list[float], upper: list[float]) -> None:
    low = np.array([min(a, b) - 0.1 for a, b in zip(lower, upper, strict=True)])
    high = np.array([max(a, b) for a, b in zip(lower, upper, strict=True)])

    def keeps(part: np.ndarray) -> bool:
        share = part / part.sum()
        return bool(np.all((share >= low - class_checks.SLACK) & (share <= high + class_checks.SLACK)))

    holds_as_a_bound(class_checks.shares_outside, given_counts, keeps, low, high, 0)


@pytest.mark.parametrize("form", in_both_forms(class_checks.too_few))
def test_too_few(form: Callable[..., np.ndarray]) -> None:
    """Column 1 counts units: a class with fewer than k of them loses all its records, a larger one none."""
    totals = np.array([[7, 2], [7, 3]], dtype=np.int64)
    assert form(totals, 1, 3).tolist() == [7, 0]
