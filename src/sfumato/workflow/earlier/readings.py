"""How the texts of a release are to be read, kept beside the ledger so that later releases can be combined with it.

A text means what its hierarchy said when it was published: the description of then, and not that of today, is built again
over the values of today. Nothing of a record is kept, only descriptions: types, missing codes, orders, hierarchies that were
declared. A release whose texts cannot be read for certain is not compared.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sfumato.attacks.tables.meaning import TO
from sfumato.core.certificate import plain
from sfumato.core.errors import HierarchyError, SfumatoError, Unsupported
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy, mask_width
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.data.texts.number_codes import plain_codes
from sfumato.data.texts.values import sorted_sets, texts
from sfumato.data.writers import atomic_path
from sfumato.measures.guarantees.cover import interval_of
from sfumato.workflow.publishing.columns import type_name

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.contents.rows import Rows
    from sfumato.workflow.contents.stored_rows import StoredRows

FORMAT = "sfumato-reading-1"
#: Types of numbers, as `kind_of` names them, but for decimals.
_NUMBERS = ("integer", "number", "float", "halffloat")


@dataclass(frozen=True)
class ColumnReading:
    """How the values behind a column were written: their type, the codes that meant none; and how they were generalised.

    `width` is that of a mask in characters: as declared, otherwise that of the longest value.
    """

    kind: str
    missing: tuple[str, ...] = ()
    items: str | None = None
    order: tuple[str, ...] | None = None
    hierarchy: Mapping[str, Any] | None = None
    width: int | None = None

    def same_values(self, other: ColumnReading) -> bool:
        """Whether the same raw value has the same text in both, before anything was generalised."""
        return (self.kind, self.items) == (other.kind, other.items) and self.codes == other.codes

    @property
    def codes(self) -> frozenset[str]:
        """The codes that meant none: among numbers by their value, however they were written."""
        return as_values(self.missing) if self.kind in _NUMBERS or self.kind.startswith("decimal") else frozenset(self.missing)


@dataclass(frozen=True)
class ReleaseReading:
    """What is needed to read a release again: its columns, and what was published about how it was made."""

    columns: Mapping[str, ColumnReading] = field(repr=False)
    transparency: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @classmethod
    def of(cls, rows: Rows | StoredRows, transparency: Plain, store: Path | None = None) -> ReleaseReading:
        """The reading of what is about to be published; declared hierarchy files are copied into the store."""
        source = rows.references.original
        types = {} if source is None else {each.name: each.type for each in source.relation.schema()}
        described = Schema() if source is None else source.schema
        columns = {}
        for name in rows.published_types.names:
            description = described.columns.get(name, Column())
            kind = kind_of(types.get(name, rows.published_types.field(name).type))
            column = ColumnReading(kind, description.missing, description.items, description.declared_order)
            tree = rows.hierarchies.get(name)
            if rows.public.columns[name].role == "quasi" and tree is not None:
                spec = rows.owners.columns[name].hierarchy
                column = replace(column, hierarchy=_kept_spec(spec, described.folder, store), width=_width(tree, spec))
            columns[name] = column
        return cls(MappingProxyType(columns), MappingProxyType(plain(dict(transparency))))

    def to_json(self) -> bytes:
        """As it is kept."""
        columns = {name: {key: value for key, value in vars(each).items() if value} for name, each in self.columns.items()}
        kept = {"format": FORMAT, "columns": plain(columns), "transparency": plain(dict(self.transparency))}
        return json.dumps(kept, sort_keys=True, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, content: bytes) -> ReleaseReading:
        """What was kept; `ValueError` where it is not in this form."""
        kept = json.loads(content)
        if not isinstance(kept, dict) or kept.get("format") != FORMAT:
            raise ValueError("not a reading of this form")
        columns = {}
        for name, each in kept["columns"].items():
            listed = {key: tuple(each[key]) for key in ("missing", "order") if each.get(key) is not None}
            columns[name] = ColumnReading(**{**each, **listed})
        return cls(columns, kept["transparency"])

    @property
    def masked(self) -> bool:
        """Whether values were changed, and not only generalised."""
        return "masked_columns" in self.transparency or "steps" in self.transparency

    @property
    def changes_values(self) -> bool:
        """Whether a mask changed values, and did not only choose records."""
        return self.masked and self.transparency.get("masked_columns") != []

    @property
    def of_some_records(self) -> bool:
        """Whether the release is known to hold some of the records of its table only, as drawn."""
        return "sample" in self.transparency or (self.masked and not self.changes_values)


def written_as(people: Microdata, names: Iterable[str]) -> PlainDict:
    """How the values behind published columns were written: what has to agree before two releases are combined."""
    types = {each.name: each.type for each in people.relation.schema()}
    writing: dict[str, Any] = {}
    for name in names:
        missing = people.schema.columns[name].missing if name in people.schema.columns else ()
        column = ColumnReading(kind_of(types[name]), missing)
        writing[name] = {"type": column.kind, **({"missing": sorted(map(digest_of_code, column.codes))} if missing else {})}
    return writing


def as_values(codes: Iterable[str]) -> frozenset[str]:
    """Codes in a column of numbers: those that are numbers in the one plain text of their value."""
    return frozenset(plain_code for code in codes for plain_code in plain_codes([code]) or [code])


def digest_of_code(code: str) -> str:
    """A code for a missing value, as a certificate tells it: enough to see whether two releases have the same, and no text."""
    return hashlib.sha256(code.encode()).hexdigest()[:8]


def is_digest_of_code(stated: str) -> bool:
    """Whether a certificate may tell a code so."""
    return re.fullmatch(r"[0-9a-f]{8}", stated) is not None


def kind_of(kind: pa.DataType) -> str:
    """The name of a type; types whose values are written differently have different names."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_decimal(value) or pa.types.is_float32(value) or pa.types.is_float16(value) or pa.types.is_binary(value):
        return str(value)
    if pa.types.is_timestamp(value) and value.tz is not None:
        return f"datetime {value.tz}"
    return type_name(value)


def keep(store: Path, name: str, content: bytes) -> None:
    """A file of the owner alone, which appears whole."""
    store.mkdir(mode=0o700, exist_ok=True)
    with atomic_path(store / name, mode=0o600) as hidden:
        hidden.write_bytes(content)


def store_of(ledger: Ledger) -> Path | None:
    """The folder that keeps the published rows of the ledger's releases; None for a ledger that is no
    file.
    """
    place = Path(ledger.description)
    return Path(f"{place}.releases") if place.is_file() else None


@contextmanager
def keep_rows(ledger: Ledger, published: bytes, digest: str) -> Iterator[None]:
    """Keep the published file under its digest, for the owner alone; where what follows fails it is taken away again."""
    store = store_of(ledger)
    fresh = store is not None and not (store / f"{digest}.parquet").exists()
    if store is not None and fresh:
        keep(store, f"{digest}.parquet", published)
    try:
        yield
    except BaseException:
        if store is not None and fresh:
            (store / f"{digest}.parquet").unlink(missing_ok=True)
        raise


def keep_reading(ledger: Ledger, entered: str, reading: bytes) -> None:
    """Keep how a release is read under the hash of its entry. It is entered by now: where the disk fails nothing is raised, and
    later releases say that it could not be compared."""
    store = store_of(ledger)
    if store is not None and not (store / f"{entered}.json").exists():
        with suppress(OSError):
            keep(store, f"{entered}.json", reading)


def as_it_reads(
    table: pa.Table, schema: Schema, reading: ReleaseReading, quasi: frozenset[str], today: Today, store: Path
) -> ReleasedTable:
    """The rows of a release with what their texts stand for among the values of today; `quasi` are columns that some release
    generalises. Refused with the reason where that cannot be told for certain."""
    trees: dict[str, Hierarchy] = {}
    ranges: dict[str, dict[str, ShownValue]] = {}
    for name in table.column_names:
        now = today.reading.columns.get(name)
        if now is not None and not reading.columns[name].same_values(now):
            raise Unsupported(f"the values of column '{name}' had another type, or other codes for missing ones")
        if name not in quasi:
            continue
        if name not in schema.quasi:
            trees[name] = as_they_are(table, name)
            continue
        values = today.values(name)
        if values is None:  # nobody can look this column up today, so that its texts need not be read
            continue
        trees[name] = _tree(name, reading.columns[name], values, today, store)
        ranges[name] = _ranges(name, reading.columns[name], texts(table.column(name).unique()), trees[name])
    return ReleasedTable(table, schema, trees, table.num_rows, ranges)


def as_they_are(table: pa.Table, name: str) -> Hierarchy:
    """The values of a column that is published as it is: each stands for itself."""
    values = texts(table.column(name).unique())
    return hierarchy_builders.from_values(values).with_leaves([None] if None in values else [])


@dataclass(frozen=True, eq=False)
class Today:
    """The new release: its reading, its hierarchies, the table it was made from, and whether that is the table of then."""

    reading: ReleaseReading
    hierarchies: Mapping[str, Hierarchy] = field(repr=False)
    original: Microdata | None = field(repr=False)
    same_table: bool = False

    def values(self, name: str) -> list[str | None] | None:
        """All values of a column, those of suppressed records too; None where the table has no such column."""
        if name in self.hierarchies:
            return list(self.hierarchies[name].leaves)
        if self.original is None or name not in self.original.column_names:
            return None
        grouped = self.original.relation.group([name])
        return texts(sorted_sets(grouped, self.original.schema).column(name).unique())


def _kept_spec(spec: HierarchySpec | None, folder: str | None, store: Path | None) -> dict[str, Any] | None:
    """The description of a hierarchy; a file under the name of its content, so that it stays what it was."""
    if spec is None:
        return None
    description: dict[str, Any] = plain(spec.model_dump(mode="json", exclude_none=True, exclude_defaults=True))
    if spec.file is not None:
        try:
            content = (Path(folder or ".") / spec.file).read_bytes()
        except OSError as error:
            raise HierarchyError(f"cannot read hierarchy file '{Path(spec.file).name}' again: {type(error).__name__}") from None
        description["file"] = f"{hashlib.sha256(content).hexdigest()}.csv"
        if store is not None and not (store / description["file"]).exists():
            keep(store, description["file"], content)
    return description


def _width(tree: Hierarchy, spec: HierarchySpec | None) -> int | None:
    if spec is None or spec.mask is None:
        return None
    return mask_width(tree.leaves, spec.width)


def _tree(name: str, column: ColumnReading, values: list[str | None], today: Today, store: Path) -> Hierarchy:
    """The hierarchy of then over the values of today."""
    now = today.reading.columns.get(name)
    declared = dict(column.hierarchy or {})
    if column.items is not None:
        raise Unsupported(f"column '{name}' holds sets, whose texts cannot be distinguished with certainty")
    if "frequency" in declared:
        if not today.same_table or now is None or now.hierarchy != column.hierarchy or name not in today.hierarchies:
            raise Unsupported(f"the groups of column '{name}' were learnt from the table of then")
        return today.hierarchies[name]
    short = values
    if declared.get("width"):
        if declared["width"] != column.width:  # kept by a version in which a longer value still widened the mask
            raise Unsupported(f"column '{name}' was masked to a width that is not known for certain")
    elif column.width is not None:
        # a longer value did not occur then, and would make other texts of the rest
        short = [value for value in values if value is None or len(value) <= column.width]
        declared["width"] = column.width
    try:
        spec = HierarchySpec.model_validate({**declared, "missing": "root"}) if declared else None
        tree = hierarchy_builders.build(name, Column(order=column.order, hierarchy=spec), short, None, store)
    except (SfumatoError, ValueError, OSError):
        raise Unsupported(f"the hierarchy of column '{name}' does not fit the values of today") from None
    return tree.with_leaves([value for value in values if value not in tree.index])


def _ranges(name: str, column: ColumnReading, shown: list[str | None], tree: Hierarchy) -> dict[str, ShownValue]:
    """Ranges made by partitioning, by their text."""
    labels = set(tree.labels)
    ranges: dict[str, ShownValue] = {}
    for label in shown:
        if label is None or label in labels:
            continue
        if TO in label:
            ranges[label] = ShownValue(0.0, 0.0, _between(name, label, column, tree))
        elif (span := interval_of(label)) is not None:
            from sfumato.workflow.publishing.scoring import bounds_of

            ranges[label] = ShownValue(0.0, 0.0, frozenset(), bounds=bounds_of(span))
        else:  # made of values that nobody has today
            ranges[label] = ShownValue(0.0, 0.0, frozenset([label]))
    return ranges


def _between(name: str, label: str, column: ColumnReading, tree: Hierarchy) -> frozenset[str | None]:
    """The values of today in a range of an order that was declared, or of dates."""
    ends = label.split(TO)
    ranks = {value: place for place, value in enumerate(column.order or ())}
    if len(ends) == 2 and all(end in ranks for end in ends):
        low, high = (ranks[end] for end in ends)
        return frozenset(leaf for leaf in tree.leaves if leaf in ranks and low <= ranks[leaf] <= high)
    if len(ends) == 2 and column.hierarchy is not None and "dates" in column.hierarchy:
        return frozenset(leaf for leaf in tree.leaves if leaf is not None and ends[0] <= leaf <= ends[1])
    raise Unsupported(f"a range of column '{name}' cannot be read")
