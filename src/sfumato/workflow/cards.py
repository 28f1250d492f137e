"""The content of a release's cards: what was measured, said and drawn, each part for the readers who may
see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.data.relation import COUNT
from sfumato.data.values import texts
from sfumato.report.card import release_card
from sfumato.report.content import CardContent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.core.certificate import Certificate
    from sfumato.workflow.release import Audience, Release

#: Columns with more different values than this are not drawn: their distribution would be a list of people.
MOST_DISTINCT = 2_000
#: Details of a search that are numbers or words, and not arrays.
_WORDS = (int, float, str, bool)


def card_of(release: Release, audience: Audience, *, certificate: Certificate | None = None, signature: str = "") -> str:
    """The card as one HTML page; `certificate` replaces the release's own where files were added to it."""
    sizes = _class_sizes(release)
    content = CardContent(
        certificate=certificate or release.certificate,
        title=release.certificate.dataset,
        scores=release.owner.scores,
        figures=_figures(release, sizes, audience),
        risk=_risk(sizes),
        details={"released records": int(release.data.num_rows), **({"classes": int(sizes.size)} if sizes.size else {})},
        owner_details=plain_details(release.details),
        answers=release.owner.answers,
        signature=signature or "not signed",
        signed=bool(signature),
    )
    return release_card(content, audience=audience)


def _class_sizes(release: Release) -> NDArray[np.int64]:
    """Records per class; none where values were changed and nothing is promised about classes: nobody knows those values."""
    import numpy as np

    from sfumato.measures.guarantees.classes import Classes
    from sfumato.workflow.named import is_mask

    if is_mask(release.certificate.method) and not release.certificate.claims:
        return np.zeros(0, dtype=np.int64)
    return Classes.of(release.data, release.schema.quasi).sizes


def _risk(sizes: NDArray[np.int64]) -> dict[str, float]:
    """The risk of somebody who is known to be in the release: one over the size of the class."""
    if not sizes.size:
        return {}
    return {
        "prosecutor_highest": 1.0 / float(sizes.min()),
        "prosecutor_average": float(sizes.size) / float(sizes.sum()),
    }


def plain_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details of a search that are numbers and words, or one level of them."""
    kept: dict[str, Any] = {}
    for name, value in details.items():
        if isinstance(value, _WORDS):
            kept[name] = value
        elif isinstance(value, Mapping) and all(isinstance(entry, _WORDS) for entry in value.values()):
            kept[name] = dict(value)
    return kept


def _figures(release: Release, sizes: NDArray[np.int64], audience: Audience) -> dict[str, str]:
    from sfumato.report.figures.class_sizes import class_sizes
    from sfumato.report.figures.loss_per_attribute import loss_per_attribute
    from sfumato.report.figures.risk_profile import risk_profile

    promised = [int(guarantee.threshold) for guarantee in release.guarantees if guarantee.name == "KAnonymity"]
    figures = {}
    if sizes.size:
        figures["class_sizes"] = class_sizes(sizes, k=promised[0] if promised else None)
        figures["risk_profile"] = risk_profile(sizes)
    if audience == "public":
        return figures
    if release.owner.loss_per_attribute:
        figures["loss_per_attribute"] = loss_per_attribute(release.owner.loss_per_attribute, levels=_levels(release))
    looked_at = release.details.get("map")
    if isinstance(looked_at, Mapping) and len(looked_at.get("risk", ())) > 0:
        figures["tradeoff"] = _tradeoff(looked_at)
    drawn = _distributions(release)
    if drawn:
        figures["distributions"] = drawn
    return figures


def _levels(release: Release) -> dict[str, str] | None:
    levels = release.details.get("levels")
    if not isinstance(levels, Mapping):
        return None
    trees = release.owner.hierarchies
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


def _distributions(release: Release) -> str | None:
    from sfumato.report.figures.distributions import compared, distributions

    original, released = release.owner.references.original, release.owner.released
    if original is None or released is None:
        return None
    shown = []
    for name in (*release.schema.quasi, *release.schema.sensitive):
        grouped = original.relation.group([name])
        if grouped.num_rows > MOST_DISTINCT:
            continue
        counts: dict[str | None, int] = {}
        for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
            counts[text] = counts.get(text, 0) + int(count)
        shown.append(compared(name, counts, released))
    return distributions(shown) if shown else None
