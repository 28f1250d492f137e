"""IPSO, information preserving statistical obfuscation: synthetic values with exactly the original regression.

Regress the masked columns on the predictors, keep the fitted part, and put residuals in place of the real ones that are drawn
at random and then turned until their cross-products equal the real ones. Burridge, "Information preserving statistical
obfuscation", Statistics and Computing 13, 2003; Langsrud, "Information preserving regression-based tools for statistical
disclosure control", Statistics and Computing 29, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import ParameterError, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import ColumnNames, Count
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, Records, magnitudes
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.synthetic.predictors import check_predictors, orthonormal, regressors

Real = NDArray[np.float64]
Int = NDArray[np.int64]

_SINGULAR = 1e-9


#: With exact moments fewer free directions than this would leave hardly anything to chance.
_LEFT_TO_CHANCE = 10


@dataclass(frozen=True)
class Ipso(Mask):
    """Replace the masked numbers by synthetic ones that have the same regression on the predictors.

    `method` C (the default) keeps the coefficients and the cross-products of the residuals exactly, hence also means and
    covariances; B keeps the coefficients, and the covariance of residuals on average; A publishes the fitted values.

    `predictors` are columns that stay as they are (numbers, or categories as indicators); without them the mean is the only
    regressor, and the masked columns become a random table with the same means and covariances. With `groups` = g the masked
    columns are cut, in their order, into g groups as equal in size as can be, and the groups are made one after the other,
    each from the predictors and all other masked columns as they are by then (synthetic where already made). Each step keeps
    means and covariances of all of them, so the whole does too; more groups follow the records more closely.

    Records with a missing value take no part in the exact statements: their known cells are drawn from the regression on
    what is known of them, and missing cells stay missing. Synthetic numbers are not bounded: an age may come out negative.

    >>> import sfumato as sf
    >>> mask = sf.Ipso(predictors=("sex", "education"), columns=("age", "income"), whole=False)
    >>> mask.keeps()[0]
    Kept(what='mean', exactly=True, note='over records without missing values')
    """

    method: Annotated[Literal["A", "B", "C"], "what of the regression is kept"] = "C"
    predictors: Annotated[ColumnNames | None, "columns that stay as they are and predict the masked ones"] = None
    groups: Annotated[Count | None, "groups of masked columns that are made one after the other"] = None
    handles: ClassVar[frozenset[Kind]] = frozenset({"number"})
    shows_missing: ClassVar[bool] = True

    def coherent(self) -> Iterable[str]:
        if self.method == "A" and (self.predictors is None or self.groups not in (None, 1)):
            yield "method A publishes fitted values: give it predictors, and no groups"

    def check(self, records: Records, people: Microdata) -> None:
        """Predictors exist and are not masked; no more groups than columns; enough records to regress on."""
        check_predictors("Ipso", self.predictors or (), records, self.strata, people)
        width = len(records.columns)
        if self.groups is not None and self.groups > width:
            raise ParameterError(f"Ipso: {width} masked columns cannot be cut into {self.groups} groups")
        self._enough(int((~np.isnan(records.matrix()).any(axis=1)).sum()), 0, width)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """New values group by group, each given what stands in the other columns by then."""
        fixed = regressors([context.column(name) for name in self.predictors or ()], records.size)
        original = records.matrix()
        complete = ~np.isnan(np.concatenate([fixed, original], axis=1)).any(axis=1)
        if complete.any():  # a category that only incomplete records have predicts nothing about the others
            fixed = fixed[:, np.ptp(fixed[complete], axis=0) > 0]
        self._enough(int(complete.sum()), fixed.shape[1], original.shape[1])
        synthetic = original.copy()
        parts = np.array_split(np.arange(original.shape[1]), self.groups or 1)
        for position, part in enumerate(parts):
            context.progress("synthesising", position, len(parts))
            others = np.delete(synthetic, part, axis=1)
            predicting = np.concatenate([fixed, others / magnitudes(others)], axis=1) if len(parts) > 1 else fixed
            synthetic[:, part] = self._synthesised(predicting, original[:, part], complete, draws)
        synthetic[np.isnan(original)] = np.nan
        names = records.names
        details = {"complete_records": int(complete.sum()), "incomplete_records": int((~complete).sum())}
        return Change({name: synthetic[:, i] for i, name in enumerate(names)}, published=self.tells(names), details=details)

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The model, its predictors, and which columns were made together."""
        parts = np.array_split(np.arange(len(names)), self.groups or 1)
        return {
            "model": "linear regression with intercept",
            "predictors": list(self.predictors or ()),
            "groups": [[names[column] for column in part] for part in parts],
        }

    def keeps(self) -> tuple[Kept, ...]:
        """Method C: everything a normal model needs; B: the coefficients, the rest on average; A: coefficients and means."""
        note = "over records without missing values"
        mean = Kept("mean", exactly=True, note=note)
        regression = Kept("regression", exactly=True, note=f"of the masked columns on the predictors, {note}")
        if self.method == "A":
            return (mean, regression)
        exactly = self.method == "C"
        kept = (mean, Kept("variance", exactly=exactly, note=note), Kept("covariance", exactly=exactly, note=note))
        return (*kept, Kept("correlation", exactly=True, note=note), regression) if exactly else (*kept, regression)

    def _enough(self, complete: int, regressor_width: int, masked_width: int) -> None:
        needed = regressor_width + 1 + masked_width + (_LEFT_TO_CHANCE if self.method == "C" else 0)
        if complete <= needed:
            raise Unsupported(
                f"Ipso: {complete} records without missing values (in one stratum) do not suffice: with {masked_width} masked "
                f"columns and {regressor_width} regressors more than {needed} are needed; mask fewer columns, give fewer "
                "predictors or larger strata"
            )

    def _synthesised(self, regressors: Real, target: Real, complete: NDArray[np.bool_], draws: Draws) -> Real:
        units = magnitudes(target)
        target = target / units
        centre, spread = target[complete].mean(axis=0), target[complete].std(axis=0)
        if (spread == 0).any():
            raise Unsupported("Ipso: a masked column has one value only among the records of a stratum without missing values")
        standard = (target - centre) / spread
        values = np.empty_like(target)
        values[complete] = self._exact(regressors[complete], standard[complete], draws)
        if not complete.all():
            values[~complete] = self._drawn(regressors, standard, complete, draws)
        with np.errstate(over="ignore"):  # what no number can hold is refused when the table is put together
            synthetic: Real = (values * spread + centre) * units
        return synthetic

    def _exact(self, regressors: Real, target: Real, draws: Draws) -> Real:
        basis = orthonormal("Ipso", regressors)
        fitted = basis @ (basis.T @ target)
        residuals = _without(basis, target)
        real = residuals.T @ residuals
        if np.linalg.eigvalsh(real)[0] <= _SINGULAR * target.shape[0]:
            raise Unsupported(
                "Ipso: the masked columns follow linearly from each other or from the predictors, so that nothing is left to "
                "draw at random; leave out the redundant columns"
            )
        if self.method == "A":
            return np.asarray(fitted, dtype=np.float64)
        factor = np.linalg.cholesky(real)
        noise = _without(basis, draws.normal(*target.shape))
        if self.method == "B":
            return np.asarray(fitted + noise @ factor.T / np.sqrt(target.shape[0] - basis.shape[1]), dtype=np.float64)
        from scipy.linalg import solve_triangular

        own = np.linalg.cholesky(noise.T @ noise)
        turned = solve_triangular(own, noise.T, lower=True).T @ factor.T
        return np.asarray(fitted + turned, dtype=np.float64)

    def _drawn(self, regressors: Real, target: Real, complete: NDArray[np.bool_], draws: Draws) -> Real:
        """Records with missing values: a draw from the regression on whatever of the regressors is known of them."""
        lacking = regressors[~complete]
        present = ~np.isnan(lacking)
        noise = draws.normal(lacking.shape[0], target.shape[1])
        synthetic = np.empty((lacking.shape[0], target.shape[1]))
        patterns, which = np.unique(present, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.reshape(-1) == number)
            terms = _with_intercept(regressors[complete][:, pattern])
            coefficients = np.linalg.lstsq(terms, target[complete], rcond=None)[0]
            synthetic[rows] = _with_intercept(lacking[rows][:, pattern]) @ coefficients
            if self.method != "A":
                residuals = target[complete] - terms @ coefficients
                left = residuals.T @ residuals / (terms.shape[0] - terms.shape[1])
                synthetic[rows] += noise[rows] @ np.linalg.cholesky(left).T
        return synthetic


def _without(basis: Real, values: Real) -> Real:
    """What is orthogonal to the basis; twice, because the first pass leaves rounding errors along it."""
    once = values - basis @ (basis.T @ values)
    twice: Real = once - basis @ (basis.T @ once)
    return twice


def _with_intercept(values: Real) -> Real:
    return np.concatenate([np.ones((values.shape[0], 1)), values], axis=1)
