"""Classification on original and masked records: folds, areas, learners, and that nobody is tested on what was learnt."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported
from sfumato.core.randomness import default
from sfumato.data.records import Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.utility import classification
from sfumato.measures.utility.classification import Classification, area_under_curve, stratified_folds
from sfumato.measures.utility.features import Encoding
from sfumato.measures.utility.learners import LEARNERS, learn
from tests.measures.masked_tables import microdata, noisy, people, synthetic, taken, with_gaps


def groups(size: int = 240, seed: int = 0, spread: float = 1.0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    kind = np.arange(size) % 3
    return {
        "x": np.array([0.0, 3.0, 0.0])[kind] + spread * draw.normal(size=size),
        "y": np.array([0.0, 0.0, 3.0])[kind] + spread * draw.normal(size=size),
        "colour": np.where(draw.random(size) < 0.8, np.array(["red", "green", "blue"])[kind], "grey"),
        "kind": np.array(["a", "b", "c"])[kind],
    }


@given(st.lists(st.integers(0, 3), min_size=4, max_size=60), st.integers(2, 5))
def test_every_class_is_spread_evenly_over_folds(labels: list[int], folds: int) -> None:
    codes = np.array(labels)
    fold = stratified_folds(codes, folds, Draws(default("folds")))
    for label in set(labels):
        held = np.bincount(fold[codes == label], minlength=folds)
        assert held.max() - held.min() <= 1
    assert np.ptp(np.bincount(fold, minlength=folds)) <= 1


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_the_area_is_the_share_of_pairs_in_the_right_order(ranked: list[tuple[int, bool]]) -> None:
    inside, outside = [v for v, is_class in ranked if is_class], [v for v, is_class in ranked if not is_class]
    if inside and outside:
        pairs = [(a > b) + (a == b) / 2 for a in inside for b in outside]
        chances, flags = (np.array(side) for side in zip(*ranked, strict=True))
        assert area_under_curve(chances.astype(float), flags) == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.oracle
def test_naive_bayes_of_numbers_is_that_of_another_implementation() -> None:
    from sklearn.naive_bayes import GaussianNB

    made = groups(300)
    records = Records.of(pa.table(made), sf.Schema.of(quasi=list(made)), ["x", "y"])
    labels = np.arange(300) % 3
    train, test = np.arange(200), np.arange(200, 300)
    other = GaussianNB().fit(records.matrix()[train], labels[train])
    points = Encoding.of(records.take(train)).points(records)
    predicted, ranks = learn("bayes", records.take(train), points[train], labels[train], records.take(test), points[test], 0)
    assert predicted.tolist() == other.predict(records.matrix()[test]).tolist()
    assert np.exp(ranks) == pytest.approx(other.predict_proba(records.matrix()[test]), abs=1e-6)


def test_naive_bayes_of_categories_counts_them() -> None:
    records = Records.of(pa.table({"c": ["u", "u", "v", "v", "v", None]}), sf.Schema.of(quasi=["c"]), ["c"])
    labels = np.array([0, 0, 0, 1, 1, 1])
    _, ranks = learn("bayes", records, np.empty(0), labels, records.take(np.array([0, 2, 5])), np.empty(0), 0)
    # with one added to each count: P(u|0) = 3/5, P(v|0) = 2/5; P(u|1) = 1/4, P(v|1) = 3/4; a missing value says nothing
    odds = np.array([[0.6, 0.25], [0.4, 0.75], [1.0, 1.0]])
    assert np.exp(ranks) == pytest.approx(odds / odds.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns(name: str) -> None:
    data = microdata(groups())
    found = Classification("kind", learners=(name,)).score(data, data)
    assert found.value == 0
    assert found.parts[f"accuracy {name} original"] > 0.75 > found.parts["accuracy majority"] == pytest.approx(1 / 3)
    assert found.parts[f"AUC {name} original"] > 0.85
    assert 0 <= found.parts[f"accuracy {name} original spread"] < 0.2
    useless = pa.table({**groups(), "kind": np.random.default_rng(0).permutation(groups()["kind"])})
    lost = Classification("kind", learners=(name,)).score(data, useless)
    assert lost.value > 0.2


def test_nothing_is_lost_where_nothing_changed_with_gaps_and_turned_rows() -> None:
    data = with_gaps(microdata(groups()), 0.1)
    measure = Classification("kind", folds=3, repeats=2)
    found = measure.score(data, data)
    assert found.value == 0
    assert len(found.parts) == 4 * 2 * 2 * 2 + 1
    turned = measure.score(data, taken(data, np.arange(len(data))[::-1]))
    assert turned.value == pytest.approx(0, abs=0.02)


def test_masked_copies_of_tested_records_are_not_trained_on() -> None:
    """Classes are random and every record has a name of its own: only who has seen the record can know its class."""
    draw = np.random.default_rng(0)
    x = np.arange(400.0)
    data = microdata({"x": draw.permutation(x), "kind": draw.choice(["a", "b"], 400)})
    order = draw.permutation(400)
    copies = np.repeat(order, 20)  # every record twenty times: 15 neighbours are copies of the record itself
    shown = Classification("kind", learners=("knn",), folds=4).score(data, taken(data, copies))
    # guessing is right for half of 400 records, within 5 · 0.5/√400 = 0.125 but for one run in 10^6
    assert shown.parts["accuracy knn masked"] == pytest.approx(0.5, abs=0.125)


def test_synthetic_rows_train_as_many_as_there_are_original_ones() -> None:
    data = microdata(groups(120))
    found = Classification("kind").score(data, synthetic(data, pa.table(groups(3000, seed=5))))
    assert abs(found.value) < 0.15
    few = Classification("kind", learners=("tree", "knn")).score(data, synthetic(data, pa.table(groups(30, seed=5))))
    assert few.parts["accuracy tree masked"] > 0.5


def test_records_without_a_class_take_no_part() -> None:
    made = groups(120)
    kinds = [None if i % 10 == 0 else k for i, k in enumerate(made["kind"].tolist())]
    data = microdata({**made, "kind": kinds})
    assert Classification("kind", learners=("tree", "bayes")).score(data, data).value == 0


def test_a_class_of_numbers_and_labels_the_mask_invented() -> None:
    made = groups(120)
    number = {"a": 1.0, "b": 2.0, "c": 3.0}
    data = microdata({**made, "kind": [number[k] for k in made["kind"]]})
    shown = pa.table({**made, "kind": [1.5 if i < 40 else number[k] for i, k in enumerate(made["kind"])]})
    found = Classification("kind", learners=("bayes", "svm")).score(data, shown)
    assert abs(found.value) < 0.2
    kinds = pa.table({**made, "kind": ["other" if i < 40 else k for i, k in enumerate(made["kind"])]})
    assert Classification("kind", learners=LEARNERS).score(microdata(made), kinds).value > -0.2


def test_a_mask_that_leaves_one_class_predicts_it() -> None:
    made = groups(120)
    shown = pa.table({**made, "kind": ["a"] * 120})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Classification("kind").score(microdata(made), shown)
    assert all(found.parts[f"accuracy {name} masked"] == pytest.approx(1 / 3) for name in LEARNERS)
    assert all(found.parts[f"AUC {name} masked"] == 0.5 for name in LEARNERS)


def test_constant_features_say_nothing_and_stop_nobody() -> None:
    made = groups(120)
    data = microdata(made)
    shown = pa.table({"x": [1.0] * 120, "y": [2.0] * 120, "colour": ["red"] * 120, "kind": made["kind"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Classification("kind").score(data, shown)
    assert found.value > 0.2


def test_a_sample_takes_the_same_records_of_both_sides() -> None:
    data = microdata(groups(600))
    assert Classification("kind", learners=("tree", "knn"), sample=90).score(data, data).value == 0


def test_the_same_seed_gives_the_same_score() -> None:
    data = people(150)
    measure = Classification("town", seed=1, folds=3)
    first = measure.score(data, noisy(data, 0.5))
    classification._SCORED.clear()
    assert measure.score(data, noisy(data, 0.5)) == first


def test_models_of_original_records_are_learnt_once_for_all_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    data, measure = people(150), Classification("town", seed="learnt once", folds=3)
    models: list[str] = []

    def counted(name: str, *about: Any) -> Any:
        models.append(name)
        return learn(name, *about)

    monkeypatch.setattr(classification, "learn", counted)
    several = [measure.score(data, noisy(data, amount)) for amount in (0.1, 0.5, 1.0)]
    assert len(models) == (1 + 3) * 3 * len(LEARNERS)
    classification._SCORED.clear()
    assert measure.score(data, noisy(data, 1.0)) == several[-1]
    other = measure.score(with_gaps(data, 0.05), noisy(data, 1.0))  # other records, other models
    assert other.parts["AUC tree original"] != several[-1].parts["AUC tree original"]
    more = pa.table({**groups(150), "colour": ["violet"] * 150})  # a label more to be smoothed over
    made = microdata(groups(150))
    Classification("kind").score(made, made)
    afresh = Classification("kind").score(made, more)
    classification._SCORED.clear()
    assert Classification("kind").score(made, more) == afresh


def test_what_cannot_be_classified_is_refused() -> None:
    data = microdata(groups(60))
    for wrong in (
        {"learners": ()},
        {"learners": ("forest",)},
        {"folds": 1},
        {"repeats": 0},
        {"sample": 3},
        {"columns": ("kind",)},
    ):
        with pytest.raises(ParameterError, match="Classification"):
            Classification("kind", **wrong)
    with pytest.raises(MissingColumn, match="'species'"):
        Classification("species").score(data, data)
    with pytest.raises(Unsupported, match="two classes"):
        Classification("k").score(
            microdata({"x": np.arange(30.0), "k": ["a"] * 30}), pa.table({"x": np.arange(30.0), "k": ["a"] * 30})
        )
    with pytest.raises(Unsupported, match="too many values"):
        Classification("x").score(data, data)
    only = microdata({"k": ["a", "b"] * 20})
    with pytest.raises(Unsupported, match="a feature besides"):
        Classification("k").score(only, only)


def test_features_are_standardised_and_rare_labels_share_a_place() -> None:
    labels = [f"label {i % 60}" for i in range(120)] + ["label 0"] * 10
    data = pa.table({"n": [float(i) for i in range(130)], "c": labels})
    records = Records.of(data, sf.Schema.of(quasi=["n", "c"]), ["n", "c"])
    points = Encoding.of(records).points(records)
    assert points.shape == (130, 51)
    assert points[:, 0].mean() == pytest.approx(0, abs=1e-12) and points[:, 0].std() == pytest.approx(1)
    assert set(np.unique(points[:, 1:])) == {0.0, np.sqrt(0.5)}


@pytest.mark.data
@pytest.mark.slow
def test_abalone_classifies_about_as_well_as_it_is_known_to(data_dir: Path) -> None:
    """Three sexes of abalone: known accuracies lie between 51 and 56 %, known areas between 70 and 75 %."""
    table = pa.csv.read_csv(data_dir / "abalone" / "abalone.csv")
    data = sf.read(table, sf.Schema.of(quasi=table.column_names))
    found = Classification("Sex", folds=3, sample=2000).score(data, noisy(data, 0.1))
    for name in LEARNERS:
        assert 0.49 < found.parts[f"accuracy {name} original"] < 0.58
        assert 0.68 < found.parts[f"AUC {name} original"] < 0.79
    assert abs(found.value) < 0.03


def test_one_usable_split_has_no_spread() -> None:
    """All masked rows stand for records of one fold, so that only the other fold can be tested."""
    data = microdata({"x": np.arange(40.0), "c": ["a", "b"] * 20})
    task = Classification("c", ("x",), learners=("tree",), folds=2)
    draws = Draws(default(task.seed))
    fold = stratified_folds(np.arange(40) % 2, 2, draws)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = task.score(data, taken(data, np.flatnonzero(fold == 0)))
    assert all(np.isfinite(part) for part in found.parts.values())
    assert "accuracy tree masked" in found.parts and not any("spread" in part for part in found.parts)
