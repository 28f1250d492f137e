"""Small tables with declared domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.microdata import Microdata

SCHEMA: dict[str, Any] = {
    "dataset": "people",
    "unit": "record",
    "columns": {
        "name": {"role": "identifier"},
        "city": {"role": "quasi", "type": "string", "domain": ["Ankara", "Bonn", "Córdoba", "Delft"]},
        "grade": {"type": "string", "order": ["low", "middle", "high"]},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99]},
        "income": {"role": "sensitive", "type": "number", "bounds": [0, 5000], "missing": ["?"]},
        "member": {"type": "boolean"},
        "floor": {"domain": ["0", "1", "2"]},
    },
}


def people(rows: int = 2000, seed: int = 5) -> Microdata:
    """Cities that go with grades, incomes that go with ages, a member flag that goes with both."""
    random = np.random.default_rng(seed)
    city = random.choice(4, size=rows, p=[0.5, 0.3, 0.15, 0.05])
    grade = np.where(random.random(rows) < 0.8, np.minimum(city, 2), random.integers(3, size=rows))
    age = np.clip(random.normal(30 + 10 * grade, 8, rows), 0, 99).astype(np.int64)
    income = np.clip(age * 40.0 + random.normal(0, 200, rows), 0, 5000)
    columns = SCHEMA["columns"]
    table = pa.table(
        {
            "name": [f"person {place}" for place in range(rows)],
            "city": np.array(columns["city"]["domain"])[city],
            "grade": np.array(columns["grade"]["order"])[grade],
            "age": age,
            "income": pa.array(income, mask=random.random(rows) < 0.1),
            "member": (city + grade + (random.random(rows) < 0.1)) % 2 == 0,
            "floor": random.integers(3, size=rows),
        }
    )
    return sf.read(table, SCHEMA)


def small(colours: list[str], flags: list[bool]) -> Microdata:
    """Two columns with a domain of six cells."""
    schema = {
        "dataset": "small",
        "columns": {"colour": {"type": "string", "domain": ["red", "blue", "green"]}, "flag": {"type": "boolean"}},
    }
    return sf.read(pa.table({"colour": pa.array(colours, pa.string()), "flag": pa.array(flags, pa.bool_())}), schema)
