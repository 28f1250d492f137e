"""Corrected analysis: statistics of the original, estimated from a masked table and what was published about its mask.

Noise of known variance inflates variances, shrinks correlations and pulls slopes towards zero, all by known factors; PRAM
mixes frequencies by a known matrix. Whoever knows the parameters takes the effect out again, without knowing any record.
Kim, "A method for limiting disclosure in microdata based on random noise and transformation", Proceedings of the ASA
Section on Survey Research Methods, 1986; Fuller, "Masking procedures for microdata disclosure limitation", Journal of
Official Statistics 9(2), 1993; van den Hout, van der Heijden, "Randomized response, statistical disclosure control and
misclassification: a review", International Statistical Review 70(2), 2002.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.data.masked import Masked
from sfumato.data.records import Records
from sfumato.data.schema import Schema
from sfumato.data.texts.values import CodedText
from sfumato.kernels.changes.recovered_frequencies import recovered_frequencies
from sfumato.masking.columns import strata_of
from sfumato.masking.noise.moments import known_means, pairwise_covariance

Real = NDArray[np.float64]
#: What is published about one of the masks behind a table.
Step = Plain


@dataclass(frozen=True, eq=False)
class Correction:
    """What a masked `table` says about its original, given the `transparency` published with it.

    Knows additive, correlated and multiplicative noise, PRAM, samples, and several of these one after the other; columns
    that another method masked are refused. Estimates are right on average in large tables, and exact in variance (and
    covariance, for correlated noise) where the noise had exact moments. Rounding to whole numbers (`whole=True`) adds up to
    1/12 to a variance, which is not taken out. Covariances come from the records that know both columns; where noise was
    drawn within strata, from the records that know all columns asked for, stratum by stratum.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(2000), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.5, "exact", columns=("age",), whole=False).apply(people, seed=1).result
    >>> corrected = sf.masking.Correction.of(masked).variance("age")
    >>> ages = people.table().column("age").to_numpy()
    >>> bool(abs(corrected - ages.var(ddof=1)) < 1e-9)
    True
    """

    table: pa.Table = field(repr=False)
    transparency: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, masked: Masked) -> Correction:
        """Of a masked table as masks return it."""
        return cls(masked.table, masked.transparency)

    def mean(self, column: str) -> float:
        """The mean, which noise with mean 0 (or factors with mean 1) leaves alone."""
        self._noise_on([column])
        return float(self._means([column])[0])

    def variance(self, column: str) -> float:
        """The variance before noise; 0 where less is left than nothing."""
        return float(self.covariance([column])[0, 0])

    def covariance(self, columns: Sequence[str]) -> Real:
        """The covariance matrix before noise, in the order of the columns."""
        steps = self._noise_on(columns)
        values = Records.of(self.table, Schema(), columns).matrix()
        if values.shape[1] != len(columns):
            raise InputError("covariances are for columns of numbers")
        strata = {tuple(step["method"].get("strata", ())) for step in steps}
        if len(strata) > 1:
            raise Unsupported("these columns got noise within different strata, which cannot be taken out together")
        groups = strata_of(self.table, next(iter(strata), None), ())
        corrected = _before(steps, columns, values) if len(groups) == 1 else _over_strata(steps, columns, values, groups)
        if np.isnan(corrected).any():
            raise Unsupported("fewer than two records know the columns asked for, so there is no covariance to correct")
        places = np.arange(len(columns))
        corrected[places, places] = np.maximum(corrected[places, places], 0.0)
        return corrected

    def correlation(self, columns: Sequence[str]) -> Real:
        """The correlation matrix before noise, which had drawn correlations towards 0."""
        covariance = self.covariance(columns)
        deviations = np.sqrt(np.diag(covariance))
        if not np.all(deviations > 0):
            raise Unsupported("after correction a column has no variance left, and no correlation: the noise was too large")
        correlation: Real = np.clip(covariance / np.outer(deviations, deviations), -1.0, 1.0)
        return correlation

    def regression(self, target: str, predictors: Sequence[str]) -> dict[str, float]:
        """Intercept and slopes of a linear regression before noise, which had pulled the slopes towards 0."""
        names = [target, *predictors]
        require(len(set(names)) == len(names) > 1, "a regression needs a target and other columns as predictors")
        covariance = self.covariance(names)
        deviations = np.sqrt(np.diag(covariance))[1:]
        scaled = covariance[1:, 1:] / np.outer(deviations, deviations) if np.all(deviations > 0) else np.zeros((1, 1))
        if np.linalg.eigvalsh(scaled)[0] < 1e-10:
            raise Unsupported("after correction the predictors are linear combinations of each other: leave one out")
        slopes = np.linalg.solve(scaled, covariance[1:, 0] / deviations) / deviations
        means = self._means(names)
        intercept = float(means[0] - slopes @ means[1:])
        return {"intercept": intercept, **{name: float(slope) for name, slope in zip(predictors, slopes, strict=True)}}

    def frequencies(self, column: str, *, nonnegative: bool = True) -> dict[str, float]:
        """The share of each category before PRAM; see `recovered_frequencies`."""
        coded = CodedText.of(self.table.column(column))
        counts = dict(zip(coded.values.to_pylist(), coded.counts().tolist(), strict=True))
        total = sum(counts.values())
        require(total > 0, f"column '{column}' has no values, so there are no frequencies to correct")
        shares = {str(label): count / total for label, count in sorted(counts.items())}
        for step in reversed(_steps(self.transparency)):
            if column not in step["masked_columns"] or step["method"]["name"] == "Sampling":
                continue
            inputs, outputs, matrix = _transitions(step, column)
            if set(shares) - set(outputs):
                raise InputError(f"column '{column}' has categories that the published matrix does not lead to")
            observed = np.array([shares.get(label, 0.0) for label in outputs])
            recovered = recovered_frequencies(observed, matrix, nonnegative=nonnegative)
            shares = dict(zip(inputs, recovered.tolist(), strict=True))
        return shares

    def _means(self, columns: Sequence[str]) -> Real:
        return known_means(Records.of(self.table, Schema(), columns).matrix())

    def _noise_on(self, columns: Sequence[str]) -> list[Step]:
        """The steps that put noise on these columns; anything else that was done to them is refused."""
        steps = []
        for step in _steps(self.transparency):
            touched = [name for name in columns if name in step["masked_columns"]]
            if not touched or step["method"]["name"] == "Sampling":
                continue
            if "noise" not in step:
                raise Unsupported(
                    f"column '{touched[0]}' was masked by {step['method']['name']}, whose effect on it cannot be taken out; "
                    "use the column as it is"
                )
            steps.append(step)
        return steps


def recover_variance(published_variance: float, ratio: float) -> float:
    """The variance before noise of `ratio` times that variance was added: noise inflates it by 1 + ratio.

    >>> recover_variance(3.0, 0.5)
    2.0
    """
    require(published_variance >= 0, "a variance is not negative")
    require(ratio >= 0, "the ratio of noise is not negative")
    return published_variance / (1.0 + ratio)


def recover_correlation(published_correlation: float, first_ratio: float, second_ratio: float) -> float:
    """The correlation before independent noise of these ratios was added to both variables."""
    require(-1 <= published_correlation <= 1, "a correlation lies between -1 and 1")
    require(first_ratio >= 0 and second_ratio >= 0, "the ratios of noise are not negative")
    recovered = published_correlation * float(((1.0 + first_ratio) * (1.0 + second_ratio)) ** 0.5)
    return max(-1.0, min(1.0, recovered))


def _steps(transparency: Mapping[str, Any]) -> list[Step]:
    """The masks that were applied, in order; `Combined` lists several, and may be nested."""
    if "steps" in transparency:
        return [step for part in transparency["steps"] for step in _steps(part)]
    if "method" not in transparency or "masked_columns" not in transparency:
        raise InputError("this is not what a mask publishes about itself: it names no method and no masked columns")
    return [transparency]


def _before(steps: list[Step], columns: Sequence[str], values: Real) -> Real:
    """The covariance without the noise of these steps, the last of them first."""
    covariance, means = pairwise_covariance(values), known_means(values)
    for step in reversed(steps):
        masked = np.array([name in step["masked_columns"] for name in columns])
        if step["noise"] == "multiplicative":
            spread = float(step["factor_variance"])
            for i in np.flatnonzero(masked):  # Var(XF) = (1 + v) E(X²) - E(X)²
                covariance[i, i] = (covariance[i, i] - spread * means[i] ** 2) / (1.0 + spread)
            continue
        ratio = float(step["noise_variance_ratio"])
        scale = np.where(masked, float(step["scaled_by"]), 1.0)
        covariance = covariance / np.outer(scale, scale)
        if step["noise"] == "proportional":
            covariance = np.where(np.outer(masked, masked), covariance / (1.0 + ratio), covariance)
        else:
            for i in np.flatnonzero(masked):
                covariance[i, i] = recover_variance(float(covariance[i, i]), ratio)
    return covariance


def _over_strata(steps: list[Step], columns: Sequence[str], values: Real, groups: list[NDArray[np.int64]]) -> Real:
    """Noise in proportion to the spread within a stratum is taken out within it; the means of strata are left as they are."""
    complete: NDArray[np.bool_] = np.all(~np.isnan(values), axis=1)
    parts = [part for rows in groups if (part := values[rows[complete[rows]]]).shape[0]]
    count = int(complete.sum())
    if count < 2:
        return np.full((len(columns), len(columns)), np.nan)
    centre = values[complete].mean(axis=0)
    scatter = np.zeros((len(columns), len(columns)))
    for part in parts:
        away = part.mean(axis=0) - centre
        scatter += part.shape[0] * np.outer(away, away)
        if part.shape[0] > 1:
            scatter += (part.shape[0] - 1) * _before(steps, columns, part)
    corrected: Real = scatter / (count - 1)
    return corrected


def _transitions(step: Step, column: str) -> tuple[list[str], list[str], Real]:
    """The labels a column had, those it may have got, and the probabilities between them."""
    name = step["method"]["name"]
    law = step.get("transitions", {})
    law = law.get(column) if isinstance(law, Mapping) else None
    if law is None or law.get("matrix") is None:
        raise Unsupported(
            f"column '{column}' was masked by {name}, and no transition matrix of it alone is published for all records; its "
            "frequencies cannot be corrected"
        )
    matrix = np.asarray(law["matrix"], dtype=np.float64)
    inputs = [str(label) for label in law["labels"]]
    outputs = [str(label) for label in law["outputs"]]
    return inputs, outputs, matrix
