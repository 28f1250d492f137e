"""How useful is the release? Measures that compare a released table with the original.

`KEYS` gives, for the name recipes use, the class and its module; both load on first use.
"""

from __future__ import annotations

from sfumato.core.lazy import face

_ROOM = "sfumato.measures.utility"

KEYS: dict[str, tuple[str, str]] = {
    "ambiguity": ("Ambiguity", f"{_ROOM}.ambiguity"),
    "average_class_size": ("AverageClassSize", f"{_ROOM}.class_sizes"),
    "class_count": ("ClassCount", f"{_ROOM}.class_sizes"),
    "classification": ("Classification", f"{_ROOM}.classification"),
    "clustering": ("ClusteringAgreement", f"{_ROOM}.clustering"),
    "detail_kept": ("DetailKept", f"{_ROOM}.detail_kept"),
    "discernibility": ("Discernibility", f"{_ROOM}.class_sizes"),
    "distortion": ("Distortion", f"{_ROOM}.distortion"),
    "entropy": ("NonUniformEntropy", f"{_ROOM}.non_uniform_entropy"),
    "granularity": ("Granularity", f"{_ROOM}.loss"),
    "hellinger": ("Hellinger", f"{_ROOM}.divergence"),
    "information_loss": ("InformationLoss", f"{_ROOM}.information_loss"),
    "kullback_leibler": ("KullbackLeibler", f"{_ROOM}.divergence"),
    "loss": ("Loss", f"{_ROOM}.loss"),
    "machine_learning": ("MachineLearningLoss", f"{_ROOM}.machine_learning"),
    "moments": ("MomentsLoss", f"{_ROOM}.moments"),
    "overall_loss": ("OverallLoss", f"{_ROOM}.overall_loss"),
    "pil": ("ProbabilisticInformationLoss", f"{_ROOM}.probabilistic_loss"),
    "precision": ("Precision", f"{_ROOM}.precision"),
    "propensity": ("PropensityScore", f"{_ROOM}.propensity"),
    "query_error": ("QueryError", f"{_ROOM}.query_error"),
    "range_shown": ("RangeShown", f"{_ROOM}.range_shown"),
    "recommender": ("RecommenderLoss", f"{_ROOM}.recommender"),
    "regression": ("RegressionLoss", f"{_ROOM}.regression"),
    "squared_error": ("SquaredError", f"{_ROOM}.squared_error"),
    "suppressed": ("Suppressed", f"{_ROOM}.class_sizes"),
}

NAMES = {
    **dict(KEYS.values()),
    "AnalysisLoss": f"{_ROOM}.information_loss",
    "CountQuery": f"{_ROOM}.query_error",
    "Workload": f"{_ROOM}.query_error",
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)
