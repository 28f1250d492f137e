"""What a written table shows: every guarantee measured by the plain verifier and turned into a claim.

The claims of a certificate come from here and from nowhere else; a guarantee that does not hold on what was
read back is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core.certificate import Claim
from sfumato.core.errors import VerificationFailed, all_at_once
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.params import parameters
from sfumato.data.relation import COUNT
from sfumato.data.values import texts

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import Microdata
    from sfumato.data.schema import Schema
    from sfumato.measures.guarantees.examined import Measurement
    from sfumato.measures.guarantees.reference import ReferenceDistribution


@dataclass(frozen=True, eq=False)
class References:
    """The tables that some guarantees compare with, and how the certificate names them."""

    original: Microdata | None = field(default=None, repr=False)
    population: Microdata | None = field(default=None, repr=False)
    original_digest: str | None = None
    population_digest: str | None = None

    def digest_for(self, guarantee: ClassGuarantee) -> str | None:
        """How the certificate names the second file that this guarantee needs."""
        if guarantee.evidence != "output+reference":
            return None
        if guarantee.needs_population:
            return f"population {self.population_digest or 'without digest'}"
        return f"input {self.original_digest or 'without fingerprint'}"

    def distribution(self, guarantees: Sequence[ClassGuarantee]) -> ReferenceDistribution | None:
        """The overall distribution of the sensitive attributes that are compared with the original."""
        from sfumato.measures.guarantees.reference import ReferenceDistribution

        names = dict.fromkeys(g.sensitive for g in guarantees if g.sensitive and hasattr(g, "reference"))
        if self.original is None or not names:
            return None
        counts = {name: _counts(self.original.relation.group([name]), name) for name in names}
        return ReferenceDistribution(counts, max(sum(values.values()) for values in counts.values()))

    def people(self, schema: Schema, guarantees: Sequence[ClassGuarantee]) -> pa.Table | None:
        """The quasi-identifiers of the population, where a guarantee asks for them."""
        import pyarrow as pa

        if self.population is None or not any(guarantee.needs_population for guarantee in guarantees):
            return None
        return pa.Table.from_batches(list(self.population.relation.batches(list(schema.quasi))))


def measure_all(
    table: pa.Table, schema: Schema, guarantees: Sequence[ClassGuarantee], references: References
) -> tuple[Measurement, ...]:
    """One measurement per guarantee, over one grouping of the table."""
    from sfumato.measures.guarantees.measure import measure_each

    return measure_each(
        table,
        schema,
        guarantees,
        original=references.distribution(guarantees),
        population=references.people(schema, guarantees),
    )


def claims_of(
    table: pa.Table,
    schema: Schema,
    guarantees: Sequence[ClassGuarantee],
    references: References,
    *,
    also: Mapping[str, Mapping[str, float]] | None = None,
) -> tuple[Claim, ...]:
    """Measure the table and state what was found; raises `VerificationFailed` when something does not hold.

    `also` adds numbers measured elsewhere (different units behind a class), by the guarantee's key.
    """
    measured = measure_all(table, schema, guarantees, references)
    pairs = list(zip(guarantees, measured, strict=True))
    refuse_violations(pairs, "the table that was written")
    more = also or {}
    return tuple(
        Claim(
            guarantee=guarantee.key,
            parameters=parameters(guarantee),
            promised=guarantee.claim(),
            measured=plain_number(found.value),
            holds=found.holds,
            evidence=guarantee.evidence,
            protects=guarantee.protects,
            adversary=guarantee.adversary,
            unit=f"different '{schema.unit}'" if schema.unit else "record",
            also_measured={**dict(found.also), **more.get(guarantee.key, {})},
            reference=references.digest_for(guarantee),
        )
        for guarantee, found in pairs
    )


def _counts(grouped: pa.Table, name: str) -> dict[str | None, int]:
    counts: dict[str | None, int] = {}
    totals = grouped.column(COUNT).to_pylist()
    for text, total in zip(texts(grouped.column(name)), totals, strict=True):
        counts[text] = counts.get(text, 0) + int(total)
    return counts


def refuse_violations(pairs: Sequence[tuple[ClassGuarantee, Measurement]], what: str) -> None:
    """Raise when a measurement breaks its guarantee; classes and records are counted, never shown."""
    faults = [
        f"{guarantee.key} promises {guarantee.threshold:.6g} but {found.value:.6g} was measured "
        f"({found.failing_classes:,} classes with {found.failing_records:,} records fail)"
        for guarantee, found in pairs
        if not found.holds
    ]
    all_at_once(VerificationFailed, f"{what} does not keep what was promised; nothing was released", faults)


def plain_number(value: float) -> float:
    """Counts as whole numbers, so that a certificate says 5 and not 5.0."""
    return int(value) if float(value).is_integer() else float(value)
