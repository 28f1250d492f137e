"""How methods are called: the names that comparisons print are those that `protect` takes.

`Mdav(k=5)` is a mask or a search with parameters as in TOML, `KAnonymity(k=10) by Mondrian` guarantees (joined by a plus) and the
search that reaches them, `RankSwapping(p=25) + Pram(stay=0.8)` masks that share the quasi-identifiers: each takes those that it
changes best of what is left, unless it names its columns.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sfumato.core import registry
from sfumato.core.errors import ParameterError, Unsupported, all_at_once
from sfumato.core.plain_data import PlainDict
from sfumato.data.records import Kind, kind_of
from sfumato.masking.base import Mask
from sfumato.workflow import named

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.core.guarantees.base import ClassGuarantee
    from sfumato.data.microdata import Microdata


@dataclass(frozen=True)
class Called:
    """What a text calls for: guarantees, and a search, a mask or several masks, as plain data."""

    guarantees: tuple[PlainDict, ...]
    methods: tuple[PlainDict, ...]


@dataclass(frozen=True)
class Shared:
    """Masks that share the quasi-identifiers of a table among them, once it is there."""

    masks: tuple[Mask, ...]


#: A method that may still have to be told its columns.
Unplaced: TypeAlias = "Search | Mask | Shared"


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


def method_called(text: str) -> tuple[Unplaced, tuple[ClassGuarantee, ...]]:
    """The method that a text calls for, and the guarantees that it names."""
    said = called(text)
    if not said.methods:
        name = said.guarantees[0]["name"]
        raise ParameterError(
            f"{name} is a guarantee and no method: pass it in guarantees= (--guarantee), or write '{name}(…) by …'"
        )
    promised = named.guarantees(said.guarantees, "method")
    if len(said.methods) == 1:
        return named.method(said.methods[0]), promised
    masks: tuple[Mask, ...] = tuple(registry.make("mask", each) for each in said.methods)
    return (combined(masks) if all(mask.columns for mask in masks) else Shared(masks)), promised


def combined(masks: Sequence[Mask]) -> Mask:
    """Masks that name their columns, in turn."""
    from sfumato.masking.combined import Combined

    return Combined(masks=tuple(masks))


def placed(method: Unplaced, people: Microdata) -> Search | Mask:
    """The method on this table: masks that share its quasi-identifiers get their columns."""
    if not isinstance(method, Shared):
        return method
    kinds = column_kinds(people)
    left = {name: kind for name, kind in kinds.items() if not any(name in (mask.columns or ()) for mask in method.masks)}
    masks: list[Mask] = []
    faults: list[str] = []
    for place, mask in enumerate(method.masks):
        if mask.columns is None:
            last = place == len(method.masks) - 1
            handled = mask.handles if last else preferred(mask, kinds.values())
            able = tuple(name for name, kind in left.items() if kind in handled)
            left = {name: kind for name, kind in left.items() if name not in able}
            mask = dataclasses.replace(mask, columns=able or None)
            if not able:
                faults.append(f"no quasi-identifier is left for {type(mask).__name__}; name its columns, as columns=[…]")
        masks.append(mask)
    faults += [f"none of these masks changes '{name}'; add one that does, such as Pram(stay=0.8)" for name in left]
    all_at_once(Unsupported, " + ".join(type(mask).__name__ for mask in method.masks), faults)
    return combined(masks)


def preferred(mask: Mask, kinds: Iterable[Kind]) -> frozenset[Kind]:
    """The kinds of columns that are left to a mask: one that needs an order has numbers, and ordered categories only where there
    are no numbers. A few values in order have so many ties that their ranks hardly move."""
    if "category" in mask.handles or "number" not in mask.handles or "number" not in kinds:
        return mask.handles
    return frozenset({"number"})


def column_kinds(people: Microdata) -> dict[str, Kind]:
    """The kind of each quasi-identifier."""
    types = people.relation.schema()
    return {name: kind_of(types.field(name).type, people.schema.columns[name]) for name in people.schema.quasi}


def masks_label(masks: Sequence[Mask], people: Microdata | None) -> str:
    """Masks in turn: without their columns where these are the ones that they get on this table."""
    short = tuple(dataclasses.replace(mask, columns=None) for mask in masks)
    if people is not None and len(masks) > 1:
        try:
            if placed(Shared(short), people) == combined(masks):
                return " + ".join(map(label, short))
        except Unsupported:  # other columns than those that they would get
            pass
    listed = " + ".join(map(label, masks))
    return listed if len(masks) > 1 and all(mask.columns for mask in masks) else label(combined(masks))


def label(value: object) -> str:
    """A method or guarantee with the parameters that differ from their defaults, as it is typed: its own before those that all
    masks have."""
    common = {field.name for field in dataclasses.fields(Mask)}
    settings = own(value)
    ordered = sorted(settings, key=lambda name: name in common)
    return f"{type(value).__name__}({', '.join(f'{name}={toml(settings[name])}' for name in ordered)})"


def own(value: object) -> PlainDict:
    """The parameters that differ from their defaults."""
    settings = {}
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    for field in fields:
        usual = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.init and getattr(value, field.name) is not None and getattr(value, field.name) != usual:
            settings[field.name] = getattr(value, field.name)
    return settings


def toml(value: object) -> str:
    """A parameter as TOML has it in a line."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {"name": type(value).__name__, **own(value)}
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(str(name))}={toml(each)}' for name, each in value.items())}}}"
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return json.dumps(value if isinstance(value, (bool, int, float, str)) else str(value), ensure_ascii=False)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)


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
