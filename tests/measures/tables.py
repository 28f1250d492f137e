"""Tables of the worked cases, as Arrow tables with their schemas."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sfumato.data.schema import Column, HierarchySpec, Schema

HOSPITAL_ROWS = [
    ("13053", "28", "Russian", "Heart"),
    ("13068", "29", "American", "Heart"),
    ("13068", "21", "Japanese", "Flu"),
    ("13053", "23", "American", "Flu"),
    ("14853", "50", "Indian", "Cancer"),
    ("14853", "55", "Russian", "Heart"),
    ("14850", "47", "American", "Flu"),
    ("14850", "59", "American", "Flu"),
    ("13053", "31", "American", "Cancer"),
    ("13053", "37", "Indian", "Cancer"),
    ("13068", "36", "Japanese", "Cancer"),
    ("13068", "32", "American", "Cancer"),
]
HOSPITAL_SCHEMA = Schema.of("hospital", quasi=["zip", "age", "nationality"], sensitive=["disease"])


def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> pa.Table:
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def hospital() -> pa.Table:
    """The raw table of G-ANO-20."""
    return table(["zip", "age", "nationality", "disease"], HOSPITAL_ROWS)


def generalised_hospital(rows: int = 12) -> pa.Table:
    """The published table of G-ANO-20: zip and age generalised, nationality suppressed."""
    shown = []
    for i, (_, _, _, disease) in enumerate(HOSPITAL_ROWS[:rows]):
        place, age = [("130**", "<30"), ("1485*", ">40"), ("130**", "30-40")][i // 4]
        shown.append((place, age, "*", disease))
    return table(["zip", "age", "nationality", "disease"], shown)


def classes_table(counts: Sequence[dict[str, int]], column: str = "disease") -> pa.Table:
    """A table with one class per entry, holding that many records of each value."""
    rows = [(f"class {i}", value) for i, entry in enumerate(counts) for value, n in entry.items() for _ in range(n)]
    return table(["group", column], rows)


def grouped_schema(column: str = "disease", **described: object) -> Schema:
    columns = {"group": Column(role="quasi"), column: Column(role="sensitive", **described)}  # type: ignore[arg-type]
    return Schema(dataset="classes", columns=columns)


WORKCLASS = HierarchySpec(
    tree={
        "Government": ["State-gov", "Local-gov", "Federal-gov"],
        "Private": [],
        "Self-employed": ["Inc", "Not-inc"],
        "Unemployed": ["Without-pay", "Never-worked"],
    }
)
