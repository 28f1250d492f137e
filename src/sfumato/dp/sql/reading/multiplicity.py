"""How often a JOIN may multiply the rows of one unit.

Rows are bounded after they are joined. Were there no limit before, a person whose rows fulfil a condition could make the
engine run for hours or out of memory, and whoever asks would learn of the condition from that alone. So the query must
limit it by its form: at most two private sides with any number of rows per unit, and public tables that multiply a row at
most a thousand times. Public rows may be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sfumato.core.errors import Unsupported
from sfumato.dp.sql.reading.catalogue import MOST_PUBLIC_ROWS, KnownTable, QueryRows, scanned_as
from sfumato.engines import plan as p

if TYPE_CHECKING:
    import pyarrow as pa

#: How many private sides of a query's joins may have any number of rows per unit.
MOST_UNLIMITED_SIDES = 2
#: How many rows a query's public tables may make of one private row, over all its joins.
MOST_PUBLIC_COPIES = 1_000


def unlimited_sides(left: QueryRows, right: QueryRows) -> int:
    """How many private sides with any number of rows per unit a join has."""
    sides = left.unlimited + right.unlimited
    if sides > MOST_UNLIMITED_SIDES:
        raise Unsupported(
            "the query joins more than two private tables, of each of which one unit may have many rows, so that the rows of a "
            "unit would multiply without limit. Make one row per unit of all but two of them first: "
            "JOIN (SELECT unit, SUM(x) AS total FROM t GROUP BY unit) AS s ON …"
        )
    return sides


def public_copies(left: QueryRows, largest: int) -> int:
    """How many rows public tables make of one private row, one more table with so many rows per key included."""
    copies = left.copies * max(largest, 1)
    if copies > MOST_PUBLIC_COPIES:
        raise Unsupported(
            f"the public tables of the query would make more than {MOST_PUBLIC_COPIES:,} rows of one private row (they have up "
            f"to {copies:,} for one key); join a public table with few rows per key, or on more of its columns"
        )
    return copies


def largest_per_key(plan: p.Plan, keys: Sequence[str], tables: Mapping[str, KnownTable]) -> int:
    """The largest number of public rows that have the same keys."""
    counted = computed(p.Group(plan, tuple(dict.fromkeys(keys)), (p.AggregateColumn(_COUNT, "count"),)), tables)
    return max(counted.column(_COUNT).to_pylist(), default=0)


def check_public_join(left: p.Plan, right: p.Plan, on: Sequence[tuple[str, str]], tables: Mapping[str, KnownTable]) -> None:
    """Refuse to join public tables into one that is larger than a public table may be."""
    sides = []
    for name, plan, keys in (("left rows", left, [a for a, _ in on]), ("right rows", right, [b for _, b in on])):
        sides.append(p.Group(plan, tuple(dict.fromkeys(keys)), (p.AggregateColumn(name, "count"),)))
    counted = computed(p.Join(sides[0], sides[1], tuple(dict.fromkeys(on))), tables)
    pairs = zip(counted.column("left rows").to_pylist(), counted.column("right rows").to_pylist(), strict=True)
    if sum(one * other for one, other in pairs) > MOST_PUBLIC_ROWS:
        raise Unsupported(
            f"the public tables joined with each other have more than {MOST_PUBLIC_ROWS:,} rows; join each of them with the "
            "private table instead, which comes first"
        )


_COUNT = "rows of a key"


def computed(plan: p.Plan, tables: Mapping[str, KnownTable]) -> pa.Table:
    """The answer to a plan over public tables alone."""
    from sfumato.engines.duckdb.relation import run_in_process

    read = {scan.table for scan in p.scans(plan)}
    public = {scanned_as(table.name): table.rows for table in tables.values() if table.rows is not None}
    return run_in_process(plan, {name: rows for name, rows in public.items() if name in read})
