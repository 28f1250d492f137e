"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

# verbs
from sfumato.core.registry import find as find
from sfumato.workflow.attacking.releases import attack as attack
from sfumato.workflow.check import check as check
from sfumato.workflow.comparing.compare import compare as compare
from sfumato.workflow.inspect import inspect as inspect
from sfumato.workflow.new_hierarchy import new_hierarchy as new_hierarchy
from sfumato.workflow.protect import mask as mask
from sfumato.workflow.protect import protect as protect
from sfumato.workflow.publishing.publish import publish as publish
from sfumato.engines.doctor.examination import doctor as doctor
from sfumato.engines.sources import read as read
from sfumato.dp.refute.tester import refute as refute
from sfumato.workflow.verifying.verify import verify as verify

# data
from sfumato.data.schema import Column as Column
from sfumato.data.hierarchies.hierarchy import Hierarchy as Hierarchy
from sfumato.ledger.ledger import Ledger as Ledger
from sfumato.data.microdata import Microdata as Microdata
from sfumato.workflow.recipe import Recipe as Recipe
from sfumato.workflow.release import Release as Release
from sfumato.data.schema import Schema as Schema
from sfumato.dp.session import Session as Session

# guarantees
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity as AlphaKAnonymity
from sfumato.core.guarantees.loss import ApproxDP as ApproxDP
from sfumato.core.guarantees.risk import AverageRisk as AverageRisk
from sfumato.core.guarantees.likeness import BetaLikeness as BetaLikeness
from sfumato.core.guarantees.loss import ConcentratedDP as ConcentratedDP
from sfumato.core.guarantees.likeness import DeltaDisclosure as DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence as DeltaPresence
from sfumato.core.guarantees.l_diversity import DistinctLDiversity as DistinctLDiversity
from sfumato.core.guarantees.l_diversity import EntropyLDiversity as EntropyLDiversity
from sfumato.core.guarantees.hidden import Hidden as Hidden
from sfumato.core.guarantees.k_anonymity import KAnonymity as KAnonymity
from sfumato.core.guarantees.base import Knowledge as Knowledge
from sfumato.core.guarantees.population import KMap as KMap
from sfumato.core.guarantees.risk import KMapByModel as KMapByModel
from sfumato.core.guarantees.loss import PureDP as PureDP
from sfumato.core.guarantees.l_diversity import RecursiveLDiversity as RecursiveLDiversity
from sfumato.core.guarantees.loss import RenyiDP as RenyiDP
from sfumato.core.guarantees.t_closeness import TCloseness as TCloseness
from sfumato.core.guarantees.risk import UniquenessByModel as UniquenessByModel

# table searches
from sfumato.anonymity.search.cell_suppression import CellSuppression as CellSuppression
from sfumato.anonymity.search.hybrid import Hybrid as Hybrid
from sfumato.anonymity.search.k_member import KMember as KMember
from sfumato.anonymity.search.lattice import Lattice as Lattice
from sfumato.anonymity.search.least_loss import LeastLoss as LeastLoss
from sfumato.anonymity.search.local_recoding import LocalRecoding as LocalRecoding
from sfumato.anonymity.search.mondrian import Mondrian as Mondrian
from sfumato.anonymity.recoded import Recoded as Recoded
from sfumato.anonymity.search.top_down import TopDown as TopDown

# masks
from sfumato.masking.noise.additive_noise import AdditiveNoise as AdditiveNoise
from sfumato.masking.swapping.bucket_rank_swapping import BucketRankSwapping as BucketRankSwapping
from sfumato.masking.microaggregation.cbfs import Cbfs as Cbfs
from sfumato.masking.combined import Combined as Combined
from sfumato.masking.microaggregation.condensation import Condensation as Condensation
from sfumato.masking.noise.correlated_noise import CorrelatedNoise as CorrelatedNoise
from sfumato.masking.swapping.distribution_rank_swapping import DistributionRankSwapping as DistributionRankSwapping
from sfumato.masking.synthetic.gaussian_copula import GaussianCopula as GaussianCopula
from sfumato.masking.coding.generalisation import Generalisation as Generalisation
from sfumato.masking.synthetic.ipso import Ipso as Ipso
from sfumato.masking.microaggregation.mdav import Mdav as Mdav
from sfumato.masking.noise.multiplicative_noise import MultiplicativeNoise as MultiplicativeNoise
from sfumato.masking.microaggregation.optimal_univariate import OptimalUnivariate as OptimalUnivariate
from sfumato.masking.synthetic.partially_synthetic import PartiallySynthetic as PartiallySynthetic
from sfumato.masking.pram.pram import Pram as Pram
from sfumato.masking.swapping.rank_swapping import RankSwapping as RankSwapping
from sfumato.masking.swapping.record_swapping import RecordSwapping as RecordSwapping
from sfumato.masking.synthetic.resampling import Resampling as Resampling
from sfumato.masking.coding.rounding import Rounding as Rounding
from sfumato.masking.coding.sampling import Sampling as Sampling
from sfumato.masking.synthetic.sequential_trees import SequentialTrees as SequentialTrees
from sfumato.masking.swapping.shuffling import Shuffling as Shuffling
from sfumato.masking.coding.term_generalisation import TermGeneralisation as TermGeneralisation
from sfumato.masking.coding.top_bottom_coding import TopBottomCoding as TopBottomCoding
from sfumato.masking.microaggregation.v_mdav import VMdav as VMdav

# transformers of scikit-learn
from sfumato.workflow.transformers import MaskTransformer as MaskTransformer
from sfumato.workflow.transformers import PseudonymTransformer as PseudonymTransformer

# errors and notices
from sfumato.core import errors as errors
from sfumato.core.errors import SfumatoWarning as SfumatoWarning

# rooms
from sfumato import anonymity as anonymity
from sfumato import attacks as attacks
from sfumato import core as core
from sfumato import data as data
from sfumato import dp as dp
from sfumato import engines as engines
from sfumato import kernels as kernels
from sfumato import ledger as ledger
from sfumato import lessons as lessons
from sfumato import masking as masking
from sfumato import measures as measures
from sfumato import report as report
from sfumato import rules as rules
from sfumato import tables as tables
from sfumato import wire as wire
from sfumato import workflow as workflow

NAMES: dict[str, str]
__version__: str
