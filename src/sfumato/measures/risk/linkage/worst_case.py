"""The worst case: the largest share of records found by an intruder who holds the complete original and knows the method.

The maximum over ways to link: plain and Mahalanobis distances, agreement weights, the one-to-one assignment, distances learnt
from both files, and the linkage that uses the published parameters of the mask. So it is never below any of those it tried; a
way of linking that is not among them may still do better. Domingo-Ferrer, Ricci, Soria-Comas, "Disclosure risk assessment via
record linkage by a maximum-knowledge attacker", PST 2015; Abril, Navarro-Arribas, Torra, Information Fusion 13(4), 2012.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, ClassVar, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.ranges import Each, OneOf, Seconds
from sfumato.core.view import Measure, Score
from sfumato.data.masked import Compared, Masked, aligned, as_masked, original_rows
from sfumato.data.microdata import Microdata
from sfumato.data.records import Records
from sfumato.measures.parameters import ComparedColumns
from sfumato.measures.risk.linkage.aggregations import Named
from sfumato.measures.risk.linkage.assignment_linkage import AssignmentLinkage
from sfumato.measures.risk.linkage.distance_linkage import DistanceLinkage
from sfumato.measures.risk.linkage.learned_linkage import LearnedLinkage, aligned_files
from sfumato.measures.risk.linkage.linked import randomly_paired, with_assumption
from sfumato.measures.risk.linkage.probabilistic_linkage import ProbabilisticLinkage
from sfumato.measures.risk.linkage.sides import Sides
from sfumato.measures.risk.linkage.transparency import picked_by_method, published_steps
from sfumato.measures.risk.success import wilson

Int = NDArray[np.int64]

#: Records up to which the one-to-one assignment is quick.
LARGEST_ASSIGNMENT = 5_000


@dataclass(frozen=True)
class WorstCase(Measure[Microdata, Compared]):
    """The largest rate of right links over several intruders with the complete original (`columns`).

    They link by the plain and the Mahalanobis distance, by agreement weights (`ProbabilisticLinkage`), one to one
    (`AssignmentLinkage`, up to 5,000 records), by learnt distances, in both directions (`learned` names the families,
    see `LearnedLinkage`; none: `()`; `seconds` limits each), and by what the mask publishes. Parts: the rate of every way to
    link; the value is their maximum. The floor is the maximum under one random pairing: the best of many ways, and the best of
    many weights, find somebody by chance. A way that does not fit the data (a Mahalanobis distance of categories, a mask that
    publishes nothing) is left out. It is an upper bound of these ways, not of every conceivable one.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(100), schema=sf.data.sample_schema())
    >>> WorstCase(columns=("age", "income")).score(people, people).better
    'lower'
    """

    columns: ComparedColumns = None
    learned: Annotated[tuple[Named, ...], Each(OneOf(get_args(Named))), "the families of distances that are learnt"] = (
        "weighted mean",
    )
    seconds: Annotated[Seconds, "what learning each distance may take on a usual machine"] = 30.0
    key: ClassVar[str] = "worst_case"
    masked: ClassVar[bool] = True

    def score(self, original: Microdata, released: Compared) -> Score:
        """The maximum, with every rate."""
        masked = as_masked(released, original)
        left, right = aligned(original, masked, self.columns)
        rates = {
            **_plain(original, masked, left.names),
            **self._learned(left, right, masked.rows),
            **_transparent(original, masked, left.names),
        }
        worst = max(rates, key=rates.__getitem__)
        people = int(np.unique(masked.rows).size) if masked.rows is not None else len(masked)
        return Score(
            measure=self.key,
            value=rates[worst],
            better="lower",
            meaning=with_assumption(f"share of records linked by the best informed intruder ({worst})", released),
            parts=MappingProxyType(rates),
            floor=self._by_chance(original, randomly_paired(masked)),
            interval=wilson(rates[worst] * people, people),
        )

    def _by_chance(self, original: Microdata, shuffled: Masked) -> float:
        """The maximum over the same ways; what is published about the mask helps nobody there, as one more blind pick."""
        left, right = aligned(original, shuffled, self.columns)
        return max({**_plain(original, shuffled, left.names), **self._learned(left, right, shuffled.rows)}.values(), default=0.0)

    def _learned(self, left: Records, right: Records, rows: Int | None) -> dict[str, float]:
        rates = {}
        for family in self.learned:
            for direction in ("masked to original", "original to masked"):
                learner = LearnedLinkage(family, direction=direction, seconds=self.seconds, exact_up_to=0)
                try:
                    rate, parts = learner.learn(aligned_files(left, right, learner.direction, rows))
                except Unsupported:
                    continue
                rates[f"learnt {family}, {direction}"] = rate
                rates[f"plain, {direction}"] = parts["plain"]
        return rates


def _plain(original: Microdata, masked: Masked, names: tuple[str, ...]) -> dict[str, float]:
    ways: dict[str, Measure[Microdata, Compared]] = {
        "distance": DistanceLinkage(columns=names),
        "Mahalanobis distance": DistanceLinkage("mahalanobis", columns=names),
        "probabilistic": ProbabilisticLinkage(columns=names),
    }
    if len(masked) <= LARGEST_ASSIGNMENT:
        ways["one-to-one"] = AssignmentLinkage(columns=names)
    rates = {}
    for way, measure in ways.items():
        try:
            rates[way] = measure.score(original, masked).value
        except Unsupported:  # a Mahalanobis distance of categories, constant or dependent columns
            continue
    return rates


def _transparent(original: Microdata, masked: Masked, names: tuple[str, ...]) -> dict[str, float]:
    rows = masked.rows
    if rows is None or not masked.transparency:
        return {}
    everybody = np.arange(rows.size, dtype=np.int64)
    strata = {name for step in published_steps(masked.transparency) for name in step.get("method", {}).get("strata") or ()}
    columns = {name: name for name in original.column_names if name in names or name in strata}
    sides = Sides(original_rows(original, masked).take(pa.array(rows)), masked.table, original.schema, everybody, columns, rows)
    left_alone = [name for name in names if name in original.schema.quasi and name not in masked.columns]
    rates: dict[str, float] = {}
    for step in published_steps(masked.transparency):
        agreeing = tuple(name for name in left_alone if name not in strata)
        picked = picked_by_method(replace(sides, agreeing=agreeing), step)
        if picked is not None:
            rates[picked[0]] = max(picked[1].rate, rates.get(picked[0], 0.0))
    return rates
