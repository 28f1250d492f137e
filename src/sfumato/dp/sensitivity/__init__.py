"""Sensitivities as objects: by formula for the catalogue of queries, by brute force on small finite domains.

Every function returns a `Sensitivity` that names its neighbour relation and unit. Counts: `count`, `several_counts`,
`histogram`, `bar_chart`. Numbers: `total`, `sum_of_squares`, `mean`, `truncated_mean`, `minimum`, `maximum`, `median`.
Other shapes: `units_sold` (baskets), `matching_vertices` (trees), `edge_count` and `degree_at_least` (graphs). By trying
everything: `global_sensitivity`, `local_sensitivity`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "Sensitivity": "sfumato.dp.sensitivity.base",
    "units_sold": "sfumato.dp.sensitivity.baskets",
    "global_sensitivity": "sfumato.dp.sensitivity.brute_force",
    "local_sensitivity": "sfumato.dp.sensitivity.brute_force",
    "bar_chart": "sfumato.dp.sensitivity.counts",
    "count": "sfumato.dp.sensitivity.counts",
    "histogram": "sfumato.dp.sensitivity.counts",
    "several_counts": "sfumato.dp.sensitivity.counts",
    "degree_at_least": "sfumato.dp.sensitivity.graphs",
    "edge_count": "sfumato.dp.sensitivity.graphs",
    "maximum": "sfumato.dp.sensitivity.numbers",
    "mean": "sfumato.dp.sensitivity.numbers",
    "median": "sfumato.dp.sensitivity.numbers",
    "minimum": "sfumato.dp.sensitivity.numbers",
    "sum_of_squares": "sfumato.dp.sensitivity.numbers",
    "total": "sfumato.dp.sensitivity.numbers",
    "truncated_mean": "sfumato.dp.sensitivity.numbers",
    "matching_vertices": "sfumato.dp.sensitivity.trees",
}

if TYPE_CHECKING:
    from sfumato.dp.sensitivity.base import Sensitivity as Sensitivity
    from sfumato.dp.sensitivity.baskets import units_sold as units_sold
    from sfumato.dp.sensitivity.brute_force import global_sensitivity as global_sensitivity
    from sfumato.dp.sensitivity.brute_force import local_sensitivity as local_sensitivity
    from sfumato.dp.sensitivity.counts import bar_chart as bar_chart
    from sfumato.dp.sensitivity.counts import count as count
    from sfumato.dp.sensitivity.counts import histogram as histogram
    from sfumato.dp.sensitivity.counts import several_counts as several_counts
    from sfumato.dp.sensitivity.graphs import degree_at_least as degree_at_least
    from sfumato.dp.sensitivity.graphs import edge_count as edge_count
    from sfumato.dp.sensitivity.numbers import maximum as maximum
    from sfumato.dp.sensitivity.numbers import mean as mean
    from sfumato.dp.sensitivity.numbers import median as median
    from sfumato.dp.sensitivity.numbers import minimum as minimum
    from sfumato.dp.sensitivity.numbers import sum_of_squares as sum_of_squares
    from sfumato.dp.sensitivity.numbers import total as total
    from sfumato.dp.sensitivity.numbers import truncated_mean as truncated_mean
    from sfumato.dp.sensitivity.trees import matching_vertices as matching_vertices

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return __all__
