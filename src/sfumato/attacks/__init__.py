"""What an adversary would do: one attack per file, each reports success beside blind guessing.

The names below load on first use; recipes and commands look attacks up in this table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "Aggregate": "sfumato.attacks.aggregate_differencing",
    "AggregateDifferencing": "sfumato.attacks.aggregate_differencing",
    "AnswerIntersection": "sfumato.attacks.answer_intersection",
    "AnsweredModel": "sfumato.attacks.answered_model",
    "Answers": "sfumato.attacks.answered_model",
    "Averaging": "sfumato.attacks.averaging",
    "BackgroundKnowledge": "sfumato.attacks.background",
    "EarlierVersion": "sfumato.attacks.model_differencing",
    "Extreme": "sfumato.attacks.answer_intersection",
    "Facts": "sfumato.attacks.background",
    "Homogeneity": "sfumato.attacks.homogeneity",
    "Intersection": "sfumato.attacks.intersection",
    "KnownAlgorithm": "sfumato.attacks.known_algorithm",
    "KnownItems": "sfumato.attacks.sparse_ratings",
    "KnownQuestions": "sfumato.attacks.reconstruction",
    "KnownSet": "sfumato.attacks.partial_knowledge",
    "Labelled": "sfumato.attacks.membership_models",
    "Linkage": "sfumato.attacks.linkage",
    "MeanVersion": "sfumato.attacks.model_differencing",
    "Membership": "sfumato.attacks.aggregate_differencing",
    "MembershipInAggregates": "sfumato.attacks.membership_aggregates",
    "MembershipInModels": "sfumato.attacks.membership_models",
    "MicroaggregationIntersection": "sfumato.attacks.microaggregation_intersection",
    "Minimality": "sfumato.attacks.minimality",
    "ModelDifferencing": "sfumato.attacks.model_differencing",
    "ModelKnowledge": "sfumato.attacks.membership_models",
    "NoiseKnown": "sfumato.attacks.averaging",
    "NoiseLikelihood": "sfumato.attacks.noise_likelihood",
    "OtherReleases": "sfumato.attacks.intersection",
    "OutlierInference": "sfumato.attacks.outlier_inference",
    "PartialKnowledge": "sfumato.attacks.partial_knowledge",
    "PramPosterior": "sfumato.attacks.pram_posterior",
    "ProbabilisticInference": "sfumato.attacks.inference",
    "PseudonymTracking": "sfumato.attacks.pseudonym_tracking",
    "RankWindow": "sfumato.attacks.rank_window",
    "Ratings": "sfumato.attacks.sparse_ratings",
    "Reconstruction": "sfumato.attacks.reconstruction",
    "ReferencePeople": "sfumato.attacks.membership_aggregates",
    "Register": "sfumato.attacks.linkage",
    "RegisterLinkage": "sfumato.attacks.register_linkage",
    "RegressionVersion": "sfumato.attacks.model_differencing",
    "Scoreboard": "sfumato.attacks.scoreboard",
    "Similarity": "sfumato.attacks.similarity",
    "Skewness": "sfumato.attacks.skewness",
    "TypicalPeople": "sfumato.attacks.outlier_inference",
}

#: Attacks that need nothing but the release; a recipe may name them under `checks.attacks`.
ON_THE_RELEASE_ALONE = (
    "BackgroundKnowledge",
    "Homogeneity",
    "ProbabilisticInference",
    "Similarity",
    "Skewness",
)

if TYPE_CHECKING:
    from sfumato.attacks.aggregate_differencing import Aggregate as Aggregate
    from sfumato.attacks.aggregate_differencing import AggregateDifferencing as AggregateDifferencing
    from sfumato.attacks.aggregate_differencing import Membership as Membership
    from sfumato.attacks.answer_intersection import AnswerIntersection as AnswerIntersection
    from sfumato.attacks.answer_intersection import Extreme as Extreme
    from sfumato.attacks.answered_model import AnsweredModel as AnsweredModel
    from sfumato.attacks.answered_model import Answers as Answers
    from sfumato.attacks.averaging import Averaging as Averaging
    from sfumato.attacks.averaging import NoiseKnown as NoiseKnown
    from sfumato.attacks.background import BackgroundKnowledge as BackgroundKnowledge
    from sfumato.attacks.background import Facts as Facts
    from sfumato.attacks.homogeneity import Homogeneity as Homogeneity
    from sfumato.attacks.inference import ProbabilisticInference as ProbabilisticInference
    from sfumato.attacks.intersection import Intersection as Intersection
    from sfumato.attacks.intersection import OtherReleases as OtherReleases
    from sfumato.attacks.known_algorithm import KnownAlgorithm as KnownAlgorithm
    from sfumato.attacks.linkage import Linkage as Linkage
    from sfumato.attacks.linkage import Register as Register
    from sfumato.attacks.membership_aggregates import MembershipInAggregates as MembershipInAggregates
    from sfumato.attacks.membership_aggregates import ReferencePeople as ReferencePeople
    from sfumato.attacks.membership_models import Labelled as Labelled
    from sfumato.attacks.membership_models import MembershipInModels as MembershipInModels
    from sfumato.attacks.membership_models import ModelKnowledge as ModelKnowledge
    from sfumato.attacks.microaggregation_intersection import MicroaggregationIntersection as MicroaggregationIntersection
    from sfumato.attacks.minimality import Minimality as Minimality
    from sfumato.attacks.model_differencing import EarlierVersion as EarlierVersion
    from sfumato.attacks.model_differencing import MeanVersion as MeanVersion
    from sfumato.attacks.model_differencing import ModelDifferencing as ModelDifferencing
    from sfumato.attacks.model_differencing import RegressionVersion as RegressionVersion
    from sfumato.attacks.noise_likelihood import NoiseLikelihood as NoiseLikelihood
    from sfumato.attacks.outlier_inference import OutlierInference as OutlierInference
    from sfumato.attacks.outlier_inference import TypicalPeople as TypicalPeople
    from sfumato.attacks.partial_knowledge import KnownSet as KnownSet
    from sfumato.attacks.partial_knowledge import PartialKnowledge as PartialKnowledge
    from sfumato.attacks.pram_posterior import PramPosterior as PramPosterior
    from sfumato.attacks.pseudonym_tracking import PseudonymTracking as PseudonymTracking
    from sfumato.attacks.rank_window import RankWindow as RankWindow
    from sfumato.attacks.reconstruction import KnownQuestions as KnownQuestions
    from sfumato.attacks.reconstruction import Reconstruction as Reconstruction
    from sfumato.attacks.register_linkage import RegisterLinkage as RegisterLinkage
    from sfumato.attacks.scoreboard import Scoreboard as Scoreboard
    from sfumato.attacks.similarity import Similarity as Similarity
    from sfumato.attacks.skewness import Skewness as Skewness
    from sfumato.attacks.sparse_ratings import KnownItems as KnownItems
    from sfumato.attacks.sparse_ratings import Ratings as Ratings

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "ON_THE_RELEASE_ALONE"])
