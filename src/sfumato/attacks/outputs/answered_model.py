"""A model that is known by its answers: confidences that were written down stand in for the model that gave them.

Whoever cannot load a model, or would rather not run a stranger's file, asks it where it is and keeps a table: for each
record the true label, a confidence in every class, and whether the record was trained on. The attacks on models need no
more than that (Shokri, Stronati, Song, Shmatikov, "Membership inference attacks against machine learning models", S&P
2017, attack a service that gives nothing else).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.outputs.numeric_input import Real
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

#: What a model is asked about, and what it answers: of a kind of its own.
T = TypeVar("T")

#: Confidences of more records and classes than this are not held.
MOST_CONFIDENCES = 50_000_000
#: Confidences are often rounded to two places before they are written down: so far may each class put their sum from 1.
_ROUNDING = 0.005


@dataclass(frozen=True, eq=False)
class Labelled(Declared):
    """Records as a model takes them (`features`, a row each) and their `labels`."""

    features: Annotated[Any, "a row for each record"] = field(repr=False)
    labels: Annotated[Any, "the label of each record"] = field(repr=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "features", np.asarray(self.features))
            object.__setattr__(self, "labels", np.asarray(self.labels))
        except ValueError:  # the reason would repeat what was given
            raise InputError("Labelled: rows of features of equal length and one label for each are needed") from None
        if self.features.ndim != 2 or self.labels.shape != (len(self.features),) or not len(self.features):
            raise InputError("Labelled: rows of features and one label for each are needed")
        kinds = {type(label) for label in self.labels.tolist()}
        if type(None) in kinds or any(label != label for label in self.labels.tolist()):
            raise InputError("Labelled: a label is missing; leave out the records that have none")
        if str in kinds and len(kinds) > 1:
            raise InputError("Labelled: labels are texts or numbers, not both")

    def take(self, rows: Sequence[int] | NDArray[np.integer] | NDArray[np.bool_] | slice) -> Labelled:
        """Some of the records."""
        return Labelled(self.features[rows], self.labels[rows])


@dataclass(frozen=True, eq=False)
class AnsweredModel:
    """Stands for the model behind written answers: its records are the rows of confidences it gave."""

    classes_: NDArray[Any] = field(repr=False)

    def predict_proba(self, confidences: T) -> T:
        """The answers, as they were written down."""
        return confidences


@dataclass(frozen=True, eq=False)
class Answers(Declared):
    """What a model answered about records whose true label is known: `confidences` has a row for each record and a column
    for each of the `classes`, `labels` are the true classes, `inside` says which records the model was trained on.

    Of several models (shadows), the answers stand one after the other.
    """

    classes: Annotated[Any, "the classes that the model tells apart"] = field(repr=False)
    confidences: Annotated[Any, "a row for each record, a column for each class"] = field(repr=False)
    labels: Annotated[Any, "the true class of each record"] = field(repr=False)
    inside: Annotated[Any, "for each record whether the model was trained on it"] = field(repr=False)

    def __post_init__(self) -> None:
        try:
            names, labels, inside = (np.asarray(entry) for entry in (self.classes, self.labels, self.inside))
            confidences = np.asarray(self.confidences, dtype=np.float64)
        except (TypeError, ValueError):  # the reason would repeat what was given
            raise InputError("answers: rows of numbers of equal length, one label and one mark for each are needed") from None
        if names.ndim != 1 or confidences.ndim != 2 or confidences.shape[1] != names.size or names.size < 2:
            raise InputError("answers: a confidence in each of the classes, two at least, is needed for every record")
        if confidences.size > MOST_CONFIDENCES:
            raise InputError(f"answers: more than {MOST_CONFIDENCES:,} confidences are not held; attack with fewer people")
        if labels.shape != confidences.shape[:1] or inside.shape != labels.shape:
            raise InputError("answers: confidences, labels and who was trained on must be equally many")
        if len(set(names.tolist())) != names.size:
            raise InputError("answers: two classes have the same name")
        if inside.dtype != np.bool_:
            raise InputError("answers: who was trained on must be said with true and false")
        _require_confidences(confidences)
        if not inside.any() or inside.all():
            raise InputError("answers: both records that were trained on and others are needed, to tell them apart")
        named = set(names.tolist())
        strangers = sum(label not in named for label in labels.tolist())
        if strangers:
            have = "1 record has" if strangers == 1 else f"{strangers:,} records have"
            raise InputError(
                f"answers: {have} a label that is none of the classes. Write labels as the classes are "
                "written; for a class that the model has never seen, add a column of zeros."
            )
        for name, value in (("classes", names), ("confidences", confidences), ("labels", labels), ("inside", inside)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, model: object, members: Labelled, others: Labelled, classes: Sequence[object] = ()) -> Answers:
        """Ask a model about records it was trained on, and about others.

        `classes`: all there are, where the model may never have seen some; in these it has no confidence at all.
        """
        answers = np.vstack([confidences_of(model, people) for people in (members, others)])
        model_classes = np.asarray(getattr(model, "classes_", np.arange(answers.shape[1]))).tolist()
        names = [*model_classes, *(name for name in classes if name not in model_classes)]
        confidences = np.pad(answers, ((0, 0), (0, len(names) - len(model_classes))))
        inside = np.arange(len(answers)) < len(members.labels)
        return cls(names, confidences, np.concatenate([members.labels, others.labels]), inside)

    @property
    def model(self) -> AnsweredModel:
        """What stands in for the model."""
        return AnsweredModel(self.classes)

    @property
    def people(self) -> Labelled:
        """All records, as the stand-in takes them."""
        return Labelled(self.confidences, self.labels)

    @property
    def members(self) -> Labelled:
        """The records that were trained on."""
        return self.people.take(self.inside)

    @property
    def others(self) -> Labelled:
        """The records that were not."""
        return self.people.take(~self.inside)

    def table(self, label: str = "label", member: str = "member") -> pa.Table:
        """As a file holds them: the label, who was trained on, and a column of confidences named after each class."""
        import pyarrow as pa

        names = [str(name) for name in self.classes.tolist()]
        if len({label, member, *names}) != len(names) + 2:
            raise InputError("answers: a class is called like the column of labels or members; give these other names")
        columns = {label: pa.array([str(value) for value in self.labels.tolist()]), member: pa.array(self.inside)}
        return pa.table({**columns, **{name: self.confidences[:, place] for place, name in enumerate(names)}})


def confidences_of(model: Any, people: Labelled) -> Real:  # of any package
    """What the model answers about each record: a confidence in every class, and finite."""
    if not callable(getattr(model, "predict_proba", None)):
        raise InputError("membership in models attacks a model with predict_proba; this view's result has none")
    confidences = of_model(lambda: model.predict_proba(people.features), "the model gives no confidences in these records")
    confidence: Real = of_model(lambda: np.asarray(confidences, dtype=np.float64), "the model's confidences are no numbers")
    if confidence.shape[:1] != people.labels.shape or confidence.ndim != 2 or not np.isfinite(confidence).all():
        raise InputError("the model's predict_proba must give a row of finite confidences for each record")
    return confidence


def of_model(question: Callable[[], T], failure: str) -> T:
    """What a model answers. Whatever it raises may repeat a value of a record, so only its kind is passed on."""
    try:
        return question()
    except Exception as error:
        kind = type(error).__name__
    raise InputError(f"{failure} ({kind}): give features as it was trained on, in the same columns, none missing")


def _require_confidences(confidences: Real) -> None:
    """Shares of belief: between 0 and 1, together 1."""
    if not np.isfinite(confidences).all():
        raise InputError("answers: a confidence is missing or not finite; ask again, or leave the record out")
    slack = _ROUNDING * confidences.shape[1]
    outside = int(((confidences < 0) | (confidences > 1)).any(axis=1).sum())
    wrong = int((np.abs(confidences.sum(axis=1) - 1) > slack).sum())
    if outside or wrong:
        raise InputError(
            f"answers: confidences lie between 0 and 1 and sum to 1 over the classes; {max(outside, wrong):,} records differ. "
            "Give probabilities (not scores or logits) and a column for every class, and no other columns."
        )
