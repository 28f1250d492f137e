"""One of everything that has a name. A class that needs parameters and is not listed here fails the suite.

What is listed also runs on people of `tests.conformance.masks`, of whom columns are declared where an algorithm asks for it.
"""

from __future__ import annotations

from typing import Any

import sfumato as sf
from sfumato.core import registry
from tests.conformance import masks

_BOUNDED = {"lower": 0, "upper": 10, "epsilon": 1}
_CHOOSING = {"candidates": ("a", "b"), "sensitivity": 1, "epsilon": 1}

#: The parameters that a class needs to be made and to run; masks have their examples elsewhere.
NEEDED: dict[str, dict[str, Any]] = {
    "Averaging": {"tolerance": 0.5},
    **{name: {"target": "ill"} for name in ("classification", "machine_learning", "attribute_disclosure")},
    **{name: {"sampling_fraction": 0.5} for name in ("individual_risk", "population_uniqueness", "sampling_risk")},
    "log_linear_risk": {"sampling_fraction": 0.5, "columns": ("age", "town")},
    "regression": {"target": "wage"},
    "household_risk": {"household": "region", "sampling_fraction": 0.5},
    "recommender": {"user": "town", "item": "region", "rating": "wage"},
    "AlphaKAnonymity": {"alpha": 0.9, "k": 2, "attribute": "ill"},
    "AverageRisk": {"risk": 0.9},
    "BetaLikeness": {"beta": 4, "attribute": "ill"},
    "DeltaDisclosure": {"delta": 4, "attribute": "ill"},
    "DeltaPresence": {"minimum": 0, "maximum": 1},
    "DistinctLDiversity": {"l": 2, "attribute": "ill"},
    "EntropyLDiversity": {"l": 1.5, "attribute": "ill"},
    "Hidden": {"itemsets": (("a", "b"),), "support": 2, "confidence": 0.5, "rules": ((("a",), ("b",)),)},
    "KAnonymity": {"k": 2, "knowledge": sf.Knowledge(attributes=("age",))},
    "KMap": {"k": 2},
    "KMapByModel": {"k": 3, "sampling_fraction": 0.1},
    "UniquenessByModel": {"share": 0.9, "sampling_fraction": 0.1},
    "RecursiveLDiversity": {"c": 4, "l": 2, "attribute": "ill"},
    "TCloseness": {"t": 0.9, "attribute": "ill"},
    "ApproxDP": {"epsilon": 0.5, "delta": "1e-6"},
    "ConcentratedDP": {"rho": 0.5},
    "PureDP": {"epsilon": 0.5},
    "RenyiDP": {"order": 2, "epsilon": 0.5},
    **dict.fromkeys(("ClampingDownMean", "MeanAndVariance", "Median", "NoisyAverage", "TruncatedMean", "Variance"), _BOUNDED),
    **dict.fromkeys(("Exponential", "PermuteAndFlip", "ReportNoisyMax"), _CHOOSING),
    "BoundedLaplace": {**_BOUNDED, "sensitivity": 1},
    "Covariance": {"bounds": ((0, 1), (0, 2)), "epsilon": 1},
    "Gaussian": {"sensitivity": 1, "rho": 0.5},
    "Geometric": {"sensitivity": 1, "epsilon": 0.5},
    "GridHistogram": {"x_bounds": (0, 1), "y_bounds": (0, 1), "columns": 2, "rows": 2, "epsilon": 1},
    "Histogram": {"edges": (0, 1, 2), "epsilon": 1},
    "HistogramMean": {"edges": (0, 1, 2), "epsilon": 1},
    "Laplace": {"sensitivity": 1, "epsilon": 0.5},
    "Quantiles": {**_BOUNDED, "quantiles": (0.25, 0.5)},
    "RandomisedResponse": {"categories": ("yes", "no"), "epsilon": 1},
    "Redraw": {**_BOUNDED, "sensitivity": 1},
    "Regression": {"bounds": ((0, 1), (0, 2)), "epsilon": 1},
    "SparseVector": {"threshold": 3, "sensitivity": 1, "epsilon": 1},
    "TruncatedGeometric": {"domain": (0, 1, 2), "epsilon": 1},
    "GridKMeans": {"columns": ("age",), "k": 2, "epsilon": 0.5, "max_rows": 1},
    "KMeans": {"columns": ("age",), "k": 2, "epsilon": 0.5, "max_rows": 1},
    "PrivateHistogram": {"columns": ("age",), "epsilon": 0.5, "bins": {"age": 3}, "max_rows": 1},
    "PrivateQuantiles": {"column": "age", "epsilon": 0.5, "max_rows": 1},
    "SearchLog": {"column": "ill", "limit": 2, "epsilon": 0.5, "domain": ("no", "flu")},
    "TopK": {"column": "ill", "k": 1, "epsilon": 0.5, "candidates": ("no", "flu")},
    **{name: {"rho": 0.5, "max_rows": 1} for name in ("Aim", "Mst")},
}


def examples(kind: str) -> dict[str, Any]:
    """One of each class of a kind, by name."""
    return {name: _example(kind, name, each) for name, each in registry.every(kind).items()}


def _example(kind: str, name: str, each: type[Any]) -> Any:
    if name == "Combined":
        return sf.Combined(masks=(masks.example("AdditiveNoise"), masks.example("Pram")))
    return masks.example(name) if kind == "mask" else each(**NEEDED.get(name, {}))
