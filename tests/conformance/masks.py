"""An example of every mask, and generated people to try it on. A mask whose parameters all have defaults needs none here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.masking.base import Mask

NUMBERS = ("height", "weight", "wage")
CATEGORIES = ("town", "school")

TOWNS = ("Åbo", "Bergen", "Łódź", "Zürich")
SCHOOLS = ("none", "primary", "secondary", "tertiary")

SCHEMA = Schema(
    dataset="masks",
    columns={
        **{name: Column(role="quasi", type="number") for name in NUMBERS},
        "age": Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(5, 10, 20))),
        "town": Column(role="quasi", type="string", hierarchy=HierarchySpec(flat=True)),
        "school": Column(role="quasi", type="string", order=SCHOOLS),
        "region": Column(role="plain", type="string"),
        "terms": Column(
            role="plain",
            type="string",
            items="|",
            hierarchy=HierarchySpec(tree={"food": ["apple", "bread"], "travel": ["train", "boat"]}),
        ),
        "ill": Column(role="sensitive", type="string"),
    },
)


def people(count: int = 400, seed: int = 1, *, missing: float = 0.0) -> sf.Microdata:
    """People with correlated numbers, two categories and a region; a share of the cells may be missing."""
    random = np.random.default_rng(seed)
    base = random.normal(size=count)
    columns: dict[str, Any] = {
        "height": 170 + 8 * base + random.normal(0, 4, count),
        "weight": 70 + 9 * base + random.normal(0, 6, count),
        "wage": np.exp(8 + 0.3 * base + random.normal(0, 0.4, count)),
    }
    arrays: dict[str, pa.Array] = {}
    for name, values in columns.items():
        arrays[name] = pa.array(values, mask=random.random(count) < missing)
    arrays["age"] = pa.array(
        np.clip(np.rint(45 + 12 * base + random.normal(0, 6, count)), 18, 90).astype(np.int64),
        mask=random.random(count) < missing,
    )
    arrays["town"] = pa.array(np.array(TOWNS)[random.integers(0, 4, count)], mask=random.random(count) < missing)
    arrays["school"] = pa.array(
        np.array(SCHOOLS)[np.clip(np.rint(1.5 + base), 0, 3).astype(int)], mask=random.random(count) < missing
    )
    arrays["region"] = pa.array(np.array(["north", "south"])[random.integers(0, 2, count)])
    words = np.array(["apple", "bread", "train", "boat"])
    arrays["terms"] = pa.array(["|".join(sorted(set(words[random.integers(0, 4, 2)]))) for _ in range(count)])
    arrays["ill"] = pa.array(np.array(["no", "no", "flu", "cold"])[random.integers(0, 4, count)])
    return sf.read(pa.table(arrays), SCHEMA)


#: How masks are made in these tests that have parameters without a default; `columns` come from the test.
EXAMPLES: dict[str, Callable[[tuple[str, ...]], Mask]] = {
    "AdditiveNoise": lambda columns: sf.AdditiveNoise(0.2, columns=columns),
    "BucketRankSwapping": lambda columns: sf.BucketRankSwapping(10, columns=columns),
    "Cbfs": lambda columns: sf.Cbfs(4, columns=columns),
    "Condensation": lambda columns: sf.Condensation(5, columns=columns),
    "CorrelatedNoise": lambda columns: sf.CorrelatedNoise(0.2, columns=columns),
    "DistributionRankSwapping": lambda columns: sf.DistributionRankSwapping(10, columns=columns),
    "Generalisation": lambda columns: sf.Generalisation(levels=dict.fromkeys(columns, 1), columns=columns),
    "Mdav": lambda columns: sf.Mdav(4, columns=columns),
    "MultiplicativeNoise": lambda columns: sf.MultiplicativeNoise(10, columns=columns),
    "OptimalUnivariate": lambda columns: sf.OptimalUnivariate(4, columns=columns),
    "PartiallySynthetic": lambda columns: sf.PartiallySynthetic(predictors=("region",), columns=columns),
    "Pram": lambda columns: sf.Pram(stay=0.8, columns=columns),
    "RankSwapping": lambda columns: sf.RankSwapping(10, columns=columns),
    "RecordSwapping": lambda columns: sf.RecordSwapping(0.3, columns=columns),
    "Rounding": lambda columns: sf.Rounding(5, columns=columns),
    "Sampling": lambda columns: sf.Sampling(0.5, columns=columns),
    "TermGeneralisation": lambda columns: sf.TermGeneralisation(190, columns=("terms",)),
    "TopBottomCoding": lambda columns: sf.TopBottomCoding(top=0.9, bottom=0.1, by="quantile", columns=columns),
    "VMdav": lambda columns: sf.VMdav(4, columns=columns),
}
#: Masks whose result is the same for every seed.
CERTAIN = {"Cbfs", "Generalisation", "Mdav", "OptimalUnivariate", "Rounding", "TermGeneralisation", "TopBottomCoding", "VMdav"}


def every_mask() -> list[str]:
    """The names of all masks but `Combined`, which is made of others."""
    room = sf.masking
    found = []
    for name in room.__all__:
        kind = getattr(room, name)
        if (
            isinstance(kind, type)
            and issubclass(kind, Mask)
            and kind is not Mask
            and name != "Combined"
            and not kind.__abstractmethods__
        ):
            found.append(name)
    return sorted(found)


def columns_for(name: str) -> tuple[str, ...]:
    """Columns that the mask can change: numbers where it can, otherwise categories."""
    kind = getattr(sf.masking, name)
    if "number" in kind.handles:
        return ("age",) if name == "Generalisation" else NUMBERS
    return CATEGORIES


def mixed_columns_for(name: str) -> tuple[str, ...]:
    """All kinds of columns that the mask can change together."""
    kind = getattr(sf.masking, name)
    if name == "Generalisation" or not {"number", "category"} <= kind.handles:
        return columns_for(name)
    return (*NUMBERS, *CATEGORIES)


def example(name: str, columns: tuple[str, ...] | None = None) -> Mask:
    """The example of a mask on these columns."""
    chosen = columns_for(name) if columns is None else columns
    return EXAMPLES[name](chosen) if name in EXAMPLES else getattr(sf.masking, name)(columns=chosen)
