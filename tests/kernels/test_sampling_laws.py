"""Draws in bulk have the stated law: chi-square against the exact mass function, Kolmogorov-Smirnov for wide noise.

Seeds are fixed, so a run is repeatable; were they not, each of the tests below would raise a false alarm with
probability at most 10^-7, all together below 10^-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.core.randomness import StreamRandomness
from sfumato.kernels.sampling import noise as sampling
from tests.kernels import exact_laws as laws
from tests.kernels.exact_laws import chi_square_p_value

F = Fraction
FALSE_ALARM = 1e-7
COUNT = 200_000

BULK: list[tuple[str, Fraction]] = [
    *(("geometric", scale) for scale in (F(1, 5), F(1), F(10, 3), F(300), F(12345, 7))),
    *(("discrete_laplace", scale) for scale in (F(1, 5), F(1), F(10), F(10, 3), F(1000), F(12345, 7))),
    *(("discrete_gaussian", variance) for variance in (F(1, 20), F(1), F(100), F(31, 3), F(10**6), F(12345, 7))),
]
LAW: dict[str, Callable[[Fraction], Callable[[int], Fraction]]] = {
    "geometric": laws.geometric_mass,
    "discrete_laplace": laws.laplace_mass,
    "discrete_gaussian": laws.gaussian_mass,
}


def spread(name: str, parameter: Fraction) -> float:
    return math.sqrt(parameter) if name == "discrete_gaussian" else float(parameter)


def lowest(name: str, parameter: Fraction) -> int:
    return 0 if name == "geometric" else -math.ceil(16 * spread(name, parameter)) - 2


@pytest.mark.parametrize(("name", "parameter"), BULK, ids=str)
def test_draws_in_bulk_have_the_exact_law(name: str, parameter: Fraction) -> None:
    drawn = getattr(sampling, name)(parameter, COUNT, StreamRandomness(f"bulk {name} {parameter}"))
    assert drawn.dtype == np.int64 and drawn.shape == (COUNT,)
    assert chi_square_p_value(drawn, LAW[name](parameter), lowest(name, parameter)) > FALSE_ALARM


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("geometric", F(10, 3)), ("discrete_laplace", F(10, 3)), ("discrete_laplace", F(40)), ("discrete_gaussian", F(31, 3))],
    ids=str,
)
def test_draws_one_by_one_have_the_exact_law(name: str, parameter: Fraction) -> None:
    source = StreamRandomness(f"one by one {name} {parameter}")
    one = getattr(sampling, f"{name}_one")
    drawn = np.array([one(parameter, source) for _ in range(20_000)])
    assert chi_square_p_value(drawn, LAW[name](parameter), lowest(name, parameter)) > FALSE_ALARM


@pytest.mark.parametrize("name", ["discrete_laplace", "discrete_gaussian"])
def test_a_slightly_wrong_law_is_noticed(name: str) -> None:
    """The yardstick has teeth: a scale that is off by three per cent, or one sign too many at zero, is refused."""
    drawn = getattr(sampling, name)(F(10), COUNT, StreamRandomness(f"teeth {name}"))
    assert chi_square_p_value(drawn, LAW[name](F(103, 10) if name == "discrete_laplace" else F(106, 10)), -200) < FALSE_ALARM
    doubled = np.append(drawn[drawn != 0], np.zeros(2 * int((drawn == 0).sum()), dtype=np.int64))
    assert chi_square_p_value(doubled, LAW[name](F(10)), -200) < FALSE_ALARM


@pytest.mark.parametrize("scale", [F(2**20), F(10**9, 7), F(2**47)], ids=str)
def test_wide_laplace_noise_has_the_continuous_law_in_the_limit(scale: Fraction) -> None:
    """At these scales the grid is far finer than the test can see."""
    drawn = sampling.discrete_laplace(scale, COUNT, StreamRandomness(f"wide {scale}"))
    assert drawn.dtype == np.int64
    assert stats.kstest(drawn / float(scale), "laplace").pvalue > FALSE_ALARM
    low_byte = np.bincount(drawn & 255, minlength=256)
    assert stats.chisquare(low_byte).pvalue > FALSE_ALARM


@pytest.mark.parametrize("deviation", [F(2**20), F(10**9, 7), F(2**40)], ids=str)
def test_wide_gaussian_noise_has_the_continuous_law_in_the_limit(deviation: Fraction) -> None:
    drawn = sampling.discrete_gaussian(deviation**2, COUNT, StreamRandomness(f"wide {deviation}"))
    assert drawn.dtype == np.int64
    assert stats.kstest(drawn / float(deviation), "norm").pvalue > FALSE_ALARM
    low_byte = np.bincount(drawn & 255, minlength=256)
    assert stats.chisquare(low_byte).pvalue > FALSE_ALARM


@pytest.mark.parametrize("power", [60, 200])
def test_huge_noise_is_drawn_in_python_integers_with_the_same_law(power: int) -> None:
    scale = F(2**power, 3)
    laplace = sampling.discrete_laplace(scale, 3_000, StreamRandomness(f"huge {power}"))
    gaussian = sampling.discrete_gaussian(scale**2, 3_000, StreamRandomness(f"huge {power}"))
    assert laplace.dtype == gaussian.dtype == object
    assert all(type(value) is int for value in laplace)
    assert stats.kstest([float(F(x) / scale) for x in laplace], "laplace").pvalue > FALSE_ALARM
    assert stats.kstest([float(F(x) / scale) for x in gaussian], "norm").pvalue > FALSE_ALARM


@pytest.mark.parametrize(("name", "parameter"), [entry for entry in BULK if entry[0] != "geometric"], ids=str)
def test_noise_is_symmetric_and_has_the_stated_moments(name: str, parameter: Fraction) -> None:
    """Signs, mean and variance within 5.4 standard errors: a false alarm in 10^7."""
    drawn = getattr(sampling, name)(parameter, COUNT, StreamRandomness(f"moments {name} {parameter}")).astype(np.float64)
    signed = np.sign(drawn)
    assert abs(signed.sum()) <= 5.4 * math.sqrt(np.abs(signed).sum())
    variance, fourth = moments(LAW[name](parameter), lowest(name, parameter))
    assert abs(drawn.mean()) <= 5.4 * math.sqrt(variance / COUNT)
    assert abs((drawn**2).mean() - variance) <= 5.4 * math.sqrt((fourth - variance**2) / COUNT)


def moments(mass: Callable[[int], Fraction], least: int) -> tuple[float, float]:
    masses = [(x, float(mass(x))) for x in range(least, -least + 1)]
    return sum(m * x * x for x, m in masses), sum(m * float(x) ** 4 for x, m in masses)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 1000, 2**20 + 1])
def test_uniform_integers_are_uniform(bound: int) -> None:
    drawn = sampling.uniform_below(bound, COUNT, StreamRandomness(f"uniform {bound}"))
    assert drawn.min() >= 0 and drawn.max() < bound
    cells = np.bincount(drawn * min(bound, 1000) // bound, minlength=min(bound, 1000))
    expected = np.bincount(np.arange(bound) * min(bound, 1000) // bound) * (COUNT / bound)
    assert bound == 1 or stats.chisquare(cells, expected).pvalue > FALSE_ALARM


def test_uniform_integers_up_to_two_to_the_63() -> None:
    drawn = sampling.uniform_below(2**63, COUNT, StreamRandomness("63 bits"))
    assert drawn.min() >= 0
    assert stats.kstest(drawn / 2.0**63, "uniform").pvalue > FALSE_ALARM


# -- choices -----------------------------------------------------------------------------------------------------------


def exponents(count: int) -> list[Fraction]:
    """One best candidate and others that are worse in different steps."""
    return [F((7 * i) % 23, 8) for i in range(count)]


@pytest.mark.parametrize("count", [1, 5, 100])
def test_a_choice_by_exponent_has_weights_e_to_the_minus_exponent(count: int) -> None:
    """Below 64 candidates one by one, above in bulk."""
    listed = exponents(count)
    source = StreamRandomness(f"choice {count}")
    times = 30_000 if count < 64 else 6_000
    found = np.bincount([sampling.select_by_exponent(listed, source) for _ in range(times)], minlength=count)
    weights = np.exp([-float(exponent) for exponent in listed])
    assert count == 1 or stats.chisquare(found, weights / weights.sum() * times).pvalue > FALSE_ALARM


def permute_and_flip_masses(listed: list[Fraction]) -> list[float]:
    """P(i) = Σ over the sets of the others that came before and were refused, by dynamic programming over their size."""
    accept = [math.exp(-float(exponent - min(listed))) for exponent in listed]
    masses = []
    for chosen, chance in enumerate(accept):
        by_size = [1.0] + [0.0] * (len(accept) - 1)  # elementary symmetric sums of the refusals
        for other, other_chance in enumerate(accept):
            if other != chosen:
                for size in range(len(accept) - 1, 0, -1):
                    by_size[size] += by_size[size - 1] * (1 - other_chance)
        n = len(accept)
        masses.append(chance * sum(total / (n * math.comb(n - 1, size)) for size, total in enumerate(by_size)))
    return masses


@pytest.mark.parametrize("count", [1, 2, 6, 80])
def test_permute_and_flip_has_its_law(count: int) -> None:
    listed = exponents(count)
    source = StreamRandomness(f"flip {count}")
    times = 30_000 if count < 64 else 6_000
    found = np.bincount([sampling.permute_and_flip(listed, source) for _ in range(times)], minlength=count)
    masses = np.array(permute_and_flip_masses(listed))
    assert masses.sum() == pytest.approx(1)
    assert count == 1 or stats.chisquare(found, masses * times).pvalue > FALSE_ALARM


def test_only_differences_of_exponents_matter() -> None:
    listed = exponents(90)
    shifted = [exponent + F(10**6, 7) for exponent in listed]
    for choose in (sampling.select_by_exponent, sampling.permute_and_flip):
        for seed in range(20):
            assert choose(listed, StreamRandomness(seed)) == choose(shifted, StreamRandomness(seed))


@pytest.mark.parametrize("count", [10, 100_000])
def test_a_hopeless_crowd_does_not_hide_the_best(count: int) -> None:
    """e^-200 each: the best among them is chosen, whatever the number of trials."""
    listed: list[Any] = [F(200)] * count
    listed[count // 3] = F(0)
    for choose in (sampling.select_by_exponent, sampling.permute_and_flip):
        assert choose(listed, StreamRandomness(f"crowd {count}")) == count // 3
