"""The card in a real browser: it renders, fetches nothing, runs nothing, and can be read by everybody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sfumato.report.card import release_card
from sfumato.report.content import CardContent
from tests.report.sample import content, hostile

pytestmark = pytest.mark.e2e


class Opened:
    """A page with a card, and everything it tried to do."""

    def __init__(self, chromium: Any, folder: Path, card: str, scheme: str = "light") -> None:
        file = folder / "card.html"
        file.write_text(card, "utf-8")
        self.page = chromium.new_page(color_scheme=scheme, viewport={"width": 1000, "height": 900})
        self.console: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = file.as_uri()
        self.page.goto(self.address)


@pytest.fixture
def open_card(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    opened: list[Opened] = []

    def opener(card: CardContent | str, audience: Any = "owner", scheme: str = "light") -> Opened:
        text = card if isinstance(card, str) else release_card(card, audience=audience)
        opened.append(Opened(chromium, tmp_path, text, scheme))
        return opened[-1]

    yield opener
    for one in opened:
        one.page.close()


@pytest.mark.parametrize("audience", ["public", "owner"])
def test_the_card_renders_without_a_word_on_the_console_and_fetches_nothing(open_card: Any, audience: str) -> None:
    card = open_card(content(), audience)
    assert card.page.title() == "People, first release"
    assert card.page.locator("h1").inner_text() == "People, first release"
    assert card.page.locator("svg[role=img]").count() == (1 if audience == "public" else 7)
    assert card.console == []
    assert card.requests == [card.address]
    wide = card.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0


def test_a_hostile_release_runs_nothing(open_card: Any) -> None:
    card = open_card(hostile())
    assert card.console == []
    assert card.requests == [card.address]
    assert card.page.locator("script").count() == 0
    names = "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
    handlers = f"{names}.filter(name => name.startsWith('on'))"
    assert card.page.evaluate(handlers) == []
    assert "<script>canary()</script>" in card.page.locator("h1").inner_text()
    assert card.page.evaluate("typeof canary") == "undefined"


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def wait_for(page: Any, happened: Callable[[], bool]) -> None:
    """Up to a minute, for a busy machine."""
    for _ in range(1200):
        if happened():
            return
        page.wait_for_timeout(50)


def test_the_policy_stops_what_would_slip_through(open_card: Any, listener: tuple[str, list[str]]) -> None:
    """Plant what escaping prevents, behind the policy: the browser refuses to run or fetch it."""
    place, asked = listener
    planted = (
        "<script>document.title = 'taken'</script>"
        f"<img src='{place}/leak.png' onerror=\"document.title = 'taken'\">"
        f"<svg onload=\"document.title = 'taken'\"></svg><iframe src='{place}/frame'></iframe>"
        f"<link rel=stylesheet href='{place}/style.css'><p style='background: url({place}/back.png)'>x</p>"
    )
    card = open_card(release_card(content(), audience="public").replace("</main>", planted + "</main>"))
    wait_for(card.page, lambda: len(card.console) >= 4)
    card.page.wait_for_timeout(200)
    assert card.page.title() == "People, first release"
    assert len(card.console) >= 4
    assert all("Content Security Policy" in line for line in card.console)
    assert asked == []
    bare = open_card("<!DOCTYPE html><title>bare</title>" + planted)
    wait_for(bare.page, lambda: len(asked) >= 3)
    assert len(asked) >= 3  # without the policy the same page does fetch


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("audience", ["public", "owner"])
def test_everybody_can_read_it(open_card: Any, audience: str, scheme: str) -> None:
    from axe_playwright_python.base import AXE_FILE_PATH

    # axe itself is a script, which the policy rightly refuses; it is checked on the same page without the
    # policy
    text = release_card(content(), audience=audience)  # type: ignore[arg-type]
    start = text.index('<meta http-equiv="Content-Security-Policy"')
    card = open_card(text[:start] + text[text.index(">", start) + 1 :], scheme=scheme)
    card.page.evaluate(AXE_FILE_PATH.read_text("utf-8"))
    found = card.page.evaluate("axe.run().then(result => result)")
    violations = {rule["id"]: [node["target"] for node in rule["nodes"]] for rule in found["violations"]}
    assert violations == {}
    assert len(found["passes"]) > 15


def test_marks_have_tooltips(open_card: Any) -> None:
    card = open_card(content())
    assert card.page.locator("#class-sizes-bar-2 > title").text_content() == "5 classes of 5–9 records, 32 records together"
    marks = "#tradeoff-frontier title, #tradeoff-nodes title, #tradeoff-chosen title"
    assert card.page.locator(marks).count() == 5  # four nodes, the chosen one marked a second time


def test_it_prints_without_losing_a_section(open_card: Any) -> None:
    card = open_card(content())
    headings = card.page.locator("h2").all_inner_texts()
    card.page.emulate_media(media="print")
    assert [text for text in card.page.locator("h2").all_inner_texts() if text] == headings
    assert len(card.page.pdf()) > 10_000


def test_the_style_sheet_is_read_to_its_last_rule(open_card: Any) -> None:
    from sfumato.report.style import STYLE

    card = open_card(content())
    rules = (
        "(function count(rules) { return [...rules].reduce((n, r) => n + 1 + (r.media ? count(r.cssRules) : 0), 0) })"
        "(document.styleSheets[0].cssRules)"
    )
    assert card.page.evaluate(rules) == STYLE.count("{")


def test_no_table_of_an_ordinary_card_needs_scrolling(open_card: Any) -> None:
    card = open_card(content())
    hidden = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert card.page.evaluate(hidden) == 0


def test_paper_is_white_though_the_screen_is_dark(open_card: Any) -> None:
    card = open_card(content(), scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert card.page.evaluate(colour) == "rgb(20, 25, 30)"
    card.page.emulate_media(media="print", color_scheme="dark")
    assert card.page.evaluate(colour) == "rgb(255, 255, 255)"


def test_it_fits_a_narrow_screen(open_card: Any) -> None:
    card = open_card(content())
    card.page.set_viewport_size({"width": 360, "height": 800})
    wide = card.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_comparison_page_can_be_read_by_everybody_and_tells_its_marks(open_card: Any, scheme: str) -> None:
    from axe_playwright_python.base import AXE_FILE_PATH

    from sfumato.report.comparison_page import ComparisonContent, ComparisonRow, comparison_page
    from sfumato.report.figures.risk_utility import RiskUtility, risk_utility
    from tests.report.test_risk_utility import MARKS

    figure = risk_utility(RiskUtility(MARKS, (1.0, 0.0), chosen=0))
    rows = [
        ComparisonRow(mark.label, "front" if mark.best else "other", mark.risk, mark.loss, 0.3, {}, "a note") for mark in MARKS
    ]
    text = comparison_page(ComparisonContent("Risk and utility of shells", 300, figure, ["Take it."], rows))
    card = open_card(text)
    assert card.console == [] and card.requests == [card.address]
    assert card.page.locator("figure svg title", has_text="Mdav(k=9): risk 30 %").count() == 1
    wide = card.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0
    card.page.set_viewport_size({"width": 400, "height": 800})
    hidden = "(() => { const e = document.querySelector('.scroll'); return e.scrollWidth - e.clientWidth })()"
    assert card.page.evaluate(hidden) == 0  # a phone shows every number
    start = text.index('<meta http-equiv="Content-Security-Policy"')
    bare = open_card(text[:start] + text[text.index(">", start) + 1 :], scheme=scheme)
    bare.page.evaluate(AXE_FILE_PATH.read_text("utf-8"))
    found = bare.page.evaluate("axe.run().then(result => result)")
    assert {rule["id"]: [node["target"] for node in rule["nodes"]] for rule in found["violations"]} == {}
