"""Does it hold? The plain verifier of class guarantees: works on rows and roles, shares no code with the
searches.
"""

from __future__ import annotations

from sfumato.core.lazy import face, names_in_stub

NAMES = names_in_stub(__file__)
__all__, __getattr__, __dir__ = face(__name__, NAMES)
