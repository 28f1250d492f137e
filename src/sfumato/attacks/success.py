"""How sure a success rate is: the 95 % interval every attack reports.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22(158), 1927.
"""

from __future__ import annotations

from sfumato.core.texts import percent
from sfumato.measures.risk.interval import wilson

__all__ = ["percent", "share", "wilson"]


def share(part: float, whole: float) -> float:
    """`part / whole`, 0 when there is nothing."""
    return float(part) / float(whole) if whole else 0.0
