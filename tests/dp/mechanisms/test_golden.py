"""Worked cases of the catalogue, to their printed digits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato import dp
from sfumato.core.errors import ParameterError
from sfumato.dp.accounting.gaussian import classic_sigma, gaussian_delta, gaussian_sigma
from sfumato.dp.mechanisms.noise.laws import (
    bounded_laplace_epsilon,
    bounded_laplace_law,
    clamped_laplace_law,
    laplace_delta,
    laplace_ratio,
    laplace_scale_with_delta,
)
from sfumato.dp.mechanisms.statistics.clamping_down_mean import empty_law
from sfumato.dp.mechanisms.statistics.histogram_mean import mean_from_histogram, midpoints
from sfumato.lessons.regression_leak import MILLIONAIRE, generated_incomes, least_squares, regression_leak
from tests.dp.mechanisms.cases import D10, D16

E = math.e


@pytest.mark.golden("G-DP-01")
def test_one_rich_person_moves_the_mean() -> None:
    assert np.mean(D10) == 3300
    assert round(float(np.mean([*D10, 100_000])), 3) == 12090.909
    assert round(float(np.mean([*D10, 1_000_000])), 2) == 93909.09


@pytest.mark.golden("G-DP-02")
@pytest.mark.parametrize(("size", "expected"), [(5, 19800), (10**6, 0.099)])
def test_scale_of_a_mean_with_minimal_size(size: int, expected: float) -> None:
    from sfumato.dp.sensitivity import mean

    sensitivity = mean(1000, 100_000, size)
    assert sensitivity.l1 == Fraction(str(expected))
    assert float(dp.Laplace(sensitivity, 1).scale) == pytest.approx(expected, rel=1e-5)


@pytest.mark.golden("G-DP-03")
@pytest.mark.parametrize("largest", [100_000, 1_000_000])
@pytest.mark.parametrize(("epsilon", "scale"), [("1", 2000), ("0.4", 5000), ("2", 1000)])
def test_truncated_mean(largest: int, epsilon: str, scale: int) -> None:
    mechanism = dp.TruncatedMean(2000, 4000, epsilon, min_size=5, bounds=(1000, largest))
    assert mechanism.sensitivity.l1 == 2000
    assert mechanism.scale == scale


@pytest.mark.golden("G-DP-04")
def test_laplace_with_delta_printed_and_tight() -> None:
    printed, tight = (laplace_scale_with_delta(0.5, 0.1, 1, form) for form in ("printed", "tight"))
    assert (round(printed, 6), round(tight, 6)) == (1.651908, 1.407022)
    assert round(laplace_delta(0.5, printed, 1), 6) == 0.051317
    assert round(laplace_delta(0.5, tight, 1), 6) == 0.1
    assert float(dp.Laplace(1, 0.5, 0.1, "printed").scale) == pytest.approx(1.651908, abs=2e-6)
    assert float(dp.Laplace(1, 0.5, 0.1, "tight").scale) == pytest.approx(1.407022, abs=2e-6)
    assert dp.Laplace(1, 0.5).scale == 2


@pytest.mark.golden("G-DP-05")
def test_histogram_of_sixteen_incomes() -> None:
    assert dp.Histogram(edges=(1000, 2000, 3000, 4000), epsilon=1).counts(D16).tolist() == [5, 7, 4]
    assert np.mean(D16) == 2332.6875


NOISE = (0.7534844, -0.6143575, -1.5725160)


@pytest.mark.golden("G-DP-06")
def test_noisy_histogram() -> None:
    noisy = [count + extra for count, extra in zip((5, 7, 4), NOISE, strict=True)]
    assert [round(count, 7) for count in noisy] == [5.7534844, 6.3856425, 2.427484]
    assert round(sum(noisy), 7) == 14.5666109


@pytest.mark.golden("G-DP-07")
def test_mean_from_a_histogram() -> None:
    assert list(map(int, midpoints((1000, 2000, 3000, 4000)))) == [1500, 2500, 3500]
    assert mean_from_histogram([5, 7, 4], (1500, 2500, 3500)) == 2437.5
    assert mean_from_histogram([5, 7, 4], (1499.5, 2499.5, 3499.5)) == 2437.0


@pytest.mark.golden("G-DP-08")
def test_mean_from_the_noisy_histogram() -> None:
    noisy = [count + extra for count, extra in zip((5, 7, 4), NOISE, strict=True)]
    assert round(mean_from_histogram(noisy, (1500, 2500, 3500)), 4) == 2271.6696


CUISINES = ("Russian", "American", "Japanese", "Indian")


@pytest.mark.golden("G-DP-09")
def test_exponential_mechanism_for_a_restaurant() -> None:
    law = dp.Exponential(CUISINES, 1, 0.5).law([2, 6, 2, 2])
    assert [round(law[name], 6) for name in CUISINES] == [0.174878, 0.475367, 0.174878, 0.174878]
    weights = [math.exp(0.5 * score / 2) for score in (2, 6, 2, 2)]
    assert (round(weights[0], 6), round(weights[1], 6), round(sum(weights), 6)) == (1.648721, 4.481689, 9.427853)


@pytest.mark.golden("G-DP-10")
@pytest.mark.parametrize(("epsilon", "american", "others"), [(1, 0.711235, 0.096255), (2, 0.947915, 0.017362)])
def test_exponential_mechanism_with_larger_epsilon(epsilon: int, american: float, others: float) -> None:
    law = dp.Exponential(CUISINES, 1, epsilon).law({"Russian": 2, "American": 6, "Japanese": 2, "Indian": 2})
    assert (round(law["American"], 6), round(law["Indian"], 6)) == (american, others)


@pytest.mark.golden("G-DP-16")
@pytest.mark.parametrize(("width", "really"), [(10, 1.48985), (3, 1.45439), (1, 1.0)])
def test_naive_bounded_laplace_leaks_more(width: float, really: float) -> None:
    assert round(bounded_laplace_epsilon(1, 1, width), 5) == really
    first, second = (bounded_laplace_law(centre, 1, 0, width) for centre in (0, 1))
    assert round(math.log(first.density(0) / second.density(0)), 5) == really
    if width > 1:
        for kind in (dp.BoundedLaplace, dp.Redraw):
            with pytest.raises(ParameterError, match="not ε-private"):
                kind(0, width, sensitivity=1, epsilon=1, scale="naive")
    else:
        assert dp.BoundedLaplace(0, width, sensitivity=1, epsilon=1, scale="naive").noise_scale == 1


@pytest.mark.golden("G-DP-17")
def test_clamping_down_mean_without_clamped_records_is_not_private() -> None:
    small, large = (clamped_laplace_law(float(np.mean(d)), 2000 / len(d), 2000, 4000) for d in (D10, [*D10, 100_000]))
    assert round(small.atoms[4000], 7) == 0.0150987
    assert large.atoms[4000] == pytest.approx(1.0)
    assert round(math.log(large.atoms[4000] / small.atoms[4000]), 3) == 4.193
    tail = math.exp(-(np.mean([*D10, 100_000]) - 4000) / (2000 / 11)) / 2
    assert round(math.log((1 - small.atoms[4000]) / tail), 1) == 45.2
    with pytest.raises(ParameterError, match="clamp"):
        dp.ClampingDownMean(2000, 4000, 1, clamp_records=False)
    mechanism = dp.ClampingDownMean(2000, 4000, 1)
    assert float(np.mean(np.clip(D10, 2000, 4000))) == 2700
    law = mechanism.law(D10)
    assert law.between(2000, 2700) == pytest.approx(0.5)


@pytest.mark.golden("G-DP-18")
def test_clamping_down_mean_leaks_when_a_record_comes_or_goes() -> None:
    mechanism = dp.ClampingDownMean(0, 1, 1)
    one, two = mechanism.law([1.0]), mechanism.law([1.0, 0.0])
    probabilities = one.between(0.45, 0.55), two.between(0.45, 0.55)
    assert [round(p, 6) for p in probabilities] == [0.030339, 0.095163]
    assert round(probabilities[1] / probabilities[0], 4) == 3.1366 and 3.1366 > E
    for size, expected in [(1, 1.1931), (2, 1.0721), (3, 1.0377)]:
        before, after = mechanism.law([1.0] * size), mechanism.law([1.0] * size + [0.0])
        place = size / (size + 1)
        found = math.log(after.density(place) / before.density(place))
        assert round(found, 4) == expected == round(math.log((size + 1) / size) + size / (size + 1), 4)
    with pytest.raises(ParameterError, match="NoisyAverage"):
        dp.ClampingDownMean(0, 1, 1, neighbours="add_remove")
    assert dp.NoisyAverage(0, 1, 1).loss().neighbours == "add_remove"


@pytest.mark.golden("G-DP-19")
def test_clamping_down_mean_of_nobody() -> None:
    law = dp.ClampingDownMean(0, 1, 1).law([])
    assert [round(mass, 6) for mass in law.atoms.values()] == [0.303265, 0.303265]
    assert round(law.cumulative(1 - 1e-12) - law.atoms[0.0], 6) == 0.393469
    assert empty_law(1, 0, 1).density(0.5) == pytest.approx(0.393469, abs=1e-6)


@pytest.mark.golden("G-DP-27")
def test_noisy_minimal_age() -> None:
    mechanism = dp.TruncatedGeometric((30, 40, 50), ratio="1/2", form="renormalised")
    assert list(mechanism.law(40).values()) == [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]


@pytest.mark.golden("G-DP-28")
def test_noisy_minimal_weight() -> None:
    age = dp.TruncatedGeometric((30, 40, 50), ratio="1/2", form="renormalised")
    weight = dp.TruncatedGeometric((60, 90, 100), ratio="1/2", form="renormalised")
    assert list(weight.law(100).values()) == [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)]
    assert age.law(40)[40] * weight.law(100)[100] == Fraction(2, 7)


@pytest.mark.golden("G-DP-29")
def test_coefficients_of_a_regression_betray_membership() -> None:
    """Soft: the printed lines belong to data that were not printed; order of magnitude and direction are the same."""
    people = generated_incomes()
    leak = regression_leak(people, MILLIONAIRE)
    assert leak.without[1] == pytest.approx(207.5, rel=0.1) and leak.without[0] == pytest.approx(-4524.2, rel=0.25)
    assert leak.including[1] > 5 * leak.without[1] and leak.including[0] < -30_000
    assert leak.betrays(least_squares([*people, MILLIONAIRE])) is True
    assert leak.betrays(least_squares(people)) is False
    assert leak.betrays((0.0, 0.0)) is None


@pytest.mark.golden("G-DP-30")
def test_clamping_after_the_noise_is_private_where_bounding_and_redrawing_are_not() -> None:
    clamped = [clamped_laplace_law(centre, 1, 0, 10) for centre in (0, 1)]
    ratios = [math.log(clamped[0].atoms[border] / clamped[1].atoms[border]) for border in (0, 10)]
    ratios += [math.log(clamped[0].density(x) / clamped[1].density(x)) for x in np.linspace(0.01, 9.99, 99)]
    assert max(map(abs, ratios)) == pytest.approx(1.0, abs=1e-12)
    assert round(bounded_laplace_epsilon(1, 1, 10), 5) == 1.48985


@pytest.mark.golden("G-DP-31")
def test_renormalised_geometric_costs_more_than_its_ratio() -> None:
    renormalised = dp.TruncatedGeometric((0, 1, 2), ratio="1/2", form="renormalised")
    rows = [[Fraction(4, 7), Fraction(2, 7), Fraction(1, 7)], [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]]
    assert [list(renormalised.law(value).values()) for value in (0, 1)] == rows
    assert float(renormalised.loss().epsilon) == pytest.approx(math.log(16 / 7), abs=1e-11)
    assert float(renormalised.loss().epsilon) >= math.log(16 / 7)
    assert round(float(renormalised.loss().epsilon), 6) == 0.826679
    accumulated = dp.TruncatedGeometric((0, 1, 2), ratio="1/2")
    third, sixth = Fraction(1, 3), Fraction(1, 6)
    assert [list(accumulated.law(value).values()) for value in (0, 1, 2)] == [
        [2 * third, sixth, sixth],
        [third, third, third],
        [sixth, sixth, 2 * third],
    ]
    assert float(accumulated.loss().epsilon) == pytest.approx(math.log(2), abs=1e-11)


@pytest.mark.golden("G-DP-33")
@pytest.mark.parametrize(
    ("epsilon", "data", "expected"),
    [
        (1, D10, (0.261023, 0.352344)),
        (1, [*D10, 1_000_000], (0.183940, 0.5)),
        (2, D10, (0.136266, 0.248293)),
        (2, [*D10, 1_000_000], (0.067668, 0.5)),
    ],
)
def test_masses_of_the_truncated_mean(epsilon: int, data: list[int], expected: tuple[float, float]) -> None:
    law = dp.TruncatedMean(2000, 4000, epsilon, min_size=5, bounds=(1000, 1_000_000)).law(data)
    assert [round(law.atoms[border], 6) for border in (2000.0, 4000.0)] == list(expected)


@pytest.mark.golden("G-DP-34")
def test_masses_of_the_clamping_down_mean() -> None:
    printed = clamped_laplace_law(3300, 200, 2000, 4000)
    assert [round(printed.atoms[border], 6) for border in (2000, 4000)] == [0.000752, 0.015099]
    law = dp.ClampingDownMean(2000, 4000, 1).law(D10)
    assert [round(law.atoms[border], 6) for border in (2000.0, 4000.0)] == [0.015099, 0.000752]
    assert law.atoms[2000.0] == pytest.approx(math.exp(-3.5) / 2, rel=1e-5)


@pytest.mark.golden("G-DP-35")
def test_gaussian_mechanism_classic_and_analytic() -> None:
    assert round(float(classic_sigma("0.5", "1e-5")), 6) == 9.689611
    assert float(gaussian_delta("0.5", classic_sigma("0.5", "1e-5"))) == pytest.approx(1.608e-8, rel=1e-3)
    assert round(float(gaussian_sigma("0.5", "1e-5")), 6) == 7.031827
    assert round(dp.Gaussian(1, 0.5, "1e-5", form="classic").deviation, 5) == 9.68961
    assert dp.Gaussian(1, 0.5, "1e-5").deviation == pytest.approx(7.031827, rel=2e-6)


def test_shifted_laplace_densities_stay_within_their_ratio() -> None:
    """The picture of L(0,1), L(1,1), L(2,1): ratios within e and e²."""
    points = np.linspace(-8, 8, 401)
    for shift in (1, 2):
        ratios = [laplace_ratio(x, 0, shift) for x in points]
        assert max(ratios) == pytest.approx(E**shift) and min(ratios) == pytest.approx(E**-shift)
