"""Risk in a population that only a sample is known of: by a log-linear model, and by the sampling alone.

Populations are drawn here, so that the truth is known; draws are fixed, and what is asserted of their coverage was far from the
edge when it was written.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, Unsupported
from sfumato.data.microdata import ReleasedTable
from sfumato.measures import risk
from sfumato.measures.risk.uniques.log_linear import fitted_counts, log_variances, main_effects, two_way, variance_of
from sfumato.measures.risk.uniques.sampling_risk import population_uniques, right_match

SHAPE = (2, 5, 6, 8, 9)


def design(shape: tuple[int, ...], margins: Any) -> np.ndarray:
    """The indicator of each cell of each margin: the model's matrix, with more columns than needed."""
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    blocks = []
    for margin in margins:
        codes = np.unique(cells[:, list(margin)], axis=0, return_inverse=True)[1].reshape(-1)
        blocks.append(np.eye(codes.max() + 1)[codes])
    return np.hstack(blocks)


def by_newton(counts: np.ndarray, margins: Any) -> np.ndarray:
    """The Poisson regression on the model's matrix, by Newton's method."""
    matrix = design(counts.shape, margins)
    flat = counts.ravel()
    beta = np.linalg.lstsq(matrix, np.log(flat + 0.5), rcond=None)[0]
    for _ in range(100):
        mean = np.exp(matrix @ beta)
        beta = beta + np.linalg.pinv(matrix.T @ (mean[:, None] * matrix)) @ matrix.T @ (flat - mean)
    return np.exp(matrix @ beta).reshape(counts.shape)


@pytest.mark.parametrize("terms", [main_effects, two_way])
def test_the_fit_and_its_variances_are_those_of_the_regression(terms: Any) -> None:
    counts = np.random.default_rng(3).poisson(2.0, (3, 2, 4)).astype(float) + 1
    margins = terms(3)
    fit = fitted_counts(counts, margins)
    assert fit == pytest.approx(by_newton(counts, margins), rel=1e-4)
    matrix = design(counts.shape, margins)
    covariance = matrix @ np.linalg.pinv(matrix.T @ (fit.ravel()[:, None] * matrix)) @ matrix.T  # of the logarithms
    gradient = np.random.default_rng(4).normal(size=counts.shape)
    assert variance_of(gradient, fit, margins) == pytest.approx(gradient.ravel() @ covariance @ gradient.ravel(), rel=1e-3)
    stated = log_variances(fit, margins, np.arange(fit.size))
    assert stated == pytest.approx(np.diag(covariance), rel=1e-4 if terms is main_effects else 0.4)  # of pairs it is near
    assert stated.mean() == pytest.approx(np.diag(covariance).mean(), rel=0.2)


def test_main_effects_are_products_of_shares_and_pairs_without_a_record_stay_empty() -> None:
    counts = np.random.default_rng(5).poisson(1.0, (3, 4, 5)).astype(float)
    total = counts.sum()
    shares = [counts.sum(axis=tuple(a for a in range(3) if a != axis)) / total for axis in range(3)]
    assert fitted_counts(counts, main_effects(3)) == pytest.approx(total * np.einsum("i,j,k->ijk", *shares))
    counts[0, 1] = 0
    assert (fitted_counts(counts, two_way(3))[0, 1] == 0).all()


def population(kind: str, draw: np.random.Generator, people: int = 20_000) -> np.ndarray:
    """Columns that are independent, or of which every pair interacts."""
    logs = np.zeros(SHAPE)
    widths = [(axis,) for axis in range(5)] + (list(combinations(range(5), 2)) if kind == "two-way" else [])
    for axes in widths:
        shape = [SHAPE[axis] if axis in axes else 1 for axis in range(5)]
        logs = logs + draw.normal(0, 0.9 if len(axes) == 1 else 0.5, shape)
    chances = np.exp(logs).ravel()
    return np.stack(np.unravel_index(draw.choice(chances.size, people, p=chances / chances.sum()), SHAPE), axis=1)


def sampled(people: np.ndarray, chances: np.ndarray, draw: np.random.Generator) -> tuple[ReleasedTable, int, float]:
    """A sample with its weights, and what is true: population uniques and expected right matches among its uniques."""
    classes = np.unique(people, axis=0, return_inverse=True)[1].reshape(-1)
    taken = draw.random(len(people)) < chances
    whole, part = np.bincount(classes), np.bincount(classes[taken], minlength=classes.max() + 1)
    alone = part == 1
    table = pa.table({**{f"c{i}": people[taken, i] for i in range(5)}, "w": 1 / chances[taken]})
    columns = {f"c{i}": sf.Column(role="quasi") for i in range(5)} | {"w": sf.Column(role="weight")}
    released = ReleasedTable(table, sf.Schema(columns=columns), records=table.num_rows)
    return released, int((alone & (whole == 1)).sum()), float((1 / whole[alone]).sum())


@pytest.mark.parametrize(
    ("kind", "model", "fraction", "weighted"),
    [("main effects", "auto", 0.05, False), ("two-way", "auto", 0.1, False), ("two-way", "two-way", 0.1, True)],
)
def test_where_the_model_holds_the_truth_is_met(kind: str, model: Any, fraction: float, weighted: bool) -> None:
    """Bias of matches below 6 % and of uniques below 20 % over 20 populations; of the 40 intervals at least 36 hold the truth."""
    estimates, truths, inside = [], [], 0
    for seed in range(20):
        draw = np.random.default_rng(seed)
        people = population(kind, draw)
        chances = np.where(people[:, 1] % 2 == 0, 1.5, 0.6) * fraction if weighted else np.full(len(people), fraction)
        released, uniques, matches = sampled(people, chances, draw)
        score = risk.LogLinearRisk(model=model).score(None, released)
        estimates.append((score.parts["population uniques"], score.parts["correct matches"]))
        truths.append((uniques, matches))
        records = released.table.num_rows
        assert score.interval is not None and score.value == pytest.approx(score.parts["correct matches"] / records)
        inside += score.interval[0] * records <= matches <= score.interval[1] * records
        inside += score.parts["population uniques, low"] <= uniques <= score.parts["population uniques, high"]
    uniques_off, matches_off = np.mean(estimates, axis=0) / np.mean(truths, axis=0) - 1
    assert abs(matches_off) < 0.06 and abs(uniques_off) < 0.2
    assert inside >= 36


def test_pairs_that_hardly_anybody_has_make_intervals_wide_and_the_truth_lies_inside() -> None:
    """40 × 30 pairs of town and job and 2,000 records: many pairs hold the unique record alone, and nobody knows more."""
    widths = []
    for seed in range(8):
        draw = np.random.default_rng(seed)
        town, job = draw.zipf(1.6, 20_000) % 40, draw.zipf(1.8, 20_000) % 30
        nothing = np.zeros(20_000, dtype=np.int64)
        people = np.stack([town, (job + town) % 30, draw.integers(0, 12, 20_000), nothing, nothing], axis=1)
        released, uniques, matches = sampled(people, np.full(20_000, 0.1), draw)
        parts = risk.LogLinearRisk(columns=("c0", "c1", "c2")).score(None, released).parts
        assert parts["population uniques, low"] <= uniques <= parts["population uniques, high"]
        assert parts["correct matches, low"] <= matches <= parts["correct matches, high"]
        widths.append((parts["population uniques, high"] - parts["population uniques, low"]) / parts["sample uniques"])
    assert np.mean(widths) > 0.3


def test_the_check_speaks_against_main_effects_where_columns_interact_and_the_sentence_says_so() -> None:
    draw = np.random.default_rng(4)
    people = population("two-way", draw)
    released, _, matches = sampled(people, np.full(len(people), 0.2), draw)
    forced = risk.LogLinearRisk(sampling_fraction=0.2, model="main effects").score(None, released)
    assert forced.parts["check of the model"] > 2 and "the check speaks against this model" in forced.meaning
    auto = risk.LogLinearRisk(sampling_fraction=0.2).score(None, released)
    assert "log-linear model with all two-way interactions" in auto.meaning and "speaks against" not in auto.meaning
    assert abs(auto.parts["check of the model"]) <= 2 and auto.parts["check of the model, main effects"] > 2
    assert "independent sample of 20 %" in auto.meaning
    records = released.table.num_rows
    assert abs(auto.value * records - matches) < abs(forced.value * records - matches)
    assert auto.floor == pytest.approx(auto.parts["sample uniques"] / records / (records / 0.2))


def test_where_columns_are_independent_main_effects_are_kept() -> None:
    draw = np.random.default_rng(2)
    people = population("main effects", draw)
    released, _, _ = sampled(people, np.full(len(people), 0.1), draw)
    assert "with main effects" in risk.LogLinearRisk().score(None, released).meaning


def test_everybody_sampled_leaves_nothing_to_guess() -> None:
    table = pa.table({"a": [1, 1, 2, 3], "b": [1, 1, 2, 2]})
    released = ReleasedTable(table, sf.Schema.of(quasi=["a", "b"]), records=4)
    score = risk.LogLinearRisk(sampling_fraction=1.0).score(None, released)
    assert score.value == 0.5 == score.parts["population uniques"] / 4 and score.interval == (0.5, 0.5)
    assert risk.SamplingRisk(sampling_fraction=1.0).score(None, released).value == 1.0


def test_refusals() -> None:
    table = pa.table({"a": [1, 1, 2, 3], "w": [1.0, 2.0, 1.0, 1.0]})
    plain = ReleasedTable(table, sf.Schema.of(quasi=["a"]), records=4)
    for measure in (risk.LogLinearRisk(), risk.SamplingRisk()):
        with pytest.raises(InputError, match="needs sampling_fraction or survey weights"):
            measure.score(None, plain)
        with pytest.raises(InputError, match="no released records"):
            type(measure)(sampling_fraction=0.1).score(None, ReleasedTable(table.slice(0, 0), plain.schema, records=0))
    weighted = sf.Schema(columns={"a": sf.Column(role="quasi"), "w": sf.Column(role="weight")})
    with pytest.raises(Unsupported, match="weights differ"):
        risk.SamplingRisk().score(None, ReleasedTable(table, weighted, records=4))
    wide = pa.table({f"c{i}": list(range(200)) for i in range(3)})
    with pytest.raises(Unsupported, match="8,000,000 combinations"):
        risk.LogLinearRisk(sampling_fraction=0.1).score(
            None, ReleasedTable(wide, sf.Schema.of(quasi=wide.column_names), records=200)
        )


@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.3, 0.6, 0.9])
def test_intervals_from_the_sampling_alone_hold_the_truth(fraction: float) -> None:
    """200 populations with classes of many sizes: at least 180 intervals hold the chance, and as many the population uniques."""
    inside = np.zeros(2)
    estimates, truths, uniques = [], [], []
    for seed in range(200):
        draw = np.random.default_rng(seed)
        whole = draw.geometric(0.3, 2000) * draw.choice([1, 1, 4], 2000)
        part = draw.binomial(whole, fraction)
        alone = part == 1
        right, both = alone.sum() / whole[alone].sum(), int((alone & (whole == 1)).sum())
        value, low, high = right_match(part[part > 0], fraction)
        middle, fewest, most = population_uniques(part[part > 0], fraction)
        inside += low <= right <= high, fewest <= both <= most
        assert low <= value <= high and 0 <= fewest <= most <= alone.sum() and (middle is None) == (fraction < 0.5)
        estimates.append(value)
        truths.append(right)
        uniques.append((0.0 if middle is None else middle, both))
    assert (inside >= 180).all()
    assert np.mean(estimates) == pytest.approx(np.mean(truths), rel=0.05)
    if fraction > 0.5:
        assert np.mean(uniques, axis=0)[0] == pytest.approx(np.mean(uniques, axis=0)[1], rel=0.05)


def test_the_chance_of_a_right_match_is_the_data_intrusion_simulation_score() -> None:
    table = pa.table({"a": [1, 2, 3, 4, 4, 5, 5, 5]})
    score = risk.SamplingRisk(sampling_fraction=0.25).score(None, ReleasedTable(table, sf.Schema.of(quasi=["a"]), records=8))
    assert score.value == pytest.approx(0.25 * 3 / (0.25 * 3 + 2 * 0.75 * 1))
    assert score.floor == 1 / 32 and score.parts["sample uniques"] == 3
    none = pa.table({"a": [1, 1]})
    nobody = risk.SamplingRisk(sampling_fraction=0.25).score(None, ReleasedTable(none, sf.Schema.of(quasi=["a"]), records=2))
    assert (nobody.value, nobody.interval) == (0.0, (0.0, 0.0))


@pytest.mark.parametrize("fraction", [0.3, 0.7])
def test_the_estimates_are_unbiased_over_every_sample(fraction: float) -> None:
    """One class of F people: the sample has f of them with a binomial chance, and the sums over f must be the truth."""
    from math import comb

    for people in range(1, 8):
        chances = [comb(people, f) * fraction**f * (1 - fraction) ** (people - f) for f in range(people + 1)]
        odds = (1 - fraction) / fraction
        # others in the class of a sample unique, and the indicator that there is none
        others = sum(p * 2 * odds * (f == 2) for f, p in enumerate(chances))
        assert others == pytest.approx(chances[1] * (people - 1))
        goodman = sum(p * f * (-odds) ** (f - 1) for f, p in enumerate(chances) if f)
        assert goodman == pytest.approx(chances[1] * (people == 1), abs=1e-9)


def test_a_silent_check_is_no_proof_and_the_sentence_says_so() -> None:
    """Everybody has a twin, so nobody is unique: the check says nothing, the interval is wrong, and the meaning warns of both."""
    draw = np.random.default_rng(0)
    pairs = {name: np.repeat(draw.integers(0, kinds, 3_000), 2) for name, kinds in (("a", 12), ("b", 20), ("c", 30))}
    sample = pa.table(pairs).filter(pa.array(draw.random(6_000) < 0.02))
    people = sf.read(sample, schema=sf.Schema.of(quasi=["a", "b", "c"]))
    score = risk.LogLinearRisk(sampling_fraction=0.02).score(people, people)
    assert abs(score.parts["check of the model"]) <= 2 and score.parts["population uniques, low"] > 0
    assert "holds only if that model does, and the check of the model sees only gross misfit" in score.meaning
