"""What people read: release cards, checklists and figures. Names load on first use."""

from __future__ import annotations

from typing import Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "Answer": "sfumato.report.content",
    "CardContent": "sfumato.report.content",
    "checklist": "sfumato.report.checklist",
    "release_card": "sfumato.report.card",
}

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)
