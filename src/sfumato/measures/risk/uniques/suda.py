"""Special uniques: records that few columns already single out.

A minimal unique of a record is a set of columns in which it is alone, while it is not alone in any smaller part of the set.
The smaller such sets are, and the more of them there are, the likelier the record is alone in the population too. Elliot,
Manning, Ford, "A computational algorithm for handling the special uniques problem", International Journal of Uncertainty,
Fuzziness and Knowledge-Based Systems 10(5), 2002; Manning, Haglin, Keane, "A recursive search algorithm for statistical
disclosure assessment", Data Mining and Knowledge Discovery 16(2), 2008.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from math import comb, prod
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.errors import InputError
from sfumato.core.ranges import ColumnNames, Count, PositiveShare
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata
from sfumato.measures.guarantees.classes import CodedColumn, combined, require_columns
from sfumato.measures.published import as_released
from sfumato.measures.risk.uniques.dis_suda import Weights, dis_suda
from sfumato.measures.risk.uniques.population_uniqueness import intrusion_simulation
from sfumato.measures.utility.shown import quasi_of

Real = NDArray[np.float64]
Flags = NDArray[np.bool_]

_MOST_SETS = 20_000


@dataclass(frozen=True, eq=False)
class MinimalUniques:
    """Per record, how many minimal uniques of each size it has, its score, and how much of all scores each column takes part
    in."""

    columns: tuple[str, ...]
    counts: NDArray[np.int64] = field(repr=False)
    scores: Real = field(repr=False)
    shares: Real = field(repr=False)

    @property
    def special(self) -> Flags:
        """Records with a minimal unique."""
        return np.asarray(self.counts.sum(axis=1) > 0)


@dataclass(frozen=True)
class SpecialUniques(Measure[Microdata | None, Compared]):
    """Share of released records that at most `max_size` of the columns already single out.

    `columns` are looked at (default: the quasi-identifiers), every value as a category. The score of a record adds up, over its
    minimal uniques, Π (d − i) for i from the size of the set to `max_size`, d columns in all: smaller sets weigh more. With
    `sampling_fraction` part "risk, largest" is the chance that a match on the worst record is right: the file's data intrusion
    simulation score, shared among the unique records so that odds are proportional to scores and the mean stays the same.
    Beside it "DIS-SUDA (sdcMicro), largest" is the same chance as that R package computes it, over minimal uniques of every size,
    a missing value being part of none (`dis_suda`; up to 14 columns). Parts: minimal uniques by size, the largest score, and each
    column's share in the scores. The floor is a blind guess among the records; the share is exact for the release.

    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> SpecialUniques().score(people, people).better
    'lower'
    """

    max_size: Annotated[Count, "columns in a combination, at the most"] = 3
    sampling_fraction: Annotated[PositiveShare | None, "records of the release per person of the population"] = None
    columns: Annotated[ColumnNames | None, "the columns looked at; the quasi-identifiers where left out"] = None
    key: ClassVar[str] = "special_uniques"

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The share."""
        table = as_released(released, original)
        names = self.columns if self.columns is not None else quasi_of(table)
        uniques = minimal_uniques(table.table, names, self.max_size)
        parts = {f"minimal uniques of {size + 1}": float(total) for size, total in enumerate(uniques.counts.sum(axis=0))}
        parts["score, largest"] = float(uniques.scores.max())
        parts.update({f"share of {name}": float(share) for name, share in zip(uniques.columns, uniques.shares, strict=True)})
        if self.sampling_fraction is not None:
            risk = intrusion_risks(table.table, uniques, self.sampling_fraction)
            parts["risk, largest"], parts["risk, mean"] = float(risk.max()), float(risk.mean())
            if 2 ** len(names) - 1 <= _MOST_SETS:
                theirs = self._dis_suda(table.table, names, self.sampling_fraction)
                parts["DIS-SUDA (sdcMicro), largest"] = float(theirs.max())
                parts["DIS-SUDA (sdcMicro), mean"] = float(theirs.mean())
        meaning = f"share of records that at most {self.max_size} columns single out"
        share = float(uniques.special.mean())
        return Score(
            self.key,
            share,
            "lower",
            meaning,
            MappingProxyType(parts),
            uses_original=False,
            floor=1.0 / table.table.num_rows,
            interval=(share, share),
        )

    def dis_suda(self, original: Microdata | None, released: Compared, weights: Weights = "published") -> Real:
        """The DIS-SUDA score of every released record, as sdcMicro computes it."""
        require(self.sampling_fraction is not None, "SpecialUniques: DIS-SUDA needs sampling_fraction=")
        table = as_released(released, original)
        names = self.columns if self.columns is not None else quasi_of(table)
        return self._dis_suda(table.table, names, float(self.sampling_fraction or 1.0), weights)

    def _dis_suda(self, table: pa.Table, names: tuple[str, ...], fraction: float, weights: Weights = "published") -> Real:
        uniques = minimal_uniques(table, names, len(names), missing="unknown")
        return dis_suda(uniques.counts, _class_sizes(table, names), fraction, weights)


def minimal_uniques(
    table: pa.Table, names: tuple[str, ...], max_size: int = 3, missing: Literal["value", "unknown"] = "value"
) -> MinimalUniques:
    """All minimal uniques of up to `max_size` columns, set by set; a set is minimal for a record that is alone in it and in none
    of the sets with one column less (being alone in a smaller part would make it alone there too). Missing is a value like
    another, or "unknown", and then no record is alone by it."""
    require_columns(table, names)
    rows, size = table.num_rows, min(max_size, len(names))
    if not rows:
        raise InputError("there are no records among which uniques could be found")
    sets = sum(comb(len(names), width) for width in range(1, size + 1))
    require(
        sets <= _MOST_SETS,
        f"SpecialUniques: {sets:,} sets of up to {size} of {len(names)} columns are too many (limit {_MOST_SETS:,}): "
        "choose columns= or a smaller max_size",
    )
    coded = [CodedColumn.of(table.column(name)) for name in names]
    hidden = [np.array([value is None for value in each.values], dtype=np.bool_)[each.codes] for each in coded]
    counts = np.zeros((rows, size), dtype=np.int64)
    scores, shares = np.zeros(rows), np.zeros(len(names))
    smaller: dict[tuple[int, ...], Flags] = {(): np.zeros(rows, dtype=np.bool_)}  # no column singles nobody out
    for width in range(1, size + 1):
        alone: dict[tuple[int, ...], Flags] = {}
        weight = float(prod(max(len(names) - i, 1) for i in range(width, size + 1)))
        for chosen in combinations(range(len(names)), width):
            keys, count = combined([coded[c] for c in chosen], rows)
            unique = np.bincount(keys, minlength=count)[keys] == 1
            if missing == "unknown":
                unique = unique & ~np.logical_or.reduce([hidden[c] for c in chosen])
            minimal = unique.copy()
            for left_out in range(width):
                minimal &= ~smaller[chosen[:left_out] + chosen[left_out + 1 :]]
            alone[chosen] = unique
            counts[:, width - 1] += minimal
            scores += weight * minimal
            shares[list(chosen)] += weight * float(minimal.sum())
        smaller = alone
    total = float(scores.sum())
    return MinimalUniques(tuple(names), counts, scores, shares / total if total else shares)


def _class_sizes(table: pa.Table, names: tuple[str, ...]) -> NDArray[np.int64]:
    keys, count = combined([CodedColumn.of(table.column(name)) for name in names], table.num_rows)
    return np.bincount(keys, minlength=count).astype(np.int64)


def intrusion_risks(table: pa.Table, uniques: MinimalUniques, sampling_fraction: float) -> Real:
    """The chance that a match on each special unique is right: odds proportional to scores, mean equal to the file's
    data intrusion simulation score. Other records have none."""
    level = intrusion_simulation(_class_sizes(table, uniques.columns), sampling_fraction)
    risks = np.zeros(table.num_rows)
    special = uniques.special
    if not special.any() or level <= 0.0:
        return risks
    if level >= 1.0:
        return special.astype(np.float64)
    scores = uniques.scores[special] / uniques.scores[special].mean()
    low, high = -60.0, 60.0
    for _ in range(200):  # the mean grows with the factor
        middle = (low + high) / 2.0
        odds = scores * np.exp(middle)
        low, high = (middle, high) if float((odds / (1.0 + odds)).mean()) < level else (low, middle)
    odds = scores * np.exp((low + high) / 2.0)
    risks[special] = odds / (1.0 + odds)
    return risks
