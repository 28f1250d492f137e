"""How sure a success rate is: the 95 % interval every attack reports.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22(158), 1927.
"""

from __future__ import annotations

from sfumato.measures.risk.interval import wilson

__all__ = ["percent", "share", "wilson"]


def share(part: float, whole: float) -> float:
    """`part / whole`, 0 when there is nothing."""
    return float(part) / float(whole) if whole else 0.0


def percent(rate: float) -> str:
    """A rate for a sentence: `0 %`, `0.03 %`, `12.5 %`, `100 %`."""
    if rate in (0.0, 1.0):
        return f"{rate * 100:.0f} %"
    if rate < 0.0001:
        return "less than 0.01 %"
    if rate > 0.9999:
        return "more than 99.99 %"
    return f"{rate * 100:.3g} %"
