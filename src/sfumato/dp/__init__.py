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
    # verify and refute
    # algorithms
    # synthesis
}

if TYPE_CHECKING:
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
