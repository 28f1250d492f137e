"""What a written table shows: every guarantee measured by the plain verifier and turned into a claim.

The claims of a certificate come from here and from nowhere else; a guarantee that does not hold on what was
read back is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from sfumato.core.certificate import KNOWN_VALUES, RECORDS_PER_CLASS, Certificate, Claim
from sfumato.core.declared import parameters
from sfumato.core.errors import Infeasible, Unsupported, VerificationFailed, all_at_once
from sfumato.core.guarantees.base import ClassGuarantee, Guarantee
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.view import ONE_RECORD
from sfumato.data.relation import COUNT
from sfumato.data.texts.values import texts
from sfumato.workflow.publishing.grouped_rows import GroupedRows

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.hierarchies.hierarchy import Hierarchy
    from sfumato.data.microdata import Microdata
    from sfumato.data.schema import Schema
    from sfumato.data.transactions_lists import ItemsetList
    from sfumato.measures.guarantees.examined import Measurement
    from sfumato.measures.guarantees.grouped import GroupedTable
    from sfumato.measures.guarantees.reference import ReferenceDistribution


def each_once(guarantees: ClassGuarantee | Iterable[ClassGuarantee]) -> tuple[ClassGuarantee, ...]:
    """What is to be promised, one guarantee or several: promised twice, it is one promise."""
    asked = (guarantees,) if isinstance(guarantees, ClassGuarantee) else tuple(guarantees)
    return tuple(each for place, each in enumerate(asked) if each not in asked[:place])


def counts_units(guarantee: ClassGuarantee) -> bool:
    """Whether the guarantee counts different units where the schema names a unit column."""
    return isinstance(guarantee, (KAnonymity, AlphaKAnonymity))


#: What is measured beside a promise: against the original, suppressed records included, and against the released rows alone.
INPUT, RELEASED = "reference input", "reference released"
#: How a certificate begins to say that a column names the units.
_UNIT_COLUMN = "one value of the column '"


def unit_in_words(column: str | None) -> str:
    """What a certificate calls a unit: one record, or one value of the column that names the units."""
    return ONE_RECORD if column is None else f"{_UNIT_COLUMN}{column}'"


def stated_unit(certificate: Certificate) -> str | None:
    """The column that the certificate says to name the units; None where it says that each record is one, or nothing."""
    stated = str(certificate.transparency.get("unit", ""))
    return stated.removeprefix(_UNIT_COLUMN).removesuffix("'") if stated.startswith(_UNIT_COLUMN) else None


@dataclass(frozen=True, eq=False)
class UnitCounts:
    """What was measured in different units before the column that names them was dropped; outsiders cannot
    repeat it.
    """

    column: str
    measured: Mapping[ClassGuarantee, Measurement] = field(repr=False)


@dataclass(frozen=True, eq=False)
class References:
    """The tables that some guarantees compare with, and how the certificate names them; the owner may declare that everybody
    can have the population.
    """

    original: Microdata | None = field(default=None, repr=False)
    population: Microdata | None = field(default=None, repr=False)
    original_digest: str | None = None
    population_digest: str | None = None
    population_public: bool = False
    #: What is hidden in baskets, as its owner lists it.
    itemsets: ItemsetList | None = field(default=None, repr=False)
    #: The population's quasi-identifiers as they were read first: it may be another one when the release is saved.
    _people: dict[tuple[str, ...], pa.Table] = field(default_factory=dict, init=False, repr=False)
    #: The original's distributions, which are asked for with every measurement.
    _distributions: dict[tuple[str, ...], ReferenceDistribution] = field(default_factory=dict, init=False, repr=False)

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

        names = tuple(dict.fromkeys(g.sensitive for g in guarantees if g.sensitive and hasattr(g, "reference")))
        if self.original is None or not names:
            return None
        if names not in self._distributions:
            counts = {name: _counts(self.original.relation.group([name]), name) for name in names}
            records = max(sum(values.values()) for values in counts.values())
            self._distributions[names] = ReferenceDistribution(counts, records)
        return self._distributions[names]

    def tree(self, name: str, schema: Schema) -> Hierarchy:
        """The hierarchy of a column over the values that the original has, as `schema` describes it."""
        from sfumato.data.hierarchies import hierarchy_builders

        if self.original is None:
            raise Unsupported(f"column '{name}' has no hierarchy here, and there is no original whose values would make one")
        counts = _counts(self.original.relation.group([name]), name)
        return hierarchy_builders.build(name, schema.columns[name], list(counts), list(counts.values()), schema.folder)

    def people(self, schema: Schema, guarantees: Sequence[ClassGuarantee]) -> pa.Table | None:
        """The quasi-identifiers of the population, where a guarantee asks for them."""
        import pyarrow as pa

        if self.population is None or not any(guarantee.needs_population for guarantee in guarantees):
            return None
        if schema.quasi not in self._people:
            self._people[schema.quasi] = pa.Table.from_batches(list(self.population.relation.batches(list(schema.quasi))))
        return self._people[schema.quasi]

    def grouped_people(self, schema: Schema, guarantees: Sequence[ClassGuarantee]) -> GroupedTable | None:
        """The same by their groups, which the engine of the population counts."""
        from sfumato.measures.guarantees.grouped import GroupedTable

        if self.population is None or not any(guarantee.needs_population for guarantee in guarantees):
            return None
        grouped = self.population.relation.group(list(schema.quasi))
        return GroupedTable(grouped.select(list(schema.quasi)), grouped.column(COUNT).to_numpy())


def measure_all(
    table: pa.Table | GroupedRows, schema: Schema, guarantees: Sequence[ClassGuarantee], references: References
) -> tuple[Measurement, ...]:
    """One measurement per guarantee, over one grouping of the table; rows that are elsewhere are measured by their groups."""
    from sfumato.measures.guarantees.measure import measure_each, measure_grouped

    if isinstance(table, GroupedRows):
        return measure_grouped(
            table.groups,
            schema,
            guarantees,
            original=references.distribution(guarantees),
            population=references.grouped_people(schema, guarantees),
        )
    return measure_each(
        table,
        schema,
        guarantees,
        original=references.distribution(guarantees),
        population=references.people(schema, guarantees),
    )


def units_behind(rows: pa.Table, people: Microdata, unit: str, guarantees: Sequence[Guarantee]) -> UnitCounts:
    """Measure what counts different people before the column that names them is dropped; outsiders cannot
    repeat this.
    """
    described = people.schema.replace(
        columns={name: column for name, column in people.schema.columns.items() if name in rows.column_names}
    )
    counting = [guarantee for guarantee in guarantees if isinstance(guarantee, ClassGuarantee) and counts_units(guarantee)]
    measured = measure_all(rows, described, counting, References(people))
    refuse_violations(list(zip(counting, measured, strict=True)), "the recoded table")
    return UnitCounts(unit, MappingProxyType(dict(zip(counting, measured, strict=True))))


def claims_of(
    table: pa.Table | GroupedRows,
    schema: Schema,
    guarantees: Sequence[ClassGuarantee],
    references: References,
    *,
    units: UnitCounts | None = None,
) -> tuple[Claim, ...]:
    """Measure the table and state what was found; raises `VerificationFailed` when something does not hold.

    `units` holds the numbers of guarantees that count different units whose column is not in the table.
    """
    measured = measure_all(table, schema, guarantees, references)
    pairs = list(zip(guarantees, measured, strict=True))
    refuse_violations(pairs, "the table that was written")
    _refuse_tied_classes(table, schema, guarantees)
    original = references.distribution(guarantees)
    suppressed = original is not None and original.records != table.num_rows
    return tuple(_claim(guarantee, measurement, schema, references, units, suppressed) for guarantee, measurement in pairs)


def _refuse_tied_classes(table: pa.Table | GroupedRows, schema: Schema, guarantees: Sequence[ClassGuarantee]) -> None:
    """A published pseudonym ties the records of a person together, which no promise about single classes covers."""
    promised = ", ".join(each.key for each in guarantees if says_something(each))
    published = [name for name, column in schema.columns.items() if column.pseudonym and name in table.column_names]
    name = tying_pseudonyms(table, schema, published, schema.unit) if promised else None
    if name is None:
        return
    if schema.unit is None:
        raise Infeasible(
            f"{promised} cannot be promised beside the pseudonyms of '{name}': some have several records, so that the records of "
            "one person are tied together, and k would count records and not people. Say that the column names the people "
            '(role = "unit"), or leave the pseudonyms out (pseudonym = false).'
        )
    raise Infeasible(
        f"{promised} cannot be promised beside the pseudonyms of '{name}': some have records in several "
        "classes, and whoever knows two of a person's records may find the one pseudonym that has both. Drop the column "
        "(pseudonym = false; people are counted all the same), or publish one record per person."
    )


def says_something(guarantee: ClassGuarantee) -> bool:
    """Whether a guarantee promises more than any table keeps."""
    return not (isinstance(guarantee, KAnonymity) and guarantee.k == 1)


def tying_pseudonyms(table: pa.Table | GroupedRows, schema: Schema, published: Iterable[str], unit: str | None) -> str | None:
    """A published column of pseudonyms that ties records together: in several classes where people are counted, and at all
    where records are; None where none does. `unit` is the column by which people are counted, published or not.
    """
    from sfumato.measures.guarantees.classes import Classes, CodedColumn

    if isinstance(table, GroupedRows):
        return next((name for name in published if table.tied(name, people=unit is not None)), None)
    for name in published:
        rows = table.filter(table.column(name).is_valid())  # whom nobody names is tied to nobody
        people = len(CodedColumn.of(rows.column(name)).values)
        tied = rows.num_rows if unit is None else int(Classes.of(rows, schema.quasi, unit=name).units.sum())
        if tied > people:
            return name
    return None


def counted_alone(guarantees: Sequence[ClassGuarantee]) -> list[ClassGuarantee]:
    """Promises about values beside which nobody counts people: where people have several records, a class that keeps them may be
    one person alone.
    """
    records_alone = [each for each in guarantees if each.one_record_each]
    if any(counts_units(each) and getattr(each, "k", 1) > 1 for each in guarantees):
        return records_alone
    return [each for each in guarantees if each.sensitive is not None or each in records_alone]


def records_per_class(measurement: Measurement) -> float:
    """The smallest class of a measurement that counts classes: its value, or its k beside an α."""
    return measurement.also.get("k", measurement.value)


def _claim(
    guarantee: ClassGuarantee,
    measurement: Measurement,
    schema: Schema,
    references: References,
    units: UnitCounts | None,
    suppressed: bool,
) -> Claim:
    """What was measured, as a claim. A number against the original follows from the released rows and the suppressed ones, and
    can tell a value of one of those: where there are any, the claim states that the promise is kept, and no number.
    """
    column = schema.unit if units is None else units.column
    counted = None if units is None else units.measured.get(guarantee)
    value: float | None = measurement.value
    also, reference = dict(measurement.also), getattr(guarantee, "reference", None)
    if reference == "input" and (suppressed or also.get(INPUT) != also.get(RELEASED)):
        value = None
    if reference == "released" or value is None:
        also.pop(INPUT, None)
    if counted is not None:
        value, also = counted.value, {**counted.also, RECORDS_PER_CLASS: plain_number(records_per_class(measurement))}
    return Claim(
        guarantee=guarantee.key,
        parameters=parameters(guarantee),
        promised=guarantee.claim(),
        measured=None if value is None else plain_number(value),
        holds=measurement.holds,
        evidence=guarantee.evidence,
        protects=guarantee.protects,
        adversary=guarantee.adversary,
        unit=f"different '{column}'" if column and counts_units(guarantee) else "record",
        also_measured=also,
        reference=references.digest_for(guarantee),
    )


def _counts(grouped: pa.Table, name: str) -> dict[str | None, int]:
    counts: dict[str | None, int] = {}
    totals = grouped.column(COUNT).to_pylist()
    for text, total in zip(texts(grouped.column(name)), totals, strict=True):
        counts[text] = counts.get(text, 0) + int(total)
    return counts


def refuse_violations(pairs: Sequence[tuple[ClassGuarantee, Measurement]], what: str) -> None:
    """Raise when a measurement breaks its guarantee; classes and records are counted, never shown."""
    from sfumato.report.wording import counted

    faults = [
        f"{guarantee.key} promises {guarantee.threshold:.6g} but {measurement.value:.6g} was measured "
        f"(failing: {counted(measurement.failing_classes, 'class')} with {counted(measurement.failing_records, 'record')})"
        for guarantee, measurement in pairs
        if not measurement.holds
    ]
    all_at_once(VerificationFailed, f"{what} does not keep what was promised; nothing was released", faults)


def missing_counted(claims: Iterable[Claim]) -> list[str]:
    """What the owner and every reader should know where a promise of different values was kept by values that are missing."""
    from sfumato.report.headline import MISSING_COUNTED
    from sfumato.report.wording import known_values

    return [
        f"{MISSING_COUNTED}{claim.parameters.get('attribute')}' counts as a value of its own: without those, some class shows "
        f"{known_values(claim.also_measured[KNOWN_VALUES])}"
        for claim in claims
        if KNOWN_VALUES in claim.also_measured
    ]


def plain_number(value: float) -> float:
    """Counts as whole numbers, so that a certificate says 5 and not 5.0."""
    return int(value) if float(value).is_integer() else float(value)
