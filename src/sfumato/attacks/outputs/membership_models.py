"""Membership in models: a trained model is surer, and less often wrong, about the records it was trained on.

Two attacks: a threshold on the loss of a record (Yeom, Giacomelli, Fredrikson, Jha, "Privacy risk in machine learning:
analyzing the connection to overfitting", CSF 2018), and shadow models, trained like the target on data of the same kind,
that teach a classifier how the confidences of members look (Shokri, Stronati, Song, Shmatikov, "Membership inference
attacks against machine learning models", S&P 2017).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import Beside, OutputAttack
from sfumato.attacks.outputs.answer_table import AnswerFile, answers_of, shadow_place
from sfumato.attacks.outputs.answered_model import Answers, Labelled, confidences_of, of_model
from sfumato.attacks.outputs.detection import Detection
from sfumato.attacks.outputs.numeric_input import Real
from sfumato.core.declared import Declared, build, require
from sfumato.core.errors import InputError, ParameterError, all_at_once
from sfumato.core.randomness import default
from sfumato.core.ranges import Count, Number, Seed
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.data.schema import Schema
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.risk.success import share

#: No confidence counts as less than this, so that a loss is finite.
_LEAST = 1e-12
#: Fewer records of a class than this, in and out together, teach no attack classifier of its own.
_ENOUGH = 20


@dataclass(frozen=True, eq=False)
class ModelKnowledge(Declared):
    """Records of targets, `members` of the training data and `others` (apart to score the attack, not known to the
    adversary); `shadow` records of the same kind with an untrained `estimator` of scikit-learn like the target's (by
    default a copy of the attacked model), or in place of both the `shadow_answers` of shadow models that were trained and
    asked elsewhere; for the loss threshold alternatively the `training_loss`, the model's mean loss on its training data,
    which is often reported."""

    members: Annotated[Labelled, "targets that the model was trained on"]
    others: Annotated[Labelled, "targets that it was not trained on"]
    shadow: Annotated[Labelled | None, "records of the same kind"] = None
    estimator: Annotated[Any, "an untrained model; a copy of the attacked one where left out"] = field(default=None, repr=False)
    training_loss: Annotated[float | None, Number(), "the mean loss of the model on its training data"] = None
    shadow_answers: Annotated[Answers | None, "what shadow models answered elsewhere"] = None


@dataclass(frozen=True)
class MembershipInModels(OutputAttack[Any, ModelKnowledge]):  # whatever answers `predict_proba`
    """The adversary asks a model for its confidences in a target's record and tells from them whether it was trained on it.

    The view's result is the model: anything with `predict_proba`. `knowledge` is `ModelKnowledge`. With `method="loss"`
    a target is called a member when its loss is below a threshold: the reported training loss, or the one that served best
    for a model trained on half of the shadow records. With `method="shadow"` so many `shadows` are trained on random
    halves, and a classifier per label learns from their confidences. Success: the balanced accuracy over the given members
    and others. Blind guessing: 1/2. `seed` repeats the random halves.
    """

    method: Annotated[Literal["loss", "shadow"], "a threshold on the loss, or a classifier learnt from shadow models"] = "loss"
    shadows: Annotated[Count, "shadow models that are trained"] = 4
    seed: Annotated[Seed | None, "repeats the random halves"] = None

    knows: ClassVar[type[Any]] = ModelKnowledge
    helped_by: ClassVar[tuple[str, ...]] = ("training_loss", "shadow_answers")

    def fits(self, view: View[object, object]) -> bool:
        """A model that answers with confidences."""
        return callable(getattr(view.result, "predict_proba", None))

    def game(
        self, published: object, entries: Mapping[str, object], beside: Beside
    ) -> tuple[View[object, object], ModelKnowledge | None]:
        """The stand-in for the model, and the people it was asked about beside what the adversary compares with."""
        if not isinstance(published, Mapping):
            raise InputError('published must be an object that names a table of answers, such as {"answers": "answers.csv"}')
        place = build(AnswerFile, published)
        unknown = sorted(str(name)[:60] for name in entries if name not in self.helped_by)
        all_at_once(ParameterError, "knowledge", [f"'{name}' is neither training_loss nor shadow_answers" for name in unknown])
        loss, shadow = entries.get("training_loss"), entries.get("shadow_answers")
        require(
            loss is None or (isinstance(loss, (int, float)) and not isinstance(loss, bool)),
            "training_loss must be a number: the model's mean loss on its training data",
        )
        if loss is None and shadow is None:
            raise InputError(
                "knowledge must say what the adversary compares with: training_loss (for the method 'loss'), or shadow_answers, "
                "a table of the answers of models trained alike on other people"
            )
        answers = answers_of(place, beside)
        shadows = None if shadow is None else answers_of(shadow_place(place, shadow), beside)
        knowledge = ModelKnowledge(
            answers.members, answers.others, training_loss=cast("float | None", loss), shadow_answers=shadows
        )
        return View(answers.model, Schema(), name="outputs"), knowledge

    def run(self, view: View[object, object], knowledge: ModelKnowledge | None = None) -> AttackResult:
        """Ask the model about every target, members and others."""
        if not isinstance(knowledge, ModelKnowledge):
            raise InputError("membership in models needs ModelKnowledge: targets to score, and shadow records")
        _require_known_label(view.result, knowledge)
        detection = self._by_loss(view.result, knowledge) if self.method == "loss" else self._by_shadows(view.result, knowledge)
        hits = share(detection.found, detection.members.size)
        alarms = share(detection.false_alarms, detection.others.size)
        return AttackResult(
            attack="MembershipInModels",
            success=detection.balanced_accuracy,
            baseline=0.5,
            interval=detection.interval,
            targets=int(detection.members.size + detection.others.size),
            finding=(
                f"The model's confidences reveal {percent(hits)} of its training records, and {percent(alarms)} of other records "
                f"are mistaken for such: right in {percent(detection.balanced_accuracy)} of balanced cases, a coin in 50 %."
            ),
            details={
                "method": self.method,
                "true_positive_rate": hits,
                "false_positive_rate": alarms,
                "area_under_the_curve": detection.area,
                "advantage_in_hindsight": detection.advantage_in_hindsight,
            },
        )

    def _by_loss(self, model: Any, knowledge: ModelKnowledge) -> Detection:
        members, others = -losses(model, knowledge.members), -losses(model, knowledge.others)
        if knowledge.training_loss is not None:
            # At most the mean loss is below the threshold, as in the paper; the greater score is the surer member.
            return Detection(members, others, math.nextafter(-knowledge.training_loss, -math.inf))
        if knowledge.shadow_answers is not None:
            shadow_answers = knowledge.shadow_answers
            inside, outside, shadow = shadow_answers.members, shadow_answers.others, shadow_answers.model
        else:
            inside, outside, shadow = _shadow(model, knowledge, Draws(default(self.seed)))
        return Detection(members, others, _best_threshold(-losses(shadow, inside), -losses(shadow, outside)))

    def _by_shadows(self, model: Any, knowledge: ModelKnowledge) -> Detection:
        draws = Draws(default(self.seed))
        # Before the shadows are drawn, so that the judges are the same where somebody else has trained these.
        seed_of_judges = draws.seed()
        if knowledge.shadow_answers is not None:
            shadow = knowledge.shadow_answers
            evidence, labels, inside = _shape_of_confidence(shadow.model, shadow.people), shadow.labels, shadow.inside
        else:
            evidence, labels, inside = self._evidence(model, knowledge, draws)
        judges = _judges(evidence, labels, inside, seed_of_judges)
        width = evidence.shape[1]
        members, others = (
            _judged(judges, _padded(_shape_of_confidence(model, people), width), people)
            for people in (knowledge.members, knowledge.others)
        )
        return Detection(members, others, 0.5)

    def _evidence(self, model: Any, knowledge: ModelKnowledge, draws: Draws) -> tuple[Real, NDArray[Any], NDArray[np.bool_]]:
        """What the shadows answer about both halves of their records, the labels, and which half each was in."""
        evidence: list[Real] = []
        labels: list[NDArray[Any]] = []
        inside: list[NDArray[np.bool_]] = []
        for _ in range(self.shadows):
            halves = _shadow(model, knowledge, draws)
            for half, member in zip(halves[:2], (True, False), strict=True):
                evidence.append(_shape_of_confidence(halves[2], half))
                labels.append(half.labels)
                inside.append(np.full(len(half.labels), member))
        width = max(part.shape[1] for part in evidence)
        return np.vstack([_padded(part, width) for part in evidence]), np.concatenate(labels), np.concatenate(inside)


def losses(model: object, people: Labelled) -> Real:
    """The log loss of each record: minus the logarithm of the model's confidence in the true label."""
    confidence = confidences_of(model, people)
    lost: Real = -np.log(np.clip(confidence[np.arange(len(confidence)), _places(model, confidence, people)], _LEAST, 1.0))
    # A label that the model has never seen has no confidence at all.
    return np.where(_known(model, confidence, people), lost, -math.log(_LEAST))


def _labels_of(model: Any, confidence: Real) -> NDArray[Any]:
    return np.asarray(getattr(model, "classes_", np.arange(confidence.shape[1])))


def _places(model: Any, confidence: Real, people: Labelled) -> NDArray[np.int64]:
    names = {name: place for place, name in enumerate(_labels_of(model, confidence).tolist())}
    return np.array([names.get(label, 0) for label in people.labels.tolist()], dtype=np.int64)


def _known(model: Any, confidence: Real, people: Labelled) -> NDArray[np.bool_]:
    names = set(_labels_of(model, confidence).tolist())
    return np.array([label in names for label in people.labels.tolist()], dtype=np.bool_)


def _require_known_label(model: Any, knowledge: ModelKnowledge) -> None:
    """Labels of another kind than the model's would all count as never seen, and the attack would seem to fail."""
    confidence = confidences_of(model, knowledge.members.take([0]))
    if not any(_known(model, confidence, people).any() for people in (knowledge.members, knowledge.others)):
        raise InputError("the model knows none of the targets' labels: give labels as it gives its classes_ (numbers or texts)")


def _shape_of_confidence(model: Any, people: Labelled) -> Real:
    """What the attack classifier sees: the confidence in the true label, then all confidences, the greatest first."""
    sure = np.exp(-losses(model, people))
    return np.column_stack([sure, -np.sort(-confidences_of(model, people), axis=1)])


def _padded(shape: Real, width: int) -> Real:
    """A shadow that missed a label has fewer confidences: none is given to the others."""
    return np.pad(shape, ((0, 0), (0, max(0, width - shape.shape[1]))))[:, :width]


def _shadow(model: Any, knowledge: ModelKnowledge, draws: Draws) -> tuple[Labelled, Labelled, Any]:
    """A model like the target, trained on a random half of the shadow records: both halves and the model."""
    from sklearn.base import clone

    if knowledge.shadow is None:
        raise InputError(
            "this attack learns from shadow models: give ModelKnowledge(shadow=…) or shadow_answers=…, or training_loss for the "
            "loss attack"
        )
    count = len(knowledge.shadow.labels)
    if count < 4:
        raise InputError("the shadow records: at least four are needed, half of them to train on")
    order = draws.permutation(count)
    inside, outside = knowledge.shadow.take(order[: count // 2]), knowledge.shadow.take(order[count // 2 :])
    try:
        shadow = clone(model if knowledge.estimator is None else knowledge.estimator)
    except TypeError:
        raise InputError("the model cannot be copied untrained; give ModelKnowledge(estimator=…) of scikit-learn") from None
    settings = shadow.get_params()
    fresh = {name: draws.seed() for name in settings if name == "random_state" or name.endswith("__random_state")}
    shadow.set_params(**fresh)
    if np.unique(inside.labels).size < 2:
        raise InputError("the shadow records: the half to train on shows one label only; give more records")
    trained = of_model(lambda: shadow.fit(inside.features, inside.labels), "no shadow model can be trained on the shadow records")
    return inside, outside, trained


def _best_threshold(members: Real, others: Real) -> float:
    """The score above which the shadow's members and others are distinguished best; none where nothing distinguishes them."""
    cuts = np.unique(np.concatenate([members, others]))
    middles = np.concatenate([[cuts[0] - 1.0], (cuts[1:] + cuts[:-1]) / 2, [cuts[-1] + 1.0]])
    above = [1 - np.searchsorted(np.sort(side), middles, side="right") / side.size for side in (members, others)]
    return float(middles[int(np.argmax(above[0] - above[1]))])


def _judges(evidence: Real, labels: NDArray[Any], inside: NDArray[np.bool_], seed: int) -> dict[Any, Any]:
    """A classifier of members per label, and under None one for labels with too few records."""
    from sklearn.ensemble import RandomForestClassifier

    def trained(rows: NDArray[np.bool_]) -> Any:
        forest = RandomForestClassifier(n_estimators=50, min_samples_leaf=10, random_state=seed % (1 << 31), n_jobs=1)
        return forest.fit(evidence[rows], inside[rows])

    judges: dict[Any, Any] = {None: trained(np.ones(len(labels), dtype=np.bool_))}
    for label in np.unique(labels).tolist():
        rows = labels == label
        if rows.sum() >= _ENOUGH and 0 < inside[rows].sum() < rows.sum():
            judges[label] = trained(rows)
    return judges


def _judged(judges: dict[Any, Any], evidence: Real, people: Labelled) -> Real:
    """How sure the classifier of each record's label is that it was trained on."""
    belief = np.empty(len(evidence))
    for label in np.unique(people.labels).tolist():
        rows = people.labels == label
        belief[rows] = judges.get(label, judges[None]).predict_proba(evidence[rows])[:, 1]
    return belief
