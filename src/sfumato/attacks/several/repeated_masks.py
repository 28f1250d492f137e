"""Repeated masks: what several masked releases of one column give away together, from what they publish about themselves.

The worst case is an intruder who can tell which records belong together. Independent noise then averages out, the precisions
1/variance adding up; the likelihoods of PRAM multiply, so that the losses ε add up; the true rank of a swapped value lies in
every window around its published ranks. Ranks and noise are told in terms of one table, and stand together only where the
releases were made from the same one; losses add up over all of them. Nothing is computed from data.
Torra, "Data privacy: foundations, new developments and the big data challenge", Springer 2017, chapter 6; Gouweleeuw, Kooiman,
Willenborg, de Wolf, "Post randomisation for statistical disclosure control", Journal of Official Statistics 14(4), 1998.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from sfumato.core.plain_data import Plain
from sfumato.measures.risk.linkage.transparency import published_steps, published_strata, published_windows

#: How a release shows a column that it leaves unchanged.
AS_IT_IS = "as it is"


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

    def sentence(self, *others: str, several: bool = False) -> str:
        """What an intruder who can tell which records belong together does with it; `others` are columns of the same
        numbers, and a person may have `several` records.
        """
        named = [f"'{column}'" for column in (self.column, *others)]
        listed = ", ".join(named[:-1]) + " and " + named[-1] if others else named[0]
        where = f"in {'each of ' if others else ''}{listed} ({self.releases} releases)"
        if math.isinf(self.together):
            return f"no finite ε bounds the losses {where} together"
        up = self.kind == "categories"  # what is said is never better than what is
        alone, together = _rounded(self.alone, up=up), _rounded(self.together, up=up)
        further = ", and further over several records of one person" if several else ""
        if self.kind == "noise":
            return f"the noise {where} may average down to {together} of the column's variance, from {alone}{further}"
        if self.kind == "factors":
            return f"the factors {where} may average down to a variance of {together}, from {alone}{further}"
        if self.kind == "categories":
            # that a value is missing is shown, and bounded by nothing
            return f"the losses {where} add up to ε = {together} at most per record that has a value, from {alone}{further}"
        return f"the rank {where} lies in every window around a published one, the narrowest of {together} ranks to either side"


def in_words(masks: Sequence[Repeated], *, several: bool = False) -> list[str]:
    """One sentence for all columns with the same numbers; a person may have `several` records."""
    alike: dict[tuple[str, int, float, float], list[Repeated]] = {}
    for each in masks:
        alike.setdefault((each.kind, each.releases, each.alone, each.together), []).append(each)
    return [group[0].sentence(*(each.column for each in group[1:]), several=several) for group in alike.values()]


def repeated_masks(releases: Sequence[Plain], tables: Sequence[Hashable] | None = None) -> list[Repeated]:
    """For each column the mask that changed it in two releases at least, where its law is published; `releases` is what each
    release tells about itself, `tables` names the table of each (without it they are of one). Combinations of masks and masks
    within strata are left out: their laws are others."""
    by_column: dict[tuple[str, str, Hashable], list[float]] = {}
    for (column, kind, table), number in _all_laws(releases, tables):
        # a release without any loss tells nothing, alone or with others
        if kind != "categories" or number > 0:
            by_column.setdefault((column, kind, None if kind == "categories" else table), []).append(number)
    return [_together(column, kind, numbers) for (column, kind, _), numbers in by_column.items() if len(numbers) > 1]


def over_other_tables(releases: Sequence[Plain], tables: Sequence[Hashable]) -> list[str]:
    """Columns whose ranks or noise were published about several tables: they are not put together."""
    tables_by_law: dict[tuple[str, str], set[Hashable]] = {}
    for (column, kind, table), _ in _all_laws(releases, tables):
        tables_by_law.setdefault((column, kind), set()).add(table)
    return sorted({column for (column, kind), sources in tables_by_law.items() if kind != "categories" and len(sources) > 1})


def _all_laws(
    releases: Sequence[Mapping[str, Any]], tables: Sequence[Hashable] | None
) -> list[tuple[tuple[str, str, Hashable], float]]:
    return [
        ((column, kind, table), number)
        for release, table in zip(releases, tables or [None] * len(releases), strict=True)
        for (column, kind), number in _laws(release)
    ]


def can_be_combined(kinds: Collection[str], showings: Collection[str | None]) -> bool:
    """Whether what `repeated_masks` says of a column, by these kinds of masks, is about every release that shows it; a bound on
    the losses holds for no other kind of mask."""
    return set(showings) == set(kinds) and ("categories" not in kinds or len(set(kinds)) == 1)


def how_shown(column: str, facts: Plain) -> str | None:
    """How a release shows one of its columns: by the kind of the one mask that changed it, or as it is; None where neither is
    certain. `facts` is what the release tells about itself."""
    if column in facts.get("pseudonymised_columns", ()):
        return None
    if "masked_columns" not in facts and "steps" not in facts:  # a search generalises quasi-identifiers, and nothing else
        return AS_IT_IS if column not in facts.get("quasi_identifiers", (column,)) else None
    if all(column not in step.get("masked_columns", (column,)) for step in published_steps(facts)):
        return AS_IT_IS
    kinds = [kind for (name, kind), _ in _laws(facts) if name == column]
    return kinds[0] if kinds else None


def _laws(facts: Mapping[str, Any]) -> list[tuple[tuple[str, str], float]]:
    if "steps" in facts or published_strata(facts):  # their laws are others
        return []
    columns = [str(name) for name in facts.get("masked_columns", ())]
    if "noise_variance_ratio" in facts:
        return [((name, "noise"), float(facts["noise_variance_ratio"])) for name in columns]
    if "factor_variance" in facts:
        return [((name, "factors"), float(facts["factor_variance"])) for name in columns]
    if "window" in facts:
        return [((name, "ranks"), float(ranks)) for name, ranks in published_windows(facts).items()]
    losses = {str(name): _loss(law["epsilon"]) for name, law in facts.get("transitions", {}).items() if "epsilon" in law}
    if facts.get("method", {}).get("joint"):  # the loss of a combination bounds that of each of its columns
        losses = {name: loss for loss in losses.values() for name in columns}
    return [((name, "categories"), loss) for name, loss in losses.items()]


def _loss(stated: Any) -> float:
    """As a certificate writes it: a number, or the word."""
    return math.inf if stated == "infinite" else float(stated)


def _together(column: str, kind: str, numbers: Sequence[float]) -> Repeated:
    count = len(numbers)
    if kind in ("noise", "factors") and min(numbers) <= 0:  # one release shows the values as they are
        return Repeated(column, kind, count, 0.0, 0.0)
    if kind == "noise":
        return Repeated(column, kind, count, min(numbers), 1.0 / math.fsum(1.0 / number for number in numbers))
    if kind == "factors":
        # factors add up as logarithms, whose variance is ln(1 + v) where they are log-normal
        precision = math.fsum(1.0 / math.log1p(number) for number in numbers)
        return Repeated(column, kind, count, min(numbers), math.expm1(1.0 / precision))
    if kind == "categories":
        return Repeated(column, kind, count, max(numbers), math.fsum(numbers))
    return Repeated(column, kind, count, min(numbers), min(numbers))


def _rounded(number: float, *, up: bool) -> str:
    """Three digits, towards the side that promises less."""
    kept = Context(prec=3, rounding=ROUND_CEILING if up else ROUND_FLOOR).create_decimal(repr(number))
    return f"{float(kept):g}"
