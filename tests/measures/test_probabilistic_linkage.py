"""Probabilistic linkage: patterns counted without pairs, EM that finds what was planted, links by the highest weight."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError
from sfumato.data.masked import Masked
from sfumato.kernels.linkage.agreement import agreement_counts, best_agreement
from sfumato.measures.risk.linkage.probabilistic_linkage import ProbabilisticLinkage, expectation_maximisation
from tests.examples import examples
from tests.measures.masks import NAMES, grouped, noisy, numbers, people, resampled, table

X = numbers(300)
PEOPLE = people(X)
CODES = st.integers(-1, 2)


@st.composite
def coded(draw: st.DrawFn) -> tuple[list[np.ndarray], list[np.ndarray]]:
    width, a, b = draw(st.integers(1, 4)), draw(st.integers(0, 8)), draw(st.integers(1, 8))
    sides = [[np.array(draw(st.lists(CODES, min_size=n, max_size=n)), dtype=np.int32) for _ in range(width)] for n in (a, b)]
    return sides[0], sides[1]


def pattern(left: list[np.ndarray], right: list[np.ndarray], i: int, j: int) -> list[bool]:
    return [bool(a[i] == b[j] and a[i] >= 0) for a, b in zip(left, right, strict=True)]


@given(coded())
def test_pattern_counts_equal_counting_pairs(files: tuple[list[np.ndarray], list[np.ndarray]]) -> None:
    left, right = files
    expected = [0] * 2 ** len(left)
    for i, j in product(range(left[0].size), range(right[0].size)):
        expected[sum(agrees << c for c, agrees in enumerate(pattern(left, right, i, j)))] += 1
    assert agreement_counts(left, right).tolist() == expected


@settings(max_examples=examples(60))
@given(coded(), st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0]), min_size=4, max_size=4))
def test_best_agreement_equals_looking_at_every_pair(
    files: tuple[list[np.ndarray], list[np.ndarray]], drawn: list[float]
) -> None:
    left, right = files
    weights = np.array(drawn[: len(left)])
    best, tied = best_agreement(left, right, weights)
    for i in range(left[0].size):
        sums = [float(weights @ pattern(left, right, i, j)) for j in range(right[0].size)]
        assert best[i] == pytest.approx(max(sums))
        assert tied[i] == sum(abs(total - max(sums)) < 1e-6 for total in sums)


def test_no_column_means_no_agreement() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        agreement_counts([], [])


def test_the_extended_steps_end_where_plain_steps_end_after_many_more() -> None:
    """The steps of the definition, one by one and a hundred thousand of them, from the same start; also where columns repeat."""
    draw = np.random.default_rng(4)
    for repeated in (False, True):
        left = [draw.integers(0, values, 400).astype(np.int32) for values in (2, 3, 5, 9)]
        left = [left[0], left[0], *left[2:]] if repeated else left
        right = [np.where(draw.random(400) < 0.8, codes, draw.permutation(codes)).astype(np.int32) for codes in left]
        counts = agreement_counts(left, right)
        occurring = counts > 0
        weights = counts[occurring].astype(float)
        agree = ((np.arange(counts.size)[:, None] >> np.arange(4)) & 1)[occurring].astype(float)
        overall = weights @ agree / weights.sum()
        m, u = np.maximum(overall, 0.9), overall
        for _ in range(100_000):
            right_pair = np.prod(np.where(agree, m, 1 - m), axis=1) / 400
            wrong_pair = np.prod(np.where(agree, u, 1 - u), axis=1) * (1 - 1 / 400)
            believed = weights * right_pair / (right_pair + wrong_pair)
            before = m
            m = np.clip(believed @ agree / believed.sum(), 1e-6, 1 - 1e-6)
            u = np.clip((weights - believed) @ agree / (weights - believed).sum(), 1e-6, 1 - 1e-6)
            if np.abs(m - before).max() < 1e-14:
                break
        from sfumato.measures.risk.linkage import probabilistic_linkage as room

        ours_m, ours_u, likelihood = room._climbed(weights, agree, np.maximum(overall, 0.9), overall, 1 / 400)
        assert np.abs(ours_m - m).max() < 1e-4 and np.abs(ours_u - u).max() < 1e-6
        both = np.prod(np.where(agree, m, 1 - m), axis=1) / 400 + np.prod(np.where(agree, u, 1 - u), axis=1) * (1 - 1 / 400)
        assert likelihood >= float(weights @ np.log(both)) - 1e-6


def test_expectation_maximisation_finds_the_planted_chances() -> None:
    """Expected pattern counts of 10⁸ pairs with known m, u: the maximum of the likelihood is where they were planted."""
    m, u, share = np.array([0.95, 0.8, 0.7, 0.9]), np.array([0.1, 0.05, 0.2, 0.02]), 1e-4
    counts = []
    for code in range(16):
        bits = np.array([(code >> c) & 1 for c in range(4)])
        counts.append(
            1e8 * (share * np.prod(m**bits * (1 - m) ** (1 - bits)) + (1 - share) * np.prod(u**bits * (1 - u) ** (1 - bits)))
        )
    found_m, found_u = expectation_maximisation(np.rint(counts).astype(np.int64), share)
    assert found_m == pytest.approx(m, abs=0.02)
    assert found_u == pytest.approx(u, abs=1e-4)


def test_every_step_of_the_estimation_raises_the_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.measures.risk.linkage import probabilistic_linkage as room

    left = [np.random.default_rng(1).integers(0, 5, 60).astype(np.int32) for _ in range(3)]
    right = [np.where(np.random.default_rng(2).random(60) < 0.3, 0, codes).astype(np.int32) for codes in left]
    counts = agreement_counts(left, right)
    patterns = (np.arange(8)[:, None] >> np.arange(3)) & 1
    heights = []
    for steps in (1, 2, 5, 20, 100):
        monkeypatch.setattr(room, "_STEPS", steps)
        m, u = room.expectation_maximisation(counts, 1 / 60)
        right_pairs = np.prod(np.where(patterns, m, 1 - m), axis=1) / 60
        wrong_pairs = np.prod(np.where(patterns, u, 1 - u), axis=1) * 59 / 60
        heights.append(float(counts @ np.log(right_pairs + wrong_pairs)))
    assert heights == sorted(heights)


def test_the_identity_is_linked_wholly_and_equal_rows_share() -> None:
    assert ProbabilisticLinkage().score(PEOPLE, table(X)).value == 1.0
    words = pa.table({"job": list("aabbcd"), "town": list("xxyyzz")})
    original = sf.read(words, schema=sf.Schema.of(quasi=["job", "town"]))
    assert ProbabilisticLinkage().score(original, words).value == pytest.approx((2 * 0.5 + 2 * 0.5 + 2) / 6)


def test_a_perfect_mask_brings_linkage_to_the_baseline() -> None:
    """Ten files of 500 records, one right link expected in each, in the best of four binnings: the best has at most the sum of
    all, and a sum above 4 · 34 needs a binning above 34, once in 10⁸ (four Poisson variables of mean 10)."""
    right = 0.0
    for seed in range(10):
        x = numbers(500, seed)
        score = ProbabilisticLinkage().score(people(x), table(resampled(x, seed)))
        assert 1 / 500 <= score.floor < 4 / 500  # the best of four grids, whose mean is 1/500 each
        right += score.value * 500
    assert right <= 136


def test_noise_lowers_the_risk_and_groups_share_it() -> None:
    low, high = (ProbabilisticLinkage().score(PEOPLE, table(noisy(X, share))).value for share in (0.5, 0.02))
    assert low < high
    assert ProbabilisticLinkage().score(PEOPLE, table(grouped(X, 5))).value <= 1 / 5 + 1e-9


def test_more_columns_than_one_block_are_fitted_in_blocks() -> None:
    draw = np.random.default_rng(6)
    names = [f"c{i}" for i in range(13)]
    codes = {name: draw.integers(0, 3, 80).astype(str) for name in names}
    original = sf.read(pa.table(codes), schema=sf.Schema.of(quasi=names))
    score = ProbabilisticLinkage().score(original, original)
    assert score.value == pytest.approx(1.0, abs=0.05)
    assert {f"weight {name}" for name in names} <= set(score.parts)


def test_missing_values_agree_with_nothing() -> None:
    rows = pa.table({"job": ["a", None, "b", None], "town": ["x", "y", "z", None]})
    original = sf.read(rows, schema=sf.Schema.of(quasi=["job", "town"]))
    credits = ProbabilisticLinkage().per_record(original, rows)
    assert credits[:3].tolist() == [1.0, 1.0, 1.0]
    assert credits[3] == pytest.approx(1 / 4)


def test_what_cannot_be_linked_is_refused() -> None:
    with pytest.raises(ParameterError, match="bins"):
        ProbabilisticLinkage(bins=1)
    with pytest.raises(InputError, match="no records"):
        ProbabilisticLinkage().score(people(X[:0]), table(X[:0]))
    with pytest.raises(InputError, match="no record stands behind"):
        ProbabilisticLinkage().score(PEOPLE, table(X[:7]))
    assert ProbabilisticLinkage().score(people(X[:1]), table(X[:1])).value == 1.0


def test_a_column_that_weighs_next_to_nothing_counts_no_partner_twice() -> None:
    codes = [np.array([0, 1, 1], dtype=np.int32), np.zeros(3, dtype=np.int32)]
    _, tied = best_agreement(codes, codes, np.array([1.0, 1e-12]))
    assert tied.tolist() == [1, 2, 2]


@pytest.mark.parametrize("bins", [None, 10])
def test_a_person_published_several_times_is_found_by_any_row(bins: int | None) -> None:
    rows = np.repeat(np.arange(100), np.arange(100) % 3 + 1)
    masked = Masked(table(X[rows]), PEOPLE.schema, NAMES, rows)
    score = ProbabilisticLinkage(bins).score(PEOPLE, masked)
    assert score.value >= (1.0 if bins is None else 0.5)
    assert score.value <= 1.0
    y = noisy(X, 0.3)
    twice = np.repeat(np.arange(300), 2)
    once = ProbabilisticLinkage(30).score(PEOPLE, table(y)).value
    both = ProbabilisticLinkage(30).score(PEOPLE, Masked(table(y[twice]), PEOPLE.schema, NAMES, twice)).value
    assert both == pytest.approx(once)


def test_many_columns_are_linked_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeking the best partner in a tree gives what going through sets of columns gives, missing values and duplicates too."""
    from sfumato.measures.risk.linkage import probabilistic_linkage as room

    y = noisy(X, 0.3)
    y[::7, 1] = np.nan
    rows = np.random.default_rng(2).integers(0, 300, 400)
    masked = Masked(table(y[rows]), PEOPLE.schema, NAMES, rows)
    by_sets = ProbabilisticLinkage(8).per_record(PEOPLE, masked)
    monkeypatch.setattr(room, "_MOST_BY_SETS", 0)
    assert ProbabilisticLinkage(8).per_record(PEOPLE, masked) == pytest.approx(by_sets)
    assert 0 < by_sets.mean() < 1


def test_sets_of_many_columns_are_never_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.measures.risk.linkage import probabilistic_linkage as room

    asked: list[int] = []
    monkeypatch.setattr(room, "best_agreement", lambda left, *_: asked.append(len(left)))
    x = np.random.default_rng(1).normal(size=(200, 24))
    names = [f"c{i}" for i in range(24)]
    original = sf.read(pa.table(dict(zip(names, x.T, strict=True))))
    score = ProbabilisticLinkage().score(original, pa.table(dict(zip(names, x.T, strict=True))))
    assert score.value == 1.0
    assert not asked
    assert "best of four grids" in score.meaning
