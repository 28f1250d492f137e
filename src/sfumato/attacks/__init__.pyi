"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind

from sfumato.attacks.aggregate_differencing import Aggregate as Aggregate
from sfumato.attacks.aggregate_differencing import AggregateDifferencing as AggregateDifferencing
from sfumato.attacks.answer_intersection import AnswerIntersection as AnswerIntersection
from sfumato.attacks.answered_model import AnsweredModel as AnsweredModel
from sfumato.attacks.answered_model import Answers as Answers
from sfumato.attacks.averaging import Averaging as Averaging
from sfumato.attacks.background import BackgroundKnowledge as BackgroundKnowledge
from sfumato.attacks.model_differencing import EarlierVersion as EarlierVersion
from sfumato.attacks.answer_intersection import Extreme as Extreme
from sfumato.attacks.background import Facts as Facts
from sfumato.attacks.homogeneity import Homogeneity as Homogeneity
from sfumato.attacks.intersection import Intersection as Intersection
from sfumato.attacks.known_algorithm import KnownAlgorithm as KnownAlgorithm
from sfumato.attacks.sparse_ratings import KnownItems as KnownItems
from sfumato.attacks.reconstruction import KnownQuestions as KnownQuestions
from sfumato.attacks.partial_knowledge import KnownSet as KnownSet
from sfumato.attacks.answered_model import Labelled as Labelled
from sfumato.attacks.linkage import Linkage as Linkage
from sfumato.attacks.model_differencing import MeanVersion as MeanVersion
from sfumato.attacks.aggregate_differencing import Membership as Membership
from sfumato.attacks.membership_aggregates import MembershipInAggregates as MembershipInAggregates
from sfumato.attacks.membership_models import MembershipInModels as MembershipInModels
from sfumato.attacks.microaggregation_intersection import MicroaggregationIntersection as MicroaggregationIntersection
from sfumato.attacks.minimality import Minimality as Minimality
from sfumato.attacks.model_differencing import ModelDifferencing as ModelDifferencing
from sfumato.attacks.membership_models import ModelKnowledge as ModelKnowledge
from sfumato.attacks.averaging import NoiseKnown as NoiseKnown
from sfumato.attacks.noise_likelihood import NoiseLikelihood as NoiseLikelihood
from sfumato.attacks.intersection import OtherReleases as OtherReleases
from sfumato.attacks.outlier_inference import OutlierInference as OutlierInference
from sfumato.attacks.partial_knowledge import PartialKnowledge as PartialKnowledge
from sfumato.attacks.pram_posterior import PramPosterior as PramPosterior
from sfumato.attacks.inference import ProbabilisticInference as ProbabilisticInference
from sfumato.attacks.pseudonym_tracking import PseudonymTracking as PseudonymTracking
from sfumato.attacks.rank_window import RankWindow as RankWindow
from sfumato.attacks.sparse_ratings import Ratings as Ratings
from sfumato.attacks.reconstruction import Reconstruction as Reconstruction
from sfumato.attacks.membership_aggregates import ReferencePeople as ReferencePeople
from sfumato.attacks.linkage import Register as Register
from sfumato.attacks.register_linkage import RegisterLinkage as RegisterLinkage
from sfumato.attacks.model_differencing import RegressionVersion as RegressionVersion
from sfumato.attacks.scoreboard import Scoreboard as Scoreboard
from sfumato.attacks.similarity import Similarity as Similarity
from sfumato.attacks.skewness import Skewness as Skewness
from sfumato.attacks.outlier_inference import TypicalPeople as TypicalPeople

NAMES: dict[str, str]
KINDS: dict[str, Kind]
