"""Linkage with a learnt distance: the integer programme against trying all weights, and what the measure promises."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.data.masked import Masked
from sfumato.measures.risk import LearnedLinkage
from sfumato.measures.risk.linkage import aggregations, learned_linkage
from sfumato.measures.risk.linkage.aggregations import Bilinear, Named, aggregation, antichains
from sfumato.measures.risk.linkage.aligned_files import AlignedFiles
from sfumato.measures.risk.linkage.distance_learning import Effort, WeightSearch
from sfumato.measures.risk.linkage.programme import PairPool, reachable, solve_exactly
from tests.examples import examples

FAMILIES = get_args(Named)
MARGIN = 1e-6


def files(count: int, noise: list[float], seed: int) -> AlignedFiles:
    random = np.random.default_rng(seed)
    width = len(noise)
    original = random.normal(size=(count, width))
    masked = original + random.normal(size=(count, width)) * np.array(noise)
    return AlignedFiles(masked, original, np.zeros(width, dtype=bool), tuple("abcdefgh"[:width]))


def linked_at_best(pair: AlignedFiles, ordered: bool) -> int:
    """Two attributes, weights (t, 1 - t): every record is linked on an interval of t; where do most intervals overlap?"""
    intervals = []
    for i in range(pair.size):
        low, high = 0.0, 1.0
        own = _gaps(pair, i, i, ordered)
        for j in range(pair.size):
            if j == i:
                continue
            other = _gaps(pair, i, j, ordered)
            first, second = other[0] - own[0], other[1] - own[1]  # t·first + (1 - t)·second ≥ margin
            slope, least = first - second, MARGIN - second
            if slope > 0:
                low = max(low, least / slope)
            elif slope < 0:
                high = min(high, least / slope)
            elif least > 0:
                high = -1.0
        if low <= high:
            intervals.append((low, high))
    ends = [end for interval in intervals for end in interval]
    return max((sum(low <= t <= high for low, high in intervals) for t in ends), default=0)


def _gaps(pair: AlignedFiles, i: int, j: int, ordered: bool) -> list[float]:
    gaps = [(x - y) ** 2 for x, y in zip(pair.seeking[i].tolist(), pair.sought[j].tolist(), strict=True)]
    return sorted(gaps, reverse=True) if ordered else gaps


@pytest.mark.parametrize("family", ["weighted mean", "owa"])
@pytest.mark.parametrize("seed", range(6))
def test_the_programme_finds_the_optimum_that_trying_all_weights_finds(family: Named, seed: int) -> None:
    pair = files(25, [0.2, 0.8], seed)
    chosen = aggregation(family, pair, "2-additive")
    found = solve_exactly(pair, chosen, [chosen.plain], MARGIN, 60)
    assert found.proved
    assert found.linked == linked_at_best(pair, family == "owa")
    again = chosen.links(pair, found.theta, 1)
    assert int(again.linked(MARGIN).sum()) == found.linked
    assert found.theta.min() >= 0 and found.theta.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_a_larger_family_links_at_least_as_many(seed: int) -> None:
    pair = files(16, [0.3, 0.9], seed)
    linked = {}
    for name in FAMILIES:
        chosen = aggregation(name, pair, "2-additive")
        found = solve_exactly(pair, chosen, [chosen.plain], MARGIN, 60)
        assert found.proved, name
        linked[name] = found.linked
    assert linked["choquet"] >= max(linked["weighted mean"], linked["owa"])
    assert linked["bilinear"] >= linked["weighted mean"]


def test_for_two_attributes_every_choquet_integral_is_2_additive() -> None:
    pair = files(16, [0.3, 0.9], 5)
    found = []
    for additivity in ("2-additive", "full"):
        chosen = aggregation("choquet", pair, additivity)
        found.append(solve_exactly(pair, chosen, [chosen.plain], MARGIN, 60).linked)
    assert found[0] == found[1]
    assert [len(antichains(attributes)) for attributes in (1, 2, 3, 4)] == [1, 4, 18, 166]


@settings(max_examples=examples(25))
@given(
    st.sampled_from(FAMILIES),
    st.integers(2, 14),
    st.integers(1, 4),
    st.floats(0.05, 3),
    st.sampled_from(["masked to original", "original to masked"]),
    st.integers(0, 1000),
)
def test_learnt_weights_never_link_fewer_than_equal_ones(
    family: Named, count: int, width: int, noise: float, direction: Any, seed: int
) -> None:
    pair = files(count, [noise] * width, seed)
    value, parts = LearnedLinkage(family, direction=direction, seconds=1.0).learn(pair)
    assert parts["plain"] - 1e-12 <= value <= 1
    assert parts["linked by the margin"] <= parts["bound"] <= 1
    assert parts["proved"] == float(parts["linked by the margin"] == parts["bound"])


def test_generated_constraints_find_what_the_exact_optimum_is() -> None:
    pair = files(40, [0.1, 0.5, 1.5], 2)
    chosen = aggregation("weighted mean", pair, "2-additive")
    exact = solve_exactly(pair, chosen, [chosen.plain], MARGIN, 60)
    search = WeightSearch.begin(pair, chosen, MARGIN, Effort(np.inf))
    search.improve()
    learnt = int(search.links.linked(MARGIN).sum())
    assert exact.proved and learnt <= exact.linked
    assert learnt >= 0.9 * exact.linked > int(search.plain.linked(MARGIN).sum())


def test_the_one_attribute_that_was_hardly_masked_gets_the_weight() -> None:
    pair = files(200, [2.0, 2.0, 1e-4, 2.0], 1)
    for family in ("weighted mean", "bilinear"):
        value, parts = LearnedLinkage(family, seconds=2).learn(pair)
        assert parts["plain"] < 0.1 < 0.9 < value
        assert max((name for name in parts if "of" in name), key=lambda name: parts[name]).endswith("c")


def test_a_record_that_is_nearer_to_another_in_every_attribute_is_out_of_reach() -> None:
    seeking = np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 0.0]])
    sought = np.array([[1.0, 1.0], [0.5, 0.5], [9.0, 0.0]])
    pair = AlignedFiles(seeking, sought, np.zeros(2, dtype=bool), ("a", "b"))
    chosen = aggregation("weighted mean", pair, "2-additive")
    pool = PairPool(pair, chosen, MARGIN)
    pool.add(np.array([0, 0, 1, 1]), np.array([1, 2, 0, 2]))
    assert pool.hopeless.tolist() == [True, True, False]
    assert reachable(pool, np.arange(3)).tolist() == [False, False, True]
    found = solve_exactly(pair, chosen, [chosen.plain], MARGIN, 10)
    assert (found.linked, found.bound) == (1, 1)


def test_the_bilinear_form_stays_positive_semidefinite() -> None:
    pair = files(30, [0.3, 0.6, 0.9], 4)
    form = Bilinear(3)
    search = WeightSearch.begin(pair, form, MARGIN, Effort(np.inf))
    search.improve()
    matrix = form.matrix(search.best)
    assert np.linalg.eigvalsh(matrix).min() >= -1e-12
    assert np.trace(matrix) == pytest.approx(1)
    vector = np.linalg.eigh(matrix)[1][:, 0]
    wrong = matrix - 0.5 * np.outer(vector, vector)
    (cut,) = form.cuts(wrong[np.triu_indices(3)])
    assert cut @ wrong[np.triu_indices(3)] < 0 <= cut @ search.best


@given(st.integers(2, 3), st.integers(0, 10**6))
def test_no_parameters_leave_the_range_that_the_block_variable_covers(width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    seeking, sought = random.normal(size=(2, 4, width))
    pair = AlignedFiles(seeking, sought, np.zeros(width, dtype=bool), tuple("abc"[:width]))
    rows, others = np.zeros(3, dtype=np.int64), np.arange(1, 4)
    for name in FAMILIES:
        chosen = aggregation(name, pair, "2-additive")
        own, other = chosen.features(pair, rows, rows), chosen.features(pair, rows, others)
        low, high = chosen.range(own, other)
        theta = chosen.repaired(random.normal(size=chosen.size) if name == "bilinear" else random.random(chosen.size))
        value = (other - own) @ theta
        assert (low - 1e-9 <= value).all() and (value <= high + 1e-9).all()


PEOPLE = sf.read(
    pa.table(
        {
            "age": [23, 35, None, 61, 47, 35, 52, 29],
            "income": [1.5, 2.5, 3.5, None, 2.0, 7.0, 4.0, 3.0],
            "city": ["Ulm", "Bonn", None, "Ulm", "Köln", "Bonn", "Ulm", "Köln"],
            "same": [1] * 8,
        }
    ),
    schema=sf.Schema.of(quasi=["age", "income", "city", "same"]),
)


@pytest.mark.parametrize("family", ["weighted mean", "owa", "choquet"])
def test_the_identity_mask_is_linked_entirely_with_categories_and_missing_values(family: Named) -> None:
    score = LearnedLinkage(family, seconds=5).score(PEOPLE, PEOPLE)
    assert (score.value, score.parts["plain"], score.better) == (1.0, 1.0, "lower")
    assert not any("same" in part for part in score.parts)


def test_ties_are_shared() -> None:
    equal = pa.table({"a": [1.0, 1.0, 5.0, 5.0]})
    people = sf.read(equal, schema=sf.Schema.of(quasi=["a"]))
    score = LearnedLinkage().score(people, equal)
    assert score.value == 0.5
    assert score.parts["linked by the margin"] == 0.0


def test_general_integrals_are_for_few_attributes() -> None:
    with pytest.raises(Unsupported, match="2-additive"):
        LearnedLinkage("choquet", additivity="full").learn(files(5, [1.0] * 5, 1))
    value, parts = LearnedLinkage("choquet", additivity="full", seconds=3).learn(files(12, [0.3, 0.5, 0.9], 1))
    assert value >= parts["plain"]
    assert sum(parts[name] for name in parts if name.startswith("weight")) == pytest.approx(1)


def test_what_cannot_be_learnt_is_refused() -> None:
    with pytest.raises(ParameterError, match="aggregation"):
        LearnedLinkage("median")
    with pytest.raises(ParameterError, match="margin"):
        LearnedLinkage(margin=0.0)
    with pytest.raises(ParameterError, match="direction"):
        LearnedLinkage(direction="sideways")
    with pytest.raises(ParameterError, match="seconds"):
        LearnedLinkage(seconds=0)
    with pytest.raises(Unsupported, match="bilinear"):
        LearnedLinkage("bilinear", columns=("age", "city")).score(PEOPLE, PEOPLE)
    with pytest.raises(Unsupported, match="varies"):
        LearnedLinkage(columns=("same",)).score(PEOPLE, PEOPLE)
    with pytest.raises(InputError, match="no record stands behind"):
        LearnedLinkage().score(PEOPLE, Masked(PEOPLE.table(), PEOPLE.schema, ("age",), None))
    empty = sf.read(pa.table({"age": pa.array([], pa.int64())}), schema=sf.Schema.of(quasi=["age"]))
    with pytest.raises(InputError, match="no records"):
        LearnedLinkage().score(empty, empty)


def masked_of(table: dict[str, Any], rows: Any, people: Any) -> Masked:
    return Masked(pa.table(table), people.schema, tuple(table), np.asarray(rows))


@pytest.mark.parametrize("direction", ["masked to original", "original to masked"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_of_a_person_is_a_right_answer(family: Named, direction: Any) -> None:
    random = np.random.default_rng(3)
    values = random.normal(size=(40, 2))
    people = sf.read(pa.table({"a": values[:, 0], "b": values[:, 1]}), schema=sf.Schema.of(quasi=["a", "b"]))
    rows = np.append(np.repeat(np.arange(20), 2), 0)
    twice = masked_of({"a": values[rows, 0], "b": values[rows, 1]}, rows, people)
    score = LearnedLinkage(family, direction=direction, seconds=1, exact_up_to=0).score(people, twice)
    assert score.value == score.parts["plain"] == 1.0
    assert score.parts["learnt on"] == 20


@pytest.mark.parametrize("family", FAMILIES)
def test_counting_links_equals_comparing_all_pairs(family: Named) -> None:
    random = np.random.default_rng(5)
    mine, owner = random.integers(0, 12, 30), np.append(np.arange(12), random.integers(0, 12, 13))
    pair = AlignedFiles(
        random.integers(0, 4, (30, 3)).astype(float),
        random.integers(0, 4, (25, 3)).astype(float),
        np.array([False, False, family != "bilinear"]),
        ("a", "b", "c"),
        mine,
        owner,
    )
    chosen = aggregation(family, pair, "2-additive")
    theta = chosen.repaired(np.arange(1.0, chosen.size + 1))
    shares = chosen.shares(pair, theta)
    for i in range(30):
        far = chosen.features(pair, np.full(25, i), np.arange(25)) @ theta
        nearest = np.flatnonzero(far <= far.min() * (1 + 1e-9) + 1e-12)
        assert shares[i] == pytest.approx(np.mean(owner[nearest] == mine[i]))
    # so many records that only some of those who seek are counted
    assert aggregations.sampled_rows(10**6, 10**6, chosen.steps).size < 10**4


def test_many_records_are_learnt_from_a_fixed_sample_and_the_clock_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_linkage, "LEARNT_ON", 60)
    pair = files(300, [2.0, 0.01, 2.0], 1)
    first = LearnedLinkage(seconds=0.5, exact_up_to=0).learn(pair)
    hours = iter(np.arange(0.0, 1e9, 1e4).tolist())
    monkeypatch.setattr("time.monotonic", lambda: next(hours))
    assert LearnedLinkage(seconds=0.5, exact_up_to=0).learn(pair) == first
    value, parts = first
    assert parts["learnt on"] == 60 < 300 * value
    assert value > parts["plain"]


def test_work_is_bounded_by_operations() -> None:
    pair = files(60, [0.5, 0.5, 0.5], 1)
    chosen = aggregation("choquet", pair, "2-additive")
    little = WeightSearch.begin(pair, chosen, MARGIN, Effort(1.0))
    little.improve()
    more = WeightSearch.begin(pair, chosen, MARGIN, Effort(5e7))
    more.improve()
    assert little.tried < more.tried
    assert more.effort.left > -5e8 - 60**2 * chosen.steps * 4


def test_values_of_any_size_are_standardised() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=30)
    people = sf.read(pa.table({"a": values * 1e200, "b": values[::-1].copy()}), schema=sf.Schema.of(quasi=["a", "b"]))
    same = LearnedLinkage(seconds=0.5, exact_up_to=0).score(people, people)
    assert same.value == 1.0
    far = pa.table({"a": values * 1e200, "b": np.full(30, 1e300)})
    score = LearnedLinkage(seconds=0.5, exact_up_to=0).score(people, far)
    assert score.value == 1.0 >= score.parts["plain"]
