"""How well a score tells those who are in the data from those who are not.

The score is high for members. The rate that is reported is the balanced accuracy: the mean of the share of members
found and the share of others left alone, 1/2 for whoever guesses. Fawcett, "An introduction to ROC analysis", Pattern
Recognition Letters 27(8), 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.measures.risk.success import share, wilson

Real = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Detection:
    """Scores of members and of others, and the threshold above which somebody is called a member."""

    members: Real = field(repr=False)
    others: Real = field(repr=False)
    threshold: float

    @property
    def found(self) -> int:
        """Members who are called members."""
        return int((self.members > self.threshold).sum())

    @property
    def false_alarms(self) -> int:
        """Others who are called members."""
        return int((self.others > self.threshold).sum())

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the two shares of right answers."""
        right = self.others.size - self.false_alarms
        return (share(self.found, self.members.size) + share(right, self.others.size)) / 2

    @property
    def interval(self) -> tuple[float, float]:
        """At least 95 %: the mean of the ends of the Wilson intervals of both shares."""
        one = wilson(self.found, self.members.size)
        two = wilson(self.others.size - self.false_alarms, self.others.size)
        return ((one[0] + two[0]) / 2, (one[1] + two[1]) / 2)

    @property
    def area(self) -> float:
        """The probability that a random member scores above a random other; ties count one half."""
        ordered = np.sort(self.others)
        below = np.searchsorted(ordered, self.members, side="left")
        up_to = np.searchsorted(ordered, self.members, side="right")
        return share(float((below + up_to).sum()) / 2, self.members.size * self.others.size)

    @property
    def advantage_in_hindsight(self) -> float:
        """The largest difference between the share of members and of others above any one threshold. The threshold is chosen
        on the very targets that are scored, so that it is above 0 by chance alone; no adversary can count on it."""
        cuts = np.unique(np.concatenate([self.members, self.others]))
        at_least = [1 - np.searchsorted(np.sort(side), cuts, side="left") / side.size for side in (self.members, self.others)]
        return float(max(0.0, np.max(at_least[0] - at_least[1])))
