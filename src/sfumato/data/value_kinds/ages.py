"""Ages in whole years: bands of 5, 10 and 20 years that nest, with a top band for the oldest, of whom there are few."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sfumato.data.schema import HierarchySpec
from sfumato.data.value_kinds.base import Groups, ValueKind

OLDEST = 130
#: From which age on all are one band.
TOP = 90
_WIDTH = 5


def groups(value: str) -> Groups:
    """Nothing but whether it is an age; cuts describe the bands."""
    return () if re.fullmatch(r"[0-9]{1,3}", value.strip()) and int(value) < OLDEST else None


def bands(values: Sequence[str]) -> HierarchySpec:
    """Cuts every 5 years; each further level drops every second one. They do not depend on the values.

    >>> [levels[:3] for levels in bands(()).cut_levels[:3]]
    [(5.0, 10.0, 15.0), (10.0, 20.0, 30.0), (20.0, 40.0, 60.0)]
    """
    return HierarchySpec(cuts=tuple(float(age) for age in range(_WIDTH, TOP + 1, _WIDTH)))


KIND = ValueKind(
    "ages",
    "ages in years",
    (),
    ("age", "alter", "edad", "eta", "idade", "leeftijd", "alder", "yas", "age years"),
    groups,
    parameters=bands,
)
