"""Exact noise as others use it: repeatable by seed, alike on every machine, firm against bad parameters and attacks."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import ParameterError
from sfumato.core.randomness import StreamRandomness, SystemRandomness
from sfumato.kernels.sampling import inversion as sampling_inversion
from sfumato.kernels.sampling import noise as sampling
from sfumato.kernels.sampling import rejection as sampling_rejection
from tests.kernels.exact_laws import Path

F = Fraction
ARRAYS = [sampling.geometric, sampling.discrete_laplace, sampling.discrete_gaussian]
ONES = [sampling.geometric_one, sampling.discrete_laplace_one, sampling.discrete_gaussian_one]

LAPLACE = [-15, 9, 3, -11, -5, -19, -2, -11]
GAUSSIAN = [0, 1, -2, -1, -6, 7, -4, -6]
ONE_BY_ONE = [2, -5, 4, -8, 10, -9, 0, 35]


# -- repeatable --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", ARRAYS)
@pytest.mark.parametrize("count", [3, 64, 65, 1_000, 70_000])
@pytest.mark.parametrize("parameter", [F(1, 3), F(50), F(12345, 7)])
def test_the_same_seed_gives_the_same_draws(draw: Callable[..., Any], count: int, parameter: Fraction) -> None:
    first = draw(parameter, count, StreamRandomness(7))
    assert np.array_equal(first, draw(parameter, count, StreamRandomness(7)))
    assert not np.array_equal(first, draw(parameter, count, StreamRandomness(8))) or parameter < 1


def test_draws_by_seed_stay_the_same_from_version_to_version() -> None:
    """What a demonstration printed, it prints again."""
    source = StreamRandomness("sfumato")
    assert sampling.discrete_laplace(F(10), 100, source)[:8].tolist() == LAPLACE
    assert sampling.discrete_gaussian(F(10), 100, source)[:8].tolist() == GAUSSIAN
    assert [sampling.discrete_laplace_one(F(10), source) for _ in range(8)] == ONE_BY_ONE


def test_a_process_without_the_compiler_draws_the_same() -> None:
    """Noise is whole numbers and NumPy alone: nothing is compiled, so nothing can differ."""
    code = (
        "import sys; from fractions import Fraction as F; from sfumato.kernels.sampling import noise as s;"
        "from sfumato.core.randomness import StreamRandomness as R;"
        "print(*s.discrete_gaussian(F(90), 200, R(1)), 'numba' in sys.modules)"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env={**os.environ, **extra}
        ).stdout
        for extra in ({}, {"SFUMATO_KERNELS": "numpy"})
    }
    here = " ".join(map(str, sampling.discrete_gaussian(F(90), 200, StreamRandomness(1))))
    assert answers == {f"{here} False\n"}


def test_the_tables_of_another_scale_do_not_change_a_draw() -> None:
    alone = sampling.discrete_laplace(F(77), 500, StreamRandomness(3))
    for scale in range(1, 200):
        sampling_inversion.digits_of(F(scale))
    assert np.array_equal(alone, sampling.discrete_laplace(F(77), 500, StreamRandomness(3)))


def test_the_operating_system_gives_fresh_draws() -> None:
    first, second = (sampling.discrete_laplace(F(10**6), 100, SystemRandomness()) for _ in range(2))
    assert not np.array_equal(first, second)


# -- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", ARRAYS)
@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("bad", [F(0), F(-1), 0.1, float("nan"), True, None, "1/2"])
def test_a_parameter_that_is_not_an_exact_positive_number_is_refused(draw: Callable[..., Any], count: int, bad: Any) -> None:
    with pytest.raises(ParameterError):
        draw(bad, count, StreamRandomness(1))


@pytest.mark.parametrize("one", ONES)
@pytest.mark.parametrize("bad", [F(0), F(-1), 0.1, float("inf"), False])
def test_a_single_draw_refuses_the_same(one: Callable[..., Any], bad: Any) -> None:
    with pytest.raises(ParameterError):
        one(bad, StreamRandomness(1))


def test_coins_and_choices_refuse_what_makes_no_sense() -> None:
    source = StreamRandomness(1)
    for call in (
        lambda: sampling.bernoulli(F(3, 2), source),
        lambda: sampling.bernoulli(F(-1, 2), source),
        lambda: sampling.bernoulli(0.5, source),  # type: ignore[arg-type]
        lambda: sampling.bernoulli_exp(F(-1, 2), source),
        lambda: sampling.uniform_below(0, 10, source),
        lambda: sampling.uniform_below(2**63 + 1, 10, source),
        lambda: sampling.uniform_below(10, -1, source),
        lambda: sampling.select_by_exponent([], source),
        lambda: sampling.permute_and_flip([], source),
        lambda: sampling.select_by_exponent([F(1), 0.5], source),  # type: ignore[list-item]
        lambda: sampling.discrete_laplace(F(1), -1, source),
    ):
        with pytest.raises(ParameterError):
            call()


def test_a_whole_number_is_a_fraction_too() -> None:
    for draw in ARRAYS:
        for count in (5, 200):
            assert np.array_equal(draw(40, count, StreamRandomness(5)), draw(F(40), count, StreamRandomness(5)))


@pytest.mark.parametrize("draw", ARRAYS)
def test_no_draws_use_no_bytes(draw: Callable[..., Any]) -> None:
    drawn = draw(F(10), 0, Path(b""))
    assert drawn.shape == (0,) and drawn.dtype == np.int64


@pytest.mark.parametrize("draw", ARRAYS)
@given(parameter=st.builds(F, st.integers(1, 10**80), st.integers(1, 10**80)), seed=st.integers(0, 99))
def test_any_positive_fraction_is_drawn_from(draw: Callable[..., Any], parameter: Fraction, seed: int) -> None:
    """Of any size and any number of digits: nothing overflows, nothing hangs."""
    drawn = draw(parameter, 70, StreamRandomness(seed))
    assert drawn.shape == (70,)
    square = parameter if draw is sampling.discrete_gaussian else parameter**2
    assert all(int(x) ** 2 <= 100**2 * (square + 1) for x in drawn)


@pytest.mark.parametrize(("power", "kind"), [(47, np.int64), (48, object), (300, object)])
def test_noise_too_wide_for_64_bits_comes_as_python_integers(power: int, kind: Any) -> None:
    scale = F(2**power)
    for drawn in (
        sampling.geometric(scale, 100, StreamRandomness(1)),
        sampling.discrete_laplace(scale, 100, StreamRandomness(1)),
        sampling.discrete_gaussian(scale**2, 100, StreamRandomness(1)),
    ):
        assert drawn.dtype == kind
        assert max(abs(int(x)) for x in drawn) > scale / 2


def test_a_draw_beyond_64_bits_is_an_error_and_not_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not happen by chance (e^-16000); here the tail is made to answer 2^60 steps of 256."""
    monkeypatch.setattr(sampling_inversion, "geometric_one", lambda scale, source: 2**60)
    with pytest.raises(OverflowError):
        sampling.geometric(F(1000), 100, Path(b"\xff" * 10_000))


def test_beyond_the_table_the_law_goes_on() -> None:
    """A word at the top of its range leads past the last threshold, where the remaining draw is added."""
    digits = sampling_inversion.digits_of(F(1000))
    source = StreamRandomness(4)

    class Top:
        """The first word is the largest; then a stream."""

        private, description, first = False, "", True

        def bytes(self, count: int) -> bytes:
            if self.first:
                self.first = False
                return b"\xff" * count
            return source.bytes(count)

    drawn = [int(digits.draw(1, Top())[0]) for _ in range(300)]
    assert min(drawn) >= digits.rest.table.size * 256
    assert np.mean(drawn) - digits.rest.table.size * 256 == pytest.approx(1000, rel=0.35)  # six standard errors


def test_what_the_enclosure_leaves_open_is_decided_by_the_digits() -> None:
    """Every word between the two bounds of an acceptance: the decision is the comparison with the exact chance."""
    plan = sampling_rejection.gaussian_plan(F(1000))
    proposed = np.full(1, 60)
    low, high = sampling_rejection.enclose(plan.exponents(proposed), plan.excess)
    words = np.arange(int(low[0]), int(high[0]), dtype="<u4")
    kept = plan.keep(np.full(words.size, 60), Then(words.tobytes()))
    chance = math.exp(-float(plan.exact_exponent(60))) * 2**32
    clear = np.abs(words.astype(np.float64) - chance) > 2
    assert np.array_equal(kept[clear], words[clear] < chance)
    assert kept.any() and not kept.all()


class Then:
    """Plays given bytes, then a stream."""

    private = False
    description = "given bytes"

    def __init__(self, played: bytes) -> None:
        self.played = played
        self.stream = StreamRandomness(1)

    def bytes(self, count: int) -> bytes:
        if self.played:
            taken, self.played = self.played[:count], self.played[count:]
            return taken
        return self.stream.bytes(count)


# -- the precision attack ----------------------------------------------------------------------------------------------

DRAWS = 1_000_000
PLACES = 20  # answers on a grid of 2^-20


def telling(answers: np.ndarray) -> int:
    """Answers near zero that are no multiple of 2^-53: a float 1 plus noise cannot give them, a float 0 can."""
    near = answers[np.abs(answers) < 0.5]
    return int((near * 2.0**53 != np.round(near * 2.0**53)).sum())


def test_the_precision_attack_tells_float_noise_on_0_from_float_noise_on_1() -> None:
    """The attack works: an event that a quarter of the answers to 0 show, and no answer to 1."""
    draw = np.random.default_rng(1)
    for noise in (draw.laplace(0, 1, DRAWS), draw.normal(0, 1, DRAWS)):
        assert telling(0.0 + noise) > DRAWS // 5
        assert telling(1.0 + noise) == 0


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_the_precision_attack_finds_nothing_in_fixed_point_answers(name: str) -> None:
    """A value is rounded to the grid, whole noise is added, the sum is shown as a float: a million draws on either value."""
    scale = F(2**PLACES)
    parameter = scale if name == "discrete_laplace" else scale**2
    source = StreamRandomness(f"attack {name}")
    for value in (0, 1):
        noise = getattr(sampling, name)(parameter, DRAWS, source)
        answers = (value * 2**PLACES + noise) / 2.0**PLACES
        assert telling(answers) == 0
        assert np.array_equal(answers * 2**PLACES, np.round(answers * 2**PLACES))


def test_answers_to_0_and_to_1_have_the_same_support() -> None:
    """On a coarse grid a million draws show every value near the middle, from either side."""
    seen = []
    for value in (0, 1):
        noise = sampling.discrete_laplace(F(64), DRAWS, StreamRandomness(f"support {value}"))
        seen.append(set((value * 64 + noise).tolist()))
    middle = set(range(-300, 365))
    assert middle <= seen[0] and middle <= seen[1]
