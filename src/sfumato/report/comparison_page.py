"""The page of a comparison: the map, the recommendation with its reasons, and every method with its scores.

Self-contained like a release card: style and figure are inside, nothing is fetched, no script runs. It shows numbers made from
the original and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sfumato.report.card import page_head
from sfumato.report.inline_svg import inline_svg
from sfumato.report.markup import Child, Html, definitions, element, joined, table
from sfumato.report.wording import number, percentage, plain_name, sentence

#: On a narrow screen the names of methods break, so that state, risk, loss and balance are in sight.
_NARROW = (
    "@media (max-width: 34rem) { table { font-size: .8rem; } th, td { padding-right: .4rem; } "
    "tbody th { overflow-wrap: anywhere; } .state { padding: 0 .2em; } }\n"
)


@dataclass(frozen=True)
class ComparisonRow:
    """One method in the table; `state` is `recommended`, `front`, `other` or `refused`."""

    label: str
    state: str
    risk: float | None = None
    loss: float | None = None
    balance: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class ComparisonContent:
    """What the page says."""

    title: str
    records: int
    figure: str | None = field(repr=False)
    reasons: Sequence[str]
    rows: Sequence[ComparisonRow] = field(repr=False)
    meanings: Sequence[tuple[str, str]] = ()


def comparison_page(content: ComparisonContent) -> str:
    """The whole page."""
    main = element(
        "main",
        element("section", element("h2", "What to take"), element("ul", *(element("li", reason) for reason in content.reasons))),
        _map(content.figure),
        element("section", element("h2", "Every method"), _rows(content)),
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
    return "<!DOCTYPE html>\n" + element("html", page_head(content.title, _NARROW), body, lang="en").source + "\n"


def _map(figure: str | None) -> Html | None:
    if figure is None:
        return None
    caption = "Each mark is a method at one choice of parameters; hover over it for its name and scores."
    return element(
        "section",
        element("h2", "The map"),
        element("figure", inline_svg(figure, "risk-utility"), element("figcaption", caption)),
    )


def _rows(content: ComparisonContent) -> Html:
    others = list(dict.fromkeys(name for row in content.rows for name in row.scores))
    head = ("Method", "State", "Risk", "Loss", "Balance", *(plain_name(name) for name in others))
    rows: list[tuple[Child, ...]] = []
    for row in content.rows:
        label = joined([row.label, element("span", sentence(row.note), class_="note") if row.note else None])
        numbers = [percentage(row.risk), percentage(row.loss), percentage(row.balance)] if row.risk is not None else ["", "", ""]
        rows.append(
            (
                label,
                _state(row.state),
                *numbers,
                *(number(row.scores.get(name)) if row.risk is not None else "" for name in others),
            )
        )
    return table(f"Methods compared on {content.records:,} records, best balance first", head, rows)


def _meanings(content: ComparisonContent) -> list[tuple[str, str]]:
    return [
        *((plain_name(name), sentence(meaning)) for name, meaning in content.meanings),
        ("balance", "The mean of risk and loss; lower is better."),
        ("front", "No other method here has both a lower risk and a lower loss."),
    ]


def _state(state: str) -> Html:
    style = {"recommended": "good", "front": "good", "refused": "bad"}.get(state, "plain")
    return element("span", state, class_=f"state {style}")
