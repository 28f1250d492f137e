"""The attack that leaks most, when several attributes were attacked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sfumato.core.view import AttackResult


def worst(results: Iterable[AttackResult]) -> AttackResult:
    """The result furthest above blind guessing, with the success on every attribute among its details."""
    found = list(results)
    chosen = max(found, key=lambda result: (result.success - result.baseline, result.success))
    if len(found) == 1:
        return chosen
    by_attribute = {str(result.details["attribute"]): result.success for result in found}
    return replace(chosen, details={**chosen.details, "success_by_attribute": by_attribute})
