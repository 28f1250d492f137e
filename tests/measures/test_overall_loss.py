"""The loss of the map: it sees the shape of distributions, where PIL sees moments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.schema import Column, Schema
from sfumato.measures.risk import DisclosureRisk
from sfumato.measures.utility import Hellinger, InformationLoss, OverallLoss, PropensityScore
from sfumato.measures.utility.overall_loss import WEIGHTS, moved_quantiles
from tests.measures.mixed_people import all_quasi, survey

NUMBERS = ("age", "glucose", "bmi")


@pytest.fixture(scope="module")
def people() -> sf.Microdata:
    return all_quasi(survey(2_000))


def test_the_value_is_the_weighted_mean_of_its_components(people: sf.Microdata) -> None:
    masked = sf.AdditiveNoise(0.3, columns=NUMBERS).apply(people, seed=1).result
    score = OverallLoss().score(people, masked)
    assert score.value == pytest.approx(sum(WEIGHTS[name] * score.parts[name] for name in WEIGHTS))
    assert score.parts["statistics"] == InformationLoss().score(people, masked).value
    assert score.parts["marginals"] == Hellinger().score(people, masked).value
    tree = PropensityScore(model="tree", resamples=2, sample=2_500).score(people, masked).value
    assert score.parts["tree"] == pytest.approx(tree, abs=0.05)
    assert all(f"{name} 0.2" in score.meaning for name in WEIGHTS)
    assert OverallLoss().score(people, people).value == 0.0


def test_ipso_keeps_moments_and_no_longer_betters_rank_swapping(people: sf.Microdata) -> None:
    """By PIL it loses less than swapping and is safer; by shape it loses more, with values that nobody has."""
    ipso, swapped = (
        mask.apply(people, seed=1).result for mask in (sf.Ipso(columns=NUMBERS), sf.RankSwapping(p=20, columns=NUMBERS))
    )
    risks = [DisclosureRisk(columns=NUMBERS).score(people, masked).value for masked in (ipso, swapped)]
    pil = [InformationLoss(NUMBERS).score(people, masked).value for masked in (ipso, swapped)]
    assert risks[0] < risks[1] and pil[0] < pil[1]
    first, second = (OverallLoss(NUMBERS).score(people, masked) for masked in (ipso, swapped))
    assert first.value > 2 * second.value
    assert first.parts["quantiles"] > 0.05 and second.parts["quantiles"] == 0.0
    assert first.parts["values out of bounds"] > 50 and second.parts["values out of bounds"] == 0


def test_quantiles_that_all_move_to_one_value_are_lost() -> None:
    x = np.random.default_rng(1).gamma(2, 1, 500)
    assert moved_quantiles(x, x) == 0.0
    assert moved_quantiles(x, np.full(500, np.quantile(x, 0.5))) == pytest.approx(1.0)
    assert moved_quantiles(x, np.full(500, np.nan)) == 1.0
    assert moved_quantiles(x, x + 100) == 1.0
    assert moved_quantiles(np.ones(9), np.ones(9)) == 0.0 and moved_quantiles(np.ones(9), np.zeros(9)) == 1.0
    assert moved_quantiles(x * 1e300, x * 1e300 * 1.1) == pytest.approx(moved_quantiles(x, x * 1.1))


@pytest.mark.parametrize(("bounds", "outside"), [(None, 2), ((0.0, 10.0), 1), ((-5.0, 10.0), 0)])
def test_declared_bounds_say_what_cannot_be(bounds: tuple[float, float] | None, outside: int) -> None:
    schema = Schema(dataset="d", columns={"x": Column(role="quasi", type="number", bounds=bounds)})
    people = sf.read(pa.table({"x": [1.0, 2.0, 3.0, 4.0]}), schema)
    score = OverallLoss().score(people, pa.table({"x": [-1.0, 2.0, 3.0, 9.0]}))
    assert score.parts["values out of bounds"] == outside
    assert score.parts["out of bounds"] == outside / 4


def test_a_table_of_words_shares_the_weights() -> None:
    words = pa.table({"town": ["a", "b", "c", "d"] * 20})
    people = all_quasi(words)
    score = OverallLoss().score(people, pa.table({"town": ["a"] * 80}))
    assert set(score.parts) == {"statistics", "marginals", "tree"}
    assert score.value == pytest.approx(np.mean(list(score.parts.values())))
