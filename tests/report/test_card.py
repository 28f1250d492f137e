"""The card as text: what is in it for whom, and that nothing in it can act."""

from __future__ import annotations

import html.parser
import re
from dataclasses import replace

import pytest

import sfumato as sf
from sfumato.core.errors import InputError
from sfumato.report.card import POLICY, release_card
from sfumato.report.checklist import QUESTIONS, checklist
from sfumato.report.content import Answer, CardContent
from sfumato.report.markup import html as escaped
from sfumato.report.wording import number, percentage, plain_name, sentence
from tests.report.sample import CANARY, certificate, content, hostile

ELEMENTS = set(
    "html head meta title style body a header p h1 h2 h3 main section ul ol li span strong div table caption "
    "thead tbody tr th td "
    "dl dt dd figure figcaption code footer svg g path use defs clippath rect text desc".split()
)


class Markup(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))


@pytest.mark.parametrize("audience", ["public", "owner"])
@pytest.mark.parametrize("made", [content, hostile])
def test_a_card_is_made_of_known_elements_only(made: object, audience: str) -> None:
    text = release_card(made(), audience=audience)  # type: ignore[operator, arg-type]
    found = Markup(text)
    assert found.elements <= ELEMENTS
    assert not {name for name in found.attributes if name.startswith("on") or name in ("src", "action", "formaction")}
    assert re.findall(r"https?://[^\s\"]+", text.replace("http://www.w3.org/2000/svg", "")) == []


def test_every_canary_is_shown_and_inert() -> None:
    text = release_card(hostile(), audience="owner")
    assert "<script" not in text
    assert text.count("</style>") == 1
    assert "</title></svg>" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text)
    assert text.count(escaped(CANARY)) > 40


def test_headings_descend_in_order() -> None:
    levels = Markup(release_card(content(), audience="owner")).headings
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))


def test_the_policy_forbids_scripts_and_fetching() -> None:
    assert POLICY.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "script-src" not in POLICY
    text = release_card(content(), audience="public")
    assert text.index("Content-Security-Policy") < text.index("<style>")
    assert '<html lang="en">' in text
    assert 'href="#card"' in text
    assert 'id="card"' in text


def test_what_was_made_from_the_original_is_on_the_owners_card_only() -> None:
    public, owner = (release_card(content(), audience=a) for a in ("public", "owner"))
    for mark in (
        "OWNERSCORE",
        "OWNERRISK",
        "OWNERATTACK",
        "OWNERDETAIL",
        "tradeoff-title",
        "distributions-title",
        "Do not publish",
    ):
        assert mark not in public
        assert mark in owner
    for mark in ("loss-per-attribute-title", "risk-profile-title", "18 %".replace(" ", "\u00a0"), "Checklist of the release"):
        assert mark not in public
        assert mark in owner
    assert "class-sizes-title" in public


def test_a_figure_nobody_declared_public_stays_with_the_owner() -> None:
    given = content()
    more = replace(
        given,
        figures={
            **given.figures,
            "something_new": given.figures["class_sizes"].replace("class-sizes", "new"),
        },
    )
    assert "new-title" not in release_card(more, audience="public")
    assert "new-title" in release_card(more, audience="owner")


def test_the_same_content_gives_the_same_bytes() -> None:
    assert release_card(content(), audience="owner") == release_card(content.__wrapped__(), audience="owner")


def test_a_card_of_a_bare_certificate_is_complete() -> None:
    bare = CardContent(replace(certificate(), attacks=(), composition={}, claims=()))
    assert "Nothing is promised about this release." in release_card(bare, audience="public")
    text = release_card(bare, audience="owner")
    assert "No attack was run against this release." in text
    assert "No earlier release of this data set was considered." in text


def test_a_card_with_an_attack_on_several_releases_does_not_say_that_none_was_run() -> None:
    together = replace(certificate(), attacks=(), composition={"earlier_releases": 1, "attack": "Intersection", "finding": "x"})
    text = release_card(CardContent(together), audience="owner")
    assert "No attack was run against this release." not in text
    assert "No attack was run against this release alone; below it is attacked together with earlier ones." in text


@pytest.mark.parametrize(
    "svg",
    [
        "<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>",
        "<svg xmlns='http://www.w3.org/2000/svg'><foreignObject/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><use href='http://127.0.0.1/x#y'/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><g style='fill: url(http://127.0.0.1/x)'/></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><style>*{}</style></svg>",
        "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg xmlns='http://www.w3.org/2000/svg'/>",
        "<svg xmlns='http://www.w3.org/2000/svg'><g></svg>",
        "<svg xmlns='http://www.w3.org/1999/xhtml'/>",
        "<p>no figure</p>",
    ],
)
def test_a_figure_that_could_act_is_refused(svg: str) -> None:
    with pytest.raises(InputError, match="figure 'class_sizes'"):
        release_card(replace(content(), figures={"class_sizes": svg}), audience="public")


@pytest.mark.parametrize(
    ("change", "principle", "why"),
    [
        ({"claims": ()}, "1.", "nothing is promised"),
        ({"private": False}, "2.", "seeded"),
        ({"schema": {"unlisted": "plain"}}, "2.", "does not describe"),
        (
            {"schema": {"columns": {"age": {"role": "quasi", "source": "data", "bounds": [1, 2]}}}},
            "2.",
            "read from the data: age",
        ),
        ({"schema": {}}, "2.", "not described"),
        ({"schema": {"columns": {"n": {"role": "identifier", "pseudonym": True}}}}, "2.", "can be followed: n"),
        ({"method": {}}, "3.", "not named"),
        ({"ledger": "not entered"}, "5.", "not entered in a ledger"),
        ({"versions": {}}, "6.", "versions are not named"),
    ],
)
def test_the_checklist_sees(change: dict[str, object], principle: str, why: str) -> None:
    everything = {question: Answer(True) for question in QUESTIONS}
    fine = replace(content(), answers=everything)
    assert {item.state for item in checklist(fine)} == {"passed"}
    points = checklist(replace(fine, certificate=replace(certificate(), **change)))  # type: ignore[arg-type]
    found = next(item for item in points if item.principle.startswith(principle))
    assert found.state == "attention"
    assert why in found.because


def test_the_checklist_asks_what_no_program_knows() -> None:
    points = checklist(replace(content(), answers={}))
    assert len([item for item in points if item.principle[0].isdigit()]) == 7
    still_open = " ".join(item.because for item in points)
    assert all(question in still_open for question in QUESTIONS.values())


def test_numbers_for_readers() -> None:
    assert [number(x) for x in (5, 5.0, 1234567, 0.123456, float("inf"), None)] == [
        "5", "5", "1,234,567", "0.1235", "infinite", "not measured",
    ]  # fmt: skip
    assert percentage(0.00001) == "< 0.01\u00a0%"
    assert percentage(1.0) == "100\u00a0%" and percentage(0.9996) == "99.96\u00a0%" and percentage(0.99999) == "> 99.99\u00a0%"
    assert plain_name("ProbabilisticInference") == "Probabilistic Inference"
    assert (sentence("a"), sentence("A."), sentence("")) == ("A.", "A.", "")


def test_a_promise_about_a_process_is_not_said_to_hold() -> None:
    claim = replace(certificate().claims[0], evidence="process", measured=None, holds=True)
    page = release_card(CardContent(certificate=replace(certificate(), claims=(claim,))), audience="public")
    assert "files cannot show it" in page and ">rests on its maker<" in page and ">holds<" not in page
    assert ">does not hold<" in release_card(
        CardContent(certificate=replace(certificate(), claims=(replace(claim, holds=False),))), audience="public"
    )


def test_the_owners_card_does_not_speak_of_scores_that_there_are_not() -> None:
    people = sf.read(sf.data.sample_table(60), schema=sf.data.sample_schema())
    card = sf.protect(people, (), sf.Sampling(0.5), utility=(), risk=(), seed=1).card("owner")
    assert "stay with the owner" not in card
    assert card.count("Usefulness was not measured") == 2  # and the checklist agrees
