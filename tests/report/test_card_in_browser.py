"""The card in a real browser: it renders, fetches nothing, runs nothing, and can be read by everybody."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.certificate import Claim
from sfumato.core.guarantees.loss import PureDP
from sfumato.report.card import release_card
from sfumato.report.content import CardContent
from tests.report.boxes import bar_contrasts, faults
from tests.report.gallery import gallery
from tests.report.sample import certificate, content, hostile

pytestmark = pytest.mark.e2e


class Opened:
    """A page with a card, and everything it tried to do."""

    def __init__(self, chromium: Any, folder: Path, card: str, scheme: str = "light", width: int = 1000) -> None:
        file = folder / "card.html"
        file.write_text(card, "utf-8")
        self.page = chromium.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
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

    def opener(card: CardContent | str, audience: Any = "owner", scheme: str = "light", width: int = 1000) -> Opened:
        text = card if isinstance(card, str) else release_card(card, audience=audience)
        opened.append(Opened(chromium, tmp_path, text, scheme, width))
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


def without_policy(text: str) -> str:
    """axe itself is a script, which the policy rightly refuses; it is run on the same page without the policy."""
    start = text.index('<meta http-equiv="Content-Security-Policy"')
    return text[:start] + text[text.index(">", start) + 1 :]


def violations(page: Any) -> dict[str, list[Any]]:
    """What axe finds wrong with a page."""
    from axe_playwright_python.base import AXE_FILE_PATH

    page.evaluate(AXE_FILE_PATH.read_text("utf-8"))
    found = page.evaluate("axe.run().then(result => result)")
    assert len(found["passes"]) > 15
    return {rule["id"]: [node["target"] for node in rule["nodes"]] for rule in found["violations"]}


#: A screen in daylight, one at night, and a telephone of each.
SCREENS = [("light", 1000), ("dark", 1000), ("light", 360), ("dark", 360)]


@pytest.mark.parametrize(("scheme", "width"), SCREENS)
@pytest.mark.parametrize("audience", ["public", "owner"])
def test_everybody_can_read_it(open_card: Any, audience: Any, scheme: str, width: int) -> None:
    card = open_card(without_policy(release_card(content(), audience=audience)), scheme=scheme, width=width)
    assert violations(card.page) == {}


def rows_of(columns: int) -> CardContent:
    """A card with so many columns of long names, a publication and an invented row, as a stranger may state them."""
    names = [f"a rather long name of a column of the questionnaire, number {i}" for i in range(columns)]
    told = certificate()
    stated = dataclasses.replace(
        told,
        dataset="survey-of-households-with-a-very-long-name-without-any-blank-in-it",
        schema={
            "columns": {name: {"role": "quasi" if i % 3 else "sensitive"} for i, name in enumerate(names)},
            "publication": {"publisher": "x" * 300, "citation": f"https://example.org/{'path' * 60}"},
        },
        card={"example": {name: ["a value before", "and after"] for name in names}},
    )
    return dataclasses.replace(content(), certificate=stated)


def private() -> CardContent:
    loss = PureDP("0.5", unit="household")
    claim = Claim(
        loss.key,
        {"epsilon": "1/2", "unit": "household"},
        loss.claim(),
        None,
        True,
        "process",
        loss.protects,
        unit="household",
        neighbours=loss.compared,
        argument="noise is scaled to what one unit can change " * 6,
    )
    return CardContent(
        dataclasses.replace(
            certificate(),
            claims=(claim,),
            attacks=(),
            composition={},
            method={"name": "Session.sql", "query": "SELECT COUNT(*) AS n FROM people"},
        )
    )


@pytest.mark.parametrize("width", [1000, 360])
@pytest.mark.parametrize("made", [content, lambda: rows_of(31), private], ids=["search", "31-columns", "private"])
def test_nothing_is_clipped_cut_or_over_something_else(open_card: Any, made: Callable[[], CardContent], width: int) -> None:
    card = open_card(made(), width=width)
    assert faults(card.page) == []
    assert card.console == [] and card.requests == [card.address]


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), SCREENS)
def test_every_figure_keeps_its_names_apart_and_its_bars_stand_out(open_card: Any, scheme: str, width: int) -> None:
    shown = open_card(gallery(), scheme=scheme, width=width)
    assert faults(shown.page) == []
    contrasts = bar_contrasts(shown.page)
    assert len(contrasts) > 100 and min(contrasts) >= 3
    assert shown.requests == [shown.address]


def test_the_boxes_would_show_a_fault(open_card: Any) -> None:
    """Plant one of each kind: what finds nothing must be able to."""
    texts = "<text x='80' y='9'>clipped</text><text y='9'>one</text><text y='9'>two</text>"
    svg = f"<figure><svg viewBox='0 0 90 20' width='90'>{texts}</svg>"
    cell = "<table><tr><td style='overflow-wrap: anywhere'>word</td></tr></table><p style='width: 9rem; white-space: nowrap'>"
    wide = f"<table><td style='display: block' data-label=k>{'wide' * 99}</table>"
    cell = f"<div class=scroll style='overflow: auto'>{wide}</div>{cell}"
    shown = open_card(f"<!DOCTYPE html><body>{svg}</figure>{cell}{'cut ' * 40}</p></body>", width=360)
    found = {fault[0] for fault in faults(shown.page)}
    assert {"clipped", "overlap", "words may be broken", "cut", "the page scrolls sideways"} <= found
    assert {"a table scrolls sideways", "no label"} <= found


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


def test_on_a_telephone_a_row_is_a_list_and_on_a_desk_a_row(open_card: Any) -> None:
    tall = "[...document.querySelector('#card .scroll tbody tr').children].map(e => e.getBoundingClientRect().top)"
    desk, telephone = (open_card(content(), width=width).page.evaluate(tall) for width in (1000, 360))
    assert len(set(desk)) == 1 and telephone == sorted(set(telephone)) and len(telephone) == len(desk)


def test_paper_is_white_though_the_screen_is_dark(open_card: Any) -> None:
    card = open_card(content(), scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert card.page.evaluate(colour) == "rgb(20, 25, 30)"
    card.page.emulate_media(media="print", color_scheme="dark")
    assert card.page.evaluate(colour) == "rgb(255, 255, 255)"


def comparison() -> str:
    from sfumato.report.comparison_page import ComparisonContent, ComparisonRow, comparison_page
    from tests.report.gallery import METHODS, figures

    rows = [
        ComparisonRow(
            label, "recommended" if not i else "front" if i < 5 else "other", 0.632, 0.0672, "60.5 % ± 2.02 %",
            "5.28 % ± 1.52 %", 0.3, "1,196 of 1,200 (by chance 1.0)", {"query_error": 0.1234}, "keeps its guarantee",
            {f"component_{j}": 0.1 * j for j in range(9)},
        )
        for i, label in enumerate(METHODS[::5])
    ]  # fmt: skip
    return comparison_page(ComparisonContent("Risk and utility of shells", 1200, figures()["map"], ["Take it."], rows))


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [SCREENS[0], SCREENS[3], ("light", 1200)])
def test_the_comparison_page_can_be_read_by_everybody(open_card: Any, scheme: str, width: int) -> None:
    shown = open_card(comparison(), scheme=scheme, width=width)
    assert shown.console == [] and shown.requests == [shown.address]
    assert faults(shown.page) == []
    assert violations(open_card(without_policy(comparison()), scheme=scheme, width=width).page) == {}
