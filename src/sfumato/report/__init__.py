"""What people read: release cards, checklists and figures. Names load on first use."""

from __future__ import annotations

import importlib
from typing import Any

_TABLE: dict[str, str] = {
    "Answer": "sfumato.report.content",
    "CardContent": "sfumato.report.content",
    "checklist": "sfumato.report.checklist",
    "release_card": "sfumato.report.card",
}

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    if name in _TABLE:
        return getattr(importlib.import_module(_TABLE[name]), name)
    raise AttributeError(f"module 'sfumato.report' has no attribute {name!r}")
