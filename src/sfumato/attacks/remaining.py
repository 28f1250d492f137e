"""What several releases leave together: records that can be the same one, and the values they still show.

Two records can be the same one when they agree in every column that all releases publish as it is. In a
combination of classes with a_v and b_v records of value v, at most min(a_v, b_v) of each value can be common
to both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks.classes import Classes, Ids, encoded, grouped, released_table
from sfumato.attacks.joint import Joint, membership
from sfumato.core.errors import Unsupported
from sfumato.core.view import View

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
class Remaining:
    """Per combination: the records that can be common to all releases, their different values, and the value
    if it is one."""

    records: Ids = field(repr=False)
    values: Ids = field(repr=False)
    only: Ids = field(repr=False)
    linked: Linked = field(repr=False)


def link_columns(views: Sequence[View]) -> tuple[str, ...]:
    """The columns that every release shows and none generalises: sensitive, plain, units, pseudonyms.

    Pseudonyms that no two releases have in common were made with different keys, or nobody is in two of them: they tie no
    records together.
    """
    tables = [released_table(view).table for view in views]
    shared = [name for name in tables[0].column_names if all(name in table.column_names for table in tables)]
    generalised = {name for view in views for name in view.schema.quasi}
    pseudonyms = {name for view in views for name in view.certificate.get("transparency", {}).get("pseudonymised_columns", ())}
    return tuple(name for name in shared if name not in generalised and (name not in pseudonyms or _tie(tables, name)))


def _tie(tables: Sequence[pa.Table], name: str) -> bool:
    """Whether the releases have pseudonyms in common: each pair of them, or none."""
    values = [set(encoded(table, name).values) - {None} for table in tables]
    found = {bool(one & other) for place, one in enumerate(values) for other in values[place + 1 :]}
    if len(found) > 1:
        raise Unsupported(
            f"the pseudonyms in column '{name}' are the same in some of the releases and not in others, so that the releases "
            "cannot be laid over each other: assume that everything they tell adds up."
        )
    return found == {True}


def linked(releases: Sequence[Classes], names: Sequence[str]) -> Linked:
    """Count the combinations of values of these columns in each class; without columns all records look
    alike."""
    from scipy.sparse import csr_matrix

    totals = [classes.records for classes in releases]
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
        counts = np.ones(total, dtype=np.int64)
        matrix = csr_matrix((counts, (classes.of_row, of_row)), shape=(classes.sizes.size, width))
        matrix.sum_duplicates()
        rows.append(matrix)
    return Linked(tuple(rows), value, first)


def remaining(joint: Joint, whole: Linked, attributes: Sequence[Linked]) -> list[Remaining]:
    """Lay the classes of each combination over each other: the records by all shared columns, and among those records the
    values of each attribute."""
    grouped_rows = [membership(g, rows.shape[0]) @ rows for g, rows in zip(joint.groups, whole.rows, strict=True)]
    count = joint.people.size
    records = np.zeros(count, dtype=np.int64)
    found = [Remaining(records, np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64), one) for one in attributes]
    parts = [_part(whole, one) for one in attributes]
    for start in range(0, count, BATCH):
        batch = slice(start, min(start + BATCH, count))
        common = grouped_rows[0][joint.groups_of[0][batch]]
        for rows, of_combination in zip(grouped_rows[1:], joint.groups_of[1:], strict=True):
            common = common.minimum(rows[of_combination[batch]])
        common = common.tocsr()
        records[batch] = np.asarray(common.sum(axis=1)).reshape(-1)
        for part, left in zip(parts, found, strict=True):
            values = (common @ part).tocsr()
            values.eliminate_zeros()
            distinct = np.diff(values.indptr)
            left.values[batch] = distinct
            single = np.flatnonzero(distinct == 1)
            left.only[start + single] = values.indices[values.indptr[single]]
    return [Remaining(records, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), whole), *found]


def _part(whole: Linked, attribute: Linked) -> Any:
    """Values of all shared columns × values of one of them: 1 where the first has the second."""
    from scipy.sparse import csr_matrix

    size = whole.first.size
    codes = attribute.of_row[whole.first]
    shape = (max(size, 1), max(attribute.first.size, 1))
    return csr_matrix((np.ones(size, dtype=np.int64), (np.arange(size), codes)), shape=shape)
