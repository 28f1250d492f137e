"""Membership in trained models, beside a coin."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sfumato import attacks
from sfumato.attacks.outputs.membership_models import Labelled, MembershipInModels, ModelKnowledge, losses
from sfumato.core.errors import InputError, ParameterError
from sfumato.core.view import View

METHODS: tuple[Literal["loss", "shadow"], ...] = ("loss", "shadow")


def noisy_classes(seed: int, count: int) -> Labelled:
    """Labels that follow the first feature three times out of four: whoever fits them exactly learns people by heart."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 5))
    labels = np.where((features[:, 0] > 0) ^ (rng.random(count) < 0.25), "yes", "no")
    return Labelled(features, labels)


MEMBERS, OTHERS, SHADOW = (noisy_classes(seed, 300) for seed in (1, 2, 3))


def attacked(model: Any, method: Literal["loss", "shadow"], **known: Any) -> Any:
    fitted = model.fit(MEMBERS.features, MEMBERS.labels)
    return attacks.MembershipInModels(method, seed=1).run(View(fitted, None), ModelKnowledge(MEMBERS, OTHERS, SHADOW, **known))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("model", "least"),
    [(DecisionTreeClassifier(random_state=0), 0.6), (RandomForestClassifier(30, random_state=0, n_jobs=1), 0.7)],
)
def test_a_model_that_learnt_by_heart_betrays_its_members(model: Any, least: float, method: Literal["loss", "shadow"]) -> None:
    found = attacked(model, method)
    assert found.success > least
    assert found.interval[0] > 0.55
    assert found.baseline == 0.5
    assert found.details["true_positive_rate"] > found.details["false_positive_rate"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "model", [DummyClassifier(strategy="prior"), make_pipeline(StandardScaler(), LogisticRegression(C=0.01))]
)
def test_a_model_that_knows_nobody_betrays_nobody(model: Any, method: Literal["loss", "shadow"]) -> None:
    found = attacked(model, method)
    assert found.interval[0] <= 0.5 <= found.interval[1]


def test_the_reported_training_loss_is_a_threshold() -> None:
    model = DecisionTreeClassifier(random_state=0).fit(MEMBERS.features, MEMBERS.labels)
    known = ModelKnowledge(MEMBERS, OTHERS, training_loss=float(losses(model, MEMBERS).mean()))
    found = MembershipInModels().run(View(model, None), known)
    right = float((model.predict(OTHERS.features) == OTHERS.labels).mean())
    assert found.details["true_positive_rate"] == 1.0
    assert found.details["false_positive_rate"] == pytest.approx(right)  # a tree is sure, right or wrong


def test_the_loss_is_minus_the_logarithm_of_the_confidence_in_the_true_label() -> None:
    class Model:
        def predict_proba(self, features: Any) -> Any:
            return [[0.2, 0.8]] * len(features)

    assert losses(Model(), Labelled(np.zeros((3, 1)), [0, 1, 7])) == pytest.approx([-np.log(0.2), -np.log(0.8), -np.log(1e-12)])


def test_a_model_of_another_kind_is_attacked_with_a_shadow_of_scikit_learn() -> None:
    fitted = DecisionTreeClassifier(random_state=0).fit(MEMBERS.features, MEMBERS.labels)

    class Foreign:
        classes_ = fitted.classes_

        def predict_proba(self, features: Any) -> Any:
            return fitted.predict_proba(features)

    known = ModelKnowledge(MEMBERS, OTHERS, SHADOW, estimator=DecisionTreeClassifier())
    for method in METHODS:
        assert MembershipInModels(method, seed=3).run(View(Foreign(), None), known).success > 0.55
    with pytest.raises(InputError, match="estimator"):
        MembershipInModels(seed=3).run(View(Foreign(), None), ModelKnowledge(MEMBERS, OTHERS, SHADOW))


class Contrary(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Surer of the members with one label and less sure of those with the other, so that only a judge per label sees it."""

    def fit(self, features: Any, labels: Any) -> Contrary:
        self.classes_ = np.array(["no", "yes"])
        self.seen_ = {row.tobytes() for row in np.asarray(features)}
        self.labels_ = {row.tobytes(): label for row, label in zip(ALL.features, ALL.labels, strict=True)}
        return self

    def predict_proba(self, features: Any) -> Any:
        rows = [row.tobytes() for row in np.asarray(features)]
        sure = [0.9 if (row in self.seen_) == (self.labels_[row] == "yes") else 0.6 for row in rows]
        return np.array([[1 - s, s] if self.labels_[row] == "yes" else [s, 1 - s] for s, row in zip(sure, rows, strict=True)])


ALL = Labelled(
    np.vstack([MEMBERS.features, OTHERS.features, SHADOW.features]),
    np.concatenate([MEMBERS.labels, OTHERS.labels, SHADOW.labels]),
)


def test_each_label_has_its_own_judge() -> None:
    assert attacked(Contrary(), "shadow").success == 1.0
    assert attacked(Contrary(), "loss").success < 0.8


def test_a_seed_repeats_the_attack() -> None:
    model = RandomForestClassifier(5, random_state=0).fit(MEMBERS.features, MEMBERS.labels)
    known = ModelKnowledge(MEMBERS, OTHERS, SHADOW)
    results = [MembershipInModels("shadow", shadows=1, seed=5).run(View(model, None), known) for _ in range(2)]
    assert results[0] == results[1]


def test_what_cannot_be_attacked_is_said() -> None:
    model = DummyClassifier().fit(MEMBERS.features, MEMBERS.labels)
    with pytest.raises(InputError, match="ModelKnowledge"):
        MembershipInModels().run(View(model, None))
    for method in METHODS:
        with pytest.raises(InputError, match="shadow="):
            MembershipInModels(method).run(View(model, None), ModelKnowledge(MEMBERS, OTHERS))
        with pytest.raises(InputError, match="at least four"):
            MembershipInModels(method).run(View(model, None), ModelKnowledge(MEMBERS, OTHERS, SHADOW.take([0, 1])))
        with pytest.raises(InputError, match="one label only"):
            alike = Labelled(np.zeros((8, 5)), ["no"] * 8)
            MembershipInModels(method).run(View(model, None), ModelKnowledge(MEMBERS, OTHERS, alike))
        with pytest.raises(InputError, match="predict_proba"):
            MembershipInModels(method).run(View("a model", None), ModelKnowledge(MEMBERS, OTHERS, SHADOW, estimator=model))
    with pytest.raises(InputError, match="one label for each"):
        Labelled([[1.0], [2.0]], [1])
    with pytest.raises(ParameterError):
        MembershipInModels("guess")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        MembershipInModels(shadows=0)


def numbers(seed: int, count: int = 12) -> Labelled:
    return Labelled(np.random.default_rng(seed).normal(size=(count, 1)), np.arange(count) % 2)


def one_feature() -> Any:
    return LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])


@pytest.mark.parametrize(
    "features", [np.array([["canary-7391"]] * 8, object), np.array([["7391.25x"]] * 8), np.full((8, 1), np.nan)]
)
def test_no_refusal_of_a_model_repeats_a_value(features: Any) -> None:
    unfit = Labelled(features, np.arange(8) % 2)
    for known in (ModelKnowledge(unfit, numbers(1), training_loss=0.5), ModelKnowledge(numbers(1), unfit, training_loss=0.5)):
        with pytest.raises(InputError, match="no confidences") as refused:
            MembershipInModels().run(View(one_feature(), None), known)
        assert "7391" not in str(refused.value) and refused.value.__context__ is None
    for method in METHODS:
        with pytest.raises(InputError, match="no shadow model") as refused:
            MembershipInModels(method, seed=1).run(View(one_feature(), None), ModelKnowledge(numbers(1), numbers(2), unfit))
        assert "7391" not in str(refused.value) and refused.value.__context__ is None


def test_labels_of_another_kind_than_the_models_are_refused() -> None:
    texts = Labelled([[1.0], [2.0]], ["0", "1"])
    for method in METHODS:
        with pytest.raises(InputError, match="none of the targets' labels"):
            MembershipInModels(method, seed=1).run(View(one_feature(), None), ModelKnowledge(texts, texts, numbers(1, 40)))
    # One label that the model has never seen is no reason to refuse.
    unseen = Labelled([[1.0], [2.0]], [7, 7])
    assert (
        MembershipInModels().run(View(one_feature(), None), ModelKnowledge(numbers(1), unseen, training_loss=0.6)).targets == 14
    )
    missing: tuple[Any, ...] = (np.array([None, 1], object), [float("nan"), 1.0], np.array(["a", 1], object))
    for labels in missing:
        with pytest.raises(InputError, match="Labelled"):
            Labelled([[1.0], [2.0]], labels)
    with pytest.raises(InputError, match="equal length"):
        Labelled([[1.0], [2.0, 3.0]], [0, 1])
