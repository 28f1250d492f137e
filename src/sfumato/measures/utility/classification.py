"""Classification: what do models learn from the masked records that still holds for the original ones?

A decision tree, naive Bayes, k nearest neighbours and a support vector machine are trained on original and on masked records
and tested on original records that neither has seen, by repeated stratified cross-validation. Masking may help: a mask that
smooths noise away can improve a model. Herranz, Matwin, Nin, Torra, "Classifying data from protected statistical datasets",
Computers & Security 29(8), 2010.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.randomness import default
from sfumato.core.ranges import ColumnName, Count, Each, OneOf, Whole
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.parameters import ComparedColumns, DrawSeed
from sfumato.measures.utility.features import Encoding
from sfumato.measures.utility.learners import LEARNERS, learn

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Flags = NDArray[np.bool_]

_MOST_CLASSES = 50
#: The scores of models that learnt from original records, by the digest of all they depend on: a comparison asks for the same
#: models again for each mask.
_SCORED: dict[bytes, tuple[float, float]] = {}
_MOST_SCORED = 1_000


@dataclass(frozen=True)
class Classification(Measure[Microdata, Compared]):
    """Accuracy that models of `target` lose, on average, when they are trained on masked instead of original records;
    negative where masking helps.

    `learners` are some of "tree", "bayes", "knn" and "svm"; features are the `columns` (by default the quasi-identifiers and
    whatever was masked) without the target. `folds` and `repeats` say how often records are split; at most `sample` records take
    part. Masked copies of the records a model is tested on are kept out of its training; where no record stands behind a row,
    it is trained on as many masked rows as there are original training records. The area under the curve is the mean over the
    classes, each against the rest. Another `seed`, other splits.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> score = Classification("sex", ("age", "income"), learners=("tree", "bayes")).score(people, people)
    >>> score.value, sorted(score.parts)[0]
    (0.0, 'AUC bayes masked')
    """

    target: Annotated[ColumnName, "the column whose classes are learnt"]
    columns: ComparedColumns = None
    learners: Annotated[
        tuple[str, ...],
        Each(OneOf(LEARNERS), at_least=1, different=True, what=f"some of {', '.join(LEARNERS)}, each once"),
        "the learners that are averaged",
    ] = LEARNERS
    folds: Annotated[int, Whole(at_least=2), "parts that records are split into, each tested once"] = 5
    repeats: Annotated[Count, "how often records are split anew"] = 1
    sample: Annotated[int, Whole(at_least=10), "records that take part, at the most"] = 5_000
    seed: DrawSeed = "classification"
    key: ClassVar[str] = "classification"
    masked: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        if self.columns is not None and self.target in self.columns:
            yield "the target must not be one of the columns it is learnt from"

    def score(self, original: Microdata, released: Compared) -> Score:
        """Mean accuracy lost; accuracy and area of every learner on both sides, and their deviation over splits, as parts."""
        draws = Draws(default(self.seed))
        task = self._task(original, released, draws)
        errors: dict[str, list[float]] = {}
        for test, train, shown in task.splits(self.folds, self.repeats, draws):
            seed = draws.seed()
            tests, truth = task.original.take(test), task.labels[test]
            own, own_labels = task.original.take(train), task.labels[train]
            masked, masked_labels = task.masked.take(shown), task.shown_labels[shown]
            for name in self.learners:
                scores = {
                    "original": _examine_once(name, own, own_labels, tests, truth, seed),
                    "masked": _examine(name, masked, masked_labels, tests, truth, seed),
                }
                for side, scored in scores.items():
                    for what, rate in zip(("accuracy", "AUC"), scored, strict=True):
                        errors.setdefault(f"{what} {name} {side}", []).append(rate)
        if not errors:
            raise Unsupported("classification: no split leaves masked records to train on; use fewer folds")
        parts: dict[str, float] = {}
        for what, rates in errors.items():
            parts[what] = float(np.mean(rates))
            if len(rates) > 1:  # one split does not say how much the rate varies
                parts[f"{what} spread"] = float(np.std(rates, ddof=1))
        parts["accuracy majority"] = float(np.bincount(task.labels).max() / task.labels.size)
        lost = [parts[f"accuracy {name} original"] - parts[f"accuracy {name} masked"] for name in self.learners]
        meaning = f"accuracy lost when predicting '{self.target}' with models trained on masked records"
        return Score(self.key, float(np.mean(lost)), "lower", meaning, MappingProxyType(parts))

    def _task(self, original: Any, released: Any, draws: Draws) -> _Task:
        left, right, masked = compared(original, released, self.columns, also=(self.target,))
        if len(left.columns) < 2:
            raise Unsupported("classification needs a feature besides the target")
        labels, shown_labels = _labels(left, right)
        rows, shown = np.flatnonzero(labels >= 0), np.flatnonzero(shown_labels >= 0)
        if rows.size > self.sample:
            rows = np.sort(rows[draws.sample(rows.size, self.sample)])
        sources: Int | None = None
        if masked.rows is not None:
            place = np.full(left.size, -1, dtype=np.int64)
            place[rows] = np.arange(rows.size)
            shown = shown[place[masked.rows[shown]] >= 0]
            sources = place[masked.rows[shown]]
        elif shown.size > rows.size:
            shown = np.sort(shown[draws.sample(shown.size, rows.size)])
        _, counts = np.unique(labels[rows], return_counts=True)
        if counts.size < 2 or rows.size < 2 * self.folds or not shown.size:
            raise Unsupported(
                f"classification needs two classes of '{self.target}', at least {2 * self.folds} records that know it, and "
                "masked records that do"
            )
        features, shown_features = (Records(side.columns[:-1], side.size) for side in (left, right))
        return _Task(features.take(rows), labels[rows], shown_features.take(shown), shown_labels[shown], sources)


@dataclass(frozen=True)
class _Task:
    """Features and classes on both sides; `sources` is the original record behind each masked row."""

    original: Records
    labels: Int
    masked: Records
    shown_labels: Int
    sources: Int | None

    def splits(self, folds: int, repeats: int, draws: Draws) -> Iterator[tuple[Int, Int, Int]]:
        """Test records, original records to train on, masked rows to train on."""
        for _ in range(repeats):
            fold = stratified_folds(self.labels, folds, draws)
            for number in range(folds):
                test, train = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
                if self.sources is None:
                    size = self.masked.size
                    shown = np.sort(draws.sample(size, min(size, train.size)))
                else:
                    shown = np.flatnonzero(fold[self.sources] != number)
                if test.size and shown.size:
                    yield test, train, shown


def stratified_folds(labels: Int, folds: int, draws: Draws) -> Int:
    """A fold for each record, so that every class is spread evenly over the folds."""
    order = draws.permutation(labels.size)
    by_class = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(labels.size, dtype=np.int64)
    fold[by_class] = np.arange(labels.size) % folds
    return fold


def area_under_curve(chances: Real, is_class: Flags) -> float:
    """Chance that a record of the class is ranked above one that is not; ties count half.

    >>> area_under_curve(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75
    """
    from scipy.stats import rankdata

    inside = int(is_class.sum())
    above = float(rankdata(chances)[is_class].sum()) - inside * (inside + 1) / 2
    return above / (inside * (is_class.size - inside))


def _examine(name: str, records: Records, labels: Int, tests: Records, truth: Int, seed: int) -> tuple[float, float]:
    """Accuracy and mean area of one learner; a single class is predicted for everybody."""
    present = np.unique(labels)
    if present.size < 2:
        return float(np.mean(truth == present[0])), 0.5
    encoding = Encoding.of(records)
    predicted, chances = learn(name, records, encoding.points(records), labels, tests, encoding.points(tests), seed)
    areas = []
    for label in np.unique(truth):
        is_class = truth == label
        if not is_class.all():
            listed = np.flatnonzero(present == label)
            areas.append(area_under_curve(chances[:, listed[0]], is_class) if listed.size else 0.5)
    return float(np.mean(predicted == truth)), float(np.mean(areas)) if areas else 0.5


def _examine_once(name: str, records: Records, labels: Int, tests: Records, truth: Int, seed: int) -> tuple[float, float]:
    """The same as `_examine`, from memory where a model with the same seed learnt from and was tested on equal records."""
    digest = hashlib.blake2b(f"{name} {seed}".encode())
    for side, classes in ((records, labels), (tests, truth)):
        for column in side.columns:
            labelled = None if isinstance(column, NumberColumn) else len(column.labels)
            content = column.values if isinstance(column, NumberColumn) else column.codes
            digest.update(f"|{labelled} {content.size} ".encode() + content.tobytes())
        digest.update(f"|{classes.size} ".encode() + classes.tobytes())
    key = digest.digest()
    scored = _SCORED.get(key)
    if scored is None:
        scored = _examine(name, records, labels, tests, truth, seed)
        if len(_SCORED) >= _MOST_SCORED:
            _SCORED.clear()
        _SCORED[key] = scored
    return scored


def _labels(left: Records, right: Records) -> tuple[Int, Int]:
    """Classes as codes on both sides, −1 where unknown."""
    target, shown = left.columns[-1], right.columns[-1]
    if isinstance(target, CategoryColumn) and isinstance(shown, CategoryColumn):
        return target.codes.astype(np.int64), shown.codes.astype(np.int64)
    sides = [column.values for column in (target, shown) if isinstance(column, NumberColumn)]
    values = np.unique(sides[0][~np.isnan(sides[0])])
    if values.size > _MOST_CLASSES:
        raise Unsupported(f"column '{target.name}' has too many values for classes ({values.size}); use regression")
    codes, shown_codes = (
        np.where(np.isin(side, values), np.minimum(np.searchsorted(values, side), values.size - 1), -1) for side in sides
    )
    return codes.astype(np.int64), shown_codes.astype(np.int64)
