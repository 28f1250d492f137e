"""Foreign text shows and does nothing."""

from __future__ import annotations

import html.parser
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.report import markup as escape
from sfumato.report.markup import element, table
from tests.report.sample import CANARY

ANY_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF))


class Tags(html.parser.HTMLParser):
    """Counts what a browser would see as markup."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.tags += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_terminal_gets_no_control_character() -> None:
    shown = escape.terminal(CANARY + "\r\n\x9b2J\x07\u2066\u200e\ufeff")
    assert "\\x1b[31m" in shown
    assert "\\u202e" in shown
    assert [c for c in shown if unicodedata.category(c) in ("Cc", "Cf")] == []


def test_words_of_other_scripts_stay_readable() -> None:
    words = "Größe, Ärztin, 年齢, العمر, می‌خواهم, 👩‍⚕️"
    assert escape.visible(words) == words


@given(ANY_TEXT)
def test_no_text_reaches_the_terminal_with_controls_or_reordering(text: str) -> None:
    shown = escape.terminal(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown)
    assert not any(unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI") for c in shown)
    shown.encode("utf-8")


@given(ANY_TEXT, ANY_TEXT)
def test_text_never_becomes_markup(text: str, value: str) -> None:
    tags = Tags()
    tags.feed(element("p", text, title=value).source)
    tags.close()
    assert tags.tags == ["p", "title"]
    assert "".join(tags.texts) == escape.visible(text)


def test_event_handlers_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="cannot be an attribute"):
        element("p", onclick="x")


def test_a_table_has_a_caption_and_headers() -> None:
    made = table("a <caption>", ("x", "y"), [("r", 1)]).source
    assert "<caption>a &lt;caption&gt;</caption>" in made
    assert '<th scope="col">x</th>' in made
    assert '<th scope="row">r</th><td data-label="y">1</td>' in made
    assert table("none", ("x",), []).source == ""


def test_shortening_keeps_the_beginning() -> None:
    assert escape.shorten("abcdefgh", 5) == "abcd…"
    assert escape.shorten("abc", 5) == "abc"
