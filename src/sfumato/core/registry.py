"""The one registry: every guarantee, search, mask, measure, attack, mechanism and private algorithm by kind and name.

A room says in its `__init__` which kinds it brings (`KINDS`); what is of a kind is listed in the stub of the room or of the
package (`core.lazy`). Recipes, commands, comparisons and tests look names up here; nothing is ever imported because a file
says so.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from sfumato.core.declared import build
from sfumato.core.errors import ParameterError, RecipeError, as_name
from sfumato.core.lazy import Kind
from sfumato.core.texts import closest, with_article


def find(kind: str, name: str) -> type[Any]:  # a class of that kind
    """The class of that kind and name: `find("mask", "Mdav")`. `method` stands for searches and masks together.

    >>> find("guarantee", "KAnonymity").__name__
    'KAnonymity'
    """
    for each in _parts(kind):
        place = _places(each).get(name) if isinstance(name, str) else None
        if place is not None:
            candidate = getattr(importlib.import_module(place[0]), place[1])
            if _belongs(candidate, each):
                return candidate  # type: ignore[no-any-return]
    choices = names(kind)
    near = closest(str(name), choices)
    hint = f"Did you mean '{near}'?" if near is not None else _elsewhere(kind, name) or f"There are: {', '.join(choices)}."
    raise RecipeError(f"unknown {kind} {as_name(name)}. {hint}")


def _elsewhere(kind: str, name: object) -> str:
    """What has this name among the other kinds, if anything has."""
    other = next((each for each in _kinds() if each not in _parts(kind) and has(each, name)), None)
    return "" if other is None else f"It is {with_article(other)}, and {with_article(kind)} is needed here."


def has(kind: str, name: object) -> bool:
    """Whether there is something of that kind and name."""
    return isinstance(name, str) and any(
        place is not None and _belongs(getattr(importlib.import_module(place[0]), place[1]), each)
        for each in _parts(kind)
        for place in (_places(each).get(name),)
    )


def names(kind: str) -> list[str]:
    """The names of everything of a kind, in order."""
    return sorted(every(kind))


def every(kind: str) -> dict[str, type[Any]]:  # classes of that kind
    """Everything of a kind by name."""
    return {
        name: candidate
        for each in _parts(kind)
        for name, (module, attribute) in _places(each).items()
        if _belongs(candidate := getattr(importlib.import_module(module), attribute), each)
    }


def make(kind: str, entry: object) -> Any:  # one of that kind
    """What `{name = …, parameters…}` describes; a text is a name without parameters, and one of that kind is taken as it is."""
    if not isinstance(entry, (str, Mapping)):
        if any(_belongs(type(entry), each) for each in _parts(kind)):
            return entry
        if isinstance(entry, type) and any(_belongs(entry, each) for each in _parts(kind)):
            raise ParameterError(
                f"{entry.__name__} is a class. Pass {entry.__name__}(…) with its parameters, or its name as a text."
            )
        raise ParameterError(
            f"{type(entry).__name__} is not {with_article(kind)}. Pass {kind}s, their names, or tables with a name."
        )
    arguments = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = arguments.pop("name", None)
    if not isinstance(name, str):
        raise RecipeError(f'a {kind} needs a name, for instance name = "{names(kind)[0]}"')
    return build(find(kind, name), arguments)


def in_names_of_now(kind: str, description: Mapping[str, object]) -> dict[str, object]:
    """A stored `{name = …, parameters…}`, and those within it, with the names that their parameters have now."""

    def within(value: object) -> object:
        if isinstance(value, (list, tuple)):
            return [within(entry) for entry in value]
        return in_names_of_now(kind, value) if isinstance(value, Mapping) and "name" in value else value

    name = description.get("name")
    former: Mapping[str, str] = getattr(find(kind, name), "former_names", {}) if isinstance(name, str) and has(kind, name) else {}
    # Where both names stand, nothing is restated, and whoever makes it refuses the old one.
    names_of_now = {old: now for old, now in former.items() if now not in description}
    return {names_of_now.get(each, each): within(value) for each, value in description.items()}


def kinds() -> dict[str, Kind]:
    """Every kind of every room."""
    return dict(_kinds())


def _parts(kind: str) -> tuple[str, ...]:
    """The kinds that a word stands for."""
    if kind == "method":
        return ("search", "mask")
    if kind not in _kinds():
        raise ParameterError(f"there is no kind {as_name(kind)}; there are: {', '.join(sorted(_kinds()))}")
    return (kind,)


@cache
def _kinds() -> Mapping[str, Kind]:
    import sfumato

    rooms = [name for name, module in sfumato.NAMES.items() if module == "sfumato"]
    listed = [getattr(importlib.import_module(f"sfumato.{room}"), "KINDS", {}) for room in rooms]
    return {name: kind for each in listed for name, kind in each.items()}


@cache
def _places(kind: str) -> Mapping[str, tuple[str, str]]:
    """Module and class by name of what may belong to a kind; classes elsewhere are not loaded to find out."""
    import sfumato

    brought = _kinds()[kind]
    if brought.keys:
        module, _, function = brought.keys.partition(":")
        places: Mapping[str, tuple[str, str]] = getattr(importlib.import_module(module), function)()
        return places
    rooms = {".".join(package.split(".")[:2]) for package in brought.within}
    listed = dict(sfumato.NAMES)
    for room in rooms:
        listed |= getattr(importlib.import_module(room), "NAMES", {})
    return {
        name: (module, name)
        for name, module in listed.items()
        if name[0].isupper() and any(module.startswith(f"{package}.") for package in brought.within)
    }


def _belongs(candidate: object, kind: str) -> bool:
    module, _, base = _kinds()[kind].base.partition(":")
    root = getattr(importlib.import_module(module), base)
    return (
        isinstance(candidate, type)
        and issubclass(candidate, root)
        and candidate is not root
        and not inspect.isabstract(candidate)
    )
