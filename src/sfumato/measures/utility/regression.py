"""Regression: would an analyst of the masked data draw the same conclusions from a linear model?

Ordinary least squares on both sides; the confidence intervals of each coefficient are compared by their overlap, the mean of
the shares of both intervals that lie in the other. Karr, Kohnen, Oganian, Reiter, Sanil, "A framework for evaluating the
utility of data altered to protect confidentiality", The American Statistician 60(3), 2006.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.ranges import ColumnName, ColumnNames, Probability
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, compared
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records, in_own_units

Real = NDArray[np.float64]

_DEPENDENT = 1e-10


@dataclass(frozen=True)
class RegressionLoss(Measure[Microdata, Compared]):
    """1 − mean overlap of the confidence intervals of the coefficients of a linear model of `target`, in [0, 1].

    `predictors` are the other columns by default; a category becomes indicators against its first label. `level` is the
    coverage of the intervals. Records with a missing value in one of these columns are left out on each side. An overlap is
    taken as 0 where intervals are disjoint, and where the masked table does not determine the coefficient. Rows need not
    correspond.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(500), schema=sf.data.sample_schema())
    >>> round(RegressionLoss("income", ("age",)).score(people, people).value, 9)
    0.0
    """

    target: Annotated[ColumnName, "the column that is modelled"]
    predictors: Annotated[ColumnNames | None, "the columns it is modelled by; all others where left out"] = None
    level: Annotated[Probability, "the coverage of the confidence intervals"] = 0.95
    key: ClassVar[str] = "regression"
    masked: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        if self.predictors is not None and self.target in self.predictors:
            yield "the target must not be one of its predictors"

    def score(self, original: Microdata, released: Compared) -> Score:
        """The loss; for each coefficient its overlap and how many standard errors it moved."""
        left, right, _ = compared(original, released, self.predictors, also=(self.target,))
        if not isinstance(left.columns[-1], NumberColumn) or len(left.columns) < 2:
            raise Unsupported(f"regression needs a target of numbers, which '{self.target}' must be, and a predictor besides it")
        names, (before, after) = _fits(*in_own_units(left, right))  # intervals overlap as much in any unit
        if before is None or not before.determined.all():
            raise Unsupported(
                "the original does not determine the coefficients: too few complete records, a constant predictor, or predictors "
                "that are sums of others; leave some out (predictors=)"
            )
        parts: dict[str, float] = {}
        overlaps = []
        for i, name in enumerate(names):
            determined = after is not None and bool(after.determined[i])
            overlap = (
                interval_overlap(before.interval(i, self.level), after.interval(i, self.level)) if after and determined else 0.0
            )
            overlaps.append(max(0.0, overlap))
            parts[f"overlap {name}"] = overlap
            if after and determined and before.errors[i] > 0:
                parts[f"moved {name}"] = float(abs(after.values[i] - before.values[i]) / before.errors[i])
        meaning = f"share of the confidence intervals of a linear model of '{self.target}' that the masked data miss"
        return Score(self.key, 1.0 - float(np.mean(overlaps)), "lower", meaning, MappingProxyType(parts))


def interval_overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Mean of the shares of both intervals that lie in the other; negative where they are apart.

    >>> interval_overlap((0.0, 2.0), (1.0, 3.0))
    0.5
    """
    shared = min(first[1], second[1]) - max(first[0], second[0])
    shares = [shared / (end - start) if end > start else float(shared >= 0) for start, end in (first, second)]
    return sum(shares) / 2


@dataclass(frozen=True)
class Fit:
    """Coefficients of a linear model with their standard errors; not all need be determined by the data."""

    values: Real
    errors: Real
    determined: NDArray[np.bool_]
    freedom: int

    def interval(self, position: int, level: float) -> tuple[float, float]:
        """Confidence interval of a coefficient by Student's t."""
        from scipy.special import stdtrit

        reach = float(stdtrit(self.freedom, 0.5 + level / 2)) * float(self.errors[position])
        return float(self.values[position]) - reach, float(self.values[position]) + reach


def least_squares(design: Real, target: Real) -> Fit | None:
    """Ordinary least squares; None where there are not more records than coefficients."""
    freedom = design.shape[0] - design.shape[1]
    if freedom < 1:
        return None
    lengths = np.sqrt((design**2).sum(axis=0))
    lengths[lengths == 0] = 1.0
    rotated, upper = np.linalg.qr(design / lengths)
    left, sizes, right = np.linalg.svd(upper)
    kept = sizes > _DEPENDENT * sizes[0]
    inverse = right[kept].T / sizes[kept]
    values = inverse @ (left[:, kept].T @ (rotated.T @ target))
    remaining = target - (design / lengths) @ values
    squares = float(remaining @ remaining)
    if squares <= (_DEPENDENT**2) * float(target @ target):
        squares = 0.0
    errors = np.sqrt((inverse**2).sum(axis=1) * squares / freedom)
    determined = np.abs(right[~kept]).max(axis=0, initial=0.0) <= np.sqrt(_DEPENDENT)
    return Fit(values / lengths, errors / lengths, determined, freedom)


def _fits(left: Records, right: Records) -> tuple[list[str], list[Fit | None]]:
    """Names of the coefficients and the model of each side; labels that no original record has are no coefficients."""
    shown = [np.unique(column.codes[column.known]) for column in left.categories]
    centres = [float(np.nanmean(column.values)) for column in left.numbers]
    names = ["intercept"]
    fits = []
    for side in (left, right):
        complete = np.logical_and.reduce([column.known for column in side.columns])
        columns = [np.ones(int(complete.sum()))]
        names = ["intercept"]
        *predictors, target = side.take(np.flatnonzero(complete)).columns
        number = category = 0
        for predictor in predictors:
            if isinstance(predictor, NumberColumn):
                columns.append(predictor.values - centres[number])
                names.append(predictor.name)
                number += 1
            else:
                columns += [(predictor.codes == code).astype(np.float64) for code in shown[category][1:]]
                names += [f"{predictor.name} {rank}" for rank in range(2, shown[category].size + 1)]
                category += 1
        values = target.values if isinstance(target, NumberColumn) else np.zeros(0)
        fits.append(least_squares(np.column_stack(columns), values))
    return names, fits
