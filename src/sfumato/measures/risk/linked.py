"""What every measure of linkage reports: the share linked rightly, its interval, and what blind guessing reaches."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Score
from sfumato.measures.risk.interval import wilson


def linked_score(
    key: str, credits: NDArray[np.float64], candidates: int, meaning: str, parts: Mapping[str, float] | None = None
) -> Score:
    """The mean credit as a score; `candidates` is how many released records an intruder could choose from."""
    records = int(credits.size)
    right = float(credits.sum())
    low, high = wilson(right, records)
    told = {"baseline": 1.0 / max(candidates, 1), "interval low": low, "interval high": high, "records": float(records)}
    return Score(key, min(right / max(records, 1), 1.0), "lower", meaning, MappingProxyType({**told, **(parts or {})}))
