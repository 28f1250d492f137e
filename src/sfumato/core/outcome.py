"""What a room returns: a result, the guarantees it claims, and the details of how it was reached.

Rooms never make releases: `workflow.publishing.publish` turns an outcome into one, after it has been measured by somebody
else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from sfumato.core.guarantees.base import Guarantee

R = TypeVar("R", covariant=True)


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """`result` (for a table search a `Recoding`), the `claimed` guarantees, the `method` as a mapping with its name,
    `details`."""

    result: R
    claimed: tuple[Guarantee, ...]
    method: Mapping[str, object]
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        return f"Outcome({self.method.get('name')}, claimed={len(self.claimed)}, details={sorted(self.details)})"
