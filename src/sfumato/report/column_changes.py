"""What was done to each column of a table, in words, with one invented row before and after.

The words follow from what the certificate tells about the method and is held to. The invented row is the publisher's: it was
drawn from what the owner declared, and from no record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core import registry
from sfumato.core.certificate import Certificate
from sfumato.report.lead import columns_of

AS_IT_IS = "published as it is"
LEFT_OUT = "left out"
PSEUDONYM = "replaced by a pseudonym, the same one for the same value"
CHOSEN = "published as it is; only some of the records are published"
#: How a certificate names ranges that a search made of the data.
RANGES = "ranges of the data"

#: How the values of a column are made less precise, by the kind of its hierarchy.
_GROUPS = {
    "file": "replaced by groups of values",
    "tree": "replaced by groups of values",
    "intervals": "replaced by intervals",
    "cuts": "replaced by intervals",
    "mask": "characters replaced by *",
    "dates": "replaced by longer periods",
    "frequency": "replaced by groups of values that are about as frequent",
    "flat": "replaced by *",
    RANGES: "replaced by ranges that were made of the data",
}
_ROLES = {
    "quasi": "may be known to others",
    "sensitive": "sensitive",
    "plain": "not protected",
    "weight": "survey weight",
    "unit": "names the unit",
    "identifier": "names people",
}


@dataclass(frozen=True)
class ColumnChange:
    """One column: its part in words, what was done, and its invented value before and after."""

    name: str
    role: str
    done: str
    before: str | None = None
    after: str | None = None


def column_changes(certificate: Certificate) -> list[ColumnChange]:
    """Every column of the original that the certificate names: the published ones, then those that were left out."""
    example = certificate.card.get("example", {})
    facts = certificate.transparency
    removed = _names(facts.get("removed_columns"))
    changes = [
        ColumnChange(
            name, _ROLES.get(str(entry.get("role", "plain")), ""), _done(certificate, name, entry), *_pair(example, name)
        )
        for name, entry in columns_of(certificate).items()
    ]
    return [*changes, *(ColumnChange(name, "", LEFT_OUT, *_pair(example, name)) for name in removed)]


def has_example(changes: Sequence[ColumnChange]) -> bool:
    """Whether some column has an invented value."""
    return any(change.before is not None for change in changes)


def _done(certificate: Certificate, name: str, entry: Mapping[str, Any]) -> str:
    facts, method = certificate.transparency, certificate.method.get("name")
    if name in _names(facts.get("pseudonymised_columns")):
        return PSEUDONYM
    if registry.has("mask", method):
        mask = registry.find("mask", str(method))
        if mask.selects:
            return CHOSEN
        return f"changed by {method}" if name in _names(facts.get("masked_columns")) else AS_IT_IS
    kinds, levels = facts.get("hierarchies"), facts.get("levels")
    kind = kinds.get(name) if isinstance(kinds, Mapping) else None
    level = levels.get(name) if isinstance(levels, Mapping) else None
    if entry.get("role") != "quasi" or (kind is None and level is None) or level == 0:
        return AS_IT_IS
    done = _GROUPS.get(str(kind), "generalised")
    if level is not None:
        return done if kind == "flat" else f"{done}, by {level} step{'s' * (level != 1)} in every record"
    return f"{done} where the promises need it, in some records further than in others"


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, (list, tuple)) else []


def _pair(example: object, name: str) -> tuple[str | None, str | None]:
    pair = example.get(name) if isinstance(example, Mapping) else None
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        return None, None
    before, after = pair
    return (None if before is None else str(before)), (None if after is None else str(after))
