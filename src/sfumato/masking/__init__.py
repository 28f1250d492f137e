"""Masks: a table about people, changed record by record until it is hard to find anybody in it.

Noise, microaggregation, swapping, PRAM, coding, synthetic records. Every mask is a frozen value with one verb, `apply`;
names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    "AdditiveNoise": "sfumato.masking.additive_noise",
    "BucketRankSwapping": "sfumato.masking.bucket_rank_swapping",
    "Cbfs": "sfumato.masking.cbfs",
    "Change": "sfumato.masking.base",
    "Combined": "sfumato.masking.combined",
    "Condensation": "sfumato.masking.condensation",
    "Context": "sfumato.masking.base",
    "Correction": "sfumato.masking.correction",
    "CorrelatedNoise": "sfumato.masking.correlated_noise",
    "DistributionRankSwapping": "sfumato.masking.distribution_rank_swapping",
    "GaussianCopula": "sfumato.masking.gaussian_copula",
    "Generalisation": "sfumato.masking.generalisation",
    "Ipso": "sfumato.masking.ipso",
    "Kept": "sfumato.masking.base",
    "Mask": "sfumato.masking.base",
    "Masked": "sfumato.data.masked",
    "Mdav": "sfumato.masking.mdav",
    "Microaggregation": "sfumato.masking.microaggregation",
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

if TYPE_CHECKING:
    from sfumato.data.masked import Masked as Masked
    from sfumato.masking.additive_noise import AdditiveNoise as AdditiveNoise
    from sfumato.masking.base import Change as Change
    from sfumato.masking.base import Context as Context
    from sfumato.masking.base import Kept as Kept
    from sfumato.masking.base import Mask as Mask
    from sfumato.masking.bucket_rank_swapping import BucketRankSwapping as BucketRankSwapping
    from sfumato.masking.cbfs import Cbfs as Cbfs
    from sfumato.masking.combined import Combined as Combined
    from sfumato.masking.condensation import Condensation as Condensation
    from sfumato.masking.correction import Correction as Correction
    from sfumato.masking.correlated_noise import CorrelatedNoise as CorrelatedNoise
    from sfumato.masking.distribution_rank_swapping import DistributionRankSwapping as DistributionRankSwapping
    from sfumato.masking.gaussian_copula import GaussianCopula as GaussianCopula
    from sfumato.masking.generalisation import Generalisation as Generalisation
    from sfumato.masking.ipso import Ipso as Ipso
    from sfumato.masking.mdav import Mdav as Mdav
    from sfumato.masking.microaggregation import Microaggregation as Microaggregation
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

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)
