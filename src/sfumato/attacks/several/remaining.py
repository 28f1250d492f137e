"""What several releases leave together: records that can be the same one, and the values they still show.

Two records can be the same one when they agree in every column that the combined releases publish as it
is. In a combination of classes with a_v and b_v records of value v, at most min(a_v, b_v) of each value can be common to both.
An attribute that not all of them show is looked up where it is shown, among the records that can still be the target's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks.several.joint import Joint, membership
from sfumato.attacks.tables.classes import Ids, ReleasedClasses, encoded, grouped, released_table
from sfumato.core.errors import Unsupported
from sfumato.data.masked import TableView

if TYPE_CHECKING:
    import pyarrow as pa

#: Combinations whose histograms are compared at once.
BATCH = 200_000


@dataclass(frozen=True, eq=False)
class Linked:
    """Per release a sparse matrix classes × values of the shared columns, with one numbering of values for
    all; the value of each row of all releases, and the first row of each value."""

    rows: tuple[Any, ...] = field(repr=False)
    of_row: Ids = field(repr=False)
    first: Ids = field(repr=False)


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column that is shown as it is in the releases at these `places`: all that are combined, or one."""

    name: str
    places: tuple[int, ...]
    linked: Linked = field(repr=False)


@dataclass(frozen=True, eq=False)
class Remaining:
    """Per combination the different values of an attribute among the records that are left, and the value if it is one."""

    attribute: Attribute
    values: Ids = field(repr=False)
    only: Ids = field(repr=False)


def link_columns(views: Sequence[TableView], quasi: Collection[str]) -> tuple[str, ...]:
    """The columns that every one of these releases shows and nobody is taken to know: sensitive, plain, units, pseudonyms.

    Pseudonyms that no two releases have in common were made with different keys, or nobody is in two of them: they tie no
    records together.
    """
    tables = [released_table(view).table for view in views]
    shared = [name for name in tables[0].column_names if all(name in table.column_names for table in tables)]
    pseudonyms = {name for view in views for name in view.certificate.get("transparency", {}).get("pseudonymised_columns", ())}
    return tuple(name for name in shared if name not in quasi and (name not in pseudonyms or _tie(tables, name)))


def _tie(tables: Sequence[pa.Table], name: str) -> bool:
    """Whether the releases have pseudonyms in common: each pair of them, or none."""
    values = [set(encoded(table, name).values) - {None} for table in tables]
    shared = {bool(one & other) for place, one in enumerate(values) for other in values[place + 1 :]}
    if len(shared) > 1:
        raise Unsupported(
            f"the pseudonyms in column '{name}' are the same in some of the releases and not in others, so that the releases "
            "cannot be combined: assume that everything they tell adds up."
        )
    return shared == {True}


def linked(releases: Sequence[ReleasedClasses], names: Sequence[str]) -> Linked:
    """Count the combinations of values of these columns in each class; without columns all records look
    alike."""
    from scipy.sparse import csr_matrix

    totals = [classes.rows for classes in releases]
    keys: list[Ids] = []
    for name in names:
        columns = [encoded(classes.table, name) for classes in releases]
        numbering: dict[str | None, int] = {}
        codes = []
        for column in columns:
            ids = [numbering.setdefault(value, len(numbering)) for value in column.values]
            codes.append(np.array(ids, dtype=np.int64)[column.codes] if ids else column.codes)
        keys.append(np.concatenate(codes))
    value, first = grouped(keys, sum(totals))
    width = max(first.size, 1)
    rows, start = [], 0
    for classes, total in zip(releases, totals, strict=True):
        of_row = value[start : start + total]
        start += total
        matrix = csr_matrix((classes.of_rows, (classes.of_row, of_row)), shape=(classes.sizes.size, width))
        matrix.sum_duplicates()
        rows.append(matrix)
    return Linked(tuple(rows), value, first)


def attributes_of(releases: Sequence[ReleasedClasses], names: Sequence[str], link: Sequence[str]) -> list[Attribute]:
    """The attributes that these releases show: once for all of them where they tie records together, else once for each."""
    everywhere = tuple(range(len(releases)))
    attributes = []
    for name in names:
        if name in link:
            attributes.append(Attribute(name, everywhere, linked(releases, (name,))))
            continue
        shown = [place for place in everywhere if name in releases[place].table.column_names]
        attributes += [Attribute(name, (place,), linked([releases[place]], (name,))) for place in shown]
    return attributes


def remaining(
    joint: Joint, releases: Sequence[ReleasedClasses], whole: Linked, attributes: Sequence[Attribute]
) -> tuple[Ids, list[Remaining]]:
    """Lay the classes of each combination over each other: how many records can be common to all by the columns they share, and
    the values of each attribute among those records."""
    grouped_rows = [membership(g, rows.shape[0]) @ rows for g, rows in zip(joint.groups, whole.rows, strict=True)]
    count = joint.people.size
    records = np.zeros(count, dtype=np.int64)
    results = [Remaining(each, np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)) for each in attributes]
    shared = len(joint.groups)
    parts = [
        _part(whole, each.linked) if len(each.places) == shared else _Shown.of(joint, releases, whole, each)
        for each in attributes
    ]
    for start in range(0, count, BATCH):
        batch = slice(start, min(start + BATCH, count))
        common = grouped_rows[0][joint.groups_of[0][batch]]
        for rows, of_combination in zip(grouped_rows[1:], joint.groups_of[1:], strict=True):
            common = common.minimum(rows[of_combination[batch]])
        common = common.tocsr()
        common.eliminate_zeros()
        records[batch] = np.asarray(common.sum(axis=1)).reshape(-1)
        for part, left in zip(parts, results, strict=True):
            values = part.among(common, batch) if isinstance(part, _Shown) else (common @ part).tocsr()
            values.eliminate_zeros()
            distinct = np.diff(values.indptr)
            left.values[batch] = distinct
            single = np.flatnonzero(distinct == 1)
            left.only[start + single] = values.indices[values.indptr[single]]
    return records, results


@dataclass(frozen=True, eq=False)
class _Shown:
    """An attribute in one of the releases: groups × (value of the shared columns, value of the attribute) as they occur."""

    rows: Any = field(repr=False)
    of_combination: Ids = field(repr=False)
    link: Ids = field(repr=False)
    value: Ids = field(repr=False)
    width: int

    @classmethod
    def of(cls, joint: Joint, releases: Sequence[ReleasedClasses], whole: Linked, attribute: Attribute) -> _Shown:
        from scipy.sparse import csr_matrix

        [place] = attribute.places
        start = sum(classes.rows for classes in releases[:place])
        classes = releases[place]
        link, value = whole.of_row[start : start + classes.rows], attribute.linked.of_row
        pair, first = grouped([link, value], classes.rows)
        shape = (classes.sizes.size, max(first.size, 1))
        rows = csr_matrix((classes.of_rows, (classes.of_row, pair)), shape=shape)
        rows.sum_duplicates()
        gathered = membership(joint.groups[place], rows.shape[0]) @ rows
        return cls(gathered, joint.groups_of[place], link[first], value[first], max(attribute.linked.first.size, 1))

    def among(self, common: Any, batch: slice) -> Any:
        """Combinations × values of the attribute, of records whose value of the shared columns is common to all releases."""
        from scipy.sparse import csr_matrix

        here, there = self.rows[self.of_combination[batch]].tocoo(), common.tocoo()
        width = common.shape[1]
        possible = np.isin(
            here.row.astype(np.int64) * width + self.link[here.col], there.row.astype(np.int64) * width + there.col
        )
        place, value = here.row[possible], self.value[here.col[possible]]
        values = csr_matrix((np.ones(place.size, dtype=np.int64), (place, value)), shape=(common.shape[0], self.width))
        values.sum_duplicates()
        return values


def _part(whole: Linked, attribute: Linked) -> Any:
    """Values of all shared columns × values of one of them: 1 where the first has the second."""
    from scipy.sparse import csr_matrix

    size = whole.first.size
    codes = attribute.of_row[whole.first]
    shape = (max(size, 1), max(attribute.first.size, 1))
    return csr_matrix((np.ones(size, dtype=np.int64), (np.arange(size), codes)), shape=shape)
