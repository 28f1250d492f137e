"""Measures of risk."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.risk.uniques.anonymity_set import AnonymitySet
from sfumato.measures.risk.uniques.distinction import AttributeDistinction, separation, separations
from sfumato.measures.risk.uniques.population_uniqueness import (
    PopulationUniqueness,
    individual_risk,
    intrusion_simulation,
)
from sfumato.measures.risk.uniques.reidentification import JournalistRisk, MarketerRisk, ProsecutorRisk, SampleUniques

SCHEMA = sf.Schema.of(quasi=["age"])


def release(ages: list[str], schema: sf.Schema = SCHEMA, **more: list[float]) -> ReleasedTable:
    return ReleasedTable(pa.table({"age": ages, **more}), schema, records=len(ages))


def test_the_prosecutor_sees_one_over_the_class_size() -> None:
    score = ProsecutorRisk(threshold=0.4).score(None, release(["a"] * 4 + ["b"] * 2 + ["c"]))
    assert score.value == 1
    assert score.parts["mean"] == pytest.approx(3 / 7)
    assert score.parts["share above 0.4"] == pytest.approx(3 / 7)


def test_the_journalist_needs_the_population() -> None:
    released = release(["20", "20", "30"])
    population = pa.table({"age": ["20"] * 10 + ["30"] * 4})
    assert JournalistRisk(population).score(None, released).value == pytest.approx(1 / 4)
    assert MarketerRisk(population).score(None, released).value == pytest.approx((2 / 10 + 1 / 4) / 3)
    with pytest.raises(InputError, match="weight"):
        JournalistRisk().score(None, released)


WEIGHTED = sf.Schema(columns={"age": sf.Column(role="quasi"), "w": sf.Column(role="weight")})


def test_survey_weights_stand_for_the_population() -> None:
    released = release(["20", "20", "30"], WEIGHTED, w=[5.0, 5.0, 4.0])
    assert JournalistRisk().score(None, released).value == pytest.approx(1 / 4)
    assert MarketerRisk().score(None, released).value == pytest.approx((2 / 10 + 1 / 4) / 3)
    with pytest.raises(InputError, match="non-positive"):
        JournalistRisk().score(None, release(["20"], WEIGHTED, w=[0.0]))


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40))
def test_the_marketers_risk_is_classes_per_record(ages: list[str]) -> None:
    released = release(ages)
    assert MarketerRisk().score(None, released).value == pytest.approx(len(set(ages)) / len(ages))
    assert MarketerRisk().score(None, released).value <= ProsecutorRisk().score(None, released).value + 1e-12
    alone = sum(ages.count(age) == 1 for age in ages)
    assert SampleUniques().score(None, released).value == pytest.approx(alone / len(ages))


def test_individual_risk_is_the_mean_of_one_over_the_negative_binomial_population() -> None:
    """Against the sum over the law itself: F = f + j with chance C(f + j - 1, j) p^f (1 - p)^j."""
    for f, p in ((1, 0.1), (2, 0.3), (5, 0.05), (40, 0.5)):
        law, chance = 0.0, p**f
        for j in range(20_000):
            law += chance / (f + j)
            chance *= (f + j) / (j + 1) * (1 - p)
        assert individual_risk(np.array([f]), np.array([p]))[0] == pytest.approx(law, rel=1e-9)
    p = 0.2
    closed = p / (1 - p) * -math.log(p)
    assert individual_risk(np.array([1]), np.array([p]))[0] == pytest.approx(closed)
    assert individual_risk(np.array([3]), np.array([1.0]))[0] == pytest.approx(1 / 3)


def test_a_whole_population_is_as_unique_as_it_looks() -> None:
    score = PopulationUniqueness(sampling_fraction=1.0).score(None, release(["a", "b", "c", "c"]))
    assert score.value == pytest.approx(0.5)
    assert score.parts["right match given a unique match"] == 1


def test_the_intrusion_simulation_estimates_right_matches_within_a_tenth() -> None:
    """A simple random sample of a made-up population; the estimate is judged by the truth (fixed seeds)."""
    draw = np.random.default_rng(7)
    population = np.floor(draw.exponential(2_000, 40_000)).astype(int)
    values, counts = np.unique(population, return_counts=True)
    frequency = dict(zip(values.tolist(), counts.tolist(), strict=True))
    sample = draw.choice(population, 8_000, replace=False)
    in_sample, seen = np.unique(sample, return_counts=True)
    unique = in_sample[seen == 1]
    # a person of the population whose class has one sample record is matched; how often is it that person?
    right = unique.size / sum(frequency[v] for v in unique.tolist())
    assert intrusion_simulation(seen, 0.2) == pytest.approx(right, rel=0.1)


def test_weights_or_a_fraction_are_needed() -> None:
    with pytest.raises(InputError, match="sampling_fraction"):
        PopulationUniqueness().score(None, release(["a"]))
    with pytest.raises(ParameterError):
        PopulationUniqueness(sampling_fraction=0)
    weighted = release(["a", "b", "b"], WEIGHTED, w=[10.0, 3.0, 3.0])
    assert PopulationUniqueness().score(None, weighted).parts["population uniques"] == pytest.approx(0.1)


def test_separation_and_distinction() -> None:
    rows = pa.table({"id": ["1", "2", "3", "4"], "sex": ["f", "f", "m", "m"], "town": ["x"] * 4})
    listed = separations(rows, ("id", "sex", "town"), 2)
    best = listed[0]
    assert best.columns == ("id",) and best.separation == best.distinction == 1 and best.uniques == 4
    sex = separation(rows, ("sex",))
    assert (sex.separation, sex.distinction) == (pytest.approx(4 / 6), 0.5)
    assert separation(rows, ("town",)).separation == 0
    assert "pairs of records differ" in sex.in_words()
    schema = sf.Schema.of(quasi=["sex", "town"])
    score = AttributeDistinction().score(None, ReleasedTable(rows, schema, records=4))
    assert score.value == pytest.approx(4 / 6)
    assert set(score.parts) == {"sex", "town", "sex + town"}


@pytest.mark.golden("G-PBD-02")
def test_the_effective_size_of_an_anonymity_set() -> None:
    assert AnonymitySet((0.25,) * 4).effective_size == 4
    skewed = AnonymitySet((0.97, 0.01, 0.01, 0.01))
    assert skewed.effective_size == pytest.approx(1.1826, abs=5e-5)
    assert (skewed.size, skewed.identified) == (4, False)
    assert AnonymitySet.uniform(5).degree == pytest.approx(1)
    assert AnonymitySet((1.0, 0.0)).identified
    with pytest.raises(ParameterError):
        AnonymitySet((0.5, 0.6))
