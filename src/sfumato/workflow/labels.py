"""How methods are called: the names that comparisons print are those that `protect` takes.

`Mdav(k=5)` is a mask or a search with parameters as in TOML, `KAnonymity(k=10) by Mondrian` guarantees (joined by a plus) and the
search that reaches them, `RankSwapping(p=25) + Pram(stay=0.8)` masks that share the quasi-identifiers: each takes those that it
changes best of what is left, unless it names its columns.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core import registry
from sfumato.core.errors import ParameterError
from sfumato.core.plain_data import PlainDict
from sfumato.workflow import named


@dataclass(frozen=True)
class Called:
    """What a text calls for: guarantees, and a search, a mask or several masks, as plain data."""

    guarantees: tuple[PlainDict, ...]
    methods: tuple[PlainDict, ...]


def called(text: str) -> Called:
    """What the text calls for, before anything is looked up but whether the first names are guarantees."""
    before, *after = parts(text, " by ")
    if len(after) > 1:
        raise ParameterError("write one 'by': the guarantees, by, the search that reaches them")
    entries = tuple(named.inline(part) for part in parts(before, " + "))
    if after:
        return Called(entries, (named.inline(after[0]),))
    if all(is_guarantee(each["name"]) for each in entries):
        return Called(entries, ())
    return Called((), entries)


def is_guarantee(name: object) -> bool:
    """Whether a promise has this name."""
    return registry.has("guarantee", name) or registry.has("loss", name)


def parts(text: str, word: str) -> list[str]:
    """A text cut at a word, outside parentheses and quotes."""
    pieces, begun, depth, quote = [], 0, 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(word, place) and place >= begun:
            pieces.append(text[begun:place])
            begun = place + len(word)
    return [*pieces, text[begun:]]
