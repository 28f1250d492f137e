"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind

from sfumato.attacks.outputs.aggregate_differencing import Aggregate as Aggregate
from sfumato.attacks.outputs.aggregate_differencing import AggregateDifferencing as AggregateDifferencing
from sfumato.attacks.outputs.answer_intersection import AnswerIntersection as AnswerIntersection
from sfumato.attacks.outputs.answered_model import AnsweredModel as AnsweredModel
from sfumato.attacks.outputs.answered_model import Answers as Answers
from sfumato.attacks.outputs.averaging import Averaging as Averaging
from sfumato.attacks.tables.background import BackgroundKnowledge as BackgroundKnowledge
from sfumato.attacks.aggregates.blank_inference import BlankInference as BlankInference
from sfumato.attacks.aggregates.contributor_disclosure import ContributorDisclosure as ContributorDisclosure
from sfumato.attacks.outputs.model_differencing import EarlierVersion as EarlierVersion
from sfumato.attacks.aggregates.external_disclosure import ExternalDisclosure as ExternalDisclosure
from sfumato.attacks.outputs.answer_intersection import Extreme as Extreme
from sfumato.attacks.tables.background import Facts as Facts
from sfumato.attacks.outputs.guess_hidden import GuessHidden as GuessHidden
from sfumato.attacks.tables.homogeneity import Homogeneity as Homogeneity
from sfumato.attacks.several.intersection import Intersection as Intersection
from sfumato.attacks.tables.known_algorithm import KnownAlgorithm as KnownAlgorithm
from sfumato.attacks.outputs.sparse_ratings import KnownItems as KnownItems
from sfumato.attacks.outputs.reconstruction import KnownQuestions as KnownQuestions
from sfumato.attacks.tables.partial_knowledge import KnownSet as KnownSet
from sfumato.attacks.outputs.answered_model import Labelled as Labelled
from sfumato.attacks.aggregates.contributor_disclosure import LargeContributor as LargeContributor
from sfumato.attacks.aggregates.contributor_disclosure import LargestContributions as LargestContributions
from sfumato.attacks.tables.linkage import Linkage as Linkage
from sfumato.attacks.outputs.model_differencing import MeanVersion as MeanVersion
from sfumato.attacks.outputs.aggregate_differencing import Membership as Membership
from sfumato.attacks.outputs.membership_aggregates import MembershipInAggregates as MembershipInAggregates
from sfumato.attacks.outputs.membership_models import MembershipInModels as MembershipInModels
from sfumato.attacks.masked.microaggregation_intersection import MicroaggregationIntersection as MicroaggregationIntersection
from sfumato.attacks.tables.minimality import Minimality as Minimality
from sfumato.attacks.outputs.model_differencing import ModelDifferencing as ModelDifferencing
from sfumato.attacks.outputs.membership_models import ModelKnowledge as ModelKnowledge
from sfumato.attacks.outputs.averaging import NoiseKnown as NoiseKnown
from sfumato.attacks.masked.noise_likelihood import NoiseLikelihood as NoiseLikelihood
from sfumato.attacks.several.intersection import OtherReleases as OtherReleases
from sfumato.attacks.aggregates.table_differencing import OtherTable as OtherTable
from sfumato.attacks.outputs.outlier_inference import OutlierInference as OutlierInference
from sfumato.attacks.tables.partial_knowledge import PartialKnowledge as PartialKnowledge
from sfumato.attacks.masked.pram_posterior import PramPosterior as PramPosterior
from sfumato.attacks.tables.inference import ProbabilisticInference as ProbabilisticInference
from sfumato.attacks.tables.pseudonym_tracking import PseudonymTracking as PseudonymTracking
from sfumato.attacks.masked.rank_window import RankWindow as RankWindow
from sfumato.attacks.outputs.sparse_ratings import Ratings as Ratings
from sfumato.attacks.outputs.reconstruction import Reconstruction as Reconstruction
from sfumato.attacks.outputs.membership_aggregates import ReferencePeople as ReferencePeople
from sfumato.attacks.tables.linkage import Register as Register
from sfumato.attacks.masked.register_linkage import RegisterLinkage as RegisterLinkage
from sfumato.attacks.outputs.model_differencing import RegressionVersion as RegressionVersion
from sfumato.attacks.outputs.scoreboard import Scoreboard as Scoreboard
from sfumato.attacks.aggregates.shown_cells import ShownCells as ShownCells
from sfumato.attacks.tables.similarity import Similarity as Similarity
from sfumato.attacks.tables.skewness import Skewness as Skewness
from sfumato.attacks.aggregates.table_differencing import TableDifferencing as TableDifferencing
from sfumato.attacks.outputs.outlier_inference import TypicalPeople as TypicalPeople

NAMES: dict[str, str]
KINDS: dict[str, Kind]
