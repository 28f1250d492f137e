"""Checking any table, whoever produced it: what it keeps, what a promise needs, which classes fail.

The table is measured by the plain verifier of `measures.guarantees`; nothing is changed and nothing is
written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.core.declared import parameters
from sfumato.core.errors import InputError, ParameterError, forgetting, notify
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data.hierarchies.hierarchy import ROOT
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.reading import PLAIN, Reading, stated_options
from sfumato.measures.guarantees.examined import ExaminedTable, Measurement
from sfumato.measures.guarantees.overview import TableMeasures
from sfumato.report.check_words import measured_lines
from sfumato.report.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.engines.sources import SchemaLike, TableLike
    from sfumato.measures.guarantees.reference import ReferenceDistribution

Suppressed = Literal["class", "drop"]


@dataclass(frozen=True, eq=False)
class TableCheck:
    """What was measured: one measurement per guarantee, and every number the table keeps without a promise.

    >>> import sfumato as sf, pyarrow as pa
    >>> table = pa.table({"age": ["30-40", "30-40"], "disease": ["flu", "cold"]})
    >>> schema = sf.Schema.of(quasi=["age"], sensitive=["disease"])
    >>> sf.check(table, schema, [sf.KAnonymity(2)]).holds
    True
    """

    guarantees: tuple[ClassGuarantee, ...]
    measurements: tuple[Measurement, ...]
    measures: TableMeasures
    notices: tuple[str, ...]
    _examined: ExaminedTable = field(repr=False)
    without_original: tuple[bool, ...] = ()  # which of them compare with the original, which was not there

    @property
    def holds(self) -> bool:
        """True when every guarantee that was asked for holds; those that cannot be judged are compared with the rows of this
        table. Where it is False, `broken` names the guarantees that do not hold."""
        return all(measurement.holds for measurement in self.measurements)

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Guarantees that compare with the original, which was not passed, or rest on a model: they can be neither confirmed nor
        refuted."""
        judged = zip(self._names(), self.guarantees, self.measurements, self._missing(), strict=True)
        return tuple(name for name, each, measurement, missing in judged if missing or _by_model(each, measurement))

    @property
    def declared_unit(self) -> str | None:
        """What the schema declares besides a unit column: "record" where nobody has several rows."""
        return self._examined.schema.declared_unit

    @property
    def repeated_people(self) -> tuple[str, ...]:
        """What is said where no unit is declared and a column of the table that numbers people repeats."""
        from sfumato.data.profiling.identifier_names import numbers_persons
        from sfumato.workflow.publishing.columns import repeated_in_words

        schema, table = self._examined.schema, self._examined.table
        said = []
        for name in schema.with_role("identifier") if schema.unit is None else ():
            if name in table.column_names and numbers_persons(name):
                present = table.column(name).drop_null()
                people = len(present.unique())
                if people < len(present):
                    said.append(repeated_in_words(name, people, len(present)))
        return tuple(said)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers of the table."""
        return self._examined.schema.quasi

    @property
    def broken(self) -> tuple[str, ...]:
        """Guarantees that were judged and do not hold."""
        judged = zip(self._names(), self.measurements, self._missing(), strict=True)
        return tuple(name for name, measurement, missing in judged if not measurement.holds and not missing)

    def _missing(self) -> tuple[bool, ...]:
        return self.without_original or (False,) * len(self.measurements)

    @property
    def measured(self) -> dict[str, float]:
        """The measured number per guarantee."""
        return {name: measurement.value for name, measurement in zip(self._names(), self.measurements, strict=True)}

    def explain(self) -> str:
        """In plain words: what each guarantee means, what was measured and how much of the table fails; without
        guarantees, what every number means that was measured.
        """
        lines = [_summary(self.measures)]
        if not self.guarantees:
            lines += ["", *measured_lines(self.measures)]
        for guarantee, measurement, missing in zip(self.guarantees, self.measurements, self._missing(), strict=True):
            verdict = "holds" if measurement.holds else "does NOT hold"
            if measurement.holds and guarantee.evidence == "output+model":
                verdict = "is not contradicted by the rows, which cannot confirm it: it rests on a model and a declared fraction"
            if missing:
                here = "it holds" if measurement.holds else "it does not hold, as may happen where records were suppressed"
                verdict = (
                    "cannot be judged: it compares with the original table, which is missing. "
                    f"Compared with the rows of this table {here}"
                )
            lines += [
                "",
                f"{measurement.guarantee_key} {verdict}.",
                f"  Promise: {guarantee.claim()}.",
                f"  Against: {guarantee.protects}.",
                f"  Measured: {measurement.explanation}",
            ]
            lines += [f"  Also measured: {name} = {value:.6g}" for name, value in measurement.also.items()]
            if not measurement.holds and measurement.failing.size and not missing:
                counted_in = "" if self.measures.units is None else " in records"
                lines.append(f"  Failing classes by size{counted_in}: {_sizes(self._examined, measurement)}.")
        lines += [""] * bool(self.notices) + [f"Note: {notice}" for notice in self.notices]
        return "\n".join(lines)

    def failing(self, guarantee: ClassGuarantee | str, limit: int | None = 20) -> pa.Table:
        """The failing classes with their quasi-identifiers and sizes, smallest first: for the owner's
        eyes only.
        """
        key = guarantee if isinstance(guarantee, str) else guarantee.key
        chosen = [measurement for measurement in self.measurements if measurement.guarantee_key == key]
        if not chosen:
            raise ParameterError(f"'{key}' was not checked; checked were {', '.join(self.measured) or 'no guarantees'}")
        return self._classes_failing(chosen[0], limit)

    def failing_by_guarantee(self, limit: int | None = 20) -> dict[str, pa.Table]:
        """The failing classes of every guarantee that does not hold, for the owner's eyes only."""
        broken = [
            (name, measurement)
            for name, measurement in zip(self._names(), self.measurements, strict=True)
            if measurement.failing.size
        ]
        return {name: self._classes_failing(measurement, limit) for name, measurement in broken}

    def _names(self) -> list[str]:
        """One name per measurement; a guarantee that was asked for twice is numbered."""
        names: list[str] = []
        for measurement in self.measurements:
            name, number = measurement.guarantee_key, 1
            while name in names:
                number += 1
                name = f"{measurement.guarantee_key} #{number}"
            names.append(name)
        return names

    def _classes_failing(self, measurement: Measurement, limit: int | None) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        classes = self._examined.classes(measurement.quasi)
        order = measurement.failing[np.argsort(classes.sizes[measurement.failing], kind="stable")][:limit]
        rows = self._examined.table.select(list(measurement.quasi)).take(pa.array(classes.first[order]))
        return rows.append_column(_free_name("class", measurement.quasi), pa.array(order)).append_column(
            _free_name("records", measurement.quasi), pa.array(classes.sizes[order])
        )

    def to_mapping(self) -> PlainDict:
        """Plain data for `--json`: numbers and words, no record value."""
        return {
            "holds": self.holds,
            "unjudged": list(self.unjudged),
            "guarantees": [
                {
                    "guarantee": measurement.guarantee_key,
                    "name": guarantee.name,
                    "parameters": parameters(guarantee),
                    "promised": guarantee.claim(),
                    "protects": guarantee.protects,
                    "measured": _json_number(measurement.value),
                    "holds": None if missing or _by_model(guarantee, measurement) else measurement.holds,
                    "missing_reference": "original" if missing else None,
                    "failing_classes": measurement.failing_classes,
                    "failing_records": measurement.failing_records,
                    "classes": measurement.classes,
                    "also_measured": {name: _json_number(value) for name, value in measurement.also.items()},
                    "explanation": measurement.explanation,
                }
                for guarantee, measurement, missing in zip(self.guarantees, self.measurements, self._missing(), strict=True)
            ],
            "measures": self.measures.to_mapping(),
            "notices": list(self.notices),
        }


def _by_model(guarantee: ClassGuarantee, measurement: Measurement) -> bool:
    """Whether rows cannot confirm a promise that they do not contradict."""
    return measurement.holds and guarantee.evidence == "output+model"


@forgetting()
def check(
    table: TableLike,
    schema: SchemaLike | None = None,
    guarantees: ClassGuarantee | Iterable[ClassGuarantee] | None = None,
    *,
    original: TableLike = None,
    population: TableLike = None,
    suppressed: Suppressed = "class",
    **reading: object,  # keys of a `Reading`
) -> TableCheck:
    """Measure a table: every number it keeps, and the guarantees that are asked for.

    `table` is an Arrow table, a pandas or polars frame, a file, a database table or `Microdata`;
    `original` and `population` likewise (`original` may also be a `ReferenceDistribution`). Rows whose
    quasi-identifiers are all `*` count as a class like any other, or are left out with
    `suppressed="drop"`. `separator`, `decimal` and the like say how the texts of all three are read, over what the schema says.
    The schema is about the original, and a release is written in the plain forms: what the schema says of numbers and dates holds
    for `table` only where its columns can be read in that way alone. A file that can be read in both ways is refused, unless a
    certificate lies beside it.
    """
    from sfumato.measures.guarantees.measure import measure_examined
    from sfumato.measures.guarantees.overview import overview
    from sfumato.measures.guarantees.population import texts_of_nobody
    from sfumato.measures.guarantees.protected import refuse_unknown_values

    if suppressed not in ("class", "drop"):
        raise ParameterError("check: suppressed must be 'class' or 'drop'")
    how = stated_options(reading)
    stated = _stated_schema(schema, table)
    rows = _released(table, PLAIN if stated is None else stated.read, how)
    roles, guessed = (stated, []) if stated is not None else _guessed(rows)
    rows, notices = _suppressed_rows(rows, roles, suppressed)
    notices = [*guessed, *notices]
    roles = roles.replace(read=roles.read.overridden(how))
    reference = _reference(original, roles)
    others = roles.replace(read=roles.read.of_another_table().overridden(how))
    promised = asked = _listed(guarantees)
    if reference is None:
        promised, more = _against_released(promised)
        notices += more
    notify(notices)
    examined = ExaminedTable(rows, roles, reference, None if population is None else _raw(population, others))
    for guarantee in asked:
        refuse_unknown_values(examined, guarantee)
    if population is not None:
        notices += texts_of_nobody(examined)
    return TableCheck(
        guarantees=promised,
        measurements=tuple(measure_examined(examined, guarantee) for guarantee in promised),
        measures=overview(examined, against_people=population is not None and not promised),
        notices=tuple(notices),
        _examined=examined,
        without_original=tuple(one is not other for one, other in zip(promised, asked, strict=True)),
    )


def _listed(guarantees: ClassGuarantee | Iterable[ClassGuarantee] | None) -> tuple[ClassGuarantee, ...]:
    listed = (guarantees,) if isinstance(guarantees, ClassGuarantee) else tuple(guarantees or ())
    wrong = [type(entry).__name__ for entry in listed if not isinstance(entry, ClassGuarantee)]
    if wrong:
        raise ParameterError(f"check: {', '.join(wrong)} is no guarantee of a table. Pass for instance [sf.KAnonymity(5)].")
    return listed


def _stated_schema(schema: SchemaLike | None, table: Any) -> Schema | None:
    """The roles as they are stated, or in a `schema.toml` beside the file; None where they have to be guessed, which is said."""
    if schema is None:
        if isinstance(table, Microdata):
            return table.schema
        beside = Path(table).parent / "schema.toml" if isinstance(table, (str, Path)) and "://" not in str(table) else None
        if beside is None:
            raise InputError(
                "check needs a schema: which columns are quasi-identifiers, which sensitive? `sfumato inspect DATA` writes one."
            )
        return Schema.load(beside) if beside.is_file() else None
    if isinstance(schema, Schema):
        return schema
    return Schema.load(schema) if isinstance(schema, (str, Path)) else Schema.parse(schema)


def _guessed(rows: pa.Table) -> tuple[Schema, list[str]]:
    from sfumato.data.profiling.profile import profile_table

    roles = {column.name: column.role for column in profile_table(rows).columns}
    quasi = [name for name, role in roles.items() if role == "quasi"]
    sensitive = [name for name, role in roles.items() if role == "sensitive"]
    if not quasi:
        raise InputError(
            "check found no column that looks like a quasi-identifier. Pass a schema; `sfumato inspect DATA` writes one."
        )
    unit = [name for name, role in roles.items() if role == "unit"]
    notice = (
        f"the roles were guessed from names and values: quasi-identifiers {', '.join(quasi)}; "
        f"sensitive {', '.join(sensitive) or 'none'}{f'; unit {unit[0]}' if unit else ''}. Pass a schema to say it yourself."
    )
    return Schema(columns={name: Column(role=roles[name]) for name in (*quasi, *sensitive, *unit)}), [notice]


def _released(source: Any, reading: Reading, stated: Plain) -> pa.Table:
    """The rows as they are: generalised values no longer have the types that the schema declares. The marks of the schema's
    reading hold where columns can be read by them and not without."""
    import pyarrow as pa

    if isinstance(source, pa.Table):
        return source
    if isinstance(source, Microdata):
        return source.table()
    from sfumato.engines.sources import read

    opened = read(source, **stated)
    rows = opened.table()
    released = isinstance(source, (str, Path)) and Path(source).with_name("certificate.json").is_file()
    if released or reading.plain or stated.keys() & {"decimal", "thousands", "date_format"} or not opened.inferred:
        return rows
    marks = Reading(decimal=reading.decimal, thousands=reading.thousands, date_format=reading.date_format)
    marked = read(source, **marks.overridden(stated).to_mapping()).table()
    differing = [name for name in rows.column_names if not rows.column(name).equals(marked.column(name))]
    plain, by_marks = ({name for name in differing if not _holds_texts(table, name)} for table in (rows, marked))
    if plain and by_marks:
        name = next(name for name in differing if name in plain)
        raise InputError(
            f"check: the values of column '{name}' can be read in the plain forms, in which releases are written, and in those "
            "of the schema, as other values. For a table as it was before, state as options what the schema has under [read]; a "
            "release is checked where its certificate lies beside it, or in Python as sf.check(sf.read(FILE), SCHEMA)"
        )
    return marked if by_marks else rows


def _holds_texts(table: pa.Table, name: str) -> bool:
    return str(table.schema.field(name).type).startswith(("dictionary", "string", "large_string"))


def _raw(source: Any, schema: Schema) -> pa.Table:
    """Raw rows, read under the part of the schema they have, so that codes for missing values are missing."""
    import pyarrow as pa

    if isinstance(source, (pa.Table, Microdata)):
        return _released(source, PLAIN, {})
    from sfumato.engines.sources import read

    present = read(source, **schema.read.to_mapping()).column_names
    kept = {name: column for name, column in schema.columns.items() if name in present}
    return read(source, schema=schema.replace(columns=kept)).table()


def _reference(original: Any, schema: Schema) -> pa.Table | ReferenceDistribution | None:
    from sfumato.measures.guarantees.reference import ReferenceDistribution

    if original is None or isinstance(original, ReferenceDistribution):
        return original
    return _raw(original, schema)


def _against_released(guarantees: tuple[ClassGuarantee, ...]) -> tuple[tuple[ClassGuarantee, ...], list[str]]:
    """Without the original, compare with the released rows, and say so."""
    changed: list[ClassGuarantee] = []
    notices: list[str] = []
    for guarantee in guarantees:
        if getattr(guarantee, "reference", None) == "input":
            compared: Any = guarantee
            guarantee = dataclasses.replace(compared, reference="released")
            notices.append(
                f"{guarantee.key} compares with the original table, which was not given; it was "
                "compared with the rows of "
                "this table instead. Pass original= (--original) for the promise as made."
            )
        changed.append(guarantee)
    return tuple(changed), notices


def _suppressed_rows(table: pa.Table, schema: Schema, handling: Suppressed) -> tuple[pa.Table, list[str]]:
    """Rows whose quasi-identifiers are all `*`, as other tools mark suppressed records."""
    import numpy as np
    import pyarrow as pa

    from sfumato.measures.guarantees.classes import CodedColumn, require_columns

    require_columns(table, schema.quasi)
    starred = np.ones(table.num_rows, dtype=np.bool_)
    for name in schema.quasi:
        if not starred.any():
            break
        coded = CodedColumn.of(table.column(name))
        starred &= np.array([value == ROOT for value in coded.values], dtype=np.bool_)[coded.codes]
    count = int(starred.sum())
    if not count or not schema.quasi:
        return table, []
    these = f"{counted(count, 'row')} with '*' in every quasi-identifier {'was' if count == 1 else 'were'}"
    if handling == "drop":
        return table.filter(pa.array(~starred)), [f"{these} left out as suppressed."]
    return table, [f"{these} measured as a class like any other; if that marks suppressed records, pass suppressed='drop'."]


def _summary(measures: TableMeasures) -> str:
    if measures.units is None:
        return (
            f"{counted(measures.records, 'record')} in {counted(measures.classes, 'class')}; the smallest has "
            f"{measures.k:,.0f}, the median {measures.class_size_median:,.0f}, "
            f"the largest {measures.class_size_largest:,}; {counted(measures.uniques, 'record')} "
            f"{'is' if measures.uniques == 1 else 'are'} unique."
        )
    return (
        f"{counted(measures.records, 'record')} of {counted(measures.units, 'unit')} in {counted(measures.classes, 'class')}. "
        f"Every class has records of {counted(int(measures.k), 'unit')} or more. The median class has "
        f"{counted(round(measures.class_size_median), 'record')}, the largest {measures.class_size_largest:,}. "
        f"{counted(measures.uniques, 'record')} {'is' if measures.uniques == 1 else 'are'} in a class that no other unit shares."
    )


def _sizes(examined: ExaminedTable, measurement: Measurement) -> str:
    import numpy as np

    sizes, counts = np.unique(examined.classes(measurement.quasi).sizes[measurement.failing], return_counts=True)
    listed = [f"{count:,} of size {size:,}" for size, count in zip(sizes[:5].tolist(), counts[:5].tolist(), strict=True)]
    return ", ".join(listed) + (", …" if sizes.size > 5 else "")


def _free_name(name: str, columns: Iterable[str]) -> str:
    names = set(columns)
    while name in names:
        name += "_"
    return name


def _json_number(value: float) -> float | str:
    return "infinite" if value == float("inf") else value
