"""Exact verdicts on laws in one dimension, with point masses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError
from sfumato.dp.refute.densities import Density, Piece

D10 = (1000, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000)
laplace, clamping = Density.laplace, sf.dp.clamping_down_mean_law
centres = st.floats(-5, 5)
scales = st.floats(0.2, 5)


@pytest.mark.golden("G-DP-14")
@pytest.mark.parametrize("epsilon", [0, 1, 10])
def test_a_count_with_uniform_noise_is_private_for_no_epsilon(epsilon: int) -> None:
    one, two = Density.uniform(10, 15), Density.uniform(9, 14)
    verdict = sf.dp.density_verdict(one, two, epsilon)
    assert not verdict.holds and verdict.epsilon == math.inf
    assert verdict.delta == pytest.approx(0.2, abs=1e-12)
    assert verdict.witness is not None and verdict.witness.other_probability == 0
    assert sf.dp.density_verdict(one, two, epsilon, "0.2").holds
    assert not sf.dp.density_verdict(one, two, epsilon, "0.1999").holds


@pytest.mark.golden("G-DP-15")
def test_laplace_around_five_and_six() -> None:
    assert sf.dp.density_epsilon(laplace(5, 1), laplace(6, 1)) == pytest.approx(1, abs=1e-9)
    assert sf.dp.density_verdict(laplace(5, 1), laplace(6, 1), 1).holds
    assert not sf.dp.density_verdict(laplace(5, 1), laplace(6, 1), 0.999).holds


@pytest.mark.golden("G-DP-16")
@pytest.mark.parametrize(("width", "effective"), [(10, 1.48985), (3, 1.45439), (1, 1.0)])
def test_the_normaliser_of_bounded_laplace_leaks(width: int, effective: float) -> None:
    laws = [sf.dp.bounded_laplace_law(centre, 1, 0, width) for centre in (0, 1)]
    assert sf.dp.density_epsilon(*laws) == pytest.approx(effective, abs=5e-6)
    assert sf.dp.density_verdict(*laws, 1).holds == (width == 1)


@pytest.mark.golden("G-DP-17")
def test_clamping_down_without_clamping_records_is_not_private() -> None:
    one, two = (clamping(values, 1, 2000, 4000, clamp_records=False) for values in (D10, (*D10, 100_000)))
    assert one.at(4000) == pytest.approx(0.0150987, abs=5e-8)
    assert two.at(4000) == pytest.approx(1.0)
    assert math.log(two.at(4000) / one.at(4000)) == pytest.approx(4.193, abs=5e-4)
    below = [law.probability(-math.inf, 3999.999999) for law in (one, two)]
    assert math.log(below[0] / below[1]) == pytest.approx(45.2, abs=0.05)
    verdict = sf.dp.density_verdict(one, two, 1)
    assert not verdict.holds and verdict.witness is not None and verdict.witness.log_ratio > 45
    clamped = [clamping(values, 1, 2000, 4000) for values in (D10, (*D10, 100_000))]
    assert clamped[0].cuts[1] == pytest.approx(2700)
    assert sf.dp.density_epsilon(*clamped) < 2


@pytest.mark.golden("G-DP-18")
def test_clamping_down_mean_under_add_and_remove() -> None:
    one, two = clamping((1,), 1, 0, 1), clamping((1, 0), 1, 0, 1)
    inside = [law.probability(0.45, 0.55) for law in (one, two)]
    assert inside == [pytest.approx(0.030339, abs=5e-7), pytest.approx(0.095163, abs=5e-7)]
    assert inside[1] / inside[0] == pytest.approx(3.1366, abs=5e-5) and inside[1] / inside[0] > math.e
    for size, effective in ((1, 1.1931), (2, 1.0721), (3, 1.0377)):
        ones = (1,) * size
        found = sf.dp.density_epsilon(clamping(ones, 1, 0, 1), clamping((*ones, 0), 1, 0, 1))
        assert found == pytest.approx(effective, abs=5e-5)
        assert found == pytest.approx(math.log((size + 1) / size) + size / (size + 1), abs=1e-9)
    assert not sf.dp.density_verdict(one, two, 1).holds


@given(st.lists(st.floats(0, 1), min_size=1, max_size=5), st.floats(0, 1), st.floats(0.1, 3))
def test_clamping_down_mean_holds_when_a_record_is_replaced(values: list[float], other: float, epsilon: float) -> None:
    one, two = clamping(values, epsilon, 0, 1), clamping([*values[:-1], other], epsilon, 0, 1)
    assert sf.dp.density_epsilon(one, two) <= epsilon + 1e-9


@pytest.mark.golden("G-DP-19")
def test_clamping_down_mean_of_nobody() -> None:
    empty = clamping((), 1, 0, 1)
    assert (empty.at(0), empty.at(1)) == (pytest.approx(0.303265, abs=5e-7),) * 2
    assert empty.between(0, 1) == pytest.approx(0.393469, abs=5e-7)


@pytest.mark.golden("G-DP-30")
def test_clamping_afterwards_is_free_and_drawing_again_is_not() -> None:
    clamped = [laplace(centre, 1).clamped(0, 10) for centre in (0, 1)]
    redrawn = [laplace(centre, 1).restricted(0, 10) for centre in (0, 1)]
    bounded = [sf.dp.bounded_laplace_law(centre, 1, 0, 10) for centre in (0, 1)]
    verdict = sf.dp.density_verdict(*clamped, 1)
    assert verdict.holds and verdict.epsilon == pytest.approx(1, abs=1e-12)
    for laws in (redrawn, bounded):
        failed = sf.dp.density_verdict(*laws, 1)
        assert not failed.holds and failed.epsilon == pytest.approx(1.48985, abs=5e-6)
        assert failed.witness is not None and failed.witness.log_ratio > 1


@pytest.mark.golden("G-DP-33")
@pytest.mark.parametrize(
    ("epsilon", "expected"), [(1, (0.261023, 0.352344, 0.183940, 0.5)), (2, (0.136266, 0.248293, 0.067668, 0.5))]
)
def test_the_ends_of_the_truncated_mean(epsilon: int, expected: tuple[float, ...]) -> None:
    laws = [sf.dp.truncated_mean_law(values, epsilon, 2000, 4000, 2000) for values in (D10, (*D10, 1_000_000))]
    found = [law.at(end) for law in laws for end in (2000, 4000)]
    assert found == [pytest.approx(value, abs=5e-7) for value in expected]
    assert sf.dp.density_verdict(*laws, epsilon).holds


@given(centres, centres, scales)
def test_laplace_noise_costs_its_distance_over_its_scale(one: float, two: float, scale: float) -> None:
    assert sf.dp.density_epsilon(laplace(one, scale), laplace(two, scale)) == pytest.approx(abs(one - two) / scale, abs=1e-6)


@given(st.floats(0.1, 3), st.integers(0, 200).map(lambda hundredths: hundredths / 100))
def test_delta_of_laplace_noise_is_the_closed_form(distance: float, epsilon: float) -> None:
    expected = max(0.0, 1 - math.exp((epsilon - distance) / 2))
    assert sf.dp.density_delta(laplace(0, 1), laplace(distance, 1), epsilon) == pytest.approx(expected, abs=1e-9)


@given(centres, centres, scales, st.floats(-3, 0), st.floats(0.5, 3))
def test_clamping_never_costs_more(one: float, two: float, scale: float, low: float, high: float) -> None:
    free = sf.dp.density_epsilon(laplace(one, scale), laplace(two, scale))
    clamped = sf.dp.density_epsilon(laplace(one, scale).clamped(low, high), laplace(two, scale).clamped(low, high))
    assert clamped <= free + 1e-6


@given(centres, centres, scales)
def test_the_witness_is_where_the_claim_breaks(one: float, two: float, scale: float) -> None:
    assume(abs(one - two) / scale > 0.1)
    verdict = sf.dp.density_verdict(laplace(one, scale), laplace(two, scale), round(abs(one - two) / scale / 2, 6))
    witness = verdict.witness
    assert not verdict.holds and witness is not None
    excess = witness.probability - math.exp(verdict.claimed_epsilon) * witness.other_probability
    assert excess == pytest.approx(verdict.delta, abs=1e-9) and excess > 0


def test_normal_noise_is_never_purely_private() -> None:
    one, two = Density.gaussian(0, 7.031827), Density.gaussian(1, 7.031827)
    assert sf.dp.density_epsilon(one, two) == math.inf
    assert sf.dp.density_delta(one, two, 0.5) == pytest.approx(1e-5, rel=1e-5)


def test_a_density_from_a_function_is_integrated() -> None:
    def triangle(centre: float) -> Density:
        return Density.from_function(lambda x: 1 - np.abs(x - centre), centre - 1, centre + 1, [centre])

    assert triangle(0).probability(-0.5, 0.5) == pytest.approx(0.75, abs=1e-10)
    assert sf.dp.density_epsilon(triangle(0), triangle(0)) == pytest.approx(0, abs=1e-9)
    assert sf.dp.density_epsilon(triangle(0), triangle(0.5)) == math.inf
    assert sf.dp.density_delta(triangle(0), triangle(0.5), 100) == pytest.approx(0.125, abs=1e-9)


def test_an_atom_that_only_one_side_has_is_certain() -> None:
    one = Density.mixture([(0.01, Density.constant(3)), (0.99, Density.uniform(0, 10))])
    verdict = sf.dp.density_verdict(one, Density.uniform(0, 10), 5, 0.001)
    assert not verdict.holds and verdict.epsilon == math.inf and verdict.delta == pytest.approx(0.01)
    assert verdict.witness is not None and verdict.witness.event == "the output is equal to 3"


@pytest.mark.parametrize(
    "make",
    [
        lambda: laplace(0, 0),
        lambda: Density.uniform(1, 1),
        lambda: Density((), ((0.0, 0.5),)),
        lambda: Density((Piece(0, 2, np.zeros_like, lambda a, b: b - a),)),
        lambda: laplace(0, 1).clamped(2, 1),
        lambda: sf.dp.density_verdict(laplace(0, 1), laplace(1, 1), -1),
    ],
)
def test_what_is_no_law_is_refused(make: object) -> None:
    with pytest.raises(ParameterError):
        make()  # type: ignore[operator]


def test_a_verdict_reads_as_a_sentence() -> None:
    told = sf.dp.density_verdict(laplace(0, 1), laplace(1, 1), "0.5").explain()
    assert told.startswith("The claim ε = 0.5 does not hold: the smallest ε is 1")
    assert "holds" in sf.dp.density_verdict(laplace(0, 1), laplace(1, 1), 1).explain()
