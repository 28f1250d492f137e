"""The release card: what a release promises, how it was made, how safe and how useful it is, on one HTML
page.

Self-contained: style and figures are inside, nothing is fetched, no script runs, and a content-security
policy says so to the browser. Every text is escaped by the way the page is built (`markup.element`). The
public card shows nothing that was computed from the original.
"""

from __future__ import annotations

from sfumato.report import card_sections as sections
from sfumato.report.checklist import checklist
from sfumato.report.content import Answer, Audience, CardContent
from sfumato.report.markup import Html, element, html
from sfumato.report.style import STYLE

__all__ = ["Answer", "Audience", "CardContent", "release_card"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def release_card(content: CardContent, *, audience: Audience) -> str:
    """The card as a self-contained HTML page for the public or for the owner."""
    if audience not in ("public", "owner"):
        raise ValueError("audience is 'public' or 'owner'")
    title = content.title or f"Release of {content.certificate.dataset}"
    points = checklist(content)
    main = element(
        "main",
        sections.verdict(content),
        sections.numbers(content, audience),
        sections.guarantees(content),
        sections.making(content, audience),
        sections.usefulness(content, audience),
        sections.safety(content, audience),
        sections.composition(content),
        sections.principles(points),
        sections.limits(content),
        sections.owner_figures(content) if audience == "owner" else None,
        sections.evidence(content),
        id="card",
    )
    header = element(
        "header",
        element("p", "Release card" if audience == "public" else "Release card, owner's copy", class_="kind"),
        element("h1", title),
        sections.owner_warning() if audience == "owner" else None,
    )
    body = element(
        "body",
        element("a", "Skip to the card", href="#card", class_="skip"),
        header,
        main,
        element("footer", sections.colophon(content)),
    )
    return "<!DOCTYPE html>\n" + element("html", page_head(title), body, lang="en").source + "\n"


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
