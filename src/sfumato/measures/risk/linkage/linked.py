"""What every measure of linkage reports: the share linked correctly, its interval, and its floor.

The floor is the same linkage where people are paired with released rows at random. A person who points at T rows as the nearest
is paired with one of them with chance T/n and then found with chance 1/T: 1/n for everybody, whatever the distance and the mask.
A record may be published several times (a bootstrap) or not at all (a sample): all rows of a person are right answers, so that
chance hits one of them more often. The interval counts people, because rows of one person are no independent trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import StreamRandomness
from sfumato.core.view import Score
from sfumato.data.masked import Masked
from sfumato.kernels.sampling.draws import Draws
from sfumato.measures.risk.success import wilson

Int = NDArray[np.int64]


def linked_score(
    key: str,
    credits: NDArray[np.float64],
    owner: Int | None,
    meaning: str,
    parts: Mapping[str, float] | None = None,
    floor: float | None = None,
) -> Score:
    """The mean credit as a score; `owner` as `owners_of` gives it, `floor` where it is not that of one pick per person."""
    records = int(credits.size)
    share = min(float(credits.sum()) / max(records, 1), 1.0)
    people = records if owner is None else int(np.unique(owner).size)
    return Score(
        key,
        share,
        "lower",
        meaning,
        MappingProxyType({"records": float(records), **(parts or {})}),
        floor=blind_pick(records, owner) if floor is None else floor,
        interval=wilson(share * people, people),
    )


def blind_pick(records: int, owner: Int | None) -> float:
    """The expected share of rows whose person finds an own one by picking at random."""
    if owner is None or not records:
        return 1.0 / max(records, 1)
    times = np.unique(owner, return_counts=True)[1] / records
    return float(times @ times)


def randomly_paired(masked: Masked) -> Masked:
    """The same rows, each with the person of another row behind it: a fixed random pairing, in which no class is anybody's."""
    if masked.rows is None:
        return masked
    order = Draws(StreamRandomness("a random pairing")).permutation(masked.rows.size)
    return replace(masked, rows=masked.rows[order], classes=None)


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
