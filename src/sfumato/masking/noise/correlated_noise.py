"""Correlated noise: X' = X + e with e ~ N(0, ratio · Σ), where Σ is the covariance of the columns.

Noise with the shape of the data inflates every covariance by the same factor 1 + ratio, so that correlations and regressions
between the masked columns stay what they were. Kim, "A method for limiting disclosure in microdata based on random noise
and transformation", Proceedings of the ASA Section on Survey Research Methods, 1986; Tendick, "Optimal noise addition for
the preservation of confidentiality in multivariate data", Journal of Statistical Planning and Inference 27, 1991.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from sfumato.core.declared import formerly
from sfumato.core.errors import Unsupported
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.records import NumberColumn, Records, magnitudes
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.noise.additive_noise import NoiseRatio, scaled_by
from sfumato.masking.noise.moments import (
    LEAST_FREEDOM,
    SINGULAR,
    Real,
    exact_noise,
    known_means,
    least_for_exact,
    noise_deviation,
    pairwise_covariance,
    refuse_rounded_back,
    refuse_without_spread,
    rounded_back,
)


@formerly(ratio="k")
@dataclass(frozen=True)
class CorrelatedNoise(Mask):
    """Add normal noise with `ratio` times the covariance Σ of the columns, all columns together: X' = X + N(0, ratio·Σ).

    `ratio` as for `AdditiveNoise`. On average means stay, covariances grow by 1 + ratio and correlations stay. `rescale=True`
    draws the masked records towards the mean by 1/√(1+ratio), so that covariances stay too. `moments="exact"` makes all this
    true of every draw, of the records without missing values; it needs ten records more than twice the columns (in each
    stratum), because exact moments leave so much less to chance that few records could be worked out.

    Within strata each covariance follows its stratum: means stay, and with `rescale` all covariances of the whole table, but
    without it what differs between strata is not inflated, and correlations of the whole table change.

    Missing values stay missing. Each covariance comes from the records that know both columns; where such covariances
    contradict each other (no covariance matrix has all of them) the columns are refused. So are columns that are linear
    combinations of each other: their noise would be too, and an intruder could take it out. `may_round_back=True` masks
    columns that rounding gives back, as for `AdditiveNoise`.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> mask = sf.CorrelatedNoise(0.2, rescale=True, moments="exact", columns=("age", "income"), whole=False)
    >>> mask.apply(people, seed=1).result.transparency["noise"]
    'proportional'
    """

    ratio: NoiseRatio
    rescale: Annotated[bool, "whether masked records are drawn towards the mean, so that covariances stay"] = False
    moments: Annotated[Literal["free", "exact"], "whether moments are met on average or by every draw"] = "free"
    may_round_back: Annotated[bool, "whether columns are masked that rounding gives back"] = False

    shows_missing: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """The covariance has to be regular; exact moments need records enough to hide in."""
        name = type(self).__name__
        refuse_without_spread(name, records.numbers)
        columns = _present(records)
        if not columns:
            return
        values = np.column_stack([column.values for column in columns])
        self._covariance(columns)
        if self.moments == "exact":
            complete = values[np.all(~np.isnan(values), axis=1)]
            if complete.shape[0] < least_for_exact(len(columns)):
                raise Unsupported(
                    f"{name}: noise with exact moments in {len(columns)} columns needs at least {least_for_exact(len(columns))} "
                    f"records without missing values (in each stratum), not {len(complete)}: less than {LEAST_FREEDOM} "
                    "dimensions of a column's noise would be left to chance, and who knows the method could work the values out; "
                    'take moments="free" or larger strata'
                )
            _refuse_singular(name, pairwise_covariance(complete / magnitudes(complete)), columns)
        refuse_rounded_back(name, self._unchanged(columns), self.may_round_back)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Noise for all columns at once; a column that is missing throughout the stratum stays so."""
        columns = _present(records)
        values = {column.name: column.values.copy() for column in records.numbers}
        if columns:
            joined = np.column_stack([column.values for column in columns])
            units = magnitudes(joined)
            with np.errstate(over="ignore"):  # what no number can hold is refused when the table is put together
                masked = self._masked(joined / units, self._covariance(columns), draws) * units
            values.update((column.name, masked[:, place].copy()) for place, column in enumerate(columns))
        return Change(values, published=self.tells(records.names), details={"expected_unchanged": self._unchanged(columns)})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The kind of noise, its covariance in units of the columns' own, and by what the sum was scaled."""
        return {"noise": "proportional", "noise_variance_ratio": self.ratio, "scaled_by": scaled_by(self.ratio, self.rescale)}

    def keeps(self) -> tuple[Kept, ...]:
        """Mean and correlation; with `rescale` variance and covariance too. Correlations of a table masked in strata stay
        only with `rescale`."""
        exactly = self.moments == "exact"
        note = "of the records without missing values" if exactly else ""
        kept = [Kept("mean", exactly, note)]
        if self.rescale or not self.strata:
            kept.append(Kept("correlation", exactly, note))
        if self.rescale:
            kept += [Kept("variance", exactly, note), Kept("covariance", exactly, note)]
        return tuple(kept)

    def _masked(self, values: Real, covariance: Real, draws: Draws) -> Real:
        drawn = draws.normal(*values.shape)
        complete = ~np.isnan(values).any(axis=1)
        noise = drawn @ np.linalg.cholesky(float(self.ratio) * covariance).T
        centre = known_means(values)
        if self.moments == "exact":
            there = values[complete]
            noise[complete] = exact_noise(there, drawn[complete], float(self.ratio) * pairwise_covariance(there))
            centre = there.mean(axis=0)
        masked: Real = centre + (values - centre + noise) * scaled_by(self.ratio, self.rescale)
        return masked

    def _covariance(self, columns: tuple[NumberColumn, ...]) -> Real:
        """The covariance in units of the columns' magnitudes."""
        if not columns:
            return np.zeros((0, 0))
        joined = np.column_stack([column.values for column in columns])
        covariance = pairwise_covariance(joined / magnitudes(joined))
        _refuse_singular(type(self).__name__, covariance, columns)
        return covariance

    def _unchanged(self, columns: tuple[NumberColumn, ...]) -> dict[str, float]:
        scale = scaled_by(self.ratio, self.rescale)
        return {column.name: rounded_back(column, noise_deviation(column, self.ratio) * scale) for column in columns}


def _present(records: Records) -> tuple[NumberColumn, ...]:
    return tuple(column for column in records.numbers if column.known.any())


def _refuse_singular(name: str, covariance: Real, columns: tuple[NumberColumn, ...]) -> None:
    """One clear error for columns whose covariance has no inverse, which says which they are."""
    unknown = [(columns[i].name, columns[j].name) for i, j in np.argwhere(np.isnan(covariance)) if i < j]
    if unknown:
        raise Unsupported(
            f"{name}: fewer than two records know both '{unknown[0][0]}' and '{unknown[0][1]}' (in a stratum, where there are "
            "strata), so their covariance is unknown; mask them separately, by two masks"
        )
    deviations = np.sqrt(np.diag(covariance))
    if not np.all(deviations > 0):
        still = columns[int(np.argmin(deviations))].name
        raise Unsupported(
            f"{name}: column '{still}' does not vary in the records without missing values; use moments=\"free\" or leave it out"
        )
    roots, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
    if roots[0] > SINGULAR:
        return
    if roots[0] < -SINGULAR:
        raise Unsupported(
            f"{name}: the covariances of these columns, each from the records that know both, contradict each other; mask "
            "fewer columns together, or fill in missing values first"
        )
    count = columns[0].values.size
    if count <= len(columns):
        raise Unsupported(
            f"{name}: the covariance of {len(columns)} columns is singular with {count} records (in a stratum, where there are "
            "strata); mask fewer columns together or use coarser strata"
        )
    weights = np.abs(vectors[:, 0])
    involved = ", ".join(f"'{columns[i].name}'" for i in np.flatnonzero(weights > 1e-3 * weights.max()))
    raise Unsupported(
        f"{name}: the covariance is singular: the columns {involved} are linear combinations of each other, and so would their "
        "noise be; leave one of them out of columns=(…)"
    )
