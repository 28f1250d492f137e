"""Does it hold? The plain verifier of class guarantees: works on rows and roles, shares no code with the
searches.
"""

from __future__ import annotations

from typing import Any

from sfumato.core.lazy import from_table

_TABLE = {
    "Classes": "sfumato.measures.guarantees.classes",
    "ExaminedTable": "sfumato.measures.guarantees.examined",
    "Measurement": "sfumato.measures.guarantees.examined",
    "ReferenceDistribution": "sfumato.measures.guarantees.reference",
    "TableMeasures": "sfumato.measures.guarantees.overview",
    "measure": "sfumato.measures.guarantees.measure",
    "measure_all": "sfumato.measures.guarantees.overview",
    "measure_each": "sfumato.measures.guarantees.measure",
}

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)
