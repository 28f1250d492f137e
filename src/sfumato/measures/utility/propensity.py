"""Propensity score: how well can a model tell masked records from original ones?

Both tables are stacked, a model predicts which row is masked, and pMSE is the mean squared distance of its predictions from
the share of masked rows: 0 where they cannot be distinguished. Woo, Reiter, Oganian, Karr, "Global measures of data utility for
microdata masked for disclosure limitation", Journal of Privacy and Confidentiality 1(1), 2009; expectation under a correct
synthesis: Snoke, Raab, Nowok, Dibben, Slavkovic, "General and specific utility measures for synthetic data", Journal of the
Royal Statistical Society A 181(3), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.randomness import default
from sfumato.core.ranges import Whole
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.parameters import ComparedColumns, DrawSeed
from sfumato.measures.utility.features import Encoding

Real = NDArray[np.float64]
Rows = NDArray[np.int64]

_STEPS = 50
_RIDGE = 1e-9
_MOST_FEATURES = 40
_ROUNDING = 1e-18


@dataclass(frozen=True)
class PropensityScore(Measure[Microdata, Compared]):
    """pMSE as a share of its largest value, in [0, 1]: 0 where a model cannot tell masked from original records, 1 where it
    always can. pMSE is the mean of (p − c)², p what the model takes for the probability of being masked and c the share of masked
    rows; its largest value is c(1 − c).

    `model` is "logistic" or "tree" (CART). The logistic model sees only shifts of averages and shares unless `interactions` adds
    squares and products of features; the tree sees everything, also that masked values are not the rounded ones people
    write down. At most `sample` rows of each side are used where it is costly (tree, interactions). Parts compare pMSE with what
    resampling the original would give: `ratio` 1 is as good as that, `standardised` counts deviations above it (in closed form
    for the logistic model, from `resamples` for the tree, by `seed`). The `columns` are compared; rows need not correspond.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> PropensityScore(("age", "sex")).score(people, people).value
    0.0
    """

    columns: ComparedColumns = None
    model: Annotated[Literal["logistic", "tree"], "what tries to tell masked from original records"] = "logistic"
    interactions: Annotated[bool, "the logistic model sees squares and products of features"] = False
    resamples: Annotated[int, Whole(at_least=2), "how often the original is resampled for the tree"] = 10
    sample: Annotated[int, Whole(at_least=10), "rows of each side where it is costly, at the most"] = 20_000
    seed: DrawSeed = "propensity"
    key: ClassVar[str] = "propensity"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """pMSE / (c (1 − c)) with c the share of masked rows."""
        left, right, _ = compared(original, released, self.columns)
        fit = self._logistic if self.model == "logistic" else self._tree
        score, largest, expected, deviation = fit(left, right)
        score = score if score > _ROUNDING else 0.0
        parts = {"pMSE": score, "expected pMSE": expected}
        if expected > 0 and deviation > 0:
            parts.update({"ratio": score / expected, "standardised": (score - expected) / deviation})
        meaning = "how well a model tells masked records from original ones: 0 not at all, 1 always"
        return Score(self.key, min(1.0, score / largest), "lower", meaning, MappingProxyType(parts))

    def _logistic(self, left: Records, right: Records) -> tuple[float, float, float, float]:
        if self.interactions:
            left, right = self._sampled(left, right, Draws(default(self.seed)))
        encoding = Encoding.of(left, right, mark_missing=True)
        points = np.vstack([encoding.points(left), encoding.points(right)])
        if self.interactions:
            if points.shape[1] > _MOST_FEATURES:
                raise Unsupported(
                    f"interactions of more than {_MOST_FEATURES} features are too many; name fewer columns (columns=)"
                )
            first, second = np.triu_indices(points.shape[1])
            points = np.hstack([points, points[:, first] * points[:, second]])
        design = np.hstack([np.ones((points.shape[0], 1)), points])
        labels = np.repeat([0.0, 1.0], [left.size, right.size])
        total, share = labels.size, right.size / labels.size
        error = float(np.mean((logistic_fit(design, labels) - share) ** 2))
        free = int(np.linalg.matrix_rank(design.T @ design, hermitian=True)) - 1
        unit = (1 - share) ** 2 * share / total
        return error, share * (1 - share), free * unit, float(np.sqrt(2 * free)) * unit

    def _sampled(self, left: Records, right: Records, draws: Draws) -> tuple[Records, Records]:
        """At most `sample` records of each side; the same rows of both where there are as many."""
        rows = draws.sample(left.size, min(left.size, self.sample))
        shown = rows if right.size == left.size else draws.sample(right.size, min(right.size, self.sample))
        return left.take(rows), right.take(shown)

    def by_tree(self, left: Records, right: Records, rows: Rows | None = None) -> float:
        """How well a tree tells records apart that it was not grown on: 1 − mean (y − p)²/(c (1 − c)), at least 0.

        Each half is judged by a tree grown on the other; a record and its masked row (`rows` says whose it is) are in the same
        half. So 0 for tables that differ by chance alone, however few their records."""
        draws = Draws(default(self.seed))
        drawn = draws.sample(left.size, min(left.size, self.sample))
        half = np.full(left.size, -1)
        half[drawn] = np.arange(drawn.size) % 2
        if rows is None:
            shown = draws.sample(right.size, min(right.size, self.sample))
            halves = np.arange(shown.size) % 2
        else:
            shown = np.flatnonzero(half[rows] >= 0)
            halves = half[rows[shown]]
        left, right = left.take(drawn), right.take(shown)
        encoding = Encoding.of(left, right, mark_missing=True)
        both = np.vstack([encoding.points(left), encoding.points(right)])
        labels = np.repeat([0, 1], [left.size, right.size])
        return _held_out_gain(both, labels, np.concatenate([half[drawn], halves]), draws.seed())

    def _tree(self, left: Records, right: Records) -> tuple[float, float, float, float]:
        draws = Draws(default(self.seed))
        left, right = self._sampled(left, right, draws)
        encoding = Encoding.of(left, right, mark_missing=True)
        points, shown, seed = encoding.points(left), encoding.points(right), draws.seed()
        null = [
            _tree_error(points, points[draws.below(np.full(right.size, left.size, dtype=np.int64))], seed)
            for _ in range(self.resamples)
        ]
        share = right.size / (left.size + right.size)
        return _tree_error(points, shown, seed), share * (1 - share), float(np.mean(null)), float(np.std(null, ddof=1))


def logistic_fit(design: Real, labels: Real) -> Real:
    """Fitted probabilities of a logistic regression, by Newton steps; a trace of ridge keeps dependent features and perfect
    separation from stopping it."""
    ridge = np.eye(design.shape[1]) * _RIDGE * labels.size
    weights = np.zeros(design.shape[1])
    share = labels.mean()
    weights[0] = np.log(share / (1 - share))
    fitted = _logistic(design @ weights)
    for _ in range(_STEPS):
        spread = np.maximum(fitted * (1 - fitted), _RIDGE)
        pull = design.T @ (labels - fitted) - ridge @ weights
        step = np.linalg.solve((design * spread[:, None]).T @ design + ridge, pull)
        weights = weights + step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        fitted = _logistic(design @ weights)
        if float(np.abs(step).max()) < 1e-9 * max(1.0, float(np.abs(weights).max())):
            break
    return fitted


def _logistic(values: Real) -> Real:
    from scipy.special import expit

    fitted: Real = expit(values)
    return fitted


def _tree_error(points: Real, shown: Real, seed: int) -> float:
    from sklearn.tree import DecisionTreeClassifier

    stacked = np.vstack([points, shown])
    labels = np.repeat([0, 1], [len(points), len(shown)])
    tree = DecisionTreeClassifier(min_samples_leaf=max(5, labels.size // 100), random_state=seed)
    chances = tree.fit(stacked, labels).predict_proba(stacked)[:, 1]
    return float(np.mean((chances - len(shown) / labels.size) ** 2))


def _held_out_gain(points: Real, labels: Rows, half: Rows, seed: int) -> float:
    """The share of the variance of the labels that trees explain, each in the half that it was not grown on; at least 0."""
    from sklearn.tree import DecisionTreeClassifier

    error = 0.0
    if any(np.unique(labels[half == each]).size < 2 for each in (0, 1)):
        return 0.0  # too few records to say
    for grown_on in (0, 1):
        grown, held_out = half == grown_on, half != grown_on
        records = int(np.count_nonzero(grown))
        leaf = min(max(5, int(np.sqrt(records))), max(records // 4, 1))
        tree = DecisionTreeClassifier(min_samples_leaf=leaf, random_state=seed).fit(points[grown], labels[grown])
        error += float(((labels[held_out] - tree.predict_proba(points[held_out])[:, 1]) ** 2).sum())
    share = float(labels.mean())
    return max(1.0 - error / (labels.size * share * (1 - share)), 0.0)
