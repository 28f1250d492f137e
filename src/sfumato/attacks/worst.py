"""The attack that leaks most, when several attributes were attacked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sfumato.core.view import AttackResult
from sfumato.data.masked import TableView

ABOUT_SHOWN_VALUES = "A mask changed this column: all this is about what the release shows."


def worst(results: Iterable[AttackResult], view: TableView) -> AttackResult:
    """The result furthest above blind guessing, with the success on every attribute among its details."""
    found = [_about_shown_values(result, view) for result in results]
    chosen = max(found, key=lambda result: (result.success - result.baseline, result.success))
    if len(found) == 1:
        return chosen
    by_attribute = {str(result.details["attribute"]): result.success for result in found}
    return replace(chosen, details={**chosen.details, "success_by_attribute": by_attribute})


def _about_shown_values(result: AttackResult, view: TableView) -> AttackResult:
    """What is certain about a value that a mask changed is certain about what the release shows."""
    changed = view.certificate.get("transparency", {}).get("masked_columns", ())
    if result.details.get("attribute") not in changed:
        return result
    return replace(result, finding=f"{result.finding} {ABOUT_SHOWN_VALUES}")
