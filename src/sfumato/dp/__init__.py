"""Central differential privacy: mechanisms, sensitivities, accounting, SQL, synthetic data, algorithms, refutation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.core.lazy import from_table

_TABLE: dict[str, str] = {
    # sessions
    "Session": "sfumato.dp.session",
    # outcomes and charging
    "Algorithm": "sfumato.dp.algorithms.base",
    "private_outcome": "sfumato.dp.outcomes",
    # mechanisms
    "Error": "sfumato.dp.mechanisms.base",
    "Mechanism": "sfumato.dp.mechanisms.base",
    # sensitivities
    "Sensitivity": "sfumato.dp.sensitivity.base",
    # accounting
    "advanced_composition": "sfumato.dp.accounting.advanced",
    "approx_from_renyi": "sfumato.dp.accounting.renyi",
    "as_approx": "sfumato.dp.accounting.conversion",
    "as_renyi": "sfumato.dp.accounting.conversion",
    "as_zcdp": "sfumato.dp.accounting.conversion",
    "best_guess": "sfumato.dp.accounting.bayes",
    "between": "sfumato.dp.accounting.composition",
    "Budget": "sfumato.dp.accounting.policies",
    "certainly_disjoint": "sfumato.dp.accounting.predicates",
    "composed": "sfumato.dp.accounting.disjoint",
    "composition_of": "sfumato.dp.accounting.predicates",
    "delta_for": "sfumato.dp.accounting.zcdp",
    "discrete_gaussian_delta": "sfumato.dp.accounting.gaussian",
    "epsilon_by_risk": "sfumato.dp.accounting.lee_clifton",
    "epsilon_by_risk_closed": "sfumato.dp.accounting.lee_clifton",
    "epsilon_for": "sfumato.dp.accounting.zcdp",
    "Events": "sfumato.dp.accounting.numeric",
    "for_unit": "sfumato.dp.accounting.composition",
    "gaussian_delta": "sfumato.dp.accounting.gaussian",
    "gaussian_epsilon": "sfumato.dp.accounting.gaussian",
    "gaussian_sigma": "sfumato.dp.accounting.gaussian",
    "GeometricPolicy": "sfumato.dp.accounting.policies",
    "group": "sfumato.dp.accounting.composition",
    "identification_risk": "sfumato.dp.accounting.lee_clifton",
    "largest_power": "sfumato.dp.accounting.bayes",
    "leave_one_out": "sfumato.dp.accounting.lee_clifton",
    "Meaning": "sfumato.dp.accounting.bayes",
    "meaning": "sfumato.dp.accounting.bayes",
    "NoisyAnswer": "sfumato.dp.accounting.numeric",
    "optimal_composition": "sfumato.dp.accounting.advanced",
    "parallel": "sfumato.dp.accounting.composition",
    "post_processed": "sfumato.dp.accounting.composition",
    "posterior_interval": "sfumato.dp.accounting.bayes",
    "repeated": "sfumato.dp.accounting.composition",
    "rho_for": "sfumato.dp.accounting.zcdp",
    "sequential": "sfumato.dp.accounting.composition",
    "share": "sfumato.dp.accounting.policies",
    "UniformPolicy": "sfumato.dp.accounting.policies",
    # verify and refute
    # algorithms
    # synthesis
}

if TYPE_CHECKING:
    from sfumato.dp.accounting.advanced import advanced_composition as advanced_composition
    from sfumato.dp.accounting.advanced import optimal_composition as optimal_composition
    from sfumato.dp.accounting.bayes import Meaning as Meaning
    from sfumato.dp.accounting.bayes import best_guess as best_guess
    from sfumato.dp.accounting.bayes import largest_power as largest_power
    from sfumato.dp.accounting.bayes import meaning as meaning
    from sfumato.dp.accounting.bayes import posterior_interval as posterior_interval
    from sfumato.dp.accounting.composition import between as between
    from sfumato.dp.accounting.composition import for_unit as for_unit
    from sfumato.dp.accounting.composition import group as group
    from sfumato.dp.accounting.composition import parallel as parallel
    from sfumato.dp.accounting.composition import post_processed as post_processed
    from sfumato.dp.accounting.composition import repeated as repeated
    from sfumato.dp.accounting.composition import sequential as sequential
    from sfumato.dp.accounting.conversion import as_approx as as_approx
    from sfumato.dp.accounting.conversion import as_renyi as as_renyi
    from sfumato.dp.accounting.conversion import as_zcdp as as_zcdp
    from sfumato.dp.accounting.disjoint import composed as composed
    from sfumato.dp.accounting.gaussian import discrete_gaussian_delta as discrete_gaussian_delta
    from sfumato.dp.accounting.gaussian import gaussian_delta as gaussian_delta
    from sfumato.dp.accounting.gaussian import gaussian_epsilon as gaussian_epsilon
    from sfumato.dp.accounting.gaussian import gaussian_sigma as gaussian_sigma
    from sfumato.dp.accounting.lee_clifton import epsilon_by_risk as epsilon_by_risk
    from sfumato.dp.accounting.lee_clifton import epsilon_by_risk_closed as epsilon_by_risk_closed
    from sfumato.dp.accounting.lee_clifton import identification_risk as identification_risk
    from sfumato.dp.accounting.lee_clifton import leave_one_out as leave_one_out
    from sfumato.dp.accounting.numeric import Events as Events
    from sfumato.dp.accounting.numeric import NoisyAnswer as NoisyAnswer
    from sfumato.dp.accounting.policies import Budget as Budget
    from sfumato.dp.accounting.policies import GeometricPolicy as GeometricPolicy
    from sfumato.dp.accounting.policies import UniformPolicy as UniformPolicy
    from sfumato.dp.accounting.policies import share as share
    from sfumato.dp.accounting.predicates import certainly_disjoint as certainly_disjoint
    from sfumato.dp.accounting.predicates import composition_of as composition_of
    from sfumato.dp.accounting.renyi import approx_from_renyi as approx_from_renyi
    from sfumato.dp.accounting.zcdp import delta_for as delta_for
    from sfumato.dp.accounting.zcdp import epsilon_for as epsilon_for
    from sfumato.dp.accounting.zcdp import rho_for as rho_for
    from sfumato.dp.algorithms.base import Algorithm as Algorithm
    from sfumato.dp.mechanisms.base import Error as Error
    from sfumato.dp.mechanisms.base import Mechanism as Mechanism
    from sfumato.dp.outcomes import private_outcome as private_outcome
    from sfumato.dp.sensitivity.base import Sensitivity as Sensitivity
    from sfumato.dp.session import Session as Session

__all__ = sorted(_TABLE)


def __getattr__(name: str) -> Any:
    return from_table(__name__, _TABLE, name)


def __dir__() -> list[str]:
    return __all__
