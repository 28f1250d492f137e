"""Figures of a protected table that only its owner may see: they were computed from the original."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.data.relation import COUNT
from sfumato.data.values import sorted_sets, texts

if TYPE_CHECKING:
    from sfumato.workflow.contents.rows import Rows

#: Columns with more different values than this are not drawn: their distribution would be a list of people.
MOST_DISTINCT = 2_000


def owner_figures(rows: Rows, details: Mapping[str, Any]) -> dict[str, str]:
    """Loss per attribute, the recodings that were looked at, and distributions before and after, as SVG by name."""
    from sfumato.report.figures.loss_per_attribute import loss_per_attribute

    figures = {}
    if rows.loss_per_attribute:
        figures["loss_per_attribute"] = loss_per_attribute(rows.loss_per_attribute, levels=_levels(rows, details))
    looked_at = details.get("map")
    if isinstance(looked_at, Mapping) and len(looked_at.get("risk", ())) > 0:
        figures["tradeoff"] = _tradeoff(looked_at)
    drawn = _distributions(rows)
    if drawn:
        figures["distributions"] = drawn
    return figures


def _levels(rows: Rows, details: Mapping[str, Any]) -> dict[str, str] | None:
    levels = details.get("levels")
    if not isinstance(levels, Mapping):
        return None
    trees = rows.hierarchies
    return {name: f"level {level} of {trees[name].height}" for name, level in levels.items() if name in trees}


def _tradeoff(looked_at: Mapping[str, Any]) -> str:
    from sfumato.report.figures.tradeoff import Nodes, tradeoff

    levels = looked_at.get("levels")
    names = None if levels is None else [f"levels {', '.join(map(str, entry))}" for entry in levels]
    chosen = looked_at.get("chosen")
    return tradeoff(
        Nodes(
            looked_at["risk"],
            looked_at["loss"],
            looked_at["suppressed"],
            chosen=None if chosen is None or int(chosen) < 0 else int(chosen),
            names=names,
            risk_label="average risk of a record",
        )
    )


def _distributions(rows: Rows) -> str | None:
    from sfumato.report.figures.distributions import compared, distributions

    original, released = rows.references.original, rows.released
    if original is None:
        return None
    shown = []
    for name in (*rows.public.quasi, *rows.public.sensitive):
        grouped = sorted_sets(original.relation.group([name]), original.schema)
        if grouped.num_rows > MOST_DISTINCT:
            continue
        counts: dict[str | None, int] = {}
        for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
            counts[text] = counts.get(text, 0) + int(count)
        shown.append(compared(name, counts, released))
    return distributions(shown) if shown else None
