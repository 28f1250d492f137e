"""Every public search and guarantee, found by itself, with some parameters to try."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sfumato.core import registry

SEARCHES: dict[str, type[Any]] = registry.every("search")
GUARANTEE_KINDS: dict[str, type[Any]] = registry.every("guarantee")

#: Parameters worth trying besides the defaults and the suppression limits, which every search that has them is tried with.
VARIANTS: dict[str, Sequence[dict[str, Any]]] = {
    "CellSuppression": [{"step": 0.5}],
    "Lattice": [{"suppression": 0.3, "max_nodes": 1}],
    "LeastLoss": [{"step": 1.0}],
    "LocalRecoding": [{"refine": False, "suppression": 0.5}, {"step": 1.0}],
    "Mondrian": [{"relaxed": True}, {"ranges_everywhere": True}],
    "TopDown": [{"heuristic": "fewest_children"}, {"partial": True}],
}
LIMITS = (0.0, 0.3, 1.0)


def variants(name: str) -> list[Any]:
    """The search with its defaults, with different suppression limits and with other parameters."""
    search = SEARCHES[name]
    found = [search(), *(search(**given) for given in VARIANTS.get(name, ()))]
    if "suppression" in {field.name for field in dataclasses.fields(search)}:
        found += [search(suppression=limit) for limit in LIMITS]
    return found


def limit_of(search: Any, records: int) -> int:
    """How many records a search may suppress; those without a limit may suppress what they cannot place."""
    share = getattr(search, "suppression", 1.0)
    return int(share * records + 1e-9)
