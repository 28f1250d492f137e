"""What a notebook shows of a value: a few facts and tables, every text escaped, the owner's marked as such."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.core.markup import Child, Html, definitions, element, joined

#: Said of everything that was computed from the original.
OWNERS = "Owner only: this was computed from the original data. Do not publish it."


def panel(kind: str, facts: Iterable[tuple[str, Child]], *parts: Child, owner: bool = False) -> str:
    """The kind of value, its facts, and what follows them; `owner` says that all of it is the owner's."""
    return element("div", element("strong", kind), owners_mark() if owner else None, definitions(facts), *parts).source


def owners_mark() -> Html:
    """The sentence that stands above what only the owner may see."""
    return element("p", element("strong", OWNERS))


def lines(texts: Iterable[Child]) -> Html:
    """Texts below each other."""
    return joined([element("div", text) for text in texts])
