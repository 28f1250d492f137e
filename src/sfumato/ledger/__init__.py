"""The ledger: grants, spends, stored answers and releases, append-only and hash-chained, in SQLite or
PostgreSQL.
"""

from __future__ import annotations

from sfumato.core.lazy import face, names_in_stub

NAMES = names_in_stub(__file__)
__all__, __getattr__, __dir__ = face(__name__, NAMES)
