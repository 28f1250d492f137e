"""Linkage with a learnt distance: how many records would be found by the intruder with the best weights there are.

With both files at hand, the weights of the distance are chosen so that as many masked records as possible are nearest to their
own original: an optimisation with one block variable per record, solved exactly for few records and by generated constraints for
many. Abril, Navarro-Arribas, Torra, "Improving record linkage with supervised learning for disclosure risk assessment",
Information Fusion 13(4), 2012.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from sfumato.core.errors import InputError, Unsupported
from sfumato.core.params import require
from sfumato.core.view import Measure, Score
from sfumato.data.masked import aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.measures.risk.aggregations import AlignedFiles, Named, aggregation
from sfumato.measures.risk.distance_learning import Search
from sfumato.measures.risk.linkage_programme import reachable, solve_exactly

Direction = Literal["masked to original", "original to masked"]


@dataclass(frozen=True)
class LearnedLinkage(Measure):
    """The share of records linked by the best distance of a family, at least that of the plain Euclidean distance.

    `aggregation` is the family: "weighted mean" (one weight per attribute), "owa" (weights of the largest, second largest, …
    difference), "choquet" (weights that also see pairs of attributes; `additivity="full"` all sets, up to four attributes), or
    "bilinear" (a Mahalanobis-like form, for numbers). `direction` says which file seeks: every masked record its original, or
    every original record its masked one. A link counts by the `margin` in the optimisation; the value reported is the expected
    share of right links, ties broken at random. Up to `exact_up_to` records the optimum is sought exactly; `seconds` limits the
    work.

    Numbers and ordered categories are standardised by the original; categories agree or differ; a missing number stands at the
    mean. Parts: the `plain` rate; the records `linked by the margin`, the most that any weights can link as far as proved
    (`bound`) and whether that is reached (`proved`); and the weights.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(100), schema=sf.data.sample_schema())
    >>> score = LearnedLinkage(columns=("age", "income")).score(people, people)
    >>> score.parts["plain"] <= score.value <= 1.0
    True
    """

    aggregation: Named = "weighted mean"
    columns: tuple[str, ...] | None = None
    direction: Direction = "masked to original"
    additivity: Literal["2-additive", "full"] = "2-additive"
    margin: float = 1e-6
    exact_up_to: int = 100
    seconds: float = 30.0
    key: ClassVar[str] = "worst_case_linkage"
    masked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        families = ("weighted mean", "owa", "choquet", "bilinear")
        require(self.aggregation in families, f"LearnedLinkage: aggregation must be one of {', '.join(families)}")
        directions = ("masked to original", "original to masked")
        require(self.direction in directions, f"LearnedLinkage: direction must be one of {', '.join(directions)}")
        require(self.additivity in ("2-additive", "full"), "LearnedLinkage: additivity must be 2-additive or full")
        require(self.margin > 0, "LearnedLinkage: margin must be above 0; with 0 a distance that tells nobody apart would do")
        require(self.exact_up_to >= 0, "LearnedLinkage: exact_up_to must not be negative")
        require(self.seconds > 0, "LearnedLinkage: seconds must be above 0")

    def score(self, original: Microdata, released: Any) -> Score:
        """Learn the distance and count the links."""
        records, masked = aligned(original, as_masked(released, original), self.columns)
        files = aligned_files(records, masked, self.direction)
        value, parts = self.learn(files)
        return Score(
            measure=self.key,
            value=value,
            better="lower",
            meaning=f"share of records linked by an intruder with the best {self.aggregation} distance",
            parts=MappingProxyType(parts),
        )

    def learn(self, files: AlignedFiles) -> tuple[float, dict[str, float]]:
        """The rate and its parts for two aligned files."""
        until = time.monotonic() + self.seconds
        family = aggregation(self.aggregation, files, self.additivity)
        search = Search.begin(files, family, self.margin)
        small = files.size <= self.exact_up_to
        search.improve(time.monotonic() + self.seconds * (0.2 if small else 0.7))
        if small:
            left = max(until - time.monotonic(), 0.1)
            found = solve_exactly(files, family, [search.best, family.plain], self.margin, left)
            for theta in found.seen:
                search.try_out(theta)
            linked, bound = found.linked, found.bound
        else:
            flags = search.links.linked(self.margin)
            others = np.flatnonzero(~flags & search.learnt_on)
            linked, possible = int(flags.sum()), reachable(search.pool, others, until)
            bound = files.size - int(np.count_nonzero(~possible))
        parts = {
            "plain": search.plain.rate,
            "linked by the margin": linked / files.size,
            "bound": bound / files.size,
            "proved": float(linked >= bound),
        }
        parts.update(zip(family.labels(files.names), (float(weight) for weight in search.best), strict=True))
        return search.links.rate, parts


def aligned_files(original: Records, masked: Records, direction: Direction = "masked to original") -> AlignedFiles:
    """Both files as standardised arrays, without columns that do not vary in the original."""
    if original.size == 0:
        raise InputError("linkage: there are no records to link")
    left, right, kinds, names = [], [], [], []
    for one, other in zip(original.columns, masked.columns, strict=True):
        first, second, category = _coordinates(one), _coordinates(other), one.kind == "category"
        centre, spread = (0.0, 1.0) if category else _standard(first)
        known = first[~np.isnan(first)]
        if spread == 0.0 or not known.size or bool(np.all(known == known[0])):
            continue
        left.append(np.where(np.isnan(first), 0.0, (first - centre) / spread))
        right.append(np.where(np.isnan(second), 0.0, (second - centre) / spread))
        kinds.append(category)
        names.append(one.name)
    if not names:
        raise Unsupported("linkage: none of the columns varies in the original, so no distance tells its records apart")
    files = np.column_stack(right), np.column_stack(left)
    seeking, sought = files if direction == "masked to original" else files[::-1]
    return AlignedFiles(seeking, sought, np.array(kinds, dtype=np.bool_), tuple(names))


def _coordinates(column: NumberColumn | CategoryColumn) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers as they are, ordered categories by their place, others by their code (missing: a code of its own)."""
    if isinstance(column, NumberColumn):
        return column.values
    codes = column.codes.astype(np.float64)
    return np.where(column.codes < 0, np.nan, codes) if column.ordered else codes


def _standard(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if known.size < 2:
        return 0.0, 0.0
    return float(known.mean()), float(known.std())
