"""A model that is known by its answers alone is attacked exactly like the model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sfumato import attacks
from sfumato.attacks.outputs.answered_model import AnsweredModel, Answers
from sfumato.attacks.outputs.membership_models import Labelled, MembershipInModels, ModelKnowledge, _shadow, losses
from sfumato.core.errors import InputError
from sfumato.core.randomness import default
from sfumato.core.view import View
from sfumato.kernels.sampling.draws import Draws

Method = Literal["loss", "shadow"]
SHADOWS = 3


def people(seed: int, count: int, classes: int = 3) -> Labelled:
    """Labels that follow the features three times out of four."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, 4))
    labels = (np.abs(features[:, 0]) * classes / 2).astype(int) % classes
    strange = rng.random(count) < 0.25
    return Labelled(features, np.where(strange, rng.integers(0, classes, count), labels))


MEMBERS, OTHERS, SHADOW = (people(seed, 150) for seed in (1, 2, 3))
MODELS = [DecisionTreeClassifier(max_depth=8, random_state=0), LogisticRegression(max_iter=500)]


def fitted(model: Any) -> Any:
    return model.fit(MEMBERS.features, MEMBERS.labels)


def shadow_answers(model: Any, seed: int, count: int, method: Method) -> Answers:
    """The shadows that the attack would train with this seed, asked about both halves of their records, one after the other."""
    draws = Draws(default(seed))
    if method == "shadow":
        draws.seed()  # that of the judges
    known = ModelKnowledge(MEMBERS, OTHERS, SHADOW)
    parts = []
    for _ in range(count):
        inside, outside, shadow = _shadow(model, known, draws)
        parts.append(Answers.of(shadow, inside, outside, classes=model.classes_.tolist()))
    assert len({tuple(part.classes.tolist()) for part in parts}) == 1
    joined = [np.concatenate([getattr(part, name) for part in parts]) for name in ("confidences", "labels", "inside")]
    return Answers(parts[0].classes, *joined)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("method", ["loss", "shadow"])
def test_answers_give_what_the_model_gives(model: Any, method: Method) -> None:
    target = fitted(model)
    attack = MembershipInModels(method, shadows=SHADOWS, seed=7)
    real = attack.run(View(target, None), ModelKnowledge(MEMBERS, OTHERS, SHADOW))
    answers = Answers.of(target, MEMBERS, OTHERS)
    told = shadow_answers(target, 7, SHADOWS if method == "shadow" else 1, method)
    by_answers = attack.run(View(answers.model, None), ModelKnowledge(answers.members, answers.others, shadow_answers=told))
    assert by_answers == real


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_answers_and_the_training_loss_are_enough_for_a_threshold(model: Any) -> None:
    target = fitted(model)
    loss = float(losses(target, MEMBERS).mean())
    real = MembershipInModels().run(View(target, None), ModelKnowledge(MEMBERS, OTHERS, training_loss=loss))
    answers = attacks.Answers.of(target, MEMBERS, OTHERS)
    known = ModelKnowledge(answers.members, answers.others, training_loss=loss)
    assert MembershipInModels().run(View(answers.model, None), known) == real
    assert isinstance(answers.model, attacks.AnsweredModel) and isinstance(answers.model, AnsweredModel)


def test_a_class_that_a_model_never_saw_gets_no_confidence() -> None:
    rows = MEMBERS.labels < 2
    target = DecisionTreeClassifier(random_state=0).fit(MEMBERS.features[rows], MEMBERS.labels[rows])
    with pytest.raises(InputError, match="none of the classes"):
        Answers.of(target, MEMBERS, OTHERS)
    answers = Answers.of(target, MEMBERS, OTHERS, classes=(0, 1, 2))
    assert answers.classes.tolist() == [0, 1, 2] and not answers.confidences[:, 2].any()
    assert losses(answers.model, answers.members) == pytest.approx(losses(target, MEMBERS))


def test_answers_as_a_table() -> None:
    answers = Answers([1, 2], [[0.25, 0.75], [1.0, 0.0]], [2, 1], [True, False])
    expected = {"label": ["2", "1"], "member": [True, False], "1": [0.25, 1.0], "2": [0.75, 0.0]}
    assert answers.table() == pa.table(expected)
    assert answers.table("true", "in").column_names == ["true", "in", "1", "2"]
    with pytest.raises(InputError, match="called like"):
        answers.table(label="1")


GOOD: dict[str, Any] = {
    "classes": ["no", "yes"],
    "confidences": [[0.5, 0.5], [0.1, 0.9]],
    "labels": ["no", "yes"],
    "inside": [True, False],
}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"confidences": [[0.5, 0.5], [0.1]]}, "equal length"),
        ({"confidences": [["canary-31", 0.5], [0.1, 0.9]]}, "rows of numbers"),
        ({"confidences": [0.5, 0.5]}, "each of the classes"),
        ({"confidences": [[1.0], [1.0]], "classes": ["no"]}, "two at least"),
        ({"confidences": [[0.5, 0.4, 0.1], [0.1, 0.9, 0.0]]}, "each of the classes"),
        ({"confidences": [[0.5, np.nan], [0.1, 0.9]]}, "not finite"),
        ({"confidences": [[0.5, np.inf], [0.1, 0.9]]}, "not finite"),
        ({"confidences": [[-0.31, 1.31], [0.1, 0.9]]}, "1 records differ"),
        ({"confidences": [[0.5, 0.31], [0.9, 0.31]]}, "2 records differ"),
        ({"labels": ["no"]}, "equally many"),
        ({"inside": [True]}, "equally many"),
        ({"labels": ["no", "canary-31"]}, "1 record has a label"),
        ({"labels": [0, 1]}, "2 records have a label"),
        ({"classes": ["no", "no"]}, "same name"),
        ({"inside": [1, 0]}, "true and false"),
        ({"inside": [True, True]}, "both records"),
        ({"inside": [False, False]}, "both records"),
    ],
)
def test_what_are_no_answers_is_refused_without_a_value(changes: dict[str, Any], why: str) -> None:
    assert Answers(**GOOD).members.labels.tolist() == ["no"]
    with pytest.raises(InputError, match=why) as refusal:
        Answers(**{**GOOD, **changes})
    assert "31" not in str(refusal.value) and "31" not in repr(Answers(**GOOD))


def test_rounded_confidences_are_taken_as_they_are() -> None:
    third = Answers(["a", "b", "c"], [[0.33, 0.33, 0.33], [0.34, 0.33, 0.34]], ["a", "b"], [True, False])
    assert third.confidences[0].tolist() == [0.33] * 3


def test_too_many_answers_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.attacks.outputs.answered_model.MOST_CONFIDENCES", 3)
    with pytest.raises(InputError, match="fewer people"):
        Answers(**GOOD)


def test_answers_alone_train_no_shadow() -> None:
    answers = Answers(**GOOD)
    for method in ("loss", "shadow"):
        with pytest.raises(InputError, match="shadow_answers"):
            MembershipInModels(method).run(View(answers.model, None), ModelKnowledge(answers.members, answers.others))
