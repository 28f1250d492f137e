"""How good a synthetic table is, measured against the original: for the owner, because it is computed without noise.

The total-variation distance of every marginal of one, two and three columns, how much the association of pairs
changed, and how many synthetic records equal an original one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.plain_data import PlainDict
from sfumato.data.microdata import Microdata
from sfumato.dp.synthesis.coded_columns import Codes
from sfumato.dp.synthesis.declared_domain import Domain, declared_domain
from sfumato.dp.synthesis.junction_tree import Columns, cells
from sfumato.dp.synthesis.marginals import CodedRecords, Marginals, marginal, marginals

_WORST = 10
_MOST_MARGINALS = 2_000


def quality(
    original: Microdata,
    synthetic: pa.Table,
    *,
    bins: int = 32,
    missing: Sequence[str] = (),
    degree: int = 3,
    marginal_cells: int = 10_000,
) -> PlainDict:
    """The report on a synthetic table, as plain data; `bins` and `missing` as they were for the synthesis.

    It describes the original exactly and is for its owner alone.
    """
    domain = declared_domain(original.schema, original.column_names, bins=bins, missing=missing, who="quality")
    from sfumato.dp.algorithms.declared_values import read

    return quality_of_codes(
        domain.encode(read(original, domain.names, for_owner=True)),
        domain.encode(synthetic),
        domain,
        degree=degree,
        marginal_cells=marginal_cells,
    )


def quality_of_codes(
    original: Codes, synthetic: Codes, domain: Domain, *, degree: int = 3, marginal_cells: int = 10_000
) -> PlainDict:
    """`quality` of tables that are coded already; records with a value outside the domain are not compared."""
    counted = np.asfortranarray(original[np.all(original >= 0, axis=1)])
    drawn = np.asfortranarray(synthetic[np.all(synthetic >= 0, axis=1)])
    records = CodedRecords(counted, domain.sizes)
    report = quality_of_counts(records, len(original), drawn, domain, degree=degree, marginal_cells=marginal_cells)
    report["records"] = {**report["records"], "synthetic": len(synthetic)}
    return {**report, "matches": _matches(counted, drawn)}


def quality_of_counts(
    original: Marginals, rows: int, drawn: Codes, domain: Domain, *, degree: int, marginal_cells: int = 10_000
) -> PlainDict:
    """What counts of combinations say about a synthetic table, `rows` being all records of the original, counted or not."""
    distances = _distances(original, drawn, domain.sizes, degree, marginal_cells)
    worst = sorted(distances, key=lambda columns: (-distances[columns], columns))[:_WORST]
    counted = original.total()
    return {
        "records": {"original": rows, "not_counted": rows - counted, "synthetic": len(drawn)},
        "distance": {str(size): _summary([d for c, d in distances.items() if len(c) == size]) for size in range(1, degree + 1)},
        "worst": [{"columns": [domain.names[column] for column in columns], "distance": distances[columns]} for columns in worst],
        "association": _association(original, drawn, domain, marginal_cells),
        "columns": {
            column.name: {
                "labels": list(column.labels()),
                "original": (original.marginal((place,)) / max(counted, 1)).tolist(),
                "synthetic": (marginal(drawn, (place,), domain.sizes) / max(len(drawn), 1)).tolist(),
            }
            for place, column in enumerate(domain.columns)
        },
    }


class EveryRecord(Protocol):
    """All records of the original, for the owner's report."""

    def compared_with(self, drawn: Codes, domain: Domain) -> PlainDict:
        """The report on a synthetic table."""


@dataclass(frozen=True, eq=False)
class EveryCode:
    """Coded records in this process."""

    codes: Codes

    def compared_with(self, drawn: Codes, domain: Domain) -> PlainDict:
        """The report on a synthetic table."""
        return quality_of_codes(self.codes, drawn, domain)


@dataclass(frozen=True, eq=False)
class EveryCount:
    """Records that an engine counts: combinations of one and two columns, and no comparison of single records."""

    records: Marginals
    rows: Callable[[], int]

    def compared_with(self, drawn: Codes, domain: Domain) -> PlainDict:
        """The report on a synthetic table."""
        return quality_of_counts(self.records, self.rows(), drawn, domain, degree=min(2, len(domain.sizes)))


def marginal_distances(
    original: Codes, synthetic: Codes, sizes: Sequence[int], *, degree: int = 3, marginal_cells: int = 10_000
) -> dict[Columns, float]:
    """Half the sum of absolute differences of shares, for each marginal of at most so many columns and cells."""
    return _distances(CodedRecords(original, tuple(sizes)), synthetic, sizes, degree, marginal_cells)


def _distances(
    original: Marginals, synthetic: Codes, sizes: Sequence[int], degree: int, marginal_cells: int
) -> dict[Columns, float]:
    distances: dict[Columns, float] = {}
    looked_at: list[list[Columns]] = []
    for size in range(1, degree + 1):
        column_sets = [columns for columns in combinations(range(len(sizes)), size) if cells(columns, sizes) <= marginal_cells]
        looked_at.append(column_sets[:: max(len(column_sets) // _MOST_MARGINALS, 1)])
    original.prepare([(0,), *(columns for some in looked_at for columns in some)])
    total = max(original.total(), 1)
    for some in looked_at:
        both = zip(original.marginals(some), marginals(synthetic, some, sizes), strict=True)
        for (columns, before), (_, after) in both:
            difference = before / total - after / max(len(synthetic), 1)
            distances[columns] = float(np.abs(difference).sum()) / 2
    return distances


def _summary(distances: list[float]) -> dict[str, float]:
    if not distances:
        return {"marginals": 0}
    return {"marginals": len(distances), "mean": float(np.mean(distances)), "largest": max(distances)}


def _association(original: Marginals, synthetic: Codes, domain: Domain, marginal_cells: int) -> dict[str, Any]:
    """Cramér's V of every pair, before and after."""
    pairs = [pair for pair in combinations(range(len(domain.sizes)), 2) if cells(pair, domain.sizes) <= marginal_cells]
    original.prepare(pairs[:_MOST_MARGINALS])
    entries = [
        {
            "columns": [domain.names[column] for column in pair],
            "original": _cramers_v(original.marginal(pair)),
            "synthetic": _cramers_v(marginal(synthetic, pair, domain.sizes)),
        }
        for pair in pairs[:_MOST_MARGINALS]
    ]
    changes = [abs(float(entry["original"]) - float(entry["synthetic"])) for entry in entries]  # type: ignore[arg-type]
    return {"mean_change": float(np.mean(changes)) if changes else 0.0, "pairs": entries}


def _cramers_v(counts: NDArray[np.int64]) -> float:
    """0 when two columns are independent, 1 when one determines the other; 0 when one of them is constant."""
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0].astype(np.float64)
    total, least = table.sum(), min(table.shape) - 1
    if total == 0 or least < 1:
        return 0.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / total / least))


def _matches(original: Codes, synthetic: Codes) -> dict[str, int]:
    """Synthetic records that equal an original one in every column, as coded, and those whose original is the only one."""
    if not len(original) or not len(synthetic):
        return {"equal_to_an_original": 0, "equal_to_a_unique_original": 0}
    _, places, counts = np.unique(np.concatenate([original, synthetic]), axis=0, return_inverse=True, return_counts=True)
    places = places.reshape(-1)
    there = np.bincount(places[: len(original)], minlength=counts.size)[places[len(original) :]]
    return {"equal_to_an_original": int((there > 0).sum()), "equal_to_a_unique_original": int((there == 1).sum())}
