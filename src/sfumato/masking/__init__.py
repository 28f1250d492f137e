"""Masks: a table about people, changed record by record until it is hard to find anybody in it.

Noise, microaggregation, swapping, PRAM, coding, synthetic records. Every mask is a frozen value with one verb, `apply`;
names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "Change": "sfumato.masking.base",
    "Combined": "sfumato.masking.combined",
    "Context": "sfumato.masking.base",
    "Kept": "sfumato.masking.base",
    "Mask": "sfumato.masking.base",
    "Masked": "sfumato.data.masked",
}

if TYPE_CHECKING:
    from sfumato.data.masked import Masked as Masked
    from sfumato.masking.base import Change as Change
    from sfumato.masking.base import Context as Context
    from sfumato.masking.base import Kept as Kept
    from sfumato.masking.base import Mask as Mask
    from sfumato.masking.combined import Combined as Combined

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)
