"""What a release tells about its mask, and the linkage that uses it.

A mask publishes its window, its groups of attributes, its noise or its transition matrices, because an analysis needs them; the
adversary reads the same. `attacks` runs these linkages with an outside register, `WorstCase` with the whole original.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import MissingColumn, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.measures.risk.linkage.sides import Picked, Sides, by_stratum
from sfumato.measures.risk.linkage.transparent_picks import pick_by_clusters, pick_by_noise, pick_by_transitions, pick_by_windows


def published_windows(facts: Plain) -> dict[str, int]:
    """The published window of each column; the widest where strata differ."""
    window = facts["window"]
    parts = window["by stratum"] if isinstance(window, Mapping) and set(window) == {"by stratum"} else [window]
    windows: dict[str, int] = {}
    for part in parts:
        for name, ranks in part.items():
            windows[name] = max(windows.get(name, 0), int(ranks))
    return windows


def published_steps(transparency: Plain) -> list[Plain]:
    """What is published about each mask of a combination, or about the one."""
    if "steps" not in transparency:
        return [transparency] if transparency else []
    return [step for part in transparency["steps"] for step in published_steps(part)]


def published_strata(facts: Plain) -> tuple[str, ...]:
    """The columns within whose values a mask worked."""
    return tuple(facts.get("method", {}).get("strata") or ())


def picked_by_method(sides: Sides, facts: Plain) -> tuple[str, Picked] | None:
    """The attack that fits what is published about one mask, with its name; None where no attack does, or none to the columns
    that both sides have."""
    try:
        return _picked(sides, facts)
    except (MissingColumn, Unsupported):
        return None


def _picked(sides: Sides, facts: Mapping[str, Any]) -> tuple[str, Picked] | None:
    strata = published_strata(facts)
    if "window" in facts:
        reach = {name: ranks for name, ranks in published_windows(facts).items() if name in sides.names}
        return ("rank window", by_stratum(sides, strata, lambda part: pick_by_windows(part, reach))) if reach else None
    if "attribute_groups" in facts:
        groups = [[name for name in group if name in sides.names] for group in facts["attribute_groups"]]
        held = [group for group in groups if group]
        return ("cluster intersection", by_stratum(sides, strata, lambda part: pick_by_clusters(part, held))) if held else None
    if "noise" in facts:
        columns = [name for name in facts["masked_columns"] if name in sides.names]
        noise = by_stratum(sides, strata, lambda part: pick_by_noise(part, columns, facts)) if columns else None
        return ("noise likelihood", noise) if noise is not None else None
    if "transitions" in facts and not (isinstance(facts["transitions"], Mapping) and "by stratum" in facts["transitions"]):
        return "transition posterior", by_stratum(sides, strata, lambda part: pick_by_transitions(part, facts["transitions"]))
    return None
