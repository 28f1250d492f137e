"""What a release card is made from: the certificate, and the numbers and figures around it.

Everything in it is plain data. Which parts a public card may show is decided here, once: what was computed from the original
stays with the owner. A figure comes as text; before it is part of a page it is parsed, and every element and attribute is held
against a list: scripts, event handlers, links out, foreign content and entities are refused, whoever made the figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal
from xml.etree import ElementTree

from sfumato.core.certificate import Certificate
from sfumato.core.errors import InputError
from sfumato.core.plain_data import PlainDict
from sfumato.core.view import AttackResult, Score
from sfumato.report.markup import Html, element
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


ELEMENTS = frozenset("svg g path use defs clipPath rect circle ellipse line polyline polygon text tspan title desc".split())
ATTRIBUTES = frozenset(
    "id d x y x1 x2 y1 y2 cx cy r rx ry width height points viewBox transform style class fill fill-opacity "
    "stroke "
    "stroke-width stroke-opacity stroke-dasharray opacity clip-path clip-rule role aria-labelledby "
    "aria-label "
    "aria-hidden href text-anchor font-size preserveAspectRatio".split()
)
#: What a style may set: how something is painted, never where it stands or how large it is.
PAINT = frozenset(
    "fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray stroke-dashoffset stroke-linecap "
    "stroke-linejoin stroke-miterlimit opacity clip-path clip-rule font font-family font-size font-style font-variant "
    "font-weight font-stretch text-anchor white-space writing-mode".split()
)
_NAMESPACE = "{http://www.w3.org/2000/svg}"
REACHES_OUT = re.compile(r"url\(\s*['\"]?(?!#)|@import|expression\s*\(|javascript:", re.IGNORECASE)
#: What decides where a figure stands on its page and how much of it.
_FRAME = ("x", "y", "width", "height", "viewBox", "preserveAspectRatio", "transform", "class", "style")
_NUMBER = re.compile(r"[-−+]?[0-9][0-9,.\s%]{0,11}")
_NAME = re.compile(r"[#A-Za-z0-9_. :-]{0,80}")


def shows_only(source: str, other: str) -> bool:
    """Whether a figure is plain SVG whose words are all those of another; numbers, as on axes, may differ."""
    try:
        inline_svg(source, "of a card")
    except InputError:
        return False
    root, expected = (ElementTree.fromstring(text) for text in (source, other))  # noqa: S314  (`inline_svg` found no declarations)
    if any(root.attrib.get(key) != expected.attrib.get(key) for key in _FRAME):
        return False
    nodes = list(root.iter())
    if any("class" in node.attrib or (node is not root and node.tag == root.tag) for node in nodes):
        return False
    names = (
        value
        for node in nodes
        for key, value in node.attrib.items()
        if key in {"id", "role", "href", "aria-labelledby", "aria-hidden"}
    )
    words = set(_words(expected))
    return all(word in words or _NUMBER.fullmatch(word) for word in _words(root)) and all(_NAME.fullmatch(name) for name in names)


def _words(root: ElementTree.Element) -> list[str]:
    labels = [node.attrib["aria-label"].strip() for node in root.iter() if "aria-label" in node.attrib]
    return [text.strip() for text in root.itertext() if text.strip()] + labels


def inline_svg(source: str, name: str) -> Html:
    """The figure, ready to stand in a page."""
    if "<!" in source or "<?" in source:
        raise InputError(f"figure '{name}' holds a declaration or a comment; a card takes plain SVG elements only")
    try:
        root = ElementTree.fromstring(source)  # noqa: S314  (no declarations, so no entities)
    except ElementTree.ParseError:
        raise InputError(f"figure '{name}' is not well-formed SVG") from None
    if root.tag != f"{_NAMESPACE}svg":
        raise InputError(f"figure '{name}' is not an SVG")
    for node in root.iter():
        if node.tag.removeprefix(_NAMESPACE) not in ELEMENTS:
            raise InputError(f"figure '{name}' holds an element that a card does not take")
        for key, value in node.attrib.items():
            if key not in ATTRIBUTES or not is_harmless(key, value):
                raise InputError(f"figure '{name}' holds an attribute that a card does not take")
    return Html(source)


def drawing(source: str, name: str, caption: str) -> Html:
    """A figure that keeps a readable size: on a narrow screen it scrolls inside its own region, which a keyboard reaches."""
    whole = element("figure", inline_svg(source, name), element("figcaption", caption))
    return element(
        "div", whole, class_="scroll drawing", tabindex="0", role="region", aria_label=f"Figure: {name.replace('_', ' ')}"
    )


def is_harmless(key: str, value: str) -> bool:
    """Whether an attribute reaches nowhere outside its page, and as a style only paints."""
    if REACHES_OUT.search(value) or (key == "href" and not value.startswith("#")):
        return False
    if key != "style":
        return True
    set_by_style = {part.partition(":")[0].strip() for part in value.split(";") if part.strip()}
    return set_by_style <= PAINT and not re.search(r"[\\{}@<]|/\*", value)
