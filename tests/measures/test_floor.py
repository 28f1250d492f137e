"""What chance gives: every risk beside the same measure under random pairings, or beside a blind guess."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.view import Score
from sfumato.data.masked import Masked
from sfumato.data.microdata import ReleasedTable
from sfumato.measures import risk
from sfumato.measures.risk.success import mean_interval, wilson
from sfumato.workflow.publishing.cards import stated_score
from sfumato.workflow.publishing.scoring import computed_again
from tests.measures.mixed_people import all_quasi, correlated_keys, resampled, survey

SURVEY = survey()
PEOPLE = all_quasi(SURVEY)
PAIRED = (
    risk.DisclosureRisk(),
    risk.DisclosureRisk(linkage="largest"),
    risk.IntervalDisclosure(),
    risk.IntervalDisclosure("deviation"),
    risk.DistanceLinkage(),
    risk.ProbabilisticLinkage(),
)


def test_a_gain_is_what_is_above_chance() -> None:
    assert Score("m", 0.4, "lower", "", floor=0.2, interval=(0.1, 0.6)).gain == pytest.approx(0.25)
    assert Score("m", 0.4, "lower", "", floor=0.2, interval=(0.1, 0.6)).gain_interval == pytest.approx((-0.125, 0.5))
    assert Score("m", 0.1, "lower", "", floor=0.2).gain == pytest.approx(-0.125)
    assert Score("m", 1.0, "lower", "", floor=1.0).gain is None
    assert Score("m", 0.4, "lower", "").gain is None


@pytest.mark.parametrize("measure", PAIRED, ids=lambda measure: f"{measure.key} {getattr(measure, 'linkage', '')}")
def test_independent_resampling_gains_nothing(measure: risk.DisclosureRisk) -> None:
    """A fixed draw; another one misses its interval with a chance of 5 %."""
    score = measure.score(PEOPLE, resampled(SURVEY, 1))
    assert score.gain_interval[0] <= 0.0 <= score.gain_interval[1]
    assert abs(score.gain) < 0.005


def test_chance_alone_looks_like_a_risk_of_more_than_a_quarter_on_yes_or_no_columns() -> None:
    score = risk.DisclosureRisk().score(PEOPLE, resampled(SURVEY, 1))
    assert score.value > 0.25 and score.floor > 0.25
    assert risk.DisclosureRisk().score(PEOPLE, SURVEY).gain > 0.95


@pytest.mark.parametrize("version", ["rank", "deviation"])
def test_the_floor_of_intervals_is_the_mean_over_all_pairings(version: str) -> None:
    draw = np.random.default_rng(5)
    for seed in range(3):
        x = np.round(np.random.default_rng(seed).normal(size=5), 1)
        x[seed] = np.nan
        y = draw.choice(np.append(x[~np.isnan(x)], np.nan), 5)
        original = all_quasi(pa.table({"x": pa.array(x, from_pandas=True)}))
        measure = risk.IntervalDisclosure(version)
        rows = pa.table({"x": pa.array(y, from_pandas=True)})
        shares = [measure.score(original, rows.take(pa.array(order))).value for order in permutations(range(5))]
        assert measure.score(original, rows).floor == pytest.approx(np.mean(shares), abs=1e-12)


@pytest.mark.parametrize("owners", [(0, 1, 2, 3, 4), (0, 0, 1, 2, 2)])
def test_the_floor_of_linkage_is_the_mean_over_all_pairings(owners: tuple[int, ...]) -> None:
    table = pa.table({"x": [1.0, 2.0, 2.0, 4.0, 8.0], "y": ["a", "a", "a", "b", "a"]})
    shown = pa.table({"x": [1.0, 2.0, 2.0, 7.0, 4.0], "y": ["a", "b", "a", "a", "a"]})
    people = all_quasi(table)
    for measure in (risk.DistanceLinkage(), risk.AssignmentLinkage()):
        masked = Masked(shown, people.schema, ("x", "y"), np.array(owners))
        floor = measure.score(people, masked).floor
        if isinstance(measure, risk.AssignmentLinkage) and len(set(owners)) < 5:
            continue  # who is in the intruder's file twice changes the assignment
        shares = [
            measure.score(people, replace(masked, rows=np.array(owners)[list(order)])).value for order in permutations(range(5))
        ]
        assert floor == pytest.approx(np.mean(shares), abs=1e-12)


def test_the_floor_of_agreement_weights_is_what_other_random_pairings_give() -> None:
    table = correlated_keys(300)
    people = all_quasi(table)
    masked = sf.Pram(stay=0.8).apply(people, seed=1).result
    score = risk.ProbabilisticLinkage().score(people, masked)
    draw = np.random.default_rng(8)
    shares = [risk.ProbabilisticLinkage().score(people, replace(masked, rows=draw.permutation(300))).value for _ in range(40)]
    error = np.hypot(np.std(shares) / np.sqrt(40), score.parts["standard error of the floor"])
    assert abs(score.floor - np.mean(shares)) < 5 * error + 1 / 300


def test_every_measure_of_risk_has_a_floor_and_an_interval() -> None:
    people = sf.read(sf.data.sample_table(200), schema=sf.data.sample_schema())
    masked = sf.Mdav(k=5, columns=("age", "income")).apply(people, seed=1).result
    released = ReleasedTable(people.table(), people.schema, records=200)
    parameters = {
        "attribute_disclosure": {"target": "diagnosis"},
        "household_risk": {"household": "occupation", "sampling_fraction": 0.1},
        "individual_risk": {"sampling_fraction": 0.1},
        "journalist_risk": {"population": people},
        "log_linear_risk": {"sampling_fraction": 0.1, "columns": ("sex", "age")},
        "population_uniqueness": {"sampling_fraction": 0.1},
        "sampling_risk": {"sampling_fraction": 0.1},
        "worst_case": {"seconds": 0.2},
        "worst_case_linkage": {"seconds": 0.2},
    }
    for key, (name, _) in risk.KEYS.items():
        measure = getattr(risk, name)(**parameters.get(key, {}))
        score = measure.score(people, masked if measure.masked else released)
        assert 0.0 <= score.floor < 1.0, key
        low, high = score.interval
        assert 0.0 <= low <= score.value + 1e-12 and score.value - 1e-12 <= high <= 1.0, key
        assert score.gain == pytest.approx((score.value - score.floor) / (1 - score.floor)), key


def test_the_worst_case_finds_somebody_by_chance_too() -> None:
    """With the best of many learnt weights a random pairing still links several people; blind guessing links one."""
    draw = np.random.default_rng(4)
    table = pa.table({f"x{i}": draw.normal(size=80) for i in range(4)})
    people = all_quasi(table)
    score = risk.LearnedLinkage(seconds=0.5).score(people, resampled(table, 3))
    assert score.floor >= 1 / 80
    assert score.gain_interval[0] < 0.0 < score.gain_interval[1] + 0.2


def test_class_sizes_are_compared_with_a_blind_guess() -> None:
    table = pa.table({"town": ["a", "a", "b", "c"]})
    released = ReleasedTable(table, sf.Schema.of(quasi=["town"]), records=4)
    for measure, value in ((risk.ProsecutorRisk(), 1.0), (risk.MarketerRisk(), 0.75), (risk.SampleUniques(), 0.5)):
        score = measure.score(None, released)
        assert (score.value, score.floor, score.interval) == (value, 0.25, (value, value))


def test_intervals_of_mean_shares_cover_the_mean() -> None:
    """2,000 samples from three laws: 95 % cover; fewer than 93 % has a chance below 10⁻⁴."""
    draw = np.random.default_rng(6)
    for law in (lambda n: draw.beta(0.2, 2, n), lambda n: (draw.random(n) < 0.05) * 1.0, lambda n: 0.5 + 0.1 * draw.random(n)):
        truth = float(law(2_000_000).mean())
        covered = sum(low <= truth <= high for low, high in (mean_interval(law(400)) for _ in range(2_000)))
        assert 0.93 <= covered / 2_000 <= 0.98
    assert mean_interval(np.ones(50)) == wilson(50, 50)
    twice = np.repeat(draw.random(100), 2)
    assert mean_interval(twice, np.repeat(np.arange(100), 2)) == pytest.approx(mean_interval(twice[::2]))


def test_the_interval_of_the_individual_risk_holds_what_happens_in_the_population() -> None:
    """Populations drawn from the model: the share of records whose person is guessed lies inside in 95 of 100."""
    draw = np.random.default_rng(7)
    table = pa.table({"town": [f"t{i}" for i in range(400)]})  # sample uniques: F − 1 is geometric
    people = all_quasi(table)
    score = risk.IndividualRisk(sampling_fraction=0.1).score(people, people)
    inside = 0
    for _ in range(1_000):
        behind = draw.geometric(0.1, 400)
        share = float(np.mean(draw.random(400) < 1 / behind))
        inside += score.interval[0] <= share <= score.interval[1]
    assert 0.92 <= inside / 1_000 <= 0.98


def test_a_stored_score_without_a_floor_is_still_computed_again_and_a_wrong_floor_is_not() -> None:
    table, schema = pa.table({"town": ["a", "a", "b", "c"]}), sf.Schema.of(quasi=["town"])
    released = ReleasedTable(table, schema, records=4)
    score = risk.ProsecutorRisk().score(None, released)
    stated = stated_score(score)
    assert stated["floor"] == 0.25 and stated["interval"] == [1.0, 1.0]
    assert computed_again(Score(**stated), released)
    earlier = {name: value for name, value in stated.items() if name not in ("floor", "interval")}
    assert computed_again(Score(**earlier), released)
    assert not computed_again(Score(**{**stated, "floor": 0.1}), released)
    assert not computed_again(Score(**{**stated, "interval": [0.5, 1.0]}), released)
    assert "floor" not in stated_score(Score("loss", 0.1, "lower", ""))


def test_weights_counted_from_the_truth_see_what_an_estimate_misses() -> None:
    """Five of eight keys say the same: the estimation takes them for the sign of a right pair and links half as many."""
    table = correlated_keys()
    people = all_quasi(table)
    masked = sf.Pram(stay=0.8).apply(people, seed=1).result
    score = risk.ProbabilisticLinkage().score(people, masked)
    by_truth, by_guess = (score.parts[f"weights {how}"] for how in ("counted from the truth", "estimated by the intruder"))
    assert by_guess < 0.6 * by_truth
    assert score.value == max(by_truth, by_guess)
    assert score.value > 0.9 * risk.DistanceLinkage().score(people, masked).value


def test_counted_chances_are_those_of_all_pairs() -> None:
    from sfumato.measures.risk.linkage.probabilistic_linkage import counted_model

    draw = np.random.default_rng(2)
    owner = np.array([0, 0, 1, 2, 3, 3, 3])
    held = draw.integers(-1, 3, 4).astype(np.int32)[owner]
    shown = draw.integers(-1, 3, 7).astype(np.int32)
    model = counted_model([(held, shown)], owner)
    agree = (held[:, None] == shown) & (held[:, None] >= 0)
    own = owner[:, None] == owner
    assert model.m[0] == pytest.approx(np.clip(agree[own].mean(), 1e-6, 1 - 1e-6))
    assert model.u[0] == pytest.approx(np.clip(agree[~own].mean(), 1e-6, 1 - 1e-6))


def test_where_distances_find_more_that_is_said_and_counts() -> None:
    table = correlated_keys(300, seed=3)
    people = all_quasi(table)
    masked = sf.Pram(stay=0.8).apply(people, seed=1).result
    both, largest = (risk.DisclosureRisk(linkage=way).score(people, masked) for way in ("both", "largest"))
    linkages = [both.parts["distance linkage"], both.parts["probabilistic linkage"]]
    assert both.value == pytest.approx(np.mean(linkages))
    assert largest.value == pytest.approx(max(linkages))
    assert ("distances find more" in both.meaning) == (linkages[0] > linkages[1])
