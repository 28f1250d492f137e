"""Figures of a protected table: how large its classes are and what is risked there, and, for its owner alone, what was lost.

What the owner sees besides was computed from the original and never enters the public page.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate
from sfumato.data.relation import COUNT
from sfumato.data.texts.values import sorted_sets, texts
from sfumato.workflow.contents.base import Page
from sfumato.workflow.publishing.claims import stated_unit
from sfumato.workflow.publishing.grouped_rows import GroupedRows

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.data.hierarchies.hierarchy import Hierarchy
    from sfumato.workflow.contents.rows import Rows


def class_page(certificate: Certificate, table: pa.Table | GroupedRows) -> Page:
    """The part of the card that follows from certificate and rows."""
    sizes = _class_sizes(certificate, table)
    details = {"released records": int(table.num_rows), **({"classes": int(sizes.size)} if sizes.size else {})}
    return Page(details, _figures(certificate, sizes), _risk(certificate, sizes), _with_missing(certificate, table))


def _with_missing(certificate: Certificate, table: pa.Table | GroupedRows) -> tuple[str, ...]:
    """The quasi-identifiers in which values are missing, where something is promised about them."""
    rows = table.groups.table if isinstance(table, GroupedRows) and certificate.claims else table
    if not certificate.claims or isinstance(rows, GroupedRows):
        return ()
    columns = certificate.schema.get("columns", {})
    quasi = [name for name in rows.column_names if columns.get(name, {}).get("role") == "quasi"]
    return tuple(name for name in quasi if rows.column(name).null_count)


def _class_sizes(certificate: Certificate, table: pa.Table | GroupedRows) -> NDArray[np.int64]:
    """Records per class; none where values were changed and nothing is promised about classes: nobody knows those values."""
    import numpy as np

    from sfumato.measures.guarantees.classes import Classes

    if not certificate.claims:
        return np.zeros(0, dtype=np.int64)
    columns = certificate.schema.get("columns", {})
    quasi = [name for name in table.column_names if columns.get(name, {}).get("role") == "quasi"]
    if isinstance(table, GroupedRows):
        return Classes.of(table.groups.table, tuple(quasi), counts=table.groups.counts).sizes
    return Classes.of(table, tuple(quasi)).sizes


def _risk(certificate: Certificate, sizes: NDArray[np.int64]) -> dict[str, float]:
    """The risk of somebody who is known to be in the release: one over the size of the class; none where a person may have
    several records, which hide nobody from each other.
    """
    if not sizes.size or _has_units(certificate):
        return {}
    return {
        "prosecutor_highest": 1.0 / float(sizes.min()),
        "prosecutor_average": float(sizes.size) / float(sizes.sum()),
    }


def _figures(certificate: Certificate, sizes: NDArray[np.int64]) -> dict[str, str]:
    """The figures that need nothing but the classes of the published rows."""
    if not sizes.size:
        return {}
    if _has_units(certificate):  # k and the risk are about units, and these are classes of records
        return dict(_drawn(sizes.tobytes(), None, risk=False))
    promised = [int(claim.parameters["k"]) for claim in certificate.claims if claim.guarantee == "KAnonymity"]
    return dict(_drawn(sizes.tobytes(), promised[0] if promised else None, risk=True))


@functools.lru_cache(maxsize=2)
def _drawn(sizes: bytes, k: int | None, *, risk: bool) -> Mapping[str, str]:
    """The figures of these sizes. Both cards of a release show them, and so does the page that `verify` makes again: drawing is
    most of the work of a card, so the last figures are kept."""
    import numpy as np

    from sfumato.report.figures.class_sizes import class_sizes, risk_profile

    values = np.frombuffer(sizes, dtype=np.int64)
    return {"class_sizes": class_sizes(values, k=k), **({"risk_profile": risk_profile(values)} if risk else {})}


def _has_units(certificate: Certificate) -> bool:
    """Whether a column named whose record is whose."""
    return stated_unit(certificate) is not None or any(claim.counts_units for claim in certificate.claims)


#: Columns with more different values than this are not drawn: their distribution would be a list of people.
MOST_DISTINCT = 2_000


def owner_figures(rows: Rows, details: Mapping[str, object]) -> dict[str, str]:
    """Loss per attribute, the recodings that were looked at, and distributions before and after, as SVG by name."""
    figures = figures_of_search(rows.loss_per_attribute, rows.hierarchies, details)
    drawn = _distributions(rows)
    if drawn:
        figures["distributions"] = drawn
    return figures


def figures_of_search(
    losses: Mapping[str, float], trees: Mapping[str, Hierarchy], details: Mapping[str, object]
) -> dict[str, str]:
    """Loss per attribute and the recodings that were looked at, as SVG by name."""
    from sfumato.report.figures.distributions import loss_per_attribute

    figures = {}
    if losses:
        figures["loss_per_attribute"] = loss_per_attribute(losses, levels=_levels(trees, details))
    looked_at = details.get("map")
    if isinstance(looked_at, Mapping) and len(looked_at.get("risk", ())) > 0:
        figures["tradeoff"] = _tradeoff(looked_at)
    return figures


def _levels(trees: Mapping[str, Hierarchy], details: Mapping[str, object]) -> dict[str, str] | None:
    levels = details.get("levels")
    if not isinstance(levels, Mapping):
        return None
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
