"""Synthetic Adult at ρ = 0.015: time, and how far the marginals of three columns are from the original's.

The domain is declared: the leaves of the hierarchies, not what occurs. The wide table has six more columns, generated
to depend on the others as those of the census do, and 48,842 rows. Beside each result stand two yardsticks that are
not private: columns drawn independently of each other, and the original resampled.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benchmarks import adult
from benchmarks.harness import Case

if TYPE_CHECKING:
    from sfumato.data.microdata import Microdata

RHO = "0.015"
LARGEST_DISTANCE = 0.18
WIDE_ROWS = 48_842
SEED = 33
_HUNDRED = {"type": "integer", "bounds": [0, 99]}
WIDE = {
    "final-weight": _HUNDRED,
    "education-number": {"type": "integer", "bounds": [0, 15]},
    "relationship": {"type": "integer", "bounds": [0, 5]},
    "capital-gain": _HUNDRED,
    "capital-loss": _HUNDRED,
    "hours-per-week": _HUNDRED,
}


def declared(name: str) -> list[str]:
    """The leaves of a column's hierarchy."""
    with open(adult.folder() / f"adult_hierarchy_{name}.csv", encoding="utf-8-sig", newline="") as file:
        return [line[0] for line in csv.reader(file, delimiter=";")]


def _column(name: str) -> dict[str, Any]:
    return {"role": "quasi", "type": "string", "domain": declared(name)}


def schema() -> dict[str, Any]:
    """The nine columns with their declared domains."""
    return {"dataset": "adult", "columns": {name: _column(name) for name in adult.COLUMNS}}


def people() -> Microdata:
    """The nine columns of Adult."""
    import sfumato as sf

    return sf.read(adult.folder() / "adult.csv", schema())


def wide_people() -> Microdata:
    """Rows drawn from Adult with six generated columns."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    generator = np.random.Generator(np.random.PCG64(SEED))
    source = people().table()
    rows = source.take(pa.array(generator.integers(source.num_rows, size=WIDE_ROWS)))
    code = {
        name: np.array([declared(name).index(str(value)) for value in rows.column(name).to_pylist()]) for name in adult.COLUMNS
    }
    rich, married, male = code["salary-class"] == 0, code["marital-status"] == 0, code["sex"] == 0
    size = WIDE_ROWS
    chance = generator.random((4, size))
    alone = np.where(code["age"] < 25, np.where(chance[0] < 0.7, 2, 3), np.where(chance[0] < 0.6, 3, 4 + (chance[0] > 0.9)))
    gain = np.where(
        chance[1] < np.where(rich, 0.22, 0.04), 1 + generator.gamma(np.where(rich, 4.0, 2.0), 2.5, size).astype(np.int64), 0
    )
    loss = np.where((chance[2] < np.where(rich, 0.1, 0.03)) & (gain == 0), generator.normal(np.where(rich, 45, 40), 6, size), 0)
    usual = (
        np.where(code["age"] < 21, 25, np.where(code["age"] > 64, 28, 42)) + np.where(male, 2, -3) + 4 * (code["workclass"] == 1)
    )
    hours = np.where(chance[3] < 0.47, 40, generator.normal(usual, 10, size))
    made = {
        "final-weight": generator.gamma(3.2, 7.5, size) + 3 * (code["race"] == 4),
        "education-number": (code["education"] * 7 + 3) % 16,
        "relationship": np.where(married, np.where(male, 0, 1), alone),
        "capital-gain": gain,
        "capital-loss": loss,
        "hours-per-week": hours,
    }
    for name, values in made.items():
        rows = rows.append_column(name, pa.array(np.clip(values, 0, 99).astype(np.int64)))
    wide = schema()
    wide["columns"] |= {name: {"role": "quasi", **entry} for name, entry in WIDE.items()}
    return sf.read(rows, wide)


def yardsticks(data: Microdata, bins: int) -> str:
    """The mean distance of independent columns and of a resampled original, in words."""
    import numpy as np

    from sfumato.dp.synthesis.declared_domain import declared_domain
    from sfumato.dp.synthesis.quality import marginal_distances

    domain = declared_domain(data.schema, data.column_names, bins=bins, who="yardsticks")
    codes = domain.encode(data.table())
    generator = np.random.Generator(np.random.PCG64(SEED))
    independent = np.stack([generator.permutation(column) for column in codes.T], axis=1)
    resampled = codes[generator.integers(len(codes), size=len(codes))]
    texts = []
    for name, other in (("independent columns", independent), ("the original resampled", resampled)):
        distances = marginal_distances(codes, other, domain.sizes)
        texts.append(f"{name} {np.mean([distances[columns] for columns in distances if len(columns) == 3]):.3f}")
    return ", ".join(texts)


def cases() -> Iterator[Case]:
    """Aim on Adult and on the wide table, Mst on Adult."""
    from sfumato import dp
    from sfumato.core.randomness import default

    narrow, wide = people(), wide_people()
    for name, method, data in (
        ("adult, synthetic (AIM)", dp.Aim(rho=RHO), narrow),
        ("adult, synthetic (MST)", dp.Mst(rho=RHO), narrow),
        ("adult with six columns more, synthetic (AIM)", dp.Aim(rho=RHO, bins=100), wide),
    ):
        yield Case(
            name,
            lambda _, method=method, data=data: method.run(data, randomness=default(SEED)),
            unit="s",
            limit=60,
            repeats=3,
            warm_run=False,
            check=lambda outcome: None if _mean(outcome) <= LARGEST_DISTANCE else f"three-way distance {_mean(outcome):.3f}",
            remark=lambda outcome: f"three-way distance {_mean(outcome):.3f}",
            note=f"bar {LARGEST_DISTANCE}; {yardsticks(data, method.bins)}",
        )


def _mean(outcome: Any) -> float:
    return float(outcome.details["owner"]["quality"]["distance"]["3"]["mean"])
