"""What a release card is made from: the certificate, and the numbers and figures around it.

Everything in it is plain data. Which parts a public card may show is decided here, once: what was computed
from the original stays with the owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from sfumato.core.certificate import Certificate
from sfumato.core.plain_data import PlainDict
from sfumato.core.view import AttackResult, Score
from sfumato.report.inline_svg import drawing
from sfumato.report.markup import Html
from sfumato.report.wording import FIGURES, plain_name

Audience = Literal["public", "owner"]

#: The figure that the public card shows: it needs nothing but the released rows. Every other figure is the owner's.
PUBLIC_FIGURES = ("class_sizes",)
OWNER_FIGURES = ("risk_profile", "loss_per_attribute", "tradeoff", "distributions", "ledger_timeline", "ledger_budget")

#: Details that stand at the top of a card, in this order; what is told about a method has other names.
HEADLINES = {
    "released": "records released",
    "released records": "records released",
    "published rows": "rows published",
    "suppressed": "records suppressed",
    "classes": "classes",
}


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class Answer:
    """What a person answered to a question of the checklist that no program can answer."""

    given: bool
    note: str = ""


@dataclass(frozen=True)
class ColumnDecision:
    """What was decided about something, a column as a rule, and on whose word it rests."""

    about: str
    said: str
    whose: str


@dataclass(frozen=True)
class CardContent:
    """The content of a card.

    `scores`, `risk`, `attacks` and `owner_…` reach the owner's card only. `figures`: SVG text by name (see
    PUBLIC_FIGURES and OWNER_FIGURES), made by `report.figures`. `missing`: quasi-identifiers in which values are missing.
    `risk`: numbers measured on the released rows (`{"prosecutor_highest": 0.2, …}`); `owner_risks`: risks that take the original.
    `decisions`: what was decided, and by whom; `left_out`: what the publisher could say about the release and does not.
    `attacks`: run on the released rows alone, beside those in the certificate; `owner_attacks`: run with the
    original available. `details`: how the search went (`levels`, `records`, `suppressed`, `classes`, `gap`, …);
    numbers, texts and one level of mappings of them. `owner_details`: the same, for the owner only.
    `answers`: a person's answers to the checklist by question id (see `checklist.QUESTIONS`). `signature`:
    one sentence, `signed` says whether a signature is there. `scored` says that usefulness was measured, be it
    by scores that are the owner's.
    """

    certificate: Certificate
    title: str = ""
    scores: tuple[Score, ...] = ()
    scored: bool = False
    figures: Mapping[str, str] = field(default_factory=_empty, repr=False)
    risk: Mapping[str, float] = field(default_factory=_empty)
    missing: tuple[str, ...] = ()
    decisions: tuple[ColumnDecision, ...] = ()
    left_out: tuple[str, ...] = ()
    owner_risks: tuple[Score, ...] = ()
    attacks: tuple[AttackResult, ...] = ()
    owner_attacks: tuple[AttackResult, ...] = ()
    details: Mapping[str, Any] = field(default_factory=_empty)
    owner_details: Mapping[str, Any] = field(default_factory=_empty)
    answers: Mapping[str, Answer] = field(default_factory=_empty)
    signature: str = "not signed"
    signed: bool = False

    def figure(self, name: str) -> Html | None:
        """A figure with its caption, where there is one of this name."""
        if name not in self.figures:
            return None
        return drawing(self.figures[name], name, FIGURES.get(name, plain_name(name)))

    def figures_for(self, audience: Audience) -> tuple[tuple[str, str], ...]:
        """The figures this reader may see, in reading order."""
        named = PUBLIC_FIGURES if audience == "public" else (*PUBLIC_FIGURES, *OWNER_FIGURES)
        present = [name for name in named if name in self.figures]
        others = sorted(set(self.figures) - {*PUBLIC_FIGURES, *OWNER_FIGURES}) if audience == "owner" else []
        return tuple((name, self.figures[name]) for name in (*present, *others))


#: Details that are numbers or words, and not arrays.
_WORDS = (int, float, str, bool)


def plain_details(details: Mapping[str, object]) -> PlainDict:
    """The details that are numbers and words, or one level of them."""
    kept: dict[str, Any] = {}
    for name, value in details.items():
        if isinstance(value, _WORDS):
            kept[name] = value
        elif isinstance(value, Mapping) and all(isinstance(entry, _WORDS) for entry in value.values()):
            kept[name] = dict(value)
    return kept
