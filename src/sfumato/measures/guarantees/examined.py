"""A table under examination: its rows, its roles, what it is compared with, and everything that is
counted only once.

The verifier groups the records once per set of quasi-identifiers and counts each sensitive attribute
once per grouping, however many guarantees are measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError, SchemaError, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee, Reference
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import sorted_set, sorted_sets
from sfumato.measures.guarantees.classes import Classes, CodedColumn, Integers, ValueCounts, require_columns
from sfumato.measures.guarantees.grouped import GroupedTable, UnitsOfClasses
from sfumato.measures.guarantees.reference import ReferenceDistribution
from sfumato.measures.guarantees.thresholds import Numbers

Failing = NDArray[np.bool_]


@dataclass(frozen=True)
class Measurement:
    """What was found for one guarantee.

    `value` is the number measured on the worst class, `failing_classes` and `failing_records` how much
    of the table breaks the promise, `also` other numbers worth knowing (both references of a compared
    distribution, the k of an (α,k)). `failing` holds the numbers of the failing classes within the
    grouping by `quasi`.
    """

    guarantee_key: str
    value: float
    holds: bool
    failing_classes: int
    failing_records: int
    classes: int
    explanation: str
    also: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    failing: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False, compare=False)
    quasi: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ExaminedTable:
    """The table with its roles; `original` and `population` are what some guarantees compare with.

    Row i stands for `counts[i]` records where rows were grouped elsewhere, and `class_units` says what different units were
    counted there.
    """

    table: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    original: pa.Table | GroupedTable | ReferenceDistribution | None = field(default=None, repr=False)
    population: pa.Table | GroupedTable | None = field(default=None, repr=False)
    counts: Integers | None = field(default=None, repr=False)
    class_units: tuple[UnitsOfClasses, ...] = field(default=(), repr=False)
    _classes: dict[tuple[str, ...], Classes] = field(default_factory=dict, repr=False)
    _columns: dict[str, CodedColumn] = field(default_factory=dict, repr=False)
    _histograms: dict[tuple[tuple[str, ...], str], ValueCounts] = field(default_factory=dict, repr=False)
    _references: dict[str, Mapping[str | None, int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Sets that are written differently are the same value; quasi-identifiers stay as they are, since spelling tells apart.
        object.__setattr__(self, "table", sorted_sets(self.table, self.schema, but=self.schema.quasi))
        for name in ("original", "population"):
            table = getattr(self, name)
            if isinstance(table, pa.Table):
                object.__setattr__(self, name, sorted_sets(table, self.schema))
            elif isinstance(table, GroupedTable):
                object.__setattr__(self, name, replace(table, table=sorted_sets(table.table, self.schema)))

    @classmethod
    def grouped(
        cls,
        groups: GroupedTable,
        schema: Schema,
        original: pa.Table | GroupedTable | ReferenceDistribution | None = None,
        population: pa.Table | GroupedTable | None = None,
    ) -> ExaminedTable:
        """A table whose rows were grouped elsewhere."""
        return cls(groups.table, schema, original, population, groups.counts, groups.units)

    def classes(self, quasi: Sequence[str] | None = None) -> Classes:
        """The classes by the schema's quasi-identifiers, or by the columns an adversary is said to know."""
        names = tuple(self.schema.quasi if quasi is None else quasi)
        if not names and quasi is None:
            raise SchemaError(
                "no column has the role 'quasi', so there are no classes to measure. "
                'Say which columns an outsider could know about a person (role = "quasi").'
            )
        if names not in self._classes:
            classes = Classes.of(self.table, names, unit=self.unit, counts=self.counts)
            self._classes[names] = classes if self.unit or not self.class_units else self._with_units(classes)
        return self._classes[names]

    def _with_units(self, classes: Classes) -> Classes:
        """The classes with the different units that were counted elsewhere."""
        for counted in self.class_units:
            if counted.columns == set(classes.quasi):
                return replace(classes, units=counted.in_order_of(self.table, classes))
        names = ", ".join(f"'{name}'" for name in classes.quasi)
        raise Unsupported(f"different units were not counted for classes by {names}, so that k in units cannot be measured there")

    @property
    def unit(self) -> str | None:
        """The unit column, where the table still has it; a release without it is counted in records."""
        return self.schema.unit if self.schema.unit in self.table.column_names else None

    @property
    def counts_units(self) -> bool:
        """Whether classes are counted in different units, here or where the rows were grouped."""
        return self.unit is not None or bool(self.class_units)

    def column(self, name: str) -> CodedColumn:
        """A column in codes."""
        if name not in self._columns:
            require_columns(self.table, [name])
            self._columns[name] = CodedColumn.of(self.table.column(name))
        return self._columns[name]

    def histogram(self, attribute: str) -> ValueCounts:
        """Counts of a sensitive attribute in every class."""
        classes = self.classes()
        key = classes.quasi, attribute
        if key not in self._histograms:
            self._histograms[key] = classes.histogram(self.column(attribute))
        return self._histograms[key]

    def described(self, attribute: str) -> Column:
        """What the schema says about a column; a column it does not describe is plain."""
        return self.schema.columns.get(attribute, Column())

    def reference(self, attribute: str, which: Reference) -> Mapping[str | None, int]:
        """Counts of the values of an attribute in the original or in the released rows."""
        if which == "released":
            histogram = self.histogram(attribute)
            totals = zip(histogram.values, histogram.totals.tolist(), strict=True)
            return {value: total for value, total in totals if total}
        if self.original is None:
            raise InputError(
                f"a guarantee on '{attribute}' compares with the original table, which was not given. "
                "Pass original= (the table or its reference distribution), or ask for reference='released'."
            )
        if attribute not in self._references:
            original = self.original
            distribution = (
                original if isinstance(original, ReferenceDistribution) else ReferenceDistribution.of(original, [attribute])
            )
            self._references[attribute] = _by_set(distribution.attribute(attribute), self.described(attribute).items)
        return self._references[attribute]

    def references(self) -> tuple[Reference, ...]:
        """The references that can be measured here."""
        return ("released",) if self.original is None else ("input", "released")


def _by_set(counts: Mapping[str | None, int], items: str | None) -> Mapping[str | None, int]:
    """Counts of values; of sets that are written differently together."""
    if items is None:
        return counts
    codes_of: dict[str | None, int] = {}
    for text, count in counts.items():
        codes_of[sorted_set(text, items)] = codes_of.get(sorted_set(text, items), 0) + count
    return codes_of


def conclude(
    guarantee: ClassGuarantee,
    classes: Classes,
    value: float,
    failing: Failing,
    explanation: str,
    *,
    also: Mapping[str, float] | None = None,
) -> Measurement:
    """The measurement from the classes that fail; a table without records breaks no promise."""
    broken = np.flatnonzero(failing)
    return Measurement(
        guarantee_key=guarantee.key,
        value=value,
        holds=broken.size == 0,
        failing_classes=int(broken.size),
        failing_records=int(classes.sizes[broken].sum()),
        classes=len(classes),
        explanation=" ".join(f"{explanation} {_extent(classes, broken)}".split()),
        also=MappingProxyType(dict(also or {})),
        failing=broken,
        quasi=classes.quasi,
    )


def largest(values: Numbers) -> float:
    """The largest of the classes' numbers, 0 when no class counts."""
    return float(values.max()) if values.size else 0.0


def smallest(values: Numbers) -> float:
    """The smallest of the classes' numbers, infinite when no class counts."""
    return float(values.min()) if values.size else math.inf


def shown_number(value: float) -> str:
    """A number for a sentence."""
    if math.isinf(value):
        return "infinite"
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def _extent(classes: Classes, broken: Integers) -> str:
    if not len(classes):
        return "The table has no records, so nothing can break it."
    if not broken.size:
        return "The only class keeps it." if len(classes) == 1 else f"All {len(classes):,} classes keep it."
    records = int(classes.sizes[broken].sum())
    many, these = "class" if len(classes) == 1 else "classes", "breaks" if broken.size == 1 else "break"
    return f"{broken.size:,} of {len(classes):,} {many} ({records:,} of {classes.records:,} records) {these} it."
