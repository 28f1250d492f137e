"""The cards of a release: the public one, made from what is public, and the owner's.

The public page is made from the certificate, the published content and who signed. `saving` writes it, `verify` makes it again:
what the page says cannot differ from what was certified. Whatever it shows besides stands in the certificate's `card`, with the
format of the page; a change of the page's words takes a new format.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from sfumato.core.certificate import Certificate, plain
from sfumato.core.plain_data import PlainDict
from sfumato.core.view import Score
from sfumato.data.publication import LABELS
from sfumato.report.card import release_card
from sfumato.report.content import CardContent, plain_details
from sfumato.workflow.contents.base import Content, content_kind
from sfumato.workflow.publishing.scoring import plain_result

if TYPE_CHECKING:
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
