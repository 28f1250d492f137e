"""Figures inside a page: only drawing, never behaviour.

A figure comes as text. Before it becomes part of a card it is parsed and every element and attribute is held
against a list; scripts, event handlers, links out, foreign content and entities are refused, whoever made the
figure.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from sfumato.core.errors import InputError
from sfumato.report.markup import Html, element

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
