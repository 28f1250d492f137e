"""What happens to each column of a table that is to be published.

Roles decide: identifiers are dropped or replaced by keyed pseudonyms, quasi-identifiers are recoded by the
search, the rest is kept. A request that cannot be carried out is refused with all its faults at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sfumato.core.errors import Infeasible, InputError, ParameterError, SchemaError, all_at_once, notify
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.texts import nearest
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import ROOT, Hierarchy, from_tree
from sfumato.data.microdata import Microdata
from sfumato.data.readers.read_result import NAMED_BY_A_RECORD, are_numbers
from sfumato.data.relation import COUNT
from sfumato.data.schema import Column, HierarchySpec, Schema, Type
from sfumato.data.texts.values import sorted_set, texts
from sfumato.report.headline import Headline, refuse_all_but_kept
from sfumato.report.wording import counted
from sfumato.workflow.publishing.claims import counted_alone

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.guarantees.base import ClassGuarantee
    from sfumato.wire.keys import OwnerKey
    from sfumato.workflow.publishing.claims import References


@dataclass(frozen=True)
class ColumnPlan:
    """The fate of every column: `keep` is what the engine has to deliver, in the order of the source."""

    quasi: tuple[str, ...]
    keep: tuple[str, ...]
    pseudonymised: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    unit_to_count: str | None = None  # a unit column that is counted for the guarantee and then dropped
    schema: Schema = field(default_factory=Schema, repr=False)

    @property
    def delivered(self) -> tuple[str, ...]:
        """What the engine delivers: the kept columns and a unit column that only the verifier needs."""
        extra = (self.unit_to_count,) if self.unit_to_count else ()
        return (*self.keep, *extra)


def plan_columns(
    data: Microdata, guarantees: Sequence[ClassGuarantee], *, population: bool = False, masked: bool = False
) -> ColumnPlan:
    """Check the request against the schema and decide what is kept; every fault is reported at once. A masked table needs no
    guarantee.
    """
    present = data.column_names
    schema = data.schema
    schema.require_columns(present, data.description)
    unlisted = [name for name in present if name not in schema.columns]
    faults = [*_schema_faults(schema, unlisted), *_guarantee_faults(schema, guarantees)]
    all_at_once(SchemaError, f"schema '{schema.dataset}'", faults)
    if guarantees or not masked:
        _check_guarantees(guarantees, population)
        _refuse_classes_of_one_person(schema, guarantees)
        _refuse_learnt_trees(schema, guarantees)
    described = {
        **schema.columns,
        **{name: Column(role="plain") for name in unlisted if schema.unlisted == "plain"},
    }
    pseudonymised = tuple(name for name in present if name in described and described[name].pseudonym)
    kept = [name for name in present if name in described and _is_kept(described[name])]
    unit = schema.unit if schema.unit and schema.unit not in kept else None
    return ColumnPlan(
        quasi=schema.quasi,
        keep=tuple(kept),
        pseudonymised=pseudonymised,
        dropped=tuple(name for name in present if name not in kept),
        unit_to_count=unit,
        schema=schema.replace(columns={name: described[name] for name in kept}),
    )


def replace_names(rows: pa.Table, columns: Sequence[str], key: OwnerKey) -> pa.Table:
    """The same rows with keyed pseudonyms in these columns."""
    from sfumato.anonymity.pseudonyms import Pseudonyms

    for name in columns:
        position = rows.column_names.index(name)
        # The scope is the column's name: tables that name people by the same column can be joined by their
        # pseudonyms.
        rows = rows.set_column(position, name, Pseudonyms(key, scope=name).apply(rows.column(name)))
    return rows


def check_size(records: int, guarantees: Sequence[ClassGuarantee]) -> None:
    """Refuse an empty table and a k that no class of this table can have."""
    if records == 0:
        raise InputError("the table has no records, so there is nothing to protect. Check the source and its filters.")
    for guarantee in guarantees:
        k = getattr(guarantee, "k", None)
        if k is not None and k > records and not guarantee.needs_population and guarantee.evidence != "output+model":
            raise Infeasible(
                f"{guarantee.name}: k is {k:,} but the table has {records:,} records, so no class can be that large. "
                "Choose a smaller k or add records."
            )


def warned_of_people(data: Microdata, *, strict: bool) -> list[str]:
    """A warning where nobody declares whose a record is and a column that numbers people repeats; where the schema says that each
    record is a person's, such a table is refused."""
    said = []
    for name, people, rows in _repeated_people(data):
        finding = f"column '{name}', which numbers people, has {people:,} different values in {rows:,} rows"
        if data.schema.each_record_is_a_unit:
            raise InputError(
                f'unit = "record" says that no person has several rows, but {finding}. Give it role = "unit"; if it numbers '
                "something else, leave it out of the table."
            )
        said.append(repeated_in_words(name, people, rows))
    if strict:
        refuse_all_but_kept(Headline.of("kept", "", said))
    notify(said)
    return said


def repeated_in_words(name: str, people: int, rows: int) -> str:
    """What to say where nobody declares whose a record is and a column that numbers people repeats."""
    return (
        f"records are counted and not people, and column '{name}', which numbers people, has {people:,} different values in "
        f'{rows:,} rows: a class may be one person. Give it role = "unit"'
    )


def _repeated_people(data: Microdata) -> Iterator[tuple[str, int, int]]:
    """Columns that number people, have values in several rows and are no unit: name, different values, rows with one."""
    from sfumato.data.profiling.identifier_names import numbers_persons
    from sfumato.engines.class_queries import ROWS
    from sfumato.engines.expressions import Reference
    from sfumato.engines.plan import AggregateColumn, Group, Scan
    from sfumato.engines.plannable import plannable

    identifiers = [name for name in data.schema.with_role("identifier") if name in data.column_names]
    # a pseudonym that repeats is refused where something is promised, with its own words
    names = [name for name in identifiers if numbers_persons(name) and not data.schema.columns[name].pseudonym]
    if data.schema.unit is not None or not names:
        return
    relation = plannable(data.relation)
    asked = [
        AggregateColumn(f"{function} {place}", function, Reference(name))
        for place, name in enumerate(names)
        for function in ("count", "count_distinct")
    ]
    rows = Scan(ROWS, tuple(relation.fields[name] for name in names))
    answer = relation.run(Group(rows, (), tuple(asked))).to_pylist()[0]
    for place, name in enumerate(names):
        if answer[f"count_distinct {place}"] < answer[f"count {place}"]:
            yield name, answer[f"count_distinct {place}"], answer[f"count {place}"]


def released_schema(schema: Schema, table: pa.Table) -> Schema:
    """The schema of the release: roles and types of what is published, nothing learnt from the original.

    Bounds, domains and hierarchies describe the original and stay with the owner; a declared order of a
    sensitive attribute is needed to measure distances again, so it goes along; numbers have one of their own. What the owner
    says about the publication goes along too. (What
    `TopBottomCoding` tells of itself has the order of numeric codes of every column that it masks.)
    """
    columns = {}
    for name in table.column_names:
        described = schema.columns[name]
        sensitive = described.role == "sensitive"
        columns[name] = Column(
            role="plain" if described.role == "identifier" else described.role,
            type=type_name(table.schema.field(name).type),
            order=described.declared_order if sensitive else None,
            domain=described.domain if sensitive and described.source == "declared" else None,
            label=described.label,
            items=described.items,
        )
    return Schema(dataset=schema.dataset, columns=columns).replace(publication=schema.publication)


def with_hierarchies(public: Schema, owner: Schema) -> Schema:
    """The schema of a release in its owner's hands: distances over the hierarchy of a sensitive attribute can be measured on it,
    and the people of a population whom generalised quasi-identifiers stand for. What is published goes through
    `without_hierarchies`.
    """
    columns = {
        name: column.model_copy(update={"hierarchy": owner.columns[name].hierarchy})
        if column.role in ("quasi", "sensitive")
        else column
        for name, column in public.columns.items()
    }
    return public.replace(columns=columns, folder=owner.folder)


def without_hierarchies(schema: Schema) -> Schema:
    """The schema without what only its owner has: hierarchies and the folder they are looked up in."""
    columns = {name: column.model_copy(update={"hierarchy": None}) for name, column in schema.columns.items()}
    return schema.replace(columns=columns, folder=None)


def type_name(kind: pa.DataType) -> Type:
    """How a schema names an Arrow type."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_boolean(value):
        return "boolean"
    if pa.types.is_integer(value):
        return "integer"
    if pa.types.is_floating(value) or pa.types.is_decimal(value):
        return "number"
    if pa.types.is_date(value):
        return "date"
    if pa.types.is_timestamp(value):
        return "datetime"
    return "string"


def _is_kept(column: Column) -> bool:
    return column.pseudonym if column.role in ("identifier", "unit") else True


def _schema_faults(schema: Schema, unlisted: Sequence[str]) -> list[str]:
    faults = []
    if not schema.quasi:
        faults.append(
            'no column has the role "quasi". Say which columns an outsider could know about a person: in the schema, or with '
            'quasi=["age", …] in Python'
        )
    if unlisted and schema.unlisted == "refuse":
        listed = ": " + ", ".join(f"'{name}'" for name in unlisted[:10]) + (" …" if len(unlisted) > 10 else "")
        if are_numbers(unlisted):  # they may be somebody's values
            listed = f", and {NAMED_BY_A_RECORD}"
        faults.append(
            f"{counted(len(unlisted), 'column')} of the data {'is' if len(unlisted) == 1 else 'are'} not described{listed}. "
            'Describe every column, or say what becomes of the others with unlisted = "drop" or unlisted = "plain"'
        )
    return faults


def _guarantee_faults(schema: Schema, guarantees: Sequence[ClassGuarantee]) -> list[str]:
    faults = []
    for guarantee in guarantees:
        name = guarantee.sensitive
        if name is not None and name not in schema.columns:
            columns = ", ".join(schema.sensitive) or "none"
            meant = nearest(name, schema.sensitive) or nearest(name, schema.columns)
            faults.append(
                f"{guarantee.key} names a column that the schema does not describe{meant}; sensitive columns: {columns}"
            )
        elif name is not None and schema.columns[name].role != "sensitive":
            faults.append(
                f"{guarantee.key} needs '{name}' to be sensitive, but its role is "
                f'"{schema.columns[name].role}". Give it role = "sensitive"'
            )
        elif name is not None and (items := schema.columns[name].items) is not None:
            protected = getattr(guarantee, "protected_values", None) or ()
            if any(sorted_set(value, items) != value for value in protected):
                faults.append(f"{guarantee.key}: write protected sets as they are counted, sorted and each item once")
    return list(dict.fromkeys(faults))


def _check_guarantees(guarantees: Sequence[ClassGuarantee], population: bool) -> None:
    if not guarantees:
        raise ParameterError("no guarantee was asked for. Name at least one, for instance KAnonymity(5).")
    without = [guarantee.name for guarantee in guarantees if guarantee.needs_population and not population]
    if without:
        raise ParameterError(
            f"{', '.join(without)} compares with a population. Pass the population table as population= "
            "(with the same quasi-identifiers)."
        )


def _refuse_learnt_trees(schema: Schema, guarantees: Sequence[ClassGuarantee]) -> None:
    """A tree that is published must not depend on the records, of which some may be suppressed: those of files are, and that of a
    sensitive column over which a promise measures distances."""
    for name in (*schema.quasi, *schema.sensitive):
        spec = schema.columns[name].hierarchy
        if spec is not None and spec.leaves == "data":
            raise ParameterError(
                f"the hierarchy file of '{name}' lists the values that occur in the data, those of suppressed records too, and a "
                "release publishes it. Look through the file: take out values that would give somebody away, and add others that "
                'may occur. Then delete leaves = "data" in the schema, which declares the list.'
            )
    for name in _measured_over_trees(guarantees):
        column = schema.columns.get(name)
        spec = None if column is None else column.hierarchy
        if column is None or spec is None:
            continue
        if spec.made_of_values:
            how = "groups by frequency are" if spec.kind == "frequency" else "a mask without a width is"
            raise ParameterError(
                f"{how} made of the values of '{name}', those of suppressed records too, and a promise about distances over such "
                "a tree publishes it. Write the tree yourself (tree, file, or a mask with its width), or choose another distance."
            )
        if column.source == "data" and spec.has_numbers:
            raise ParameterError(
                f"the hierarchy of '{name}' was learnt from the data, and a promise about distances over it publishes it. "
                'Look at it, declare it in the schema (source = "declared"), or choose another distance.'
            )


def _measured_over_trees(guarantees: Sequence[ClassGuarantee]) -> set[str]:
    """The sensitive columns over whose trees a promise measures distances."""
    over = (each.sensitive for each in guarantees if getattr(each, "distance", None) == "hierarchical")
    return {name for name in over if name is not None}


def _refuse_classes_of_one_person(schema: Schema, guarantees: Sequence[ClassGuarantee]) -> None:
    """A promise about values counts records: where people have several, a class that keeps it may be one person alone."""
    alone = [] if schema.unit is None else counted_alone(guarantees)
    if any(each.one_record_each for each in alone):
        raise ParameterError(
            f"{', '.join(each.key for each in alone if each.one_record_each)} supposes that each record is another person, and "
            f"one '{schema.unit}' may have several. Publish one record per person, or ask for KAnonymity, which counts different "
            "people."
        )
    about_values = [each.key for each in alone]
    if about_values:
        raise ParameterError(
            f"{', '.join(about_values)} counts records, and one '{schema.unit}' may have several: a class could be one person "
            "alone, whom it would not protect. Ask for k-anonymity too, which counts different people: KAnonymity(2) or more "
            "(--k 2)."
        )


#: Descriptions that say nothing about the data where the owner declared them.
_PARAMETERS = ("intervals", "cuts", "mask")


def schema_with_hierarchies(
    public: Schema,
    owner: Schema,
    table: pa.Table,
    guarantees: Sequence[ClassGuarantee],
    trees: Mapping[str, Hierarchy],
    references: References,
    folder: Path,
    ranged: Collection[str] = (),
) -> Schema:
    """The public schema with its hierarchies; trees are written into `folder` as files beside it. Columns that are `ranged` show
    ranges of the data, which no parameters describe."""
    with_population = any(guarantee.needs_population for guarantee in guarantees)
    measured = _measured_over_trees(guarantees)
    columns = dict(public.columns)
    written = 0
    for name, column in public.columns.items():
        described = owner.columns[name]
        spec = described.hierarchy
        tree = None
        if spec is not None and (spec.file is not None or spec.tree is not None):
            tree = _declared(name, spec, owner.folder)
        elif (
            spec is not None
            and column.role == "quasi"
            and (name not in ranged or spec.kind == "dates")  # ranges of dates are read by their calendar
            and _by_parameters(described)
        ):
            columns[name] = column.model_copy(
                update={"hierarchy": spec.model_copy(update={"missing": "refuse", "ranges": False})}
            )
        elif name in measured and name in trees:
            tree = _of_released_values(trees[name], table, name)
        elif with_population and column.role == "quasi" and spec is not None and spec.kind == "frequency":
            tree = _of_population(name, described, references)
            columns[name] = column.model_copy(
                update={"hierarchy": spec.model_copy(update={"missing": "refuse", "ranges": False})}
            )
        if tree is not None and column.role in ("quasi", "sensitive"):
            written += 1
            file = f"hierarchy-{written}.csv"
            # as whoever reads the file has it, numbers in their order: `verify` reads it and writes it again
            Hierarchy.from_levels(tree.rows()).save(folder / file, mode=0o644)
            spec = HierarchySpec(file=file, separator=";", missing="root")
            columns[name] = column.model_copy(update={"hierarchy": spec})
    return public.replace(columns=columns)


def _declared(name: str, spec: HierarchySpec, folder: str | None) -> Hierarchy:
    """The tree as the owner wrote it, without any leaf that was added because it occurred in the data."""
    if spec.file is not None:
        path = Path(spec.file)
        return Hierarchy.load(path if folder is None else Path(folder) / path, separator=spec.separator)
    return from_tree(spec.tree or {}, name=name)


def _by_parameters(column: Column) -> bool:
    """Whether parameters describe the tree that everybody may know: those that were learnt from the data say something about
    them, of people too who are not released."""
    spec = column.hierarchy
    return spec is not None and (
        spec.kind == "dates"
        or (spec.kind == "mask" and spec.width is None)
        or (spec.kind in _PARAMETERS and column.source == "declared")
    )


def _of_released_values(tree: Hierarchy, table: pa.Table, name: str) -> Hierarchy:
    shown = {text for text in texts(table.column(name).unique()) if text is not None}
    rows = [row for row in tree.rows() if row[0] in shown]
    return Hierarchy.from_levels(rows or [[ROOT] * (tree.height + 1)], ordered=tree.ordered)


def _of_population(name: str, column: Column, references: References) -> Hierarchy | None:
    """The frequency groups of a population that is public; None for one that is not."""
    if references.population is None or not references.population_public:
        return None
    counts: dict[str | None, int] = {}
    grouped = references.population.relation.group([name])
    for text, count in zip(texts(grouped.column(name)), grouped.column(COUNT).to_pylist(), strict=True):
        counts[text] = counts.get(text, 0) + int(count)
    return hierarchy_builders.build(name, column, list(counts), list(counts.values()))
