"""What an adversary would do: one attack per file, each reports success beside blind guessing."""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, names_in_stub

NAMES = names_in_stub(__file__)
KINDS = {"attack": Kind("sfumato.core.view:Attack", ("sfumato.attacks",))}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
