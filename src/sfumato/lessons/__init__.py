"""What one learns from: the words for privacy and what follows from them, the register of models, leaks shown on small data.

Nothing else in the house needs these; they are worked examples of the ideas that the other rooms build on.
"""

from __future__ import annotations

from sfumato.core.lazy import face, names_in_stub

NAMES = names_in_stub(__file__)
__all__, __getattr__, __dir__ = face(__name__, NAMES)
