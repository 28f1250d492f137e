"""Noise likelihood: with known noise, the record that a person's values would most likely have become.

The density of the published noise between a person's values and a record, divided by the density of the record coming from
anybody, is the posterior; its largest value is the best guess there is. Kim, Winkler, "Multiplicative noise for masking
continuous data", US Census Bureau Research Report Statistics 2003-01; Fuller, "Masking procedures for microdata disclosure
limitation", Journal of Official Statistics 9(2), 1993.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from sfumato.attacks.register_records import RegisterColumns, agreeing, only_masked, result_of, sides_of, transparency_of
from sfumato.core.errors import InputError
from sfumato.core.ranges import Positive
from sfumato.core.view import Attack, AttackResult, View
from sfumato.measures.risk.sides import by_stratum
from sfumato.measures.risk.transparency import steps_told, strata_told
from sfumato.measures.risk.transparent_picks import pick_by_noise


@dataclass(frozen=True)
class NoiseLikelihood(Attack):
    """The adversary knows the law of the noise and takes the record with the largest posterior for each person.

    The law is read from the release; without it, give `noise`: "independent" or "proportional" (to the covariance) normal noise
    with `variance` as a multiple of each column's own, or "multiplicative" factors with that variance (taken as log-normal).
    Unless `columns` are named, a record has to agree in the quasi-identifiers that were not masked. `knowledge`:
    `Register(table, truth=…)`. Success: the share of people whose record has the largest posterior. The posterior is about the
    register as a whole; for the people of one register it does not always find more than the distance.
    `details["mean_posterior"]` is how sure the adversary may be of the right record on average, normalised over all records
    (above 25 million pairs of a person and a record: over the nearest ones and a sample of the rest).
    """

    noise: Annotated[
        Literal["independent", "proportional", "multiplicative"] | None, "the law of the noise; as published where left out"
    ] = None
    variance: Annotated[Positive | None, "the variance of the noise, as a multiple of the column's, or of the factors"] = None
    columns: RegisterColumns = None

    def coherent(self) -> Iterable[str]:
        if (self.noise is None) != (self.variance is None):
            yield "give noise and variance, or neither"

    def run(self, view: View, knowledge: Any = None) -> AttackResult:
        """Take the likeliest record of everybody."""
        sides = sides_of(view, knowledge, "NoiseLikelihood")
        told = self._law(view)
        wanted = self.columns if self.columns is not None or self.noise is not None else tuple(told["masked_columns"])
        if wanted is None or self.columns is not None:
            columns = only_masked(sides, view, self.columns, "NoiseLikelihood")
        else:
            columns = sides.shared(wanted, "NoiseLikelihood")
        if self.columns is None:
            sides = agreeing(sides, view, (*strata_told(told), *columns))
        picked = by_stratum(sides, strata_told(told), lambda part: pick_by_noise(part, columns, told))
        details = {"attributes": len(columns), "noise": told["noise"]}
        if picked.posterior is not None:
            details["mean_posterior"] = float(picked.posterior.mean())
        how = f"taking the record that the {told['noise']} noise makes most likely"
        return result_of("NoiseLikelihood", sides, picked, how, details)

    def _law(self, view: View) -> Mapping[str, Any]:
        published = next((step for step in steps_told(transparency_of(view)) if "noise" in step), None)
        if self.noise is None:
            if published is None:
                raise InputError("the release does not publish a law of noise; give noise=… and variance=…")
            return published
        key = "factor_variance" if self.noise == "multiplicative" else "noise_variance_ratio"
        return {"noise": self.noise, key: self.variance, "method": {}}
