"""Is a page that somebody else wrote only a page? No script, no handler, nothing fetched, nothing sent.

Every element and attribute is checked against the list of those that cards are made of; figures are checked against the list of
`inline_svg`. What is not listed is refused.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from sfumato.core.errors import InputError
from sfumato.report.card import POLICY
from sfumato.report.content import ATTRIBUTES, ELEMENTS, REACHES_OUT, is_harmless

_PAGE = frozenset(
    "html head meta title style body a header main footer section h1 h2 h3 p ul ol li strong span table caption thead tbody "
    "tr th td dl dt dd div code figure figcaption".split()
)
_ON_A_PAGE = frozenset("lang charset http-equiv content name id class href aria-label scope role data-label tabindex".split())
_SVG = {name.lower() for name in ELEMENTS}
_SVG_ATTRIBUTES = {name.lower() for name in ATTRIBUTES} | {"xmlns"}
_METAS = (
    {"charset": "utf-8"},
    {"http-equiv": "Content-Security-Policy", "content": POLICY},
    {"name": "viewport", "content": "width=device-width, initial-scale=1"},
    {"name": "referrer", "content": "no-referrer"},
)


def refuse_behaviour(page: str) -> None:
    """Raise `InputError` where a page holds anything but words, tables, style and drawings."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if reader.metas[: len(_METAS)] != list(_METAS) or len(reader.metas) != len(_METAS):
        raise InputError("it does not state the policy by which browsers load nothing and run no script")


class _Reader(HTMLParser):
    """Walks a page and refuses what is not listed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.metas: list[dict[str, str | None]] = []
        self._drawing = 0
        self._style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._drawing += tag == "svg"
        self._style = tag == "style"
        elements, allowed = (_SVG, _SVG_ATTRIBUTES) if self._drawing else (_PAGE, _ON_A_PAGE)
        if tag not in elements:
            raise InputError("it holds an element that no card has, such as a script or something loaded")
        if tag == "meta":
            self.metas.append(dict(attributes))
            return
        for name, value in attributes:
            if name not in allowed or not is_harmless(name, value or ""):
                raise InputError("it holds an attribute that no card has, such as a handler or a link to elsewhere")

    def handle_endtag(self, tag: str) -> None:
        self._drawing -= tag == "svg"
        self._style = False

    def handle_data(self, data: str) -> None:
        if self._style and (REACHES_OUT.search(data) or re.search(r"\\|url\s*\(", data, re.IGNORECASE)):
            raise InputError("its style loads something")

    def handle_comment(self, data: str) -> None:
        raise InputError("it holds a comment")

    def handle_pi(self, data: str) -> None:
        raise InputError("it holds an instruction for another program")

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != "doctype html":
            raise InputError("it holds a declaration that no card has")

    def unknown_decl(self, data: str) -> None:
        raise InputError("it holds a declaration that no card has")
