"""Names that load on first use: a table from name to module behind a package's `__getattr__` (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any


def from_table(package: str, table: Mapping[str, str], name: str) -> Any:
    """The value of a name in the table, kept in the package from then on."""
    if name not in table:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(table[name]), name)
    setattr(sys.modules[package], name, value)
    return value
