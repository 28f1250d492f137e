"""The cards of a release, with their figures: the public one, made from what is public, and the owner's.

The public page is made from the certificate, the published content and who signed. `saving` writes it, `verify` makes it again:
what the page says cannot differ from what was certified. Whatever it shows besides stands in the certificate's `card`, with the
format of the page; a change of the page's words takes a new format. Figures that were computed from the original are the owner's
alone and never enter the public page.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, plain
from sfumato.core.plain_data import PlainDict
from sfumato.core.view import Score
from sfumato.data.publication import LABELS
from sfumato.data.relation import COUNT
from sfumato.data.texts.values import sorted_sets, texts
from sfumato.report.card import release_card
from sfumato.report.content import CardContent, plain_details
from sfumato.workflow.contents.base import Content, Page, content_kind
from sfumato.workflow.publishing.claims import stated_unit
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.publishing.scoring import plain_result

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.data.hierarchies.hierarchy import Hierarchy
    from sfumato.workflow.contents.rows import Rows
    from sfumato.workflow.release import Audience, Release

#: The page that this version makes, and those that it made before, which it can no longer make again.
CARD_FORMAT = "sfumato-card-5"
FORMER_CARD_FORMATS = ("sfumato-card-3", "sfumato-card-4")
#: Formats of cards that also showed the answers to the checklist.
WITH_ANSWERS = ("sfumato-card-3",)
CARD = "card.html"


def card_of(release: Release[Content], audience: Audience, *, certificate: Certificate | None = None, signature: str = "") -> str:
    """The card as one HTML page; `certificate` replaces the release's own where files were added to it."""
    stated = dataclasses.replace(certificate or release.certificate, card=stated_card(release))
    if audience == "public":
        return public_card(stated, release.data, signature)
    page = content_kind(stated).page(stated, release.data)
    content = CardContent(
        certificate=dataclasses.replace(stated, attacks=tuple(plain_result(each) for each in release.owner.attacks)),
        title=stated.dataset,
        scores=tuple(score for score in release.owner.scores if score.measure not in release.owner.risks),
        owner_risks=tuple(score for score in release.owner.scores if score.measure in release.owner.risks),
        scored=bool(stated.card["scored"]),
        figures={**page.figures, **release.content.owner_figures(release)},
        risk=page.risk,
        missing=page.missing,
        decisions=release.content.page_decisions(release),
        left_out=tuple(name for name in LABELS if getattr(release.content.schema.publication, name) is None),
        details=page.details,
        owner_details=plain_details(release.content.owner_details(release)),
        answers=release.owner.answers,
        signature=signature or "not signed",
        signed=bool(signature),
    )
    return release_card(content, audience=audience)


def public_card(certificate: Certificate, data: object, signature: str) -> str:
    """The page; `signature` is empty where nobody signed."""
    stated = _as_read(certificate)
    page = content_kind(stated).page(stated, data)
    content = CardContent(
        certificate=stated,
        title=stated.dataset,
        figures=page.figures,
        missing=page.missing,
        details=page.details,
        signature=signature or "not signed",
        signed=bool(signature),
    )
    return release_card(content, audience="public")


def stated_card(release: Release[Content]) -> PlainDict:
    """What a certificate says about its public page: the format, and what no file of the folder shows."""
    scores = release.content.page_scores(release)
    return {
        "format": CARD_FORMAT,
        "scores": [stated_score(score) for score in scores],
        "scored": _usefulness_was_measured(release),
        "example": release.content.page_example(release),
        "details": plain(release.content.page_details(release)),
    }


def stated_score(score: Score) -> PlainDict:
    """A score as a certificate states it; one that is no risk has neither a floor nor an interval."""
    stated = {name: value for name, value in score.__dict__.items() if value not in (None, ())}
    return {**stated, "parts": dict(score.parts), **({} if score.interval is None else {"interval": list(score.interval)})}


def _usefulness_was_measured(release: Release[Content]) -> bool:
    """Whether there are scores that measure usefulness and not risk."""
    measured = {score.measure for score in release.owner.scores} - set(release.owner.risks)
    return release.content.says_scored and bool(measured)


def _as_read(certificate: Certificate) -> Certificate:
    """The certificate as whoever reads its file has it, without the card itself, whose digest is known only afterwards."""
    stated = json.loads(json.dumps(certificate.to_mapping(), sort_keys=True))
    stated["files"] = {name: about for name, about in stated["files"].items() if name != CARD}
    return Certificate.from_mapping(stated)


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
