"""Central differential privacy: mechanisms, sensitivities, accounting, SQL, synthetic data, algorithms, refutation."""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, names_in_stub

NAMES = names_in_stub(__file__)
KINDS = {
    "mechanism": Kind("sfumato.dp.mechanisms.base:Mechanism", ("sfumato.dp.mechanisms",)),
    "algorithm": Kind("sfumato.dp.algorithms.base:Algorithm", ("sfumato.dp.algorithms", "sfumato.dp.synthesis")),
}
__all__, __getattr__, __dir__ = face(__name__, NAMES)
