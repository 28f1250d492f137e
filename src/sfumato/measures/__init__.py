"""Does it hold, how safe, how useful: guarantees, risk and utility of a released table.

`by_key("loss")` finds a measure of utility or risk by the name recipes use; `guarantees` is the plain
verifier.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.core.view import Measure

_ROOMS = ("guarantees", "risk", "utility")


def by_key(key: str) -> type[Measure]:
    """The measure of utility or risk that recipes call by this key."""
    import difflib

    from sfumato.core.errors import RecipeError, as_name
    from sfumato.measures import risk, utility

    places = {**utility.KEYS, **risk.KEYS}
    if key in places:
        name, module = places[key]
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
    near = difflib.get_close_matches(key, places, n=1)
    hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(sorted(places))}."
    raise RecipeError(f"unknown measure {as_name(key)}. {hint}")


def keys() -> tuple[str, ...]:
    """The keys of all measures of utility and risk."""
    from sfumato.measures import risk, utility

    return tuple(sorted([*utility.KEYS, *risk.KEYS]))


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"sfumato.measures.{name}")
    raise AttributeError(f"module 'sfumato.measures' has no attribute {name!r}")
