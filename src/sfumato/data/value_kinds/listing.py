"""All kinds of values, by name, and which of them the values of a column look like, with evidence for and against.

A guess is a count: how many records and values a kind places, whether the column's name says so, and whether other things look
like that too. It is proposed only where nine records in ten fit and either the name or the look of the values speaks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sfumato.core.errors import ParameterError, as_name
from sfumato.core.texts import nearest
from sfumato.data.value_kinds import ages, countries, dates, icd10, isco08, nace2, postcodes, telephones
from sfumato.data.value_kinds.base import ValueKind

_STORED = {
    each.name: each for each in (ages.KIND, countries.KIND, dates.KIND, icd10.KIND, isco08.KIND, nace2.KIND, telephones.KIND)
}
_POSTCODES = "postcodes"
AUTO = "auto"
#: What may be asked for by name.
NAMES = tuple(sorted((*_STORED, _POSTCODES)))
_ENOUGH = 0.9


@dataclass(frozen=True)
class Evidence:
    """How far the values of a column are of a kind: values and records that are, those that are not, and what the name says."""

    kind: ValueKind = field(repr=False)
    values: int
    records: int
    other_values: int
    other_records: int
    named: bool

    @property
    def share(self) -> float:
        """The share of records with a value of the kind."""
        return self.records / max(self.records + self.other_records, 1)

    @property
    def convincing(self) -> bool:
        """Whether it may be proposed."""
        return self.share >= _ENOUGH and (self.named or self.kind.telling)


def kind_named(name: str, values: Sequence[str], counts: Sequence[int], country: str | None = None) -> ValueKind:
    """The kind with this name; postcodes are those of `country`, or of the form that most records have."""
    if country is not None and name != _POSTCODES:
        raise ParameterError(f"a country is for postcodes, and the kind is {as_name(name)}. Leave the country out.")
    if name == _POSTCODES:
        return postcodes.of_country(country) if country is not None else postcodes.of_values(values, counts)
    if name not in _STORED:
        raise ParameterError(
            f"there is no kind of values {as_name(name)}{nearest(name, (*NAMES, AUTO))}; choose {', '.join(NAMES)} or {AUTO}"
        )
    return _STORED[name]


def evidence(column: str, values: Sequence[str], counts: Sequence[int]) -> tuple[Evidence, ...]:
    """What speaks for and against every kind of which some value is, the most convincing first."""
    weighed = []
    for name in NAMES:
        kind = kind_named(name, values, counts)
        fits = [kind.groups(value) is not None for value in values]
        records = sum(count for count, fit in zip(counts, fits, strict=True) if fit)
        if any(fits):
            weighed.append(
                Evidence(kind, sum(fits), records, len(fits) - sum(fits), sum(counts) - records, kind.named_by(column))
            )
    return tuple(sorted(weighed, key=lambda each: (-each.convincing, -each.named, -each.share, not each.kind.telling)))


def proposed(weighed: Sequence[Evidence]) -> ValueKind | None:
    """The kind that may be proposed; None where none is, or several are on the same grounds."""
    convincing = [each for each in weighed if each.convincing]
    named = [each for each in convincing if each.named]
    best = named or convincing
    return best[0].kind if len(best) == 1 else None
