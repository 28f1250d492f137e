"""How safe is the release? Measures of re-identification risk, and the words and models behind them.

`KEYS` gives, for the name recipes use, the class and its module; both load on first use.
"""

from __future__ import annotations

from typing import Any

from sfumato.core.lazy import from_table

_ROOM = "sfumato.measures.risk"

KEYS: dict[str, tuple[str, str]] = {
    "distinction": ("AttributeDistinction", f"{_ROOM}.distinction"),
    "journalist_risk": ("JournalistRisk", f"{_ROOM}.reidentification"),
    "marketer_risk": ("MarketerRisk", f"{_ROOM}.reidentification"),
    "population_uniqueness": ("PopulationUniqueness", f"{_ROOM}.population_uniqueness"),
    "prosecutor_risk": ("ProsecutorRisk", f"{_ROOM}.reidentification"),
    "uniques": ("SampleUniques", f"{_ROOM}.reidentification"),
}

_TABLE = {
    **dict(KEYS.values()),
    "AnonymitySet": f"{_ROOM}.anonymity_set",
    "IntegralPrivacy": f"{_ROOM}.integral_privacy",
    "Property": f"{_ROOM}.terminology",
    "ReferenceSetting": f"{_ROOM}.terminology",
}

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)
