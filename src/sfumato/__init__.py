"""sfumato: publish, query, collect and compute on data about people without giving anyone away.

>>> import sfumato as sf
>>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
>>> release = sf.protect(people, [sf.KAnonymity(5)], ledger=None)
>>> release.certificate.measured["KAnonymity"] >= 5
True

The names below load on first use. This table is also the registry: recipes and commands look names up here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_TABLE: dict[str, str] = {
    # verbs
    "check": "sfumato.workflow.check",
    "compare": "sfumato.workflow.compare",
    "inspect": "sfumato.workflow.inspect",
    "mask": "sfumato.workflow.mask",
    "protect": "sfumato.workflow.protect",
    "read": "sfumato.engines.sources",
    "refute": "sfumato.dp.refute.tester",
    "verify": "sfumato.workflow.verify",
    # data
    "Column": "sfumato.data.schema",
    "Hierarchy": "sfumato.data.hierarchy",
    "Ledger": "sfumato.ledger.ledger",
    "Microdata": "sfumato.data.microdata",
    "Recipe": "sfumato.workflow.recipe",
    "Release": "sfumato.workflow.release",
    "Schema": "sfumato.data.schema",
    "Session": "sfumato.dp.session",
    # guarantees
    "AlphaKAnonymity": "sfumato.core.guarantees.k_anonymity",
    "ApproxDP": "sfumato.core.guarantees.loss",
    "BetaLikeness": "sfumato.core.guarantees.likeness",
    "ConcentratedDP": "sfumato.core.guarantees.loss",
    "DeltaDisclosure": "sfumato.core.guarantees.likeness",
    "DeltaPresence": "sfumato.core.guarantees.population",
    "DistinctLDiversity": "sfumato.core.guarantees.l_diversity",
    "EntropyLDiversity": "sfumato.core.guarantees.l_diversity",
    "KAnonymity": "sfumato.core.guarantees.k_anonymity",
    "Knowledge": "sfumato.core.guarantees.base",
    "KMap": "sfumato.core.guarantees.population",
    "PureDP": "sfumato.core.guarantees.loss",
    "RecursiveLDiversity": "sfumato.core.guarantees.l_diversity",
    "RenyiDP": "sfumato.core.guarantees.loss",
    "TCloseness": "sfumato.core.guarantees.t_closeness",
    # table searches
    "CellSuppression": "sfumato.anonymity.search.cell_suppression",
    "Hybrid": "sfumato.anonymity.search.hybrid",
    "KMember": "sfumato.anonymity.search.k_member",
    "Lattice": "sfumato.anonymity.search.lattice",
    "LocalRecoding": "sfumato.anonymity.search.local_recoding",
    "Mondrian": "sfumato.anonymity.search.mondrian",
    "Recoded": "sfumato.anonymity.recoded",
    "TopDown": "sfumato.anonymity.search.top_down",
    # masks
    "AdditiveNoise": "sfumato.masking.additive_noise",
    "BucketRankSwapping": "sfumato.masking.bucket_rank_swapping",
    "Cbfs": "sfumato.masking.cbfs",
    "Combined": "sfumato.masking.combined",
    "Condensation": "sfumato.masking.condensation",
    "CorrelatedNoise": "sfumato.masking.correlated_noise",
    "DistributionRankSwapping": "sfumato.masking.distribution_rank_swapping",
    "GaussianCopula": "sfumato.masking.gaussian_copula",
    "Generalisation": "sfumato.masking.generalisation",
    "Ipso": "sfumato.masking.ipso",
    "Mdav": "sfumato.masking.mdav",
    "MultiplicativeNoise": "sfumato.masking.multiplicative_noise",
    "OptimalUnivariate": "sfumato.masking.optimal_univariate",
    "PartiallySynthetic": "sfumato.masking.partially_synthetic",
    "Pram": "sfumato.masking.pram",
    "RankSwapping": "sfumato.masking.rank_swapping",
    "RecordSwapping": "sfumato.masking.record_swapping",
    "Resampling": "sfumato.masking.resampling",
    "Rounding": "sfumato.masking.rounding",
    "Sampling": "sfumato.masking.sampling",
    "SequentialTrees": "sfumato.masking.sequential_trees",
    "Shuffling": "sfumato.masking.shuffling",
    "TermGeneralisation": "sfumato.masking.term_generalisation",
    "TopBottomCoding": "sfumato.masking.top_bottom_coding",
    "VMdav": "sfumato.masking.v_mdav",
}

_ROOMS = (
    "anonymity",
    "attacks",
    "core",
    "data",
    "dp",
    "engines",
    "kernels",
    "ledger",
    "masking",
    "measures",
    "report",
    "wire",
    "workflow",
)

if TYPE_CHECKING:
    from sfumato.anonymity.recoded import Recoded as Recoded
    from sfumato.anonymity.search.cell_suppression import CellSuppression as CellSuppression
    from sfumato.anonymity.search.hybrid import Hybrid as Hybrid
    from sfumato.anonymity.search.k_member import KMember as KMember
    from sfumato.anonymity.search.lattice import Lattice as Lattice
    from sfumato.anonymity.search.local_recoding import LocalRecoding as LocalRecoding
    from sfumato.anonymity.search.mondrian import Mondrian as Mondrian
    from sfumato.anonymity.search.top_down import TopDown as TopDown
    from sfumato.core.guarantees.base import Knowledge as Knowledge
    from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity as AlphaKAnonymity
    from sfumato.core.guarantees.k_anonymity import KAnonymity as KAnonymity
    from sfumato.core.guarantees.l_diversity import DistinctLDiversity as DistinctLDiversity
    from sfumato.core.guarantees.l_diversity import EntropyLDiversity as EntropyLDiversity
    from sfumato.core.guarantees.l_diversity import RecursiveLDiversity as RecursiveLDiversity
    from sfumato.core.guarantees.likeness import BetaLikeness as BetaLikeness
    from sfumato.core.guarantees.likeness import DeltaDisclosure as DeltaDisclosure
    from sfumato.core.guarantees.loss import ApproxDP as ApproxDP
    from sfumato.core.guarantees.loss import ConcentratedDP as ConcentratedDP
    from sfumato.core.guarantees.loss import PureDP as PureDP
    from sfumato.core.guarantees.loss import RenyiDP as RenyiDP
    from sfumato.core.guarantees.population import DeltaPresence as DeltaPresence
    from sfumato.core.guarantees.population import KMap as KMap
    from sfumato.core.guarantees.t_closeness import TCloseness as TCloseness
    from sfumato.data.hierarchy import Hierarchy as Hierarchy
    from sfumato.data.microdata import Microdata as Microdata
    from sfumato.data.schema import Column as Column
    from sfumato.data.schema import Schema as Schema
    from sfumato.dp.refute.tester import refute as refute
    from sfumato.dp.session import Session as Session
    from sfumato.engines.sources import read as read
    from sfumato.ledger.ledger import Ledger as Ledger
    from sfumato.masking.additive_noise import AdditiveNoise as AdditiveNoise
    from sfumato.masking.bucket_rank_swapping import BucketRankSwapping as BucketRankSwapping
    from sfumato.masking.cbfs import Cbfs as Cbfs
    from sfumato.masking.combined import Combined as Combined
    from sfumato.masking.condensation import Condensation as Condensation
    from sfumato.masking.correlated_noise import CorrelatedNoise as CorrelatedNoise
    from sfumato.masking.distribution_rank_swapping import DistributionRankSwapping as DistributionRankSwapping
    from sfumato.masking.gaussian_copula import GaussianCopula as GaussianCopula
    from sfumato.masking.generalisation import Generalisation as Generalisation
    from sfumato.masking.ipso import Ipso as Ipso
    from sfumato.masking.mdav import Mdav as Mdav
    from sfumato.masking.multiplicative_noise import MultiplicativeNoise as MultiplicativeNoise
    from sfumato.masking.optimal_univariate import OptimalUnivariate as OptimalUnivariate
    from sfumato.masking.partially_synthetic import PartiallySynthetic as PartiallySynthetic
    from sfumato.masking.pram import Pram as Pram
    from sfumato.masking.rank_swapping import RankSwapping as RankSwapping
    from sfumato.masking.record_swapping import RecordSwapping as RecordSwapping
    from sfumato.masking.resampling import Resampling as Resampling
    from sfumato.masking.rounding import Rounding as Rounding
    from sfumato.masking.sampling import Sampling as Sampling
    from sfumato.masking.sequential_trees import SequentialTrees as SequentialTrees
    from sfumato.masking.shuffling import Shuffling as Shuffling
    from sfumato.masking.term_generalisation import TermGeneralisation as TermGeneralisation
    from sfumato.masking.top_bottom_coding import TopBottomCoding as TopBottomCoding
    from sfumato.masking.v_mdav import VMdav as VMdav
    from sfumato.workflow.check import check as check
    from sfumato.workflow.compare import compare as compare
    from sfumato.workflow.inspect import inspect as inspect
    from sfumato.workflow.mask import mask as mask
    from sfumato.workflow.protect import protect as protect
    from sfumato.workflow.recipe import Recipe as Recipe
    from sfumato.workflow.release import Release as Release
    from sfumato.workflow.verify import verify as verify

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    if name in _TABLE:
        value = getattr(importlib.import_module(_TABLE[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"sfumato.{name}")
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
