"""Wildcard risk: class sizes where a suppressed cell may be anything.

Two records match when they show the same in every column in which neither is suppressed, so that a record with suppressed
cells belongs to many classes at once. Records are grouped by which cells they hide; every two such groups are joined by the
columns that both show. Templ, Kowarik, Meindl, "Statistical disclosure control for micro-data using the R package sdcMicro",
Journal of Statistical Software 67(4), 2015; Prasser, Eicher, Spengler, Bild, Kuhn, "Flexible data anonymization using ARX",
Software: Practice and Experience 50(7), 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.ranges import ColumnNames, PositiveShare
from sfumato.core.view import Measure, Score
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata
from sfumato.measures.guarantees.classes import CodedColumn, combined, require_columns
from sfumato.measures.published import as_released
from sfumato.measures.risk.uniques.reidentification import units_of
from sfumato.measures.utility.shown import quasi_of

Int = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class WildcardRisk(Measure[Microdata | None, Compared]):
    """The largest 1/(records that match), a suppressed cell matching anything.

    Against an intruder who knows that the target is in the release, and knows the columns that the target's own record shows: all
    records that agree there or hide the cell are candidates. An intruder who also knows what is hidden has fewer, at least those
    that hide as much; part "largest, if hidden cells are known" is the chance among these, which cannot be exceeded. Other parts:
    the means of both, the share of records above `threshold`, the records with a suppressed cell, and the largest risk by plain
    classes, where a suppressed cell is a value of its own. `columns` are looked at (default: the quasi-identifiers). With
    `missing`, missing values match anything as well. Where people have several records, as many people are counted as the
    matching records are at the least. The floor is a blind guess among the people of the release; the number is exact for it.

    >>> table = pa.table({"age": ["30", "*", "40"], "sex": ["f", "f", "f"]})
    >>> released = sf.data.microdata.ReleasedTable(table, sf.Schema.of(quasi=["age", "sex"]), records=3)
    >>> WildcardRisk().score(None, released).value
    0.5
    """

    threshold: Annotated[PositiveShare, "the risk above which records are counted"] = 0.2
    missing: Annotated[bool, "missing values match anything too"] = False
    columns: Annotated[ColumnNames | None, "the columns looked at; the quasi-identifiers where left out"] = None
    key: ClassVar[str] = "wildcard_risk"
    of_rows_alone: ClassVar[bool] = True

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """Risk of the worst record."""
        table = as_released(released, original)
        names = self.columns if self.columns is not None else quasi_of(table)
        if not table.table.num_rows:
            raise InputError("wildcard risk: there are no released records")
        unit = table.schema.unit
        matches = Matches.of(table.table, names, self.missing, unit if unit in table.table.column_names else None)
        risk, sure, plain = 1.0 / matches.any, 1.0 / matches.sure, 1.0 / matches.equal
        worst = float(risk.max())
        parts = {
            "mean": float(risk.mean()),
            f"share above {self.threshold:g}": float(np.mean(risk > self.threshold + 1e-12)),
            "largest, if hidden cells are known": float(sure.max()),
            "mean, if hidden cells are known": float(sure.mean()),
            "largest, by plain classes": float(plain.max()),
            "records with a suppressed cell": float(matches.hiding),
        }
        return Score(
            self.key,
            worst,
            "lower",
            "chance of picking the right record of the worst-off person, who is known to be in the release with what the own "
            "record shows; suppressed cells match anything",
            MappingProxyType(parts),
            uses_original=False,
            floor=1.0 / max(units_of(table), 1),
            interval=(worst, worst),
        )


@dataclass(frozen=True, eq=False)
class Matches:
    """Per record the people who match it where suppressed cells match anything, those of them who hide as much, and those who
    show exactly the same."""

    any: Int
    sure: Int
    equal: Int
    hiding: int

    @classmethod
    def of(cls, table: pa.Table, names: Sequence[str], missing: bool = False, unit: str | None = None) -> Matches:
        """Count the matches of every record; of people with several records, as many people as there must be."""
        require_columns(table, [*names, *([unit] if unit else [])])
        rows = table.num_rows
        coded = [CodedColumn.of(table.column(name)) for name in names]
        hidden = [
            np.array([value == ROOT or (missing and value is None) for value in each.values], dtype=np.bool_)[each.codes]
            for each in coded
        ]
        of_row, count = combined(coded, rows)
        first = np.zeros(count, dtype=np.int64)
        first[of_row[::-1]] = np.arange(rows - 1, -1, -1)
        sizes = np.bincount(of_row, minlength=count).astype(np.int64)
        codes = np.array([each.codes[first] for each in coded], dtype=np.int64).reshape(len(coded), count)
        stars = np.array([each[first] for each in hidden], dtype=np.bool_).reshape(len(coded), count)
        loose, sure = _joined(codes, stars, sizes)
        fewest = 1
        if unit is not None:
            people = CodedColumn.of(table.column(unit)).codes
            fewest = int(np.bincount(people).max())
        counts = [np.maximum(-(-each // fewest), 1)[of_row] for each in (loose, sure, sizes)]
        hiding = int(np.logical_or.reduce(hidden).sum()) if hidden else 0
        return cls(counts[0], counts[1], counts[2], hiding)


def _joined(codes: Int, stars: Flags, sizes: Int) -> tuple[Int, Int]:
    """Per class the records that match it, and those of them that hide at least its cells.

    Classes of the patterns p and q are joined by the columns outside of p ∪ q, so that those with the same union are joined at
    once; of these only the ones whose pattern is the union itself hide at least what p hides."""
    hidden = [frozenset(np.flatnonzero(column).tolist()) for column in np.unique(stars, axis=1).T]
    members = {pattern: np.flatnonzero(_is(stars, pattern)) for pattern in hidden}
    loose, sure = np.zeros(sizes.size, dtype=np.int64), np.zeros(sizes.size, dtype=np.int64)
    for union in {one | other for one in hidden for other in hidden}:
        key = _agreeing([column for place, column in enumerate(codes) if place not in union], sizes.size)
        inside = [pattern for pattern in hidden if pattern <= union]
        as_much = _totals(key, members[union], sizes) if union in members else None
        for mine in inside:
            ours = members[mine]
            others = np.concatenate([members[theirs] for theirs in inside if mine | theirs == union] or [ours[:0]])
            loose[ours] += _totals(key, others, sizes)[key[ours]]
            if as_much is not None:
                sure[ours] += as_much[key[ours]]
    return loose, sure


def _is(stars: Flags, pattern: frozenset[int]) -> Flags:
    wanted = np.zeros((len(stars), 1), dtype=np.bool_)
    wanted[list(pattern)] = True
    return np.asarray((stars == wanted).all(axis=0))


def _agreeing(shown: Sequence[Int], classes: int) -> Int:
    """The same number for classes that agree in these columns."""
    key = np.zeros(classes, dtype=np.int64)
    for column in shown:
        key = key * (int(column.max(initial=0)) + 1) + column
        if int(key.max(initial=0)) > classes:
            key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return key


def _totals(key: Int, classes: Int, sizes: Int) -> Int:
    """The records of these classes by their number."""
    totals = np.bincount(key[classes], weights=sizes[classes], minlength=int(key.max(initial=0)) + 1)
    return np.asarray(np.rint(totals), dtype=np.int64)
