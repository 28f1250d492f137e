"""Rates of success, and how sure they are: the 95 % interval that every attack and every measure of risk reports.

Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22(158), 1927.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import StreamRandomness
from sfumato.kernels.sampling.draws import Draws

Int = NDArray[np.int64]

#: Groups of people that are left out in turn.
GROUPS = 20
#: Quantile of the standard normal distribution that leaves 2.5 % on each side.
Z95 = 1.959963984540054


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """The 95 % interval of a rate; `successes` may be an expected number. Without trials nothing is known:
    (0, 1)."""
    if trials <= 0:
        return (0.0, 1.0)
    rate = min(max(successes / trials, 0.0), 1.0)
    square = Z95 * Z95 / trials
    centre = (rate + square / 2) / (1 + square)
    half = Z95 * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials)) / (1 + square)
    low = 0.0 if rate == 0.0 else max(centre - half, 0.0)
    high = 1.0 if rate == 1.0 else min(centre + half, 1.0)
    return (low, high)


def mean_interval(shares: NDArray[np.float64], owner: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """The 95 % interval of the mean of shares in [0, 1], one per record: Wilson's, for as many trials as a rate with this
    variance would have. `owner` says whose a record is where somebody has several: people vary, and not their records."""
    records = int(shares.size)
    if not records:
        return (0.0, 1.0)
    mean = min(max(float(shares.mean()), 0.0), 1.0)
    deviations = shares - mean
    people = records
    if owner is not None:
        of_row = np.unique(owner, return_inverse=True)[1].reshape(-1)
        deviations = np.bincount(of_row, deviations).astype(np.float64)
        people = int(deviations.size)
    return _of_variance(mean, float(deviations @ deviations) / records**2, people)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Rows in groups of equally many people, all rows of a person in one; `rows` are those looked at (a sample of a large table)
    and `group` says to which group each belongs."""

    rows: Int
    group: Int
    records: int
    people: int

    @classmethod
    def of(cls, records: int, owner: Int | None = None, most: int = 2_000) -> LeftOut:
        """Always the same groups for the same number of people; `owner` says whose a row is."""
        person = np.arange(records) if owner is None else np.unique(owner, return_inverse=True)[1].reshape(-1)
        people = int(person.max()) + 1 if records else 0
        place = Draws(StreamRandomness("groups of people")).permutation(people)
        rows = np.flatnonzero(place[person] < most)
        return cls(rows, place[person[rows]] % min(GROUPS, max(people, 1)), records, people)

    def each(self) -> Iterator[Int]:
        """The rows that remain without each group."""
        for group in np.unique(self.group).tolist():
            yield self.rows[self.group != group]

    def interval(self, rate: float, without: Sequence[float], floors: Sequence[float], together: int = 1) -> tuple[float, float]:
        """The 95 % interval of a rate of which people are no independent trials, because one changes what counts as a success
        for others: Wilson's by the variance that leaving out groups shows. `without` and `floors` are the rate and its floor
        without each group; the interval is as wide as either the rate or its distance from the floor needs, by Student's
        quantile for as many groups. `together` says how many people succeed or fail as one. Shao, Wu, "A general theory for
        jackknife variance estimation", Annals of Statistics 17(3), 1989."""
        from scipy.special import stdtrit

        groups = len(without)
        if groups < 2:
            return wilson(rate * self.people, self.people)
        rates = np.array(without)
        variance = max(float(np.var(each)) for each in (rates, rates - np.array(floors))) * (groups - 1)
        wider = float(stdtrit(groups - 1, 0.975)) / Z95
        return _of_variance(rate, together * variance * wider**2 * self.rows.size / self.records, self.people)


def _of_variance(mean: float, variance: float, people: int) -> tuple[float, float]:
    """Wilson's interval for as many trials as a rate with this variance would have."""
    trials = people if variance <= 0.0 or mean in (0.0, 1.0) else mean * (1.0 - mean) / variance
    return wilson(mean * trials, trials)


def share(part: float, whole: float) -> float:
    """`part / whole`, 0 when there is nothing."""
    return float(part) / float(whole) if whole else 0.0
