"""Pieces that several sections of a card are made of."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.report.content import CardContent
from sfumato.report.inline_svg import inline_svg
from sfumato.report.markup import Child, Html, element
from sfumato.report.wording import FIGURES, plain_name


def section(title: str, *children: Child) -> Html:
    """A section with its heading."""
    return element("section", element("h2", title), *children)


def state(text: str, style: str) -> Html:
    """A word in a colour that it does not need to be understood."""
    return element("span", text, class_=f"state {style}")


def code(text: str) -> Html:
    """Something to be typed, or a digest."""
    return element("code", text)


def explained(rows: Iterable[tuple[str, Child, str]]) -> Html:
    """A description list in which each value has its meaning below."""
    listed = [
        element("div", element("dt", term), element("dd", value, element("span", meaning, class_="note") if meaning else None))
        for term, value, meaning in rows
    ]
    return element("dl", *listed)


def figure(content: CardContent, name: str) -> Html | None:
    """A figure with its caption, where there is one of this name."""
    if name not in content.figures:
        return None
    return drawing(content.figures[name], name, FIGURES.get(name, plain_name(name)))


def drawing(source: str, name: str, caption: str) -> Html:
    """A figure that keeps a readable size: on a narrow screen it scrolls inside its own region, which a keyboard reaches."""
    whole = element("figure", inline_svg(source, name), element("figcaption", caption))
    return element("div", whole, class_="scroll drawing", tabindex="0", role="region", aria_label=f"Figure: {plain_name(name)}")
