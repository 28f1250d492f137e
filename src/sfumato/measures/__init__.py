"""Does it hold, how safe, how useful: guarantees, risk and utility of a released table.

Recipes call measures of utility and risk by their keys (`loss`, `disclosure_risk`); `guarantees` is the plain verifier.
"""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, names_in_stub


def places_by_key() -> dict[str, tuple[str, str]]:
    """Module and class of every measure of utility and risk by its key."""
    from sfumato.measures import risk, utility

    return {key: (module, name) for key, (name, module) in {**utility.KEYS, **risk.KEYS}.items()}


NAMES = names_in_stub(__file__)
KINDS = {"measure": Kind("sfumato.core.view:Measure", ("sfumato.measures",), keys="sfumato.measures:places_by_key")}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
