"""Moments: how far means, variances, covariances and correlations moved, and by how many deviations values did.

Differences are taken in deviations of the original, so that columns in different units add up. The distance of values is
IL1s, |x − x'|/(√2 S). Domingo-Ferrer, Torra, "Disclosure control methods and information loss for microdata", in
Confidentiality, Disclosure and Data Access, North-Holland 2001; IL1s: Yancey, Winkler, Creecy, "Disclosure risk assessment in
perturbative microdata protection", Inference Control in Statistical Databases, Springer 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records, in_own_units
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.utility.probabilistic_loss import PairMoments

Real = NDArray[np.float64]


@dataclass(frozen=True)
class MomentsLoss(Measure[Microdata, Compared]):
    """Mean absolute difference of standardised moments, averaged over means, variances, covariances and correlations; not
    bounded, 0 where nothing moved.

    Only numbers count (`columns` restricts them). Where rows correspond, the parts have the standardised distance of values too
    (IL1s); with `eigenvalues` also that of the eigenvalues of the correlation matrix. A moment that the masked table no longer
    gives counts as 0: a column that became constant is correlated with nothing.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.1, columns=("age", "income")).apply(people, seed=1).result
    >>> 0.05 < MomentsLoss().score(people, masked).parts["variances"] < 0.15
    True
    """

    columns: ComparedColumns = None
    eigenvalues: Annotated[bool, "the eigenvalues of the correlation matrix are compared as well"] = False
    key: ClassVar[str] = "moments"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The mean over the families; parts have mean absolute and mean squared differences."""
        left, right, masked = compared(original, released, self.columns)
        if not left.numbers:
            raise Unsupported("moments compares numbers and there is no column of numbers; use hellinger or information_loss")
        left, right = in_own_units(left, right)
        centres, scales = _units(left.matrix())
        before, after = _moments(left, centres, scales), _moments(right, centres, scales)
        parts: dict[str, float] = {}
        families = []
        for family, was in before.items():
            if was.size:
                moved = after[family] - was
                families.append(float(np.mean(np.abs(moved))))
                parts[family] = families[-1]
                parts[f"{family} squared"] = float(np.mean(moved**2))
        if masked.rows is not None:
            parts["values"] = standardised_distance(left.take(masked.rows).matrix(), right.matrix(), scales)
        if self.eigenvalues and before["correlations"].size:
            spectra = [_spectrum(moments["correlations"], len(left.numbers)) for moments in (before, after)]
            parts["eigenvalues"] = float(np.mean(np.abs(spectra[1] - spectra[0])))
        meaning = "mean difference of the moments, in deviations of the original"
        return Score(self.key, float(np.mean(families)), "lower", meaning, MappingProxyType(parts))


def standardised_distance(original: Real, masked: Real, scales: Real) -> float:
    """IL1s: mean of |x − x'|/(√2 S) over the cells known on both sides; 0 where there is none."""
    moved = np.abs(masked - original) / (np.sqrt(2.0) * scales)
    present = ~np.isnan(moved)
    return float(moved[present].mean()) if present.any() else 0.0


def _units(values: Real) -> tuple[Real, Real]:
    """Mean and deviation of each column; a constant keeps its own unit."""
    first = np.array([column[np.argmax(~np.isnan(column))] for column in values.T])
    moved = values - first
    scales = np.nanstd(moved, axis=0)
    return first + np.nanmean(moved, axis=0), np.where(scales > 0, scales, 1.0)


def _moments(records: Records, centres: Real, scales: Real) -> dict[str, Real]:
    """Standardised moments by family, covariances and correlations over the records that know both columns."""
    columns = [(column.values - centre) / scale for column, centre, scale in zip(records.numbers, centres, scales, strict=True)]
    present = [column[~np.isnan(column)] for column in columns]
    pairs = [PairMoments.of(columns[i], columns[j]) for i in range(len(columns)) for j in range(i)]
    return {
        "means": np.array([column.mean() if column.size else 0.0 for column in present]),
        "variances": np.array([column.var() if column.size else 0.0 for column in present]),
        "covariances": np.array([0.0 if pair is None else pair.mu11 for pair in pairs]),
        "correlations": np.array([0.0 if pair is None else pair.correlation or 0.0 for pair in pairs]),
    }


def _spectrum(correlations: Real, columns: int) -> Real:
    """Eigenvalues of the correlation matrix in falling order."""
    matrix = np.eye(columns)
    lower = np.tril_indices(columns, -1)
    matrix[lower] = correlations
    return np.asarray(np.linalg.eigvalsh(matrix, UPLO="L")[::-1], dtype=np.float64)
