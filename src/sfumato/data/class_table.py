"""The class table: all that a search over classes needs, in codes.

One `GROUP BY` of quasi-identifiers and sensitive values gives the cells; the cells give the distinct tuples of
quasi-identifiers with their counts and, per tuple, a histogram of each sensitive attribute. Searches work on these
arrays and never see a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import HierarchyError, MissingColumn, SchemaError, Unsupported, all_at_once
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.hierarchies.hierarchy_builders import by_frequency, tree_over
from sfumato.data.hierarchies.level_limits import LevelLimits
from sfumato.data.item_sets import ItemSets
from sfumato.data.microdata import Microdata
from sfumato.data.recoding import Shown
from sfumato.data.relation import COUNT, SHARES, UNITS, WEIGHT, WHOLE
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import as_numbers, sorted_set, texts
from sfumato.kernels.classes.grouping import group_columns

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]

#: Largest dense histogram (tuples × sensitive values) a search may hold.
MAX_HISTOGRAM_CELLS = 400_000_000


@dataclass(frozen=True, eq=False)
class SensitiveAttribute:
    """A sensitive column: its values in order, and how they generalise."""

    name: str
    values: tuple[str | None, ...] = field(repr=False)
    hierarchy: Hierarchy = field(repr=False)
    leaf_of: NDArray[np.int64] = field(repr=False)  # position of each value among the hierarchy's leaves
    ordered: bool = False  # whether the values stand in an order that means something


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Distinct tuples of quasi-identifiers with counts and histograms, and the cells behind them.

    `codes[a, t]` is the leaf of attribute a in tuple t; `counts[t]` its records; `units[t]` its different units (the very
    array of records without a unit column) and `shares[t]` what these give to it, see `WHOLE`; `population[t]` its people
    in the population table (zeros without one); cell c belongs to tuple `tuple_of_cell[c]` and has value
    `sensitive_codes[s, c]` of sensitive attribute s.
    """

    quasi: tuple[str, ...]
    hierarchies: tuple[Hierarchy, ...] = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)
    codes: Codes = field(repr=False)
    counts: Counts = field(repr=False)
    units: Counts = field(repr=False)
    population: Counts = field(repr=False)
    survey_weights: NDArray[np.float64] | None = field(repr=False)
    sensitive: tuple[SensitiveAttribute, ...] = field(repr=False)
    tuple_of_cell: NDArray[np.int64] = field(repr=False)
    sensitive_codes: Codes = field(repr=False)
    cell_counts: Counts = field(repr=False)
    keys: Any = field(repr=False)
    set_valued: Mapping[str, ItemSets] = field(default_factory=dict, repr=False)  # quasi-identifiers whose values are sets
    shares: Counts | None = field(default=None, repr=False)  # only with a unit column
    free_ranges: frozenset[str] = frozenset()  # ordered quasi-identifiers for which the owner declared no tree of values
    limits: Mapping[str, LevelLimits] = field(default_factory=dict, repr=False)  # quasi-identifiers kept to some levels

    @property
    def records(self) -> int:
        """All records of the table."""
        return int(self.counts.sum())

    @property
    def known_cells(self) -> dict[str, int]:
        """How many records know each quasi-identifier."""
        missing = {name: tree.index.get(None, -1) for name, tree in zip(self.quasi, self.hierarchies, strict=True)}
        return {name: int(self.counts[self.codes[place] != missing[name]].sum()) for place, name in enumerate(self.quasi)}

    @property
    def people(self) -> int:
        """All different units of the table; its records without a unit column."""
        return self.records if self.shares is None else -(-int(self.shares.sum()) // WHOLE)

    @property
    def one_tuple_each(self) -> bool:
        """True where no unit has rows in two tuples, so that units add up like records."""
        return self.shares is None or bool(np.array_equal(self.shares, self.units * WHOLE))

    @property
    def tuples(self) -> int:
        """Distinct tuples of quasi-identifiers, those of the population alone included."""
        return int(self.counts.size)

    def values_of_several(self, attribute: int) -> NDArray[np.bool_]:
        """Which values of a sensitive attribute more than one record has, or none."""
        width = len(self.sensitive[attribute].values)
        counts = np.zeros(width, dtype=np.int64)
        np.add.at(counts, self.sensitive_codes[attribute], self.cell_counts)
        return np.asarray(counts != 1)

    def count_values(self, attribute: int, totals: Counts, start: int, places_of: NDArray[np.int64] | None = None) -> None:
        """Add to `totals`, from column `start` on, the records of each tuple with each value of a sensitive attribute; value v
        has column v, or `places_of[v]`."""
        codes = self.sensitive_codes[attribute]
        places = self.tuple_of_cell * totals.shape[1]
        places += codes if places_of is None else places_of[codes]
        places += start
        # of one type, or NumPy takes its slow way
        np.add.at(totals.reshape(-1), places, self.cell_counts.astype(totals.dtype, copy=False))

    def refuse_large_histograms(self, width: int) -> None:
        """Raise where histograms of so many values would not fit."""
        if self.tuples * width > MAX_HISTOGRAM_CELLS:
            raise Unsupported(
                f"the sensitive attributes have {width:,} different values over {self.tuples:,} combinations of "
                "quasi-identifiers, too many to hold their histograms. Group the sensitive values first (a hierarchy level as a "
                "column of its own) or drop guarantees on them."
            )

    def sensitive_index(self, name: str) -> int:
        """The position of a sensitive attribute."""
        for i, attribute in enumerate(self.sensitive):
            if attribute.name == name:
                return i
        raise MissingColumn(
            f"'{name}' is not among the sensitive attributes of this table: {', '.join(a.name for a in self.sensitive) or 'none'}"
        )

    def shown_at(self, attribute: int, nodes: NDArray[np.int32]) -> Shown:
        """What a quasi-identifier shows when class c is generalised to hierarchy node `nodes[c]`."""
        tree = self.hierarchies[attribute]
        whole = self.limits[self.quasi[attribute]].tree if self.quasi[attribute] in self.limits else tree
        leaf = np.zeros(len(tree.labels), dtype=np.bool_)
        leaf[whole.node_of[0]] = True
        return Shown(tree.labels, tree.loss, tree.sizes, leaf, nodes.astype(np.int32))


def encode(
    data: Microdata,
    *,
    sensitive: Sequence[str] | None = None,
    population: Microdata | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> ClassTable:
    """Group the data once and encode it; `sensitive` defaults to the schema's sensitive attributes."""
    schema = data.schema
    quasi = schema.quasi
    chosen = tuple(schema.sensitive if sensitive is None else sensitive)
    _check(schema, data, quasi, chosen)
    # a unit may have several sensitive values beside the same quasi-identifiers, so units are counted by these alone
    units = data.relation.group(list(quasi), unit=schema.unit) if schema.unit is not None else None
    grouped = data.relation.group([*quasi, *chosen], weight=schema.weight)
    extra = population.relation.group(list(quasi)) if population is not None else None
    trees = {**data.hierarchies, **(hierarchies or {})}
    table = from_grouped(grouped, schema, quasi, chosen, units=units, population=extra, hierarchies=trees)
    built = zip(quasi, table.hierarchies, strict=True)
    data.hierarchies.update((name, tree) for name, tree in built if extra is None or not by_frequency(schema.columns[name]))
    data.hierarchies.update((attribute.name, attribute.hierarchy) for attribute in table.sensitive)
    return table


def from_grouped(
    grouped: pa.Table,
    schema: Schema,
    quasi: Sequence[str],
    sensitive: Sequence[str],
    *,
    units: pa.Table | None = None,
    population: pa.Table | None = None,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> ClassTable:
    """Encode grouped cells (see `Relation.group`); `units` are the tuples of quasi-identifiers with their units."""
    cell_counts = grouped.column(COUNT).to_numpy().astype(np.int64)
    earlier = dict(hierarchies or {})
    coded, trees = [], []
    people = population.column(COUNT).to_numpy().astype(np.int64) if population is not None else np.zeros(0, dtype=np.int64)
    faults: list[HierarchyError | SchemaError] = []
    for name in quasi:
        sets = schema.columns[name].items
        values, codes = _dictionary(grouped.column(name), sets)
        more_values, more_codes = (
            ([], np.zeros(0, np.int32)) if population is None else _dictionary(population.column(name), sets)
        )
        everything = _by_text(dict.fromkeys([*values, *more_values]))
        try:
            _refuse_undeclared(name, schema.columns[name], values)
            if population is not None and by_frequency(schema.columns[name]):
                listed = _by_text(more_values)
                counted = _value_counts(listed, more_values, more_codes, people)
                tree = hierarchy_builders.learnt_elsewhere(name, schema, listed, counted, values)
            else:
                tree = tree_over(
                    name, schema, earlier, everything, partial(_value_counts, everything, values, codes, cell_counts)
                )
        except (HierarchyError, SchemaError) as error:
            faults.append(error)
            continue
        lookup = np.array([tree.index[value] for value in values], dtype=np.int32)
        more = np.array([tree.index[value] for value in more_values], dtype=np.int32)
        own = _leaves(tree, units.column(name), sets) if units is not None else np.zeros(0, np.int32)
        extra = more[more_codes] if more_codes.size else more
        coded.append(np.concatenate([lookup[codes], extra, own]) if extra.size + own.size else lookup[codes])
        trees.append(tree)
    hierarchy_builders.raise_together(faults)
    attributes, sensitive_codes = _sensitive(grouped, schema, sensitive, earlier, cell_counts)
    return _assemble(grouped, quasi, trees, coded, cell_counts, people, units, attributes, sensitive_codes, schema)


def _assemble(
    grouped: pa.Table,
    quasi: Sequence[str],
    trees: list[Hierarchy],
    coded: list[Codes],
    cell_counts: Counts,
    people: Counts,
    owners: pa.Table | None,
    attributes: tuple[SensitiveAttribute, ...],
    sensitive_codes: Codes,
    schema: Schema,
) -> ClassTable:
    cells = cell_counts.size
    tuple_of, first = group_columns(coded, [len(tree.leaves) for tree in trees])
    tuples = first.size
    of_cell = tuple_of[:cells]
    counts = np.bincount(of_cell, weights=cell_counts, minlength=tuples).astype(np.int64)
    population = np.bincount(tuple_of[cells : cells + people.size], weights=people, minlength=tuples).astype(np.int64)
    units, shares = counts, None
    if owners is not None:
        of_owners = tuple_of[cells + people.size :]
        units, shares = np.zeros(tuples, dtype=np.int64), np.zeros(tuples, dtype=np.int64)
        np.maximum.at(units, of_owners, owners.column(UNITS).to_numpy())  # values that share a text may share their units
        np.add.at(shares, of_owners, owners.column(SHARES).to_numpy())
    survey = None
    if WEIGHT in grouped.column_names:
        survey = np.bincount(of_cell, weights=grouped.column(WEIGHT).to_numpy(), minlength=tuples).astype(np.float64)
    importance = np.array([schema.columns[name].importance for name in quasi], dtype=np.float64)
    return ClassTable(
        quasi=tuple(quasi),
        hierarchies=tuple(trees),
        weights=importance / importance.sum() if importance.size else importance,
        codes=np.ascontiguousarray(np.stack([column[first] for column in coded])) if coded else np.zeros((0, tuples), np.int32),
        counts=counts,
        units=units,
        population=population,
        survey_weights=survey,
        sensitive=attributes,
        tuple_of_cell=of_cell.astype(np.int64),
        sensitive_codes=sensitive_codes,
        cell_counts=cell_counts,
        keys=grouped.select([*quasi, *(attribute.name for attribute in attributes)]),
        set_valued={
            name: ItemSets.of(name, schema.columns[name], (tree.leaves[i] for i in np.unique(codes)), schema.folder)
            for name, tree, codes in zip(quasi, trees, coded, strict=True)
            if schema.columns[name].items is not None
        },
        shares=shares,
        free_ranges=frozenset(
            name
            for name, tree in zip(quasi, trees, strict=True)
            if tree.ordered and _free_to_range(schema.columns[name], grouped.schema.field(name).type)
        ),
    )


def _free_to_range(column: Column, physical: pa.DataType) -> bool:
    """Whether ranges of an ordered column may be chosen: its owner declared no tree or allows it (`ranges = true`), and its
    values are numbers or have a declared order. Intervals that were proposed from the data (`source = "data"`) are not declared;
    a text of digits is a code."""
    import pyarrow as pa

    value_type = physical.value_type if pa.types.is_dictionary(physical) else physical
    in_order = (
        column.order is not None
        or column.type in ("integer", "number")
        or (column.type is None and (pa.types.is_integer(value_type) or pa.types.is_floating(value_type)))
    )
    spec = column.hierarchy
    proposed = column.source == "data" and spec is not None and spec.kind in ("intervals", "cuts", "flat")
    return in_order and column.items is None and (spec is None or spec.ranges or proposed)


def _sensitive(
    grouped: pa.Table, schema: Schema, names: Sequence[str], earlier: Mapping[str, Hierarchy], counts: Counts
) -> tuple[tuple[SensitiveAttribute, ...], Codes]:
    attributes, coded = [], []
    for name in names:
        column = schema.columns[name]
        values, codes = _dictionary(grouped.column(name), column.items)
        listed = _by_text(values)
        _refuse_undeclared(name, column, values)
        tree = tree_over(name, schema, earlier, listed, partial(_value_counts, listed, values, codes, counts))
        order, meant = _value_order(values, column, tree)
        rank = np.empty(len(values), dtype=np.int32)
        rank[order] = np.arange(len(values), dtype=np.int32)
        ordered = tuple(values[i] for i in order)
        leaves = np.array([tree.index[value] for value in ordered], dtype=np.int64)
        attributes.append(SensitiveAttribute(name, ordered, tree, leaves, meant))
        coded.append(rank[codes])
    stacked = np.stack(coded) if coded else np.zeros((0, grouped.num_rows), dtype=np.int32)
    return tuple(attributes), stacked.astype(np.int32)


def _by_text(values: Iterable[str | None]) -> list[str | None]:
    """Distinct values in an order of their own, so that the order of rows does not matter; a missing one comes last."""
    return sorted(values, key=lambda value: (value is None, value or ""))


def _value_order(values: list[str | None], column: Column, tree: Hierarchy) -> tuple[list[int], bool]:
    """The values in their declared, natural or leaf order, and whether it means something (two values need none)."""
    places = range(len(values))
    if column.order is not None:
        declared = {value: i for i, value in enumerate(column.order)}
        last = len(declared)
        return sorted(places, key=lambda i: (values[i] is None, declared.get(values[i] or "", last), values[i] or "")), True
    if column.hierarchy is None and column.type in ("date", "datetime"):
        return sorted(places, key=lambda i: (values[i] is None, values[i] or "")), True
    return sorted(places, key=lambda i: tree.index[values[i]]), tree.ordered or len(values) <= 2


def _dictionary(column: pa.ChunkedArray, items: str | None) -> tuple[list[str | None], Codes]:
    """Distinct texts of a column and, per row, which one; different values with the same text share a code, and so do sets that
    are written differently (`items` is their separator)."""
    import pyarrow as pa

    combined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = combined if pa.types.is_dictionary(combined.type) else combined.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = texts(encoded.dictionary) if items is None else [sorted_set(text, items) for text in texts(encoded.dictionary)]
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int32)
    if encoded.indices.null_count:
        values.append(None)
    distinct = list(dict.fromkeys(values))
    if len(distinct) != len(values):
        position = {value: i for i, value in enumerate(distinct)}
        codes = np.array([position[value] for value in values], dtype=np.int32)[codes]
    return distinct, codes


def _leaves(tree: Hierarchy, column: pa.ChunkedArray, items: str | None) -> Codes:
    """The leaf of each row of a column."""
    values, codes = _dictionary(column, items)
    return np.array([tree.index[value] for value in values], dtype=np.int32)[codes]


def _value_counts(everything: list[str | None], values: list[str | None], codes: Codes, counts: Counts) -> list[int]:
    totals = np.bincount(codes, weights=counts, minlength=len(values))
    by_value = {value: int(total) for value, total in zip(values, totals, strict=True)}
    return [by_value.get(value, 0) for value in everything]


def _check(schema: Schema, data: Microdata, quasi: Sequence[str], sensitive: Sequence[str]) -> None:
    schema.require_columns(data.column_names, data.description)
    faults = []
    if not quasi:
        faults.append(
            "no column has the role 'quasi'. Say which columns an outsider could know about a person (role = \"quasi\")"
        )
    for name in sensitive:
        if name not in schema.columns:
            faults.append(f"'{name}' is named by a guarantee but not described in the schema")
        elif name in quasi:
            faults.append(f"'{name}' is named by a guarantee as sensitive but has the role 'quasi'; a column is one or the other")
    all_at_once(SchemaError, f"schema '{schema.dataset}'", faults)


def _refuse_undeclared(name: str, column: Column, values: Sequence[str | None]) -> None:
    """Refuse values outside declared bounds or a declared domain; they are counted, not shown."""
    if column.source != "declared":
        return
    present = [value for value in values if value is not None]
    if column.domain is not None:
        outside = len(set(present) - set(column.domain))
        if outside:
            raise SchemaError(
                f"column '{name}' has {outside:,} different value{'s' if outside > 1 else ''} outside its declared domain of "
                f"{len(column.domain):,}. Correct the data or the domain."
            )
    if column.bounds is not None and (numbers := as_numbers(present)) is not None:
        low, high = column.bounds
        outside = sum(not low <= number <= high for number in numbers)
        if outside:
            raise SchemaError(
                f"column '{name}' has {outside:,} different value{'s' if outside > 1 else ''} outside its declared bounds "
                f"[{low:g}, {high:g}]. Correct the data or the bounds."
            )
