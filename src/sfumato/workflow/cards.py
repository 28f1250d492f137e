"""The content of a release's cards: what was measured, said and drawn, each part for the readers who may
see it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.data.item_sets import sorted_sets
from sfumato.data.relation import COUNT
from sfumato.data.values import texts
from sfumato.report.card import release_card
from sfumato.report.content import CardContent
from sfumato.workflow.public_card import class_sizes_of, figures_of, public_card, risk_of, stated_card

if TYPE_CHECKING:
    from sfumato.core.certificate import Certificate
    from sfumato.workflow.release import Audience, Release

#: Columns with more different values than this are not drawn: their distribution would be a list of people.
MOST_DISTINCT = 2_000
#: Details of a search that are numbers or words, and not arrays.
_WORDS = (int, float, str, bool)


def card_of(release: Release, audience: Audience, *, certificate: Certificate | None = None, signature: str = "") -> str:
    """The card as one HTML page; `certificate` replaces the release's own where files were added to it."""
    stated = with_card(release, certificate or release.certificate)
    if audience == "public":
        return public_card(stated, release.data, signature)
    sizes = class_sizes_of(stated, release.data)
    content = CardContent(
        certificate=stated,
        title=stated.dataset,
        scores=release.owner.scores,
        figures={**figures_of(stated, sizes), **_owner_figures(release)},
        risk=risk_of(stated, sizes),
        details={"released records": int(release.data.num_rows), **({"classes": int(sizes.size)} if sizes.size else {})},
        owner_details=plain_details(release.details),
        answers=release.owner.answers,
        signature=signature or "not signed",
        signed=bool(signature),
    )
    return release_card(content, audience=audience)


def with_card(release: Release, certificate: Certificate) -> Certificate:
    """The certificate with what its public page shows besides: scores of the published rows, answers to the checklist."""
    return dataclasses.replace(certificate, card=stated_card(release.owner.scores, release.owner.answers))


def plain_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """The details of a search that are numbers and words, or one level of them."""
    kept: dict[str, Any] = {}
    for name, value in details.items():
        if isinstance(value, _WORDS):
            kept[name] = value
        elif isinstance(value, Mapping) and all(isinstance(entry, _WORDS) for entry in value.values()):
            kept[name] = dict(value)
    return kept


def _owner_figures(release: Release) -> dict[str, str]:
    from sfumato.report.figures.loss_per_attribute import loss_per_attribute

    figures = {}
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
        grouped = sorted_sets(original.relation.group([name]), original.schema)
        if grouped.num_rows > MOST_DISTINCT:
            continue
        counts: dict[str | None, int] = {}
        for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
            counts[text] = counts.get(text, 0) + int(count)
        shown.append(compared(name, counts, released))
    return distributions(shown) if shown else None
