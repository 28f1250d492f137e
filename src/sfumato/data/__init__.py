"""Data: schema and roles, hierarchies, the class table, readers and writers, sample data.

The names below load on first use, so that `import sfumato` stays light.
"""

from __future__ import annotations

from sfumato.core.lazy import face, names_in_stub

NAMES = names_in_stub(__file__)
__all__, __getattr__, __dir__ = face(__name__, NAMES)
