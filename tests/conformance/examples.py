"""One of everything that has a name. A class that has to be told something and is not listed here fails the suite."""

from __future__ import annotations

from typing import Any

import sfumato as sf
from sfumato.core import registry
from tests.conformance import masks

_BOUNDED = {"lower": 0, "upper": 10, "epsilon": 1}
_CHOOSING = {"candidates": ("a", "b"), "sensitivity": 1, "epsilon": 1}

#: What a class has to be told; masks have their examples elsewhere.
TOLD: dict[str, dict[str, Any]] = {
    "Averaging": {"tolerance": 0.5},
    **{name: {"target": "ill"} for name in ("classification", "machine_learning", "regression", "attribute_disclosure")},
    "household_risk": {"household": "town"},
    "AlphaKAnonymity": {"alpha": 0.5, "k": 2, "attribute": "ill"},
    "BetaLikeness": {"beta": 0.5, "attribute": "ill"},
    "DeltaDisclosure": {"delta": 0.5, "attribute": "ill"},
    "DeltaPresence": {"minimum": 0.25, "maximum": 0.5},
    "DistinctLDiversity": {"l": 2, "attribute": "ill"},
    "EntropyLDiversity": {"l": 1.5, "attribute": "ill"},
    "KAnonymity": {"k": 2, "knowledge": sf.Knowledge(attributes=("age",))},
    "KMap": {"k": 2},
    "RecursiveLDiversity": {"c": 1.5, "l": 2, "attribute": "ill"},
    "TCloseness": {"t": 0.25, "attribute": "ill"},
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
    "GridKMeans": {"columns": ("age",), "k": 2, "epsilon": 0.5},
    "KMeans": {"columns": ("age",), "k": 2, "epsilon": 0.5},
    "PrivateHistogram": {"columns": ("age",), "epsilon": 0.5, "bins": {"age": 3}},
    "PrivateQuantiles": {"column": "age", "epsilon": 0.5},
    "SearchLog": {"column": "terms", "limit": 2, "epsilon": 0.5, "domain": ("apple", "boat")},
    "TopK": {"column": "terms", "k": 1, "epsilon": 0.5, "candidates": ("apple", "boat")},
    **{name: {"rho": 0.5} for name in ("Aim", "Mst")},
}


def examples(kind: str) -> dict[str, Any]:
    """One of each class of a kind, by name."""
    return {name: _example(kind, name, each) for name, each in registry.every(kind).items()}


def _example(kind: str, name: str, each: type[Any]) -> Any:
    if name == "Combined":
        return sf.Combined(masks=(masks.example("AdditiveNoise"), masks.example("Pram")))
    return masks.example(name) if kind == "mask" else each(**TOLD.get(name, {}))
