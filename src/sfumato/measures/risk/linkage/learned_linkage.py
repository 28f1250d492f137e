"""Linkage with a learnt distance: how many records would be found by the intruder with the best weights there are.

With both files, the weights of the distance are chosen so that as many masked records as possible are nearest to their
own original: an optimisation with one block variable per record, solved exactly for few records and by generated constraints for
many. Abril, Navarro-Arribas, Torra, "Improving record linkage with supervised learning for disclosure risk assessment",
Information Fusion 13(4), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import Because, Number, Seconds, Whole
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, aligned, as_masked
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, NumberColumn, Records
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.aggregations import Named, aggregation
from sfumato.measures.risk.linkage.aligned_files import AlignedFiles
from sfumato.measures.risk.linkage.distance_learning import LEARNT_ON, Effort, WeightSearch
from sfumato.measures.risk.linkage.linked import randomly_paired, with_assumption
from sfumato.measures.risk.linkage.programme import reachable, solve_exactly
from sfumato.measures.risk.success import wilson

Direction = Literal["masked to original", "original to masked"]
Int = NDArray[np.int64]
Real = NDArray[np.float64]

#: In deviations of the original: a masked value further off is as far as one there.
_FARTHEST = 1e8


@dataclass(frozen=True)
class LearnedLinkage(Measure[Microdata, Compared]):
    """The share of records linked by the best distance of a family, at least that of the plain Euclidean distance.

    `aggregation` is the family: "weighted mean" (one weight per attribute), "owa" (weights of the largest, second largest, …
    difference), "choquet" (weights that also see pairs of attributes; `additivity="full"` all sets, up to four attributes), or
    "bilinear" (a Mahalanobis-like form, for numbers). `direction` says which file seeks: every masked record its original, or
    every original record its masked one. A link counts by the `margin` in the optimisation; the value reported is the expected
    share of right links, ties broken at random; where a person has several masked rows, each of them is right. The weights are
    learnt from at most 2,000 people, drawn by a fixed seed, and the links counted once on all records (for "owa" and "choquet"
    beyond some thousand records: on a sample of those who seek, each compared with everybody). Up to `exact_up_to` people the
    optimum is sought exactly. `seconds` limits the search to what a usual machine does in that time; it is counted in
    operations, so that the value is the same on every machine, and only the exact optimum looks at the clock, as a safety net.

    `columns` are compared. Numbers and ordered categories are standardised by the original; categories agree or differ; a
    missing number stands at the mean. Parts: the `plain` rate; how many people the weights were `learnt on`, the share of these
    `linked by the margin`, the most of them that any weights can link as far as proved (`bound`) and whether that is reached
    (`proved`); and the weights. The floor is what learning gets under one random pairing of people and rows.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(100), schema=sf.data.sample_schema())
    >>> score = LearnedLinkage(columns=("age", "income")).score(people, people)
    >>> score.parts["plain"] <= score.value <= 1.0
    True
    """

    aggregation: Annotated[Named, "the family of distances that is learnt from"] = "weighted mean"
    columns: ComparedColumns = None
    direction: Annotated[Direction, "which file seeks in which"] = "masked to original"
    additivity: Annotated[Literal["2-additive", "full"], "which sets of attributes a Choquet integral weighs"] = "2-additive"
    margin: Annotated[
        float,
        Because(Number(above=0), "with 0 a distance that tells nobody apart would do"),
        "how much nearer the right record has to be",
    ] = 1e-6
    exact_up_to: Annotated[int, Whole(at_least=0), "people up to whom the optimum is sought exactly"] = 100
    seconds: Annotated[Seconds, "what the search may take on a usual machine"] = 30.0
    key: ClassVar[str] = "worst_case_linkage"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """Learn the distance and count the links."""
        masked = as_masked(released, original)
        files = aligned_files(*aligned(original, masked, self.columns), self.direction, masked.rows)
        value, parts = self.learn(files)
        shuffled = randomly_paired(masked)
        by_chance = self.learn(aligned_files(*aligned(original, shuffled, self.columns), self.direction, shuffled.rows))[0]
        people = int(np.unique(files.people[0]).size)
        return Score(
            measure=self.key,
            value=value,
            better="lower",
            meaning=with_assumption(
                f"share of records linked by an intruder with the best {self.aggregation} distance", released
            ),
            parts=MappingProxyType(parts),
            floor=by_chance,
            interval=wilson(value * people, people),
        )

    def learn(self, files: AlignedFiles) -> tuple[float, dict[str, float]]:
        """The rate and its parts for two aligned files."""
        few = files.one_each(LEARNT_ON)
        family = aggregation(self.aggregation, files, self.additivity)
        search = WeightSearch.begin(few, family, self.margin, Effort.of_seconds(self.seconds))
        search.improve()
        if few.size <= self.exact_up_to:
            solution = solve_exactly(few, family, [search.best, family.plain], self.margin, self.seconds)
            for theta in solution.visited:
                search.try_out(theta)
            linked, bound = solution.linked, solution.bound
        else:
            flags = search.links.linked(self.margin)
            others = np.flatnonzero(~flags)
            linked, bound = int(flags.sum()), few.size - int(np.count_nonzero(~reachable(search.pool, others)))
        plain, learnt = (float(family.shares(files, theta).mean()) for theta in (family.plain, search.best))
        parts = {
            "plain": plain,
            "learnt on": float(few.size),
            "linked by the margin": linked / few.size,
            "bound": bound / few.size,
            "proved": float(linked >= bound),
        }
        weights = search.best if learnt >= plain else family.plain
        parts.update(zip(family.labels(files.names), (float(weight) for weight in weights), strict=True))
        return max(plain, learnt), parts


def aligned_files(
    original: Records, masked: Records, direction: Direction = "masked to original", rows: Int | None = None
) -> AlignedFiles:
    """Both files as standardised arrays, without columns that do not vary in the original; `rows` say which record stands behind
    each masked row, where one may stand behind several."""
    if original.size == 0:
        raise InputError("linkage: there are no records to link")
    left: list[Real] = []
    right: list[Real] = []
    kinds, names = [], []
    for one, other in zip(original.columns, masked.columns, strict=True):
        first, second, category = _coordinates(one), _coordinates(other), one.kind == "category"
        centre, spread = (0.0, 1.0) if category else _standard(first)
        present = first[~np.isnan(first)]
        if spread == 0.0 or not present.size or bool(np.all(present == present[0])):
            continue
        for side, values in ((left, first), (right, second)):
            scaled = values if category else np.clip((values - centre) / spread, -_FARTHEST, _FARTHEST)
            side.append(np.where(np.isnan(values), 0.0, scaled))
        kinds.append(category)
        names.append(one.name)
    if not names:
        raise Unsupported("linkage: none of the columns varies in the original, so no distance tells its records apart")
    shown, held, flags = np.column_stack(right), np.column_stack(left), np.array(kinds, dtype=np.bool_)
    people = np.unique(rows) if rows is not None else np.zeros(0, dtype=np.int64)
    if rows is None or people.size == rows.size:  # one masked row for everybody
        seeking, sought = (shown, held) if direction == "masked to original" else (held, shown)
        return AlignedFiles(seeking, sought, flags, tuple(names))
    if direction == "masked to original":
        # an original is sought once, however many rows came from it
        once = np.unique(rows, return_index=True)[1]
        return AlignedFiles(shown, held[once], flags, tuple(names), rows, people)
    return AlignedFiles(held, shown, flags, tuple(names), rows, rows)


def _coordinates(column: NumberColumn | CategoryColumn) -> Real:
    """Numbers as they are, ordered categories by their place, others by their code (missing: a code of its own)."""
    if isinstance(column, NumberColumn):
        return column.values
    codes = column.codes.astype(np.float64)
    return np.where(column.codes < 0, np.nan, codes) if column.ordered else codes


def _standard(values: Real) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    if present.size < 2:
        return 0.0, 0.0
    low, unit = float(present.min()), float(present.max() - present.min())
    if unit == 0.0:
        return low, 0.0
    # in units of the range, so that no square overflows
    return float(present.mean()), float(np.std((present - low) / unit) * unit)
