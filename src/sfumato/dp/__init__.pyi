"""The names of this package and where they live: the one list, read by people, type checkers and the package itself."""

from sfumato.core.lazy import Kind

# sessions
from sfumato.dp.session import Session as Session

# outcomes and charging
from sfumato.dp.algorithms.base import Algorithm as Algorithm
from sfumato.dp.outcomes import private_outcome as private_outcome

# mechanisms
from sfumato.dp.mechanisms.base import Error as Error
from sfumato.dp.mechanisms.base import Mechanism as Mechanism
from sfumato.dp.mechanisms.noise.bounded_laplace import BoundedLaplace as BoundedLaplace
from sfumato.dp.mechanisms.statistics.clamping_down_mean import ClampingDownMean as ClampingDownMean
from sfumato.dp.mechanisms.noise.constant import Constant as Constant
from sfumato.dp.mechanisms.statistics.covariance import Covariance as Covariance
from sfumato.dp.mechanisms.choices.exponential import Exponential as Exponential
from sfumato.dp.mechanisms.noise.gaussian import Gaussian as Gaussian
from sfumato.dp.mechanisms.noise.geometric import Geometric as Geometric
from sfumato.dp.mechanisms.statistics.grid_histogram import GridHistogram as GridHistogram
from sfumato.dp.mechanisms.statistics.histogram import Histogram as Histogram
from sfumato.dp.mechanisms.statistics.histogram_mean import HistogramMean as HistogramMean
from sfumato.dp.mechanisms.noise.laplace import Laplace as Laplace
from sfumato.dp.mechanisms.statistics.variance import MeanAndVariance as MeanAndVariance
from sfumato.dp.mechanisms.choices.quantiles import Median as Median
from sfumato.dp.mechanisms.statistics.noisy_average import NoisyAverage as NoisyAverage
from sfumato.dp.mechanisms.choices.permute_and_flip import PermuteAndFlip as PermuteAndFlip
from sfumato.dp.mechanisms.choices.quantiles import Quantiles as Quantiles
from sfumato.dp.mechanisms.choices.randomised_response import RandomisedResponse as RandomisedResponse
from sfumato.dp.mechanisms.noise.redraw import Redraw as Redraw
from sfumato.dp.mechanisms.statistics.regression import Regression as Regression
from sfumato.dp.mechanisms.choices.report_noisy_max import ReportNoisyMax as ReportNoisyMax
from sfumato.dp.mechanisms.choices.sparse_vector import SparseVector as SparseVector
from sfumato.dp.mechanisms.noise.truncated_geometric import TruncatedGeometric as TruncatedGeometric
from sfumato.dp.mechanisms.statistics.truncated_mean import TruncatedMean as TruncatedMean
from sfumato.dp.mechanisms.statistics.variance import Variance as Variance
from sfumato.dp.mechanisms.statistics.histogram_mean import mean_from_histogram as mean_from_histogram

# sensitivities
from sfumato.dp.sensitivity.base import Sensitivity as Sensitivity
from sfumato.dp.sensitivity.brute_force import global_sensitivity as global_sensitivity
from sfumato.dp.sensitivity.brute_force import local_sensitivity as local_sensitivity

# accounting
from sfumato.dp.accounting.advanced import advanced_composition as advanced_composition
from sfumato.dp.accounting.renyi import approx_from_renyi as approx_from_renyi
from sfumato.dp.accounting.conversion import as_approx as as_approx
from sfumato.dp.accounting.conversion import as_renyi as as_renyi
from sfumato.dp.accounting.conversion import as_zcdp as as_zcdp
from sfumato.dp.accounting.bayes import best_guess as best_guess
from sfumato.dp.accounting.composition import between as between
from sfumato.dp.accounting.policies import Budget as Budget
from sfumato.dp.accounting.predicates import certainly_disjoint as certainly_disjoint
from sfumato.dp.accounting.disjoint import composed as composed
from sfumato.dp.accounting.predicates import composition_of as composition_of
from sfumato.dp.accounting.zcdp import delta_for as delta_for
from sfumato.dp.accounting.gaussian import discrete_gaussian_delta as discrete_gaussian_delta
from sfumato.dp.accounting.lee_clifton import epsilon_by_risk as epsilon_by_risk
from sfumato.dp.accounting.lee_clifton import epsilon_by_risk_closed as epsilon_by_risk_closed
from sfumato.dp.accounting.zcdp import epsilon_for as epsilon_for
from sfumato.dp.accounting.numeric import Events as Events
from sfumato.dp.accounting.composition import for_unit as for_unit
from sfumato.dp.accounting.gaussian import gaussian_delta as gaussian_delta
from sfumato.dp.accounting.gaussian import gaussian_epsilon as gaussian_epsilon
from sfumato.dp.accounting.gaussian import gaussian_sigma as gaussian_sigma
from sfumato.dp.accounting.policies import GeometricPolicy as GeometricPolicy
from sfumato.dp.accounting.composition import group as group
from sfumato.dp.accounting.lee_clifton import identification_risk as identification_risk
from sfumato.dp.accounting.bayes import largest_power as largest_power
from sfumato.dp.accounting.lee_clifton import leave_one_out as leave_one_out
from sfumato.dp.accounting.bayes import Meaning as Meaning
from sfumato.dp.accounting.bayes import meaning as meaning
from sfumato.dp.accounting.numeric import NoisyAnswer as NoisyAnswer
from sfumato.dp.accounting.odometer import Odometer as Odometer
from sfumato.dp.accounting.advanced import optimal_composition as optimal_composition
from sfumato.dp.accounting.composition import parallel as parallel
from sfumato.dp.accounting.composition import post_processed as post_processed
from sfumato.dp.accounting.bayes import posterior_interval as posterior_interval
from sfumato.dp.accounting.composition import repeated as repeated
from sfumato.dp.accounting.zcdp import rho_for as rho_for
from sfumato.dp.accounting.composition import sequential as sequential
from sfumato.dp.accounting.policies import share as share
from sfumato.dp.accounting.policies import UniformPolicy as UniformPolicy

# verify and refute
from sfumato.dp.refute.auditing import audit as audit
from sfumato.dp.refute.laws import bounded_laplace_law as bounded_laplace_law
from sfumato.dp.refute.exact import channel_epsilon as channel_epsilon
from sfumato.dp.refute.exact import channel_verdict as channel_verdict
from sfumato.dp.refute.laws import clamping_down_mean_law as clamping_down_mean_law
from sfumato.dp.refute.densities import Density as Density
from sfumato.dp.refute.exact import density_delta as density_delta
from sfumato.dp.refute.exact import density_epsilon as density_epsilon
from sfumato.dp.refute.exact import density_verdict as density_verdict
from sfumato.dp.refute.experiment import output_histogram as output_histogram
from sfumato.dp.refute.experiment import OutputHistogram as OutputHistogram
from sfumato.dp.refute.tester import Refutation as Refutation
from sfumato.dp.refute.auditing import SumAuditor as SumAuditor
from sfumato.dp.refute.laws import truncated_mean_law as truncated_mean_law
from sfumato.dp.refute.exact import Verdict as Verdict

# algorithms
from sfumato.dp.algorithms.grid_kmeans import GridKMeans as GridKMeans
from sfumato.dp.algorithms.kmeans import KMeans as KMeans
from sfumato.dp.algorithms.histogram import PrivateHistogram as PrivateHistogram
from sfumato.dp.algorithms.quantiles import PrivateQuantiles as PrivateQuantiles
from sfumato.dp.algorithms.search_log import SearchLog as SearchLog
from sfumato.dp.algorithms.top_k import TopK as TopK
from sfumato.dp.algorithms.contributions import bound_contributions as bound_contributions
from sfumato.dp.algorithms.lloyd import clustering_cost as clustering_cost
from sfumato.dp.algorithms.lloyd import kmeans_baseline as kmeans_baseline

# synthesis
from sfumato.dp.synthesis.aim import Aim as Aim
from sfumato.dp.synthesis.mst import Mst as Mst
from sfumato.dp.synthesis.quality import quality as quality

NAMES: dict[str, str]
KINDS: dict[str, Kind]
