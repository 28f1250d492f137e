"""The default: several searches are run, and the recoding that shows the narrowest values is kept.

Local recoding by rounds suits hierarchies; classes cut along ordered attributes suit numbers. Which loses less depends on
the table, so both are run and compared on one measure: the share of its range that an ordered attribute shows, and the loss
of its tree for any other attribute (`range_shown`). Only attributes for which the owner declared no tree are cut; the others
show nodes of the declared tree in every one of these searches. The cuts are those of LeFevre, DeWitt, Ramakrishnan,
"Mondrian multidimensional k-anonymity", ICDE 2006, chosen by what they save; where k is all that is asked, those at the
median are tried as well. No cut divides people with the same value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar, cast

import numpy as np

from sfumato.anonymity.search.base import Problem, Search, SearchOutcome, Step, Suppression
from sfumato.anonymity.search.local_recoding import LocalRecoding, Start, in_one, least
from sfumato.anonymity.search.mondrian import Mondrian
from sfumato.anonymity.search.ranges import RANGE_SHOWN, Cutting, may_range, range_shown, shown_of_each
from sfumato.core.progress import Progress
from sfumato.core.view import Score
from sfumato.data.recoding import Recoding
from sfumato.measures.utility.range_shown import MEANING

#: What the searches are called in a release.
KEPT = MappingProxyType(
    {
        "rounds": "rounds of local recoding",
        "levels": "one level for each column, refined",
        "one class": "top-down along the trees",
        "cuts, all columns": "top-down, splits that save most in all columns",
        "cuts, one column": "top-down, splits that save most in one column",
        "halves": "top-down, halves at the median",
    }
)


@dataclass(frozen=True)
class LeastLoss(Search):
    """The default method: of several searches the one that shows the narrowest values; at most `suppression` of the records
    are suppressed.

    All classes of each of them keep all promises. A numeric or ordered column shows
    ranges of its own, `[28, 36)`, where the schema declares no hierarchy for it or only holds intervals that were proposed
    from the data (`source = "data"`); a declared hierarchy is kept to. `details["search"]` names the search that was kept,
    `details["compared"]` the measure of each. `step` is that of `LocalRecoding`.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(300), schema=sf.data.sample_schema())
    >>> outcome = sf.LeastLoss().run(people, [sf.KAnonymity(5)])
    >>> outcome.details["range_shown"] == min(outcome.details["compared"].values())
    True
    """

    suppression: Suppression = 0.05
    step: Step = 0.01

    keeps_one_of: ClassVar[tuple[str, ...]] = tuple(KEPT.values())

    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        local = LocalRecoding(self.suppression, self.step)
        limit = problem.allowed(self.suppression)
        ranges = may_range(problem.table, problem.promises.layout.population > 0)
        recodings = [
            (local.refined(problem, start, progress, cutting), (name, start.rounds))
            for start in self._starts(problem, local, limit, ranges, progress)
            for name, cutting in _ways(problem, start, ranges)
        ]
        if _may_halve(problem, ranges):
            recodings.append((Mondrian().cut_along(problem, ranges, progress), ("halves", 0)))
        compared: dict[str, float] = {}

        def measure(recoding: Recoding, name: str) -> float:
            value = range_shown(problem, recoding, ranges)
            compared[KEPT[name]] = min(value, compared.get(KEPT[name], value))
            return value

        recoding, (name, rounds) = least(
            problem, recodings, limit, self.suppression, lambda recoding, origin: measure(recoding, origin[0])
        )
        return recoding, {
            "search": KEPT[name],
            "range_shown": compared[KEPT[name]],
            "compared": compared,
            "rounds": rounds,
            "optimal": False,
        }

    def outcome(self, problem: Problem, recoding: Recoding, details: Mapping[str, object]) -> SearchOutcome:
        """With the measure by which the recoding was kept."""
        parts = shown_of_each(problem, recoding, may_range(problem.table, problem.promises.layout.population > 0))
        score = Score(RANGE_SHOWN, cast(float, details[RANGE_SHOWN]), "lower", MEANING, MappingProxyType(parts))
        return replace(super().outcome(problem, recoding, details), scores=(score,))

    @staticmethod
    def _starts(problem: Problem, local: LocalRecoding, limit: int, ranges: np.ndarray, progress: Progress) -> list[Start]:
        """Where to start from; rounds settle what is exactly alike, as few-valued numbers are."""
        whole = in_one(problem)
        starts = local.starts(problem, limit, progress)
        if whole is not None and ranges.any() and all(start.name != whole.name for start in starts):
            starts.append(whole)
        return starts


def _may_halve(problem: Problem, ranges: np.ndarray) -> bool:
    """Whether cuts at the median are tried: where nothing but the size of classes is asked for, in records or in units, so that
    nobody learns a sensitive value from what was not split (docs/attacks-on-outputs.md)."""
    return bool(ranges.any()) and problem.promises.only_k and in_one(problem) is not None


def _ways(problem: Problem, start: Start, ranges: np.ndarray) -> list[tuple[str, Cutting | None]]:
    """How classes are split from here on."""
    if not ranges.any():
        return [(start.name, None)]
    by_all = Cutting.of(problem.table, ranges, balanced=True, every=True)
    # where most values repeat, classes of records that are exactly alike may lose less than any cut
    plain: list[tuple[str, Cutting | None]] = [(start.name, None)] if 2 * problem.table.tuples <= problem.table.records else []
    if start.name != "one class":
        return [(start.name, by_all), *plain]
    by_one = Cutting.of(problem.table, ranges, balanced=False, every=False)
    return [("cuts, all columns", by_all), ("cuts, one column", by_one), *plain]
