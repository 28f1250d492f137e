"""Reconstruction from many sums: it works where the noise is small, and fails where it is what privacy asks for."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import sfumato as sf
from sfumato import attacks
from sfumato.attacks.outputs.reconstruction import KnownQuestions, Reconstruction, best_single_guess
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.randomness import default
from sfumato.core.view import View
from tests.examples import examples

N = 64


def secret(seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, N), rng.integers(0, 2, (4 * N, N)), rng


@pytest.mark.golden("G-ATK-06")
@pytest.mark.parametrize(("error", "least"), [(0, 1.0), (1, 0.98), (2, 0.90)])
def test_counts_of_random_groups_with_errors_below_the_square_root_give_nearly_all_bits(error: int, least: float) -> None:
    for seed in range(20):
        bits, groups, rng = secret(seed)
        answers = groups @ bits + rng.uniform(-error, error, 4 * N)
        found = attacks.Reconstruction().run(View(answers, None), KnownQuestions(groups, bits))
        assert found.success >= least
        assert found.baseline == max(bits.mean(), 1 - bits.mean()) < 0.75
        assert found.interval[0] <= found.success <= found.interval[1]
        assert (found.targets, found.details["questions"]) == (N, 4 * N)


@pytest.mark.parametrize("seed", range(3))
def test_answers_of_a_private_mechanism_give_no_more_than_guessing(seed: int) -> None:
    """Wrong alarm below 10^-6 each: 52 of 64 fair coins."""
    bits, groups, _ = secret(seed)
    mechanism = sf.dp.Laplace(sensitivity=4 * N, epsilon=1, coordinates=4 * N)
    answers = mechanism.answer((groups @ bits).astype(float), default(seed))
    assert attacks.Reconstruction().run(View(answers, None), KnownQuestions(groups, bits)).success <= 51 / N


def test_sums_of_bounded_values_give_the_values() -> None:
    rng = np.random.default_rng(5)
    wages, groups = rng.uniform(10, 90, 30), rng.integers(0, 2, (120, 30))
    answers = groups @ wages + rng.uniform(-1, 1, 120)
    known = KnownQuestions(csr_array(groups), wages, lowest=0, highest=100)
    found = Reconstruction(step=None, tolerance=5).run(View(answers, None), known)
    assert found.success == 1.0
    assert found.baseline == best_single_guess(wages, 5) < 0.4
    whole = Reconstruction(step=10).values(groups @ np.round(wages, -1), known)
    assert np.array_equal(whole, np.round(wages, -1))


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32))
def test_exact_answers_that_allow_one_table_only_give_that_table(seed: int) -> None:
    """By going through all 2^6 tables."""
    rng = np.random.default_rng(seed)
    bits, groups = rng.integers(0, 2, 6), rng.integers(0, 2, (8, 6))
    fitting = [t for t in product((0, 1), repeat=6) if np.array_equal(groups @ t, groups @ bits)]
    decoded = Reconstruction().values(groups @ bits, KnownQuestions(groups))
    if np.linalg.matrix_rank(groups) == 6:
        assert len(fitting) == 1
        assert np.array_equal(decoded, bits)
    assert set(decoded.tolist()) <= {0.0, 1.0}


def test_the_best_single_guess_is_the_fullest_window() -> None:
    assert best_single_guess(np.array([0.0, 0, 1]), 0) == pytest.approx(2 / 3)
    assert best_single_guess(np.array([1.0, 2, 3, 10]), 1) == 0.75


def test_what_cannot_be_attacked_is_said() -> None:
    groups = np.eye(3)
    with pytest.raises(InputError, match="KnownQuestions"):
        Reconstruction().run(View([1, 2, 3], None))
    with pytest.raises(InputError, match="truth"):
        Reconstruction().run(View([1, 0, 1], None), KnownQuestions(groups))
    with pytest.raises(InputError, match="2 answers need as many rows"):
        Reconstruction().values([1, 2], KnownQuestions(groups))
    with pytest.raises(InputError, match="not finite"):
        Reconstruction().values([1, float("nan"), 0], KnownQuestions(groups))
    with pytest.raises(InputError, match="not finite"):
        Reconstruction().values([1, 1, 0], KnownQuestions(np.where(groups == 1, np.inf, 0.0)))
    with pytest.raises(InputError, match="a matrix of numbers"):
        Reconstruction().values([1, 1], KnownQuestions([["a", "b"], ["c", "d"]]))
    with pytest.raises(Unsupported, match="time_limit"):
        bits, many, rng = secret(0)
        Reconstruction(time_limit=1e-9).values(many @ bits + rng.uniform(-9, 9, 256), KnownQuestions(many))
    for wrong in ({"step": 0}, {"tolerance": -1}, {"step": None}, {"time_limit": 0}):
        with pytest.raises(ParameterError):
            Reconstruction(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="lowest"):
        KnownQuestions(groups, lowest=1, highest=1)
