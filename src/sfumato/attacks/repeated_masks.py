"""Repeated masks: what several masked releases of one column give away together, from what they publish about themselves.

The worst case is an intruder who can tell which records belong together. Independent noise then averages out, the precisions
1/variance adding up; the likelihoods of PRAM multiply, so that the losses ε add up; the true rank of a swapped value lies in
every window around its published ranks. Nothing is computed from data. Torra, "Data privacy: foundations, new developments
and the big data challenge", Springer 2017, chapter 6; Gouweleeuw, Kooiman, Willenborg, de Wolf, "Post randomisation for
statistical disclosure control", Journal of Official Statistics 14(4), 1998.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.measures.risk.transparency import strata_told, windows_told


@dataclass(frozen=True)
class Repeated:
    """A column that the same kind of mask changed in several releases.

    `alone` is what the weakest release says by itself and `together` what all of them leave: the variance of the noise in
    variances of the column (`noise`), that of factors (`factors`), the loss ε (`categories`), the ranks to either side
    (`ranks`). Less of it is worse, but of ε more.
    """

    column: str
    kind: str
    releases: int
    alone: float
    together: float

    def sentence(self, *others: str) -> str:
        """What an intruder who can tell which records belong together does with it; `others` are columns of the same
        numbers.
        """
        named = [f"'{column}'" for column in (self.column, *others)]
        listed = ", ".join(named[:-1]) + " and " + named[-1] if others else named[0]
        where = f"in {'each of ' if others else ''}{listed} ({self.releases} releases)"
        alone, together = f"{self.alone:.3g}", f"{self.together:.3g}"
        if self.kind == "noise":
            return f"the noise {where} may average down to {together} of the column's variance, from {alone}"
        if self.kind == "factors":
            return f"the factors {where} may average down to a variance of {together}, from {alone}"
        if self.kind == "categories":
            return f"the losses {where} add up to ε = {together}, from {alone}"
        return f"the rank {where} lies in every window around a published one, the narrowest of {together} ranks to either side"


def in_words(found: Sequence[Repeated]) -> list[str]:
    """One sentence for all columns with the same numbers."""
    alike: dict[tuple[str, int, float, float], list[Repeated]] = {}
    for each in found:
        alike.setdefault((each.kind, each.releases, each.alone, each.together), []).append(each)
    return [group[0].sentence(*(each.column for each in group[1:])) for group in alike.values()]


def repeated_masks(told: Sequence[Mapping[str, Any]]) -> list[Repeated]:
    """For each column the mask that changed it in two releases at least, where its law is published; `told` is what each
    release tells about itself. Combinations of masks and masks within strata are left out: their laws are others."""
    by_column: dict[tuple[str, str], list[float]] = {}
    for release in told:
        if "steps" in release or strata_told(release):
            continue
        for key, number in _laws(release):
            by_column.setdefault(key, []).append(number)
    return [
        _together(column, kind, numbers)
        for (column, kind), numbers in by_column.items()
        if len(numbers) > 1 and all(number > 0 for number in numbers)
    ]


def _laws(told: Mapping[str, Any]) -> list[tuple[tuple[str, str], float]]:
    columns = [str(name) for name in told.get("masked_columns", ())]
    if "noise_variance_ratio" in told:
        return [((name, "noise"), float(told["noise_variance_ratio"])) for name in columns]
    if "factor_variance" in told:
        return [((name, "factors"), float(told["factor_variance"])) for name in columns]
    if "window" in told:
        return [((name, "ranks"), float(ranks)) for name, ranks in windows_told(told).items()]
    laws = told.get("transitions", {})
    return [((str(name), "categories"), float(law["epsilon"])) for name, law in laws.items() if "epsilon" in law]


def _together(column: str, kind: str, numbers: Sequence[float]) -> Repeated:
    count = len(numbers)
    if kind == "noise":
        return Repeated(column, kind, count, min(numbers), 1.0 / math.fsum(1.0 / number for number in numbers))
    if kind == "factors":
        # factors add up as logarithms, whose variance is ln(1 + v) where they are log-normal
        precision = math.fsum(1.0 / math.log1p(number) for number in numbers)
        return Repeated(column, kind, count, min(numbers), math.expm1(1.0 / precision))
    if kind == "categories":
        return Repeated(column, kind, count, max(numbers), math.fsum(numbers))
    return Repeated(column, kind, count, min(numbers), min(numbers))
