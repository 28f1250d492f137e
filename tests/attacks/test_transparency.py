"""Attacks with a register on masked releases: by distance, and by what is published about the mask."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato import attacks
from sfumato.attacks.masked.pram_posterior import guessed_value
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.core.view import AttackResult, View
from sfumato.data.masked import Masked
from sfumato.data.microdata import ReleasedTable
from sfumato.measures.risk.success import mean_interval, wilson
from tests.examples import examples

SCHEMA = sf.Schema.of(identifier=["name"], quasi=["a", "b", "c", "d"])


def numbers(count: int, seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    values = random.normal(size=(count, 4)) @ np.array([[1, 0.6, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.3], [0, 0, 0, 1]]) * 10 + 60
    columns = {name: values[:, place] for place, name in enumerate("abcd")}
    return sf.read(pa.table({"name": [f"N{i}" for i in range(count)]} | columns), schema=SCHEMA)


def register(people: Any, rows: Any = None, **more: Any) -> attacks.Register:
    rows = np.arange(len(people)) if rows is None else rows
    return attacks.Register(people.table().take(rows), truth=rows, **more)


def masked_by(mask: Any, people: Any, seed: int = 1) -> View:
    return View(mask.apply(people, seed=seed).result, people.schema)


@pytest.mark.parametrize("p", [3, 8, 15])
def test_windows_find_more_people_than_distances_in_rank_swapped_data(p: float) -> None:
    people = numbers(600)
    view = masked_by(sf.RankSwapping(p=p), people)
    plain = attacks.RegisterLinkage().run(view, register(people))
    window = attacks.RankWindow().run(view, register(people))
    assert window.success > plain.success > window.baseline == pytest.approx(1 / 600)
    assert window.details["own_record_outside"] == 0  # a hard window is never left
    assert window.details["certain"] == window.details["single_candidate"] > 0
    assert window.interval[0] < window.success < window.interval[1]


def test_swapping_by_a_distribution_yields_nobody_for_certain() -> None:
    people = numbers(600)
    view = masked_by(sf.DistributionRankSwapping(p=8), people)
    with pytest.raises(Unsupported, match="suppose one"):
        attacks.RankWindow().run(view, register(people))
    supposed = attacks.RankWindow(p=8).run(view, register(people))
    assert supposed.details["certain"] == 0
    assert supposed.details["own_record_outside"] > 600 * 0.2
    buckets = attacks.RankWindow(p=8).run(masked_by(sf.BucketRankSwapping(p=8), people), register(people))
    assert buckets.details["certain"] == 0 < buckets.details["own_record_outside"]


def test_a_window_supposed_too_small_is_not_certain_either() -> None:
    people = numbers(300)
    view = masked_by(sf.RankSwapping(p=10), people)
    small = attacks.RankWindow(p=5).run(view, register(people))
    assert small.details["certain"] == 0 < small.details["own_record_outside"]
    wide = attacks.RankWindow(p=40, unit="ranks").run(view, register(people))
    assert wide.details["own_record_outside"] == 0
    assert wide.details["window_ranks"] == dict.fromkeys("abcd", 40)


def test_windows_count_within_strata() -> None:
    people = numbers(400)
    table = people.table().append_column("sex", pa.array(["f", "m"] * 200))
    with_sex = sf.read(table, schema=SCHEMA)
    view = masked_by(sf.RankSwapping(p=20, strata=("sex",)), with_sex)
    found = attacks.RankWindow().run(view, attacks.Register(table, truth=np.arange(400)))
    assert found.details["own_record_outside"] == 0
    assert found.details["window_ranks"]["a"] == 40
    with pytest.raises(MissingColumn, match="strata"):
        attacks.RankWindow().run(view, register(people))


@pytest.mark.parametrize(
    "mask", [sf.Mdav(3, groups=(("a", "b"), ("c", "d"))), sf.OptimalUnivariate(20)], ids=["groups", "single"]
)
def test_clusters_of_several_groups_meet_in_one_record(mask: Any) -> None:
    people = numbers(500)
    found = attacks.MicroaggregationIntersection().run(masked_by(mask, people), register(people))
    assert found.success > 0.5
    assert found.details["single_candidate"] > 250
    assert found.success >= attacks.RegisterLinkage().run(masked_by(mask, people), register(people)).success - 0.02


@pytest.mark.parametrize("k", [3, 10])
def test_one_cluster_of_all_attributes_hides_among_k(k: int) -> None:
    people = numbers(400)
    found = attacks.MicroaggregationIntersection().run(masked_by(sf.Mdav(k), people), register(people))
    assert found.success <= 1 / k
    assert found.details["mean_candidates"] >= k
    assert found.details["attribute_groups"] == 1


@pytest.mark.parametrize(
    "mask",
    [
        sf.AdditiveNoise(0.3),
        sf.AdditiveNoise(0.5, rescale=True),
        sf.CorrelatedNoise(0.3),
        sf.CorrelatedNoise(0.5, rescale=True),
        sf.MultiplicativeNoise(15),
        sf.MultiplicativeNoise(15, law="lognormal"),
    ],
    ids=lambda mask: f"{type(mask).__name__} {getattr(mask, 'rescale', getattr(mask, 'law', ''))}",
)
def test_the_likelihood_of_the_noise_finds_more_than_the_distance(mask: Any) -> None:
    people = numbers(800)
    plain = likely = 0.0
    for seed in range(3):
        view = masked_by(mask, people, seed)
        plain += attacks.RegisterLinkage().run(view, register(people)).success
        found = attacks.NoiseLikelihood().run(view, register(people))
        likely += found.success
        assert 0 < found.details["mean_posterior"] <= 1
    assert likely > plain


@settings(max_examples=examples(30))
@given(st.integers(2, 20), st.integers(0, 10**6), st.booleans())
def test_the_posterior_of_noise_equals_bayes_by_hand(count: int, seed: int, complete: bool) -> None:
    people = numbers(count, seed)
    rows = np.arange(count) if complete else np.arange(0, count, 2)
    view = masked_by(sf.AdditiveNoise(0.5, columns=("a", "b")), people, seed)
    knowledge = attacks.Register(people.table().select(["a", "b"]).take(rows), truth=rows)
    found = attacks.NoiseLikelihood().run(view, knowledge)
    shown = np.column_stack([view.result.table.column(name).to_numpy() for name in "ab"])
    held = np.column_stack([people.table().column(name).to_numpy()[rows] for name in "ab"])
    spread = shown.var(axis=0, ddof=1) / 3  # noise of 0.5 times the variance makes up a third of what is published
    density = np.array([[math.exp(-float(((y - x) ** 2 / spread).sum()) / 2) for y in shown] for x in held])
    anybody = density.sum(axis=0)
    if not complete:
        covariance = np.cov((shown - shown.mean(axis=0)) / np.sqrt(spread), rowvar=False)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, 1.0)
        turned = ((shown - shown.mean(axis=0)) / np.sqrt(spread)) @ vectors
        fitted = np.exp(-(turned**2 / values).sum(axis=1) / 2) / math.sqrt(values.prod())
        anybody = anybody + (count - rows.size) * fitted
    posterior = density / anybody
    best = np.sort(posterior, axis=1)
    assume(bool((best[:, -1] > best[:, -2] * (1 + 1e-6)).all()))  # what is nearly equal counts as equal
    right = sum(int(posterior[i].argmax() == row) for i, row in enumerate(rows))
    assert found.success == pytest.approx(right / rows.size)
    own = [posterior[i, row] / posterior[i].sum() for i, row in enumerate(rows)]
    assert found.details["mean_posterior"] == pytest.approx(np.mean(own), rel=1e-6)


def categories(count: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    table = pa.table({"s": random.choice(list("xyz"), count), "u": random.choice(list("pqrs"), count, p=[0.6, 0.2, 0.1, 0.1])})
    return sf.read(table, schema=sf.Schema.of(quasi=["s", "u"]))


@settings(max_examples=examples(30))
@given(st.integers(1, 25), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_the_posterior_of_pram_equals_bayes_by_hand(count: int, seed: int, complete: bool, joint: bool) -> None:
    people = categories(60, 7)
    rows = np.arange(60) if complete else np.arange(min(count, 59))
    view = masked_by(sf.Pram(stay=0.6, joint=joint), people, seed)
    found = attacks.PramPosterior().run(view, register(people, rows))
    true = list(zip(*(people.table().column(name).to_pylist() for name in "su"), strict=True))
    shown = list(zip(*(view.result.table.column(name).to_pylist() for name in "su"), strict=True))
    laws = view.result.transparency["transitions"]

    def likely(before: tuple[str, str], after: tuple[str, str]) -> float:
        if joint:
            (law,) = laws.values()
            places = [tuple(label) for label in law["labels"]]
            return float(law["matrix"][places.index(before)][places.index(after)])
        values = []
        for name, x, y in zip("su", before, after, strict=True):
            law = laws[name]
            values.append(law["matrix"][law["labels"].index(x)][law["outputs"].index(y)])
        return float(math.prod(values))

    others = 60 - rows.size
    anybody = [sum(likely(true[i], y) for i in rows) + others * shown.count(y) / 60 for y in shown]
    expected = mass = 0.0
    for row in rows.tolist():
        posterior = [likely(true[row], y) / total for y, total in zip(shown, anybody, strict=True)]
        top = max(posterior)
        tied = [j for j, value in enumerate(posterior) if value > top * (1 - 1e-9)]
        expected += (row in tied) / len(tied)
        mass += posterior[row] / sum(posterior)
    assert found.details["expected_correct"] == pytest.approx(expected)
    assert found.details["mean_posterior"] == pytest.approx(mass / rows.size)
    assert found.details["epsilon"] == pytest.approx(view.result.transparency["epsilon"])


def test_a_published_category_is_worth_as_much_as_its_matrix_says() -> None:
    matrix = np.array([[0.8, 0.2], [0.3, 0.7]])
    blindly, seeing = guessed_value(matrix, np.array([0.8 * 60 + 0.3 * 40, 0.2 * 60 + 0.7 * 40]))
    assert blindly == pytest.approx(0.6, abs=1e-6)
    assert seeing == pytest.approx(0.6 * 0.8 + 0.4 * 0.7, abs=1e-6)
    useless = np.full((2, 2), 0.5)
    assert guessed_value(useless, np.array([50.0, 50.0])) == pytest.approx((0.5, 0.5))


def test_pram_that_says_nothing_leaves_blind_guessing() -> None:
    people = categories(200, 3)
    even = {"s": [[1 / 3] * 3] * 3, "u": [[1 / 4] * 4] * 4}
    found = attacks.PramPosterior().run(masked_by(sf.Pram(matrix=even), people), register(people))
    assert found.details["epsilon"] == pytest.approx(0)
    # every record is as likely as any other of a combination; the rest is chance: 1/200 each, five deviations are 2.5 %
    assert found.success < 0.03


def test_nearest_records_equal_brute_force_for_part_of_the_people_and_columns() -> None:
    people = numbers(120)
    view = masked_by(sf.AdditiveNoise(0.05), people)
    rows = np.arange(0, 120, 3)
    table = people.table().select(["b", "d"]).rename_columns(["B", "d"]).take(rows)
    strangers = pa.table({"B": [1000.0, -1000.0], "d": [0.0, 0.0]})
    knowledge = attacks.Register(
        pa.concat_tables([table, strangers]), columns={"b": "B", "d": "d"}, truth=np.append(rows, [-1, -1])
    )
    found = attacks.RegisterLinkage().run(view, knowledge)
    shown = np.column_stack([view.result.table.column(name).to_numpy() for name in "bd"])
    scale = shown.std(axis=0)
    right = sum(
        int(np.argmin((((shown - np.array(person)) / scale) ** 2).sum(axis=1)) == row)
        for person, row in zip(zip(*(table.column(name).to_pylist() for name in ("B", "d")), strict=True), rows, strict=True)
    )
    assert found.details["expected_correct"] == right > 0
    assert found.success == pytest.approx(right / 42)
    assert (found.targets, found.details["people_in_the_release"]) == (42, 40)
    assert found.baseline == pytest.approx(40 / 42 / 120)


@pytest.mark.parametrize("distance", ["euclidean", "mahalanobis", "gower"])
def test_the_identity_mask_is_linked_entirely_and_an_independent_one_like_blind_guessing(distance: Any) -> None:
    people = numbers(200)
    everybody = register(people)
    same = attacks.RegisterLinkage(distance).run(View(people.table(), people.schema), everybody)
    assert same.success == 1.0
    other = attacks.RegisterLinkage(distance).run(View(numbers(200, 99).table(), people.schema), everybody)
    # the number of right links is about Poisson with mean 1: eleven or more have a chance below 1e-8, and the data are fixed
    assert other.success <= 10 / 200
    assert other.interval[0] <= other.baseline


def test_every_form_of_a_release_gives_the_same_result() -> None:
    people = numbers(100)
    masked = sf.RankSwapping(p=10).apply(people, seed=1).result
    told = MappingProxyType({"transparency": dict(masked.transparency)})
    views = [
        View(masked, people.schema),
        View(masked.table, people.schema, told),
        View(ReleasedTable(masked.table, people.schema, records=100), people.schema, told),
    ]
    found = [attacks.RankWindow().run(view, register(people)) for view in views]
    assert found[0] == found[1] == found[2]
    with pytest.raises(InputError, match="Arrow table"):
        attacks.RankWindow().run(View([1, 2], people.schema), register(people))


ATTACKS = [
    attacks.RegisterLinkage(),
    attacks.RankWindow(p=10),
    attacks.MicroaggregationIntersection(),
    attacks.NoiseLikelihood("independent", 0.1),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
def test_missing_values_neither_crash_nor_warn(attack: Any) -> None:
    table = numbers(60).table()
    holes = np.random.default_rng(1).random((60, 4)) < 0.2
    columns = {name: pa.array(table.column(name).to_numpy(), mask=holes[:, place]) for place, name in enumerate("abcd")}
    with_holes = pa.table(columns)
    found = attack.run(View(with_holes, SCHEMA), attacks.Register(with_holes, truth=np.arange(60)))
    assert 0.2 < found.success <= 1
    part = attack.run(View(with_holes, SCHEMA), attacks.Register(table, truth=np.arange(60)))
    assert 0 <= part.interval[0] <= part.success <= part.interval[1] <= 1


def leaks(result: AttackResult, values: list[Any]) -> bool:
    text = f"{result.finding} {dict(result.details)}"
    return any(str(value) in text for value in values)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
def test_a_result_tells_counts_and_no_values(attack: Any) -> None:
    people = numbers(40)
    result = attack.run(View(people.table(), SCHEMA), register(people))
    assert not leaks(result, [value for name in "abcd" for value in people.table().column(name).to_pylist()])
    assert not leaks(result, people.table().column("name").to_pylist())
    assert result.finding.count(".") - result.finding.count("0.") >= 1 and result.attack == type(attack).__name__


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: type(attack).__name__)
def test_faults_of_the_knowledge_are_said(attack: Any) -> None:
    people = numbers(30)
    view, table = View(people.table(), SCHEMA), people.table()
    with pytest.raises(InputError, match="truth"):
        attack.run(view, table)
    with pytest.raises(InputError, match="register"):
        attack.run(view, None)
    with pytest.raises(InputError, match="one whole number"):
        attack.run(view, attacks.Register(table, truth=np.arange(3)))
    with pytest.raises(InputError, match="does not have"):
        attack.run(view, attacks.Register(table, truth=np.arange(30) + 1))
    with pytest.raises(MissingColumn, match="shares no column"):
        attack.run(view, attacks.Register(pa.table({"z": [1]}), truth=[0]))
    with pytest.raises(MissingColumn, match="no column"):
        attack.run(view, attacks.Register(table, columns={"a": "zz"}, truth=np.arange(30)))
    with pytest.raises(InputError, match="no rows"):
        attack.run(view, attacks.Register(table.slice(0, 0), truth=np.zeros(0, dtype=int)))


def test_what_is_not_published_has_to_be_supposed() -> None:
    people = numbers(30)
    view, everybody = View(people.table(), SCHEMA), register(people)
    for attack in (attacks.RankWindow(), attacks.NoiseLikelihood(), attacks.PramPosterior()):
        with pytest.raises(InputError, match="does not publish"):
            attack.run(view, everybody)
    for fault in (
        lambda: attacks.RankWindow(p=0),
        lambda: attacks.RankWindow(p=101),
        lambda: attacks.NoiseLikelihood("independent"),
        lambda: attacks.NoiseLikelihood("loud", 1.0),  # type: ignore[arg-type]
        lambda: attacks.MicroaggregationIntersection(nearest=0),
        lambda: attacks.RegisterLinkage("far"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError):
            fault()
    text = categories(20, 1)
    with pytest.raises(Unsupported, match="numbers"):
        attacks.NoiseLikelihood("independent", 0.1).run(View(text.table(), text.schema), register(text))


def test_a_register_without_truth_still_serves_linkage_by_matching() -> None:
    raw = pa.table({"a": ["1", "2"]})
    schema = sf.Schema.of(quasi=["a"])
    view = View(ReleasedTable(raw, schema, records=2), schema)
    assert attacks.Linkage().run(view, attacks.Register(raw)).success == 1.0


def test_a_value_that_the_register_misses_loses_nobody() -> None:
    random = np.random.default_rng(0)
    known = random.normal(size=60)
    table = pa.table({"x": pa.array(known, mask=np.arange(60) % 6 == 0), "y": random.normal(size=60)})
    people = sf.read(table, schema=sf.Schema.of(quasi=["x", "y"]))
    view = masked_by(sf.OptimalUnivariate(3, columns=("x", "y")), people)
    ignorant = table.set_column(0, "x", pa.nulls(60, pa.float64()))
    nothing = attacks.MicroaggregationIntersection().run(view, attacks.Register(ignorant, truth=np.arange(60)))
    alone = attacks.MicroaggregationIntersection(groups=(("y",),)).run(view, register(people))
    assert nothing.success == alone.success
    assert nothing.details["mean_candidates"] == alone.details["mean_candidates"]


def test_many_groups_with_missing_values_take_little_memory() -> None:
    random = np.random.default_rng(0)
    columns = {f"v{i}": pa.array(random.normal(size=150), mask=np.arange(150) % 10 == i) for i in range(10)}
    people = sf.read(pa.table(columns), schema=sf.Schema.of(quasi=list(columns)))
    found = attacks.MicroaggregationIntersection().run(masked_by(sf.OptimalUnivariate(5), people), register(people))
    assert found.success > 0.9


@pytest.mark.parametrize("k", [1.0, 25.0])
def test_the_posterior_is_normalised_over_all_records(k: float) -> None:
    people = numbers(500)
    view = masked_by(sf.AdditiveNoise(k, columns=("a",)), people)
    found = attacks.NoiseLikelihood(columns=("a",)).run(view, register(people))
    true, shown = people.table().column("a").to_numpy(), view.result.table.column("a").to_numpy()
    variance = shown.var(ddof=1) * k / (1 + k)
    density = np.exp(-((shown[None, :] - true[:, None]) ** 2) / (2 * variance))
    posterior = density / density.sum(axis=0)
    posterior /= posterior.sum(axis=1)[:, None]
    assert found.details["mean_posterior"] == pytest.approx(np.diag(posterior).mean(), rel=1e-6)
    assert found.details["mean_posterior"] < 3 / 500


@pytest.mark.filterwarnings("error")
def test_noise_on_few_or_no_or_huge_values_does_not_warn() -> None:
    attack = attacks.NoiseLikelihood("independent", 0.1)
    one = numbers(1)
    assert attack.run(View(one.table(), SCHEMA), register(one)).success == 1.0
    assert attacks.NoiseLikelihood("multiplicative", 0.1).run(View(one.table(), SCHEMA), register(one)).success == 1.0
    table = numbers(30).table().set_column(1, "a", pa.nulls(30, pa.float64()))
    for kind in ("independent", "proportional", "multiplicative"):
        found = attacks.NoiseLikelihood(kind, 0.1).run(View(table, SCHEMA), attacks.Register(table, truth=np.arange(30)))
        assert found.success > 0.2
    assert attacks.MicroaggregationIntersection().run(
        View(table, SCHEMA), attacks.Register(table, truth=np.arange(30))
    ).success == pytest.approx(1.0)
    huge = pa.table({name: numbers(30).table().column(name).to_numpy() * 1e200 for name in "abcd"})
    for attempt in (attack, attacks.MicroaggregationIntersection(), attacks.RegisterLinkage()):
        assert attempt.run(View(huge, SCHEMA), attacks.Register(huge, truth=np.arange(30))).success == 1.0


MIXED = sf.Schema.of(quasi=["age", "job", "town"])


def mixed(count: int = 240) -> Any:
    random = np.random.default_rng(2)
    columns = {
        "age": random.normal(50, 10, count),
        "job": random.choice(["cook", "nurse", "smith"], count),
        "town": random.choice(["Bonn", "Köln", "Ulm", "Hof"], count),
    }
    return sf.read(pa.table(columns), schema=MIXED)


@pytest.mark.parametrize(
    ("mask", "attack"),
    [
        (sf.RankSwapping(p=20, columns=("age",)), attacks.RankWindow()),
        (sf.OptimalUnivariate(10, columns=("age",)), attacks.MicroaggregationIntersection()),
        (sf.AdditiveNoise(0.5, columns=("age",)), attacks.NoiseLikelihood()),
        (sf.MultiplicativeNoise(10, columns=("age",)), attacks.NoiseLikelihood()),
        (sf.Pram(stay=0.8, columns=("job",)), attacks.PramPosterior()),
        (sf.AdditiveNoise(0.5, columns=("age",)), attacks.RegisterLinkage()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_quasi_identifiers_that_were_not_masked_help(mask: Any, attack: Any) -> None:
    people = mixed()
    view = masked_by(mask, people)
    masked = list(view.result.columns)
    all_known = attack.run(view, register(people))
    only_masked = attack.run(view, attacks.Register(people.table().select(masked), truth=np.arange(240)))
    assert all_known.success > 2 * only_masked.success
    holes = np.random.default_rng(1).random(240) < 0.3
    gaps = people.table().set_column(2, "town", pa.array(people.table().column("town").to_pylist(), mask=holes))
    some = attack.run(view, attacks.Register(gaps, truth=np.arange(240)))
    assert only_masked.success < some.success < all_known.success + 0.02
    # a register that writes a column in another way tells nothing by it, and says so nowhere
    if not isinstance(attack, attacks.RegisterLinkage):
        numbered = people.table().set_column(2, "town", pa.array(np.arange(240.0)))
        assert attack.run(view, attacks.Register(numbered, truth=np.arange(240))).success > only_masked.success


@pytest.mark.parametrize(
    ("mask", "attack"),
    [
        (sf.AdditiveNoise(0.01), attacks.NoiseLikelihood()),
        (sf.AdditiveNoise(0.01), attacks.RegisterLinkage()),
        (sf.OptimalUnivariate(3), attacks.MicroaggregationIntersection()),
        (sf.RankSwapping(p=5), attacks.RankWindow(p=10)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_record_of_a_person_is_a_right_answer(mask: Any, attack: Any) -> None:
    people = numbers(120)
    once = mask.apply(people, seed=1).result
    twice = np.repeat(np.arange(120), 2)
    table = once.table.take(pa.array(twice))
    double = Masked(table, people.schema, once.columns, twice, once.transparency)
    first = np.arange(0, 240, 2)
    knowledge = attacks.Register(people.table(), truth=first)
    single = attack.run(View(once, people.schema), register(people))
    both = attack.run(View(double, people.schema), knowledge)
    assert both.success > 0.8 * single.success > 0.5
    assert both.baseline == pytest.approx(2 / 240)
    # without knowing that two rows are one person's, half of that is counted
    bare = MappingProxyType({"transparency": dict(once.transparency)})
    assert attack.run(View(table, people.schema, bare), knowledge).success == pytest.approx(both.success / 2)


def test_every_record_of_a_person_is_a_right_answer_to_pram() -> None:
    people = categories(40, 5)
    once = sf.Pram(stay=0.9).apply(people, seed=1).result
    twice = np.repeat(np.arange(40), 2)
    double = Masked(once.table.take(pa.array(twice)), people.schema, once.columns, twice, once.transparency)
    knowledge = attacks.Register(people.table(), truth=np.arange(0, 80, 2))
    both = attacks.PramPosterior().run(View(double, people.schema), knowledge)
    bare = View(double.table, people.schema, MappingProxyType({"transparency": dict(once.transparency)}))
    half = attacks.PramPosterior().run(bare, knowledge)
    assert half.success == pytest.approx(both.success / 2) and both.success > 0
    assert half.details["mean_posterior"] == pytest.approx(both.details["mean_posterior"] / 2)


def test_shared_credit_varies_less_than_hits_and_misses_and_rows_of_one_person_are_told() -> None:
    """Every person is in a pair of equal rows, so that nobody is found for certain and half of everybody is found."""
    values = np.repeat(np.arange(20.0), 2)
    people = sf.read(pa.table({"name": [f"N{i // 2}" for i in range(40)], **dict.fromkeys("abcd", values)}), schema=SCHEMA)
    mixed = np.where(np.arange(40) < 20, values, np.arange(40) + 100.0)
    view = View(Masked(people.table().set_column(1, "a", pa.array(mixed)), people.schema, ("a",), np.arange(40)), people.schema)
    found = attacks.RegisterLinkage().run(view, attacks.Register(view.result.table, truth=np.arange(40)))
    credit = np.where(np.arange(40) < 20, 0.5, 1.0)
    assert found.success == pytest.approx(credit.mean())
    assert found.interval == pytest.approx(mean_interval(credit))
    assert found.interval[1] - found.interval[0] < np.ptp(wilson(float(credit.sum()), 40))
    assert "people_behind_rows" not in found.details and "count as those of" not in found.finding
    named = attacks.Register(view.result.table, truth=np.arange(40), owners=np.arange(40) // 2)
    again = attacks.RegisterLinkage().run(view, named)
    assert again.details["people_behind_rows"] == 20
    assert again.finding.endswith("The 40 released rows count as those of 20 people.")
