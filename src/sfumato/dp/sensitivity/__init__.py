"""Sensitivities as objects: by formula for the catalogue of queries, by brute force on small finite domains.

Every function returns a `Sensitivity` that names its neighbour relation and unit. Counts: `count`, `several_counts`,
`histogram`, `bar_chart`. Numbers: `total`, `sum_of_squares`, `mean`, `truncated_mean`, `minimum`, `maximum`, `median`.
Other shapes: `units_sold` (baskets), `matching_vertices` (trees), `edge_count` and `degree_at_least` (graphs). By trying
everything: `global_sensitivity`, `local_sensitivity`.
"""

from __future__ import annotations

from sfumato.core.lazy import face, names_in_stub

NAMES = names_in_stub(__file__)
__all__, __getattr__, __dir__ = face(__name__, NAMES)
