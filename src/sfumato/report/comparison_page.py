"""The page of a comparison: the map, the recommendation with its reasons, and every method with its scores.

Self-contained like a release card: style and figure are inside, nothing is fetched, no script runs. It shows numbers made from
the original and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.report.card import page_head
from sfumato.report.content import drawing
from sfumato.report.markup import Child, Html, definitions, element, joined, table
from sfumato.report.wording import number, percentage, plain_name, sentence

#: Components beside each other, so that the table fits a page.
_ABREAST = 6
#: Names of methods stay whole beside their numbers, and stand above them where there is no room for both.
_WIDE = (
    "header, main { max-width: 72rem; }\n"
    "@media screen and (min-width: 46.01rem) { tbody th { min-width: 12rem; } td:last-child { min-width: 7rem; } }\n"
)


@dataclass(frozen=True)
class ComparisonRow:
    """One method in the table; `state` is `recommended`, `front`, `other` or `refused`."""

    label: str
    state: str
    risk: float | None = None
    floor: float | None = None
    gain: str = ""
    loss: str = ""
    balance: float | None = None
    people: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    components: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonContent:
    """What the page says."""

    title: str
    records: int
    figure: str | None = field(repr=False)
    reasons: Sequence[str]
    rows: Sequence[ComparisonRow] = field(repr=False)
    meanings: Sequence[tuple[str, str]] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    guessed: Sequence[str] = ()


def comparison_page(content: ComparisonContent) -> str:
    """The whole page."""
    main = element(
        "main",
        element("section", element("h2", "What to take"), element("ul", *(element("li", reason) for reason in content.reasons))),
        _map(content.figure),
        element("section", element("h2", "Every method"), _rows(content)),
        element("section", element("h2", "What the numbers are made of"), _components(content)),
        element("section", element("h2", "What was compared"), _columns(content)) if content.roles else None,
        element("section", element("h2", "What the numbers mean"), definitions(_meanings(content))),
        id="card",
    )
    header = element(
        "header",
        element("p", "Comparison of methods, for the owner", class_="kind"),
        element("h1", content.title),
        element("p", "This page shows numbers made from the original. Do not publish it.", class_="owner"),
    )
    body = element("body", element("a", "Skip to the comparison", href="#card", class_="skip"), header, main)
    return "<!DOCTYPE html>\n" + element("html", page_head(content.title, _WIDE), body, lang="en").source + "\n"


def _map(figure: str | None) -> Html | None:
    if figure is None:
        return None
    caption = (
        "Each mark is a method at one choice of parameters; hover over it for its name, its scores and what they are made of."
    )
    return element(
        "section",
        element("h2", "The map"),
        drawing(figure, "risk-utility", caption),
    )


def _rows(content: ComparisonContent) -> Html:
    others = list(dict.fromkeys(name for row in content.rows for name in row.scores))
    head = ("Method", "State", "Risk", "By chance", "Gain", "Loss", "Balance", "Records found", *map(plain_name, others))
    rows: list[tuple[Child, ...]] = []
    for row in content.rows:
        label = joined([row.label, element("span", sentence(row.note), class_="note") if row.note else None])
        gain, loss = (_with_margin(text) for text in (row.gain, row.loss))
        numbers = [percentage(row.risk), percentage(row.floor), gain, loss, percentage(row.balance), row.people]
        if row.risk is None:
            numbers = [""] * len(numbers)
        rows.append(
            (
                label,
                _state(row.state),
                *numbers,
                *(number(row.scores.get(name)) if row.risk is not None else "" for name in others),
            )
        )
    return table(f"Methods compared on {content.records:,} records, best balance first", head, rows)


def _with_margin(text: str) -> str:
    """A number stays with its unit; a line may end before the margin only."""
    return text.replace(" ", "\u00a0").replace("\u00a0±", " ±")


def _components(content: ComparisonContent) -> Html:
    measured = [row for row in content.rows if row.components]
    names = list(dict.fromkeys(name for row in measured for name in row.components))
    tables = []
    for place in range(0, len(names), _ABREAST):
        some = names[place : place + _ABREAST]
        rows = [(row.label, *(number(row.components.get(name)) for name in some)) for row in measured]
        caption = "Components of risk and loss, averaged over the draws" + (", continued" if place else "")
        tables.append(table(caption, ("Method", *map(plain_name, some)), rows))
    return joined(tables)


def _columns(content: ComparisonContent) -> Html:
    rows = [(name, role, "guessed" if name in content.guessed else "declared") for name, role in content.roles.items()]
    return table("Columns and their roles", ("Column", "Role", "Who says so"), rows)


def _meanings(content: ComparisonContent) -> list[tuple[str, str]]:
    return [
        *((plain_name(name), sentence(meaning)) for name, meaning in content.meanings),
        ("by chance", "What the same measure gives where people are paired with rows at random."),
        ("gain", "(risk − chance)/(1 − chance): 0 is chance, 1 certainty. ± is where a new draw lies with 95 %."),
        ("records found", "Expected number of records that the better linkage finds."),
        ("balance", "The mean of gain and loss; lower is better."),
        ("front", "No other method here has both a lower gain and a lower loss."),
    ]


def _state(state: str) -> Html:
    style = {"recommended": "good", "front": "good", "refused": "bad"}.get(state, "plain")
    return element("span", state, class_=f"state {style}")
