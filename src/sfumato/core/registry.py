"""Names that recipes and commands may use: exactly the public table of the package.

A recipe says `name = "KAnonymity"`; the name is looked up here, never imported from a string in a file.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import RecipeError, as_name
from sfumato.core.params import build


def lookup(name: str, base: type[Any], what: str) -> type[Any]:
    """The public class of that name, if it is a `base`; otherwise an error that lists what there is."""
    found = candidates(base)
    if name in found:
        return found[name]
    near = difflib.get_close_matches(name, found, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(sorted(found))}."
    raise RecipeError(f"unknown {what} {as_name(name)}. {hint}")


def candidates(base: type[Any]) -> dict[str, type[Any]]:
    """All public classes that derive from `base`, by name."""
    face = importlib.import_module("sfumato")
    found = {}
    for name, module in face._TABLE.items():
        if name[0].isupper() and _may_hold(module, base):
            value = getattr(face, name)
            if isinstance(value, type) and issubclass(value, base) and value is not base:
                found[name] = value
    return found


def from_mapping(given: Mapping[str, Any], base: type[Any], what: str) -> Any:
    """Build the object that `{name = …, parameters…}` describes."""
    arguments = dict(given)
    name = arguments.pop("name", None)
    if not isinstance(name, str):
        raise RecipeError(f'a {what} needs a name, for instance name = "{next(iter(sorted(candidates(base))), "…")}"')
    return build(lookup(name, base, what), arguments)


def _may_hold(module: str, base: type[Any]) -> bool:
    """Skip modules of other layers, so that a lookup of a guarantee does not import a search."""
    room = {
        "ClassGuarantee": ".core.",
        "Search": ".anonymity.",
        "Mask": ".masking.",
        "Measure": ".measures.",
        "Attack": ".attacks.",
    }
    wanted = room.get(base.__name__)
    return wanted is None or wanted in module + "."
