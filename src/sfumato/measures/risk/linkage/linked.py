"""What every measure of linkage reports: the share linked correctly, its interval, and what blind guessing reaches.

A record may be published several times (a bootstrap) or not at all (a sample): all rows of a person are right answers, and blind
guessing hits one of them more often. The interval counts people, because rows of one person are no independent trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sfumato.core.view import Score
from sfumato.data.masked import Masked
from sfumato.measures.risk.success import wilson

Int = NDArray[np.int64]


def linked_score(
    key: str, credits: NDArray[np.float64], owner: Int | None, meaning: str, parts: Mapping[str, float] | None = None
) -> Score:
    """The mean credit as a score; `owner` as `owners_of` gives it."""
    records = int(credits.size)
    share = min(float(credits.sum()) / max(records, 1), 1.0)
    people, blind = records, 1.0 / max(records, 1)
    if owner is not None:
        times = np.unique(owner, return_counts=True)[1] / records
        people, blind = int(times.size), float(times @ times)
    low, high = wilson(share * people, people)
    details = {"baseline": blind, "interval low": low, "interval high": high, "records": float(records)}
    return Score(key, share, "lower", meaning, MappingProxyType({**details, **(parts or {})}))


def with_classes(credits: NDArray[np.float64], masked: Masked, names: tuple[str, ...]) -> NDArray[np.float64]:
    """At least what guessing within one's class gives: who knows all recoded columns and the recoding finds the class."""
    classes = masked.classes
    if classes is None or not set(masked.columns) <= set(names):
        return credits
    shown = classes >= 0
    credit = np.zeros(credits.size)
    credit[shown] = np.maximum(credits[shown], 1.0 / np.bincount(classes[shown])[classes[shown]])
    return credit


def owners_of(masked: Masked) -> Int | None:
    """Whose each masked row is where somebody has several; nothing where everybody has at most one."""
    rows = masked.rows
    return None if rows is None or np.unique(rows).size == rows.size else rows


def with_assumption(meaning: str, released: object) -> str:
    """The meaning, and where a bare table was given, that its rows were taken to stand in the order of the original."""
    if isinstance(released, Masked):
        return meaning
    return f"{meaning} (the table's rows were taken to stand in the original's order; in another order it looks safer than it is)"
