"""Foreign text made harmless where it is shown, and HTML built so that it always is.

Column names, labels and notices come from files that nobody has checked. Markup characters are escaped, control characters and
the invisible characters that reorder text are made visible, so that what a reader sees is what is written. A page is built from
elements, so that text is escaped because it is text and not because somebody remembered: `element("p", "a < b")` escapes its
children unless they are elements themselves; attribute names are checked, values escaped.
Boucher, Anderson, "Trojan source: invisible vulnerabilities", USENIX Security 2023.
"""

from __future__ import annotations

import html as _html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VOID = frozenset({"br", "hr", "meta", "link", "img"})
# C0 and C1 controls, line separators, bidirectional marks, overrides and isolates, zero-width spaces, the
# byte-order mark, tag characters, lone surrogates and non-characters: none has a visible shape, each can
# change what the rest looks like. The two joiners stay: words of several scripts are written with them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: object) -> str:
    """The text with every invisible or reordering character replaced by its code, `\\u202e` for example; tabs
    become a space."""
    return _UNSEEN.sub(_code, str(text).replace("\t", " "))


def html(text: object) -> str:
    """Safe inside an HTML element or a quoted attribute."""
    return _html.escape(visible(text), quote=True)


def terminal(text: object) -> str:
    """Safe to print: no escape sequence, carriage return or direction override of the text reaches the
    terminal."""
    return visible(text)


def shorten(text: object, width: int) -> str:
    """At most `width` characters, an ellipsis at the end when something was cut."""
    plain = visible(text)
    return plain if len(plain) <= width else plain[: max(width - 1, 1)].rstrip() + "…"


def _code(match: re.Match[str]) -> str:
    point = ord(match.group())
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


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
    """A table with a caption; the first cell of a row is its header. Empty without rows.

    Each other cell carries the title of its column as `data-label`: a narrow screen shows a row as lines of label and value.
    """
    body = []
    for row in rows:
        first, *rest = row
        lead = element("th", first, scope="row") if row_headers else _cell(first, head[0])
        body.append(element("tr", lead, *map(_cell, rest, head[1:])))
    if not body:
        return Html("")
    header = element("thead", element("tr", *(element("th", title, scope="col") for title in head)))
    whole = element("table", element("caption", caption), header, element("tbody", *body))
    # Where a page has no style of its own, as in a notebook, a wide table scrolls in its region, which the keyboard reaches.
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(content: Child, label: str) -> Html:
    return element("td", content, data_label=label or None)


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


def definitions(pairs: Iterable[tuple[str, Child]]) -> Html:
    """A description list."""
    rows = [element("div", element("dt", term), element("dd", meaning)) for term, meaning in pairs]
    return element("dl", *rows) if rows else Html("")
