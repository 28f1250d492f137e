"""The release card on one HTML page: what is promised in one sentence, by whom, what was done to each column, what is not
promised and how to verify all of it; for the owner also risk, loss, attacks, earlier releases, the checklist and the decisions.

Self-contained: style and figures are inside, nothing is fetched, no script runs, and a content-security
policy says so to the browser. Every text is escaped by the way the page is built (`markup.element`). The
public card shows nothing that was computed from the original.
"""

from __future__ import annotations

from sfumato.report import card_sections as sections
from sfumato.report import owner_sections
from sfumato.report.checklist import checklist
from sfumato.report.content import Answer, Audience, CardContent
from sfumato.report.markup import Html, element, html
from sfumato.report.owner_sections import annex
from sfumato.report.style import STYLE

__all__ = ["Answer", "Audience", "CardContent", "release_card"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def release_card(content: CardContent, *, audience: Audience) -> str:
    """The card as a self-contained HTML page for the public or for the owner."""
    if audience not in ("public", "owner"):
        raise ValueError("audience is 'public' or 'owner'")
    title = content.title or f"Release of {content.certificate.dataset}"
    main = element(
        "main",
        sections.first_sentence(content),
        sections.publication(content),
        sections.columns(content),
        sections.promises(content),
        sections.limits(content),
        sections.making(content),
        sections.how_to_verify(content),
        *(_for_the_owner(content) if audience == "owner" else ()),
        id="card",
    )
    header = element(
        "header",
        element("p", "Release card" if audience == "public" else "Release card, owner's copy", class_="kind"),
        element("h1", title),
        owner_sections.warning() if audience == "owner" else None,
    )
    body = element(
        "body",
        element("a", "Skip to the card", href="#card", class_="skip"),
        header,
        main,
        element("footer", sections.colophon(content)),
    )
    return "<!DOCTYPE html>\n" + element("html", page_head(title), body, lang="en").source + "\n"


def _for_the_owner(content: CardContent) -> tuple[Html | None, ...]:
    """What stands behind the public part on the owner's copy."""
    return (
        owner_sections.risk(content),
        owner_sections.loss(content),
        owner_sections.attacks(content),
        owner_sections.earlier_releases(content),
        owner_sections.principles(checklist(content)),
        owner_sections.decisions(content),
        owner_sections.other_figures(content),
        annex(content),
    )


def page_head(title: str, style: str = "") -> Html:
    """The head of a page that loads nothing and runs no script; `style` is added to that of every page."""
    # The policy comes first: it governs everything after it.
    return Html(
        "<head>"
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{html(title)}</title>"
        f"<style>{STYLE}{style}</style>"
        "</head>"
    )
