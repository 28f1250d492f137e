"""Four small functions of a table, two private and two not: what a definition is good for.

A constant is private for every ε; a count with ten added is not, for any; a count beside a row of the data is not; a
count with noise is. Dwork, Roth, "The algorithmic foundations of differential privacy", 2014.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.core.randomness import Randomness
from sfumato.dp.mechanisms.geometric import Geometric


def func1(records: Sequence[object], randomness: Randomness | None = None) -> int:
    """999, whatever the data: private for every ε of at least 0."""
    return 999


def func2(records: Sequence[object], randomness: Randomness | None = None) -> int:
    """The count plus ten: deterministic and not constant, hence private for no ε."""
    return len(records) + 10


def func3(records: Sequence[object], randomness: Randomness | None = None) -> tuple[int, object]:
    """A noisy count and, beside it, a row of the data: private for no ε."""
    return func4(records, randomness), records[0] if records else None


def func4(records: Sequence[object], randomness: Randomness | None = None, epsilon: float = 1.0) -> int:
    """The count with two-sided geometric noise: ε-private."""
    return Geometric(sensitivity=1, epsilon=epsilon).answer(len(records), randomness)
