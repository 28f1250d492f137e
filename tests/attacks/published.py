"""The two published tables of G-ANO-21 and others that the attack tests share."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sfumato.core.view import View
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable
from sfumato.data.schema import Column, Schema

ZIPS = [f"130{i:02d}" for i in range(100)]
ZIP_TREE = Hierarchy.from_levels([[zip_code, "130**", "*"] for zip_code in ZIPS])

SCHEMA = Schema(
    dataset="hospital",
    columns={"zip": Column(role="quasi"), "age": Column(role="quasi"), "disease": Column(role="sensitive")},
)


def decades(age: int) -> str:
    return "<30" if age < 30 else "3*" if age < 40 else ">=40"


FOUR_AGES = Hierarchy.from_levels([[str(age), decades(age), "*"] for age in range(100)])
SIX_AGES = Hierarchy.from_levels([[str(age), "<35" if age < 35 else ">=35", "*"] for age in range(100)])


def four_anonymous() -> View:
    rows = {
        "<30": ["AIDS", "Heart", "Viral", "Viral"],
        ">=40": ["Cancer", "Heart", "Viral", "Viral"],
        "3*": ["Cancer"] * 4,
    }
    return _view(rows, FOUR_AGES, "the 4-anonymous table")


def six_anonymous() -> View:
    rows = {
        "<35": ["AIDS", "Tub", "Flu", "Tub", "Cancer", "Cancer"],
        ">=35": ["Cancer"] * 3 + ["Tub"] + ["Viral"] * 2,
    }
    return _view(rows, SIX_AGES, "the 6-anonymous table")


def _view(rows: dict[str, list[str]], ages: Hierarchy, name: str) -> View:
    shown = [(age, disease) for age, diseases in rows.items() for disease in diseases]
    table = pa.table(
        {
            "zip": ["130**"] * len(shown),
            "age": [age for age, _ in shown],
            "disease": [disease for _, disease in shown],
        }
    )
    released = ReleasedTable(table, SCHEMA, {"zip": ZIP_TREE, "age": ages}, records=len(shown))
    return View(released, SCHEMA, name=name)


def bare(columns: dict[str, Sequence[object]], *, quasi: Sequence[str], sensitive: Sequence[str] = ()) -> View:
    """A table without hierarchies: every text stands for itself."""
    table = pa.table({name: list(values) for name, values in columns.items()})
    others = [name for name in columns if name not in (*quasi, *sensitive)]
    return View(table, Schema.of("bare", quasi=quasi, sensitive=sensitive, plain=others))
