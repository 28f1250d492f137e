"""Foreign text made harmless for the place where it is shown: HTML, SVG, a terminal.

Column names, labels and notices come from files that nobody has checked. Markup characters are escaped,
control characters and the invisible characters that reorder text are made visible, so that what a reader sees
is what is written. Boucher, Anderson, "Trojan source: invisible vulnerabilities", USENIX Security 2023.
"""

from __future__ import annotations

import html as _html
import re

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
