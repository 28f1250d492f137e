"""Model differencing: two versions of a model, before and after one person joined or left, give away the record.

Means: the record is n'·mean' - n·mean. Least squares and ridge regression: one record changes X'X and X'y by rank one, so
(X'X + penalty)(w' - w) is a multiple of the record's row; the intercept's 1, or one attribute known from elsewhere, fixes
the multiple, and the residual gives the outcome. The principle: Fredrikson, Jha, Ristenpart, "Model inversion attacks that
exploit confidence information and basic countermeasures", CCS 2015; rank-one updates: Sherman, Morrison, "Adjustment of an
inverse matrix corresponding to a change in one element of a given matrix", Annals of Mathematical Statistics 21, 1950.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from sfumato.attacks.adversary import OutputAttack, mapping
from sfumato.attacks.outputs.numeric_input import Real, matrix, vector
from sfumato.core.declared import Declared, build
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.core.ranges import Count, Made, Number, Positive
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.measures.risk.success import share, wilson


def _means(entries: Any) -> Real:
    return vector(entries, "MeanVersion")


def _weights(entries: Any) -> Real:
    return vector(entries, "RegressionVersion")


def _gram(entries: Any) -> Real:
    return matrix(entries, "RegressionVersion: gram")


@dataclass(frozen=True, eq=False)
class MeanVersion(Declared):
    """The `means` of all attributes over `count` people."""

    means: Annotated[Any, Made(_means, "a sequence of numbers"), "the mean of each attribute"] = field(repr=False)
    count: Annotated[Count, "people behind the means"]


@dataclass(frozen=True, eq=False)
class RegressionVersion(Declared):
    """The `weights` of a linear regression: first the intercept, then one per attribute (`intercept=False`: only these).
    Ridge regression has a `penalty` on the sum of squared weights, the intercept excepted. `gram` is X'X, with the column
    of ones first where there is an intercept."""

    weights: Annotated[Any, Made(_weights, "a sequence of numbers"), "the intercept, then one per attribute"] = field(repr=False)
    gram: Annotated[Any | None, Made(_gram, "rows of numbers"), "X'X, where it is known"] = field(default=None, repr=False)
    penalty: Annotated[float, Number(at_least=0), "of ridge regression, on the sum of squared weights"] = 0.0
    intercept: Annotated[bool, "whether the first weight is an intercept"] = True

    def coherent(self) -> Iterable[str]:
        size = self.weights.size
        if self.gram is not None and self.gram.shape != (size, size):
            yield "gram must have a row and a column for each weight"


#: One version of a model.
Version: TypeAlias = MeanVersion | RegressionVersion


@dataclass(frozen=True, eq=False)
class EarlierVersion(Declared):
    """The `model` before the change; for regressions it holds the gram matrix (design statistics that were published
    with the model, or known from elsewhere). `joined`: one person was added, otherwise one left. `known`: attributes of
    the person, by position, that the adversary has already. `truth` (the record: attributes, for a regression then the
    outcome) is not the adversary's: it scores the attack."""

    model: Annotated[Version, "the model before the change"]
    joined: Annotated[bool, "one person was added; otherwise one left"] = True
    known: Annotated[Mapping[int, float], "attributes of the person that the adversary has already, by position"] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )
    truth: Annotated[Any, "the record, to score the attack"] = field(default=None, repr=False)


@dataclass(frozen=True)
class ModelDifferencing(OutputAttack[Version, EarlierVersion]):
    """The adversary holds two versions of a model between which one record changed, and solves for the record.

    The view's result is the later `MeanVersion` or `RegressionVersion`, `knowledge` an `EarlierVersion`. Success: the
    share of the record's values (not known before) recovered to within `tolerance`, relative where they exceed 1. Blind
    guessing takes the mean of the earlier version wherever its statistics give one.

    >>> before, later = MeanVersion([40.0, 3300], 10), MeanVersion([42.0, 12090.909091], 11)
    >>> found = ModelDifferencing(tolerance=1e-4).run(View(later, None), EarlierVersion(before, truth=[62, 100_000]))
    >>> found.success, found.baseline
    (1.0, 0.0)
    """

    tolerance: Annotated[Positive, "how far off, relative above 1, still counts as recovered"] = 1e-6

    needs: ClassVar[tuple[str, ...]] = ("model",)
    knows: ClassVar[type[Any]] = EarlierVersion

    def fits(self, view: View[object, object]) -> bool:
        """A version of a model."""
        return isinstance(view.result, Version)

    def published_from(self, published: object) -> Version:
        """The later version: means, or a regression."""
        return _version(published)

    def knowledge_from(self, entries: Mapping[str, object]) -> EarlierVersion:
        """The earlier version, and attributes of the person by their places in the record."""
        places = mapping(entries.get("known", {}), "known")
        if not all(place.isdecimal() for place in places):
            raise ParameterError("EarlierVersion: known maps places of the record (0, 1, …) to values")
        further: dict[str, Any] = {name: value for name, value in entries.items() if name in ("joined", "truth")}
        attributes = {int(place): value for place, value in places.items()}
        return EarlierVersion(**{**further, "model": _version(entries.get("model")), "known": attributes})

    def run(self, view: View[Version, object], knowledge: EarlierVersion | None = None) -> AttackResult:
        """Solve for the record that changed and compare it with the truth."""
        record = changed_record(view.result, knowledge)
        if knowledge is None or knowledge.truth is None:
            raise InputError("model differencing is scored against the truth: give EarlierVersion(…, truth=…)")
        truth = vector(knowledge.truth, "the truth", record.size)
        unknown = np.array([place not in knowledge.known for place in range(record.size)])
        right = self._right(record, truth, unknown)
        blind = self._right(_typical(knowledge.model, record.size), truth, unknown)
        targets = int(unknown.sum())
        kind = "means" if isinstance(view.result, MeanVersion) else "regression"
        return AttackResult(
            attack="ModelDifferencing",
            success=share(right, targets),
            baseline=share(blind, targets),
            interval=wilson(right, targets),
            targets=targets,
            finding=(
                f"Two versions of the {kind} give back {right:,} of {targets:,} values of the record that changed between "
                f"them ({percent(share(right, targets))}); the mean as a guess gives {percent(share(blind, targets))}."
            ),
            details={"model": kind, "recovered": right, "joined": knowledge.joined, "known_before": len(knowledge.known)},
        )

    def _right(self, guess: Real, truth: Real, unknown: Any) -> int:
        close = np.abs(guess - truth) <= self.tolerance * np.maximum(1.0, np.abs(truth))
        return int((close & unknown).sum())


def _version(value: object) -> Version:
    model = mapping(value, "a version of a model")
    return build(MeanVersion, model) if "means" in model else build(RegressionVersion, model)


def changed_record(later: Version, knowledge: EarlierVersion | None) -> Real:
    """The record that joined or left between the two versions: its attributes, for a regression then the outcome."""
    if not isinstance(knowledge, EarlierVersion):
        raise InputError("model differencing needs an EarlierVersion as knowledge")
    if knowledge.known:
        vector(list(knowledge.known.values()), "the known attributes")
    before = knowledge.model
    if isinstance(later, MeanVersion) and isinstance(before, MeanVersion):
        return _from_means(before, later, knowledge.joined)
    if isinstance(later, RegressionVersion) and isinstance(before, RegressionVersion):
        return _from_regressions(before, later, knowledge)
    raise InputError("model differencing compares two MeanVersions or two RegressionVersions")


def _from_means(before: MeanVersion, later: MeanVersion, joined: bool) -> Real:
    if later.count - before.count != (1 if joined else -1) or later.means.size != before.means.size:
        raise InputError("the two means must be over the same attributes, and one person must have been added or removed")
    # Written around the earlier mean, so that large counts do not cancel.
    step = later.means - before.means
    record: Real = before.means + step * later.count * (1 if joined else -1)
    return record


def _from_regressions(before: RegressionVersion, later: RegressionVersion, knowledge: EarlierVersion) -> Real:
    if before.gram is None:
        raise InputError("a regression needs its design statistics: give RegressionVersion(weights, gram=X'X) as earlier model")
    same = (before.intercept, before.penalty, before.weights.size) == (later.intercept, later.penalty, later.weights.size)
    if not same:
        raise InputError("the two regressions must have the same attributes, intercept and penalty")
    penalties = np.full(before.weights.size, before.penalty)
    penalties[: int(before.intercept)] = 0.0
    # (G + P)(w' - w) = ± x (y - x'w'), whichever of the two happened.
    multiple = (before.gram + np.diag(penalties)) @ (later.weights - before.weights)
    sign = 1.0 if knowledge.joined else -1.0
    row = multiple / _factor(multiple, before, knowledge.known)
    residual = sign * float(multiple @ row) / float(row @ row)
    record: Real = np.append(row, residual + float(row @ later.weights))
    return record[int(before.intercept) :]


def _factor(multiple: Real, before: RegressionVersion, attributes: Mapping[int, float]) -> float:
    """By what the row of the record was multiplied: known by its 1 for the intercept, or by an attribute that is known."""
    size = float(np.abs(multiple).max())
    if size == 0:
        raise Unsupported(
            "model differencing: the two versions are equal, so the record lies on the regression and leaves no trace"
        )
    if before.intercept:
        if multiple[0] == 0:
            raise Unsupported("model differencing: the versions do not differ by one record")
        return float(multiple[0])
    usable = {place: value for place, value in attributes.items() if 0 <= place < multiple.size and value and multiple[place]}
    if not usable:
        raise Unsupported(
            "model differencing: without an intercept the record is known up to a factor only. Give one of its attributes, "
            "not 0, as EarlierVersion(known={position: value})."
        )
    place = max(usable, key=lambda p: abs(float(multiple[p])))
    return float(multiple[place]) / usable[place]


def _typical(model: Version, size: int) -> Real:
    """The earlier means as a guess; what they do not give stays unknown."""
    if isinstance(model, MeanVersion):
        means: Real = np.asarray(model.means, dtype=np.float64)
        return means
    guess = np.full(size, np.nan)
    if model.intercept and model.gram is not None and model.gram[0, 0] > 0:
        centre = model.gram[0] / model.gram[0, 0]
        guess[:-1] = centre[1:]
        guess[-1] = centre @ model.weights  # least squares with an intercept passes through the means
    return guess
