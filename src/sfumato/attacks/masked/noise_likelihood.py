"""Noise likelihood: with known noise, the record that a person's values would most likely have become.

The density of the published noise between a person's values and a record, divided by the density of the record coming from
anybody, is the posterior; its largest value is the best guess there is. Kim, Winkler, "Multiplicative noise for masking
continuous data", US Census Bureau Research Report Statistics 2003-01; Fuller, "Masking procedures for microdata disclosure
limitation", Journal of Official Statistics 9(2), 1993.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from sfumato.attacks.masked.register_records import (
    MaskPart,
    RegisterColumns,
    TransparencyAttack,
    agreeing,
    only_masked,
    result_of,
)
from sfumato.core.errors import InputError
from sfumato.core.ranges import Positive
from sfumato.core.view import AttackResult, Detail
from sfumato.data.masked import TableView
from sfumato.measures.risk.linkage.sides import Sides, by_stratum
from sfumato.measures.risk.linkage.transparent_picks import pick_by_noise


@dataclass(frozen=True)
class NoiseLikelihood(TransparencyAttack):
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
    reads: ClassVar[tuple[str, ...]] = ("noise",)

    def coherent(self) -> Iterable[str]:
        if (self.noise is None) != (self.variance is None):
            yield "give noise and variance, or neither"

    def exploits(self, part: MaskPart) -> bool:
        """There are columns with this noise and no other change."""
        return bool(part.own(part.facts["masked_columns"]))

    def refusal(self, view: TableView) -> InputError | None:
        """A law is published, or supposed."""
        missing = InputError("the release does not publish a law of noise; give noise=… and variance=…")
        return None if self.noise is not None else self.shared(view) or missing

    def together(self, parts: Sequence[MaskPart]) -> list[list[MaskPart]]:
        """Each law by itself. What another mask did to a column as well blurs the law, and may still help: the truth counts what
        it is worth."""
        if self.noise is not None:
            return [[self._supposed([name for part in parts for name in part.own(part.facts["masked_columns"])])]]
        blurred = [MaskPart(part.facts) for part in parts if not part.shares.isdisjoint(part.facts["masked_columns"])]
        return [[part] for part in (*parts, *blurred)]

    def attacked(self, sides: Sides, view: TableView, parts: Sequence[MaskPart]) -> AttackResult:
        """Take the likeliest record of everybody."""
        [part] = parts
        law = part.facts
        if self.columns is not None or not law["masked_columns"]:
            columns = only_masked(sides, view, self.columns, "NoiseLikelihood")
        else:
            columns = sides.shared(part.own(law["masked_columns"]), "NoiseLikelihood")
        if self.columns is None:
            sides = agreeing(sides, view, (*part.strata, *columns))
        picked = by_stratum(sides, part.strata, lambda each: pick_by_noise(each, columns, law))
        details: dict[str, Detail] = {"attributes": len(columns), "noise": law["noise"]}
        if picked.posterior is not None:
            details["mean_posterior"] = float(picked.posterior.mean())
        how = f"taking the record that the {law['noise']} noise makes most likely"
        return result_of("NoiseLikelihood", sides, picked, how, details)

    def _supposed(self, columns: list[str]) -> MaskPart:
        """Another law than is published, of the columns that are said to be noisy; nothing else is known about the mask."""
        key = "factor_variance" if self.noise == "multiplicative" else "noise_variance_ratio"
        return MaskPart({"noise": self.noise, key: self.variance, "method": {}, "masked_columns": columns})
