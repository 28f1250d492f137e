"""Aggregate tables: what a cell gives away, what else must be blank, and what the published table still says.

A table is one sparse linear system over its cells, whatever its dimensions, hierarchies and links to other tables.
"""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, names_in_stub

NAMES = names_in_stub(__file__)
KINDS = {"sensitivity": Kind("sfumato.tables.sensitivity:SensitivityRule", ("sfumato.tables",))}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
