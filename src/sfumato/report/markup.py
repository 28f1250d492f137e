"""HTML built from elements, so that text is escaped because it is text and not because somebody remembered.

`element("p", "a < b")` escapes its children unless they are elements themselves; attribute names are checked,
values escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.report.escape import html

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VOID = frozenset({"br", "hr", "meta", "link", "img"})


@dataclass(frozen=True)
class Html:
    """A finished piece of HTML."""

    source: str

    def __str__(self) -> str:
        return self.source


Child = Html | str | int | float | None


def element(name: str, *children: Child, **attributes: str | None) -> Html:
    """An element; `class_` and `for_` write `class` and `for`, an underscore inside a name writes a hyphen,
    None leaves out."""
    parts = [name]
    for key, value in attributes.items():
        if value is None:
            continue
        written = key.rstrip("_").replace("_", "-")
        if not _NAME.fullmatch(written) or written.startswith("on"):
            raise ValueError(f"'{written}' cannot be an attribute of a card")
        parts.append(f'{written}="{html(value)}"')
    opening = f"<{' '.join(parts)}>"
    return Html(opening if name in _VOID else f"{opening}{joined(children).source}</{name}>")


def joined(children: Iterable[Child], separator: str = "") -> Html:
    """Several pieces one after the other; plain text is escaped."""
    return Html(
        html(separator).join(child.source if isinstance(child, Html) else html(child) for child in children if child is not None)
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Child]], *, row_headers: bool = True) -> Html:
    """A table with a caption; the first cell of a row is its header. Empty without rows."""
    body = []
    for row in rows:
        first, *rest = row
        lead = element("th", first, scope="row") if row_headers else element("td", first)
        body.append(element("tr", lead, *(element("td", cell) for cell in rest)))
    if not body:
        return Html("")
    header = element("thead", element("tr", *(element("th", title, scope="col") for title in head)))
    whole = element("table", element("caption", caption), header, element("tbody", *body))
    # A wide table scrolls inside its own region, which must be reachable by keyboard.
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def definitions(pairs: Iterable[tuple[str, Child]]) -> Html:
    """A description list."""
    rows = [element("div", element("dt", term), element("dd", meaning)) for term, meaning in pairs]
    return element("dl", *rows) if rows else Html("")
