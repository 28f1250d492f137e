"""A channel with finitely many inputs and outputs: its matrix, the ε and δ(ε) it leaks, and what an observer learns.

Row x is the law of the output when the input is x. With Fractions or integers every ratio is exact; with floats it is
as exact as they are. Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis", TCC 2006.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.core.declared import require
from sfumato.core.exact import Number, exact

Probability: TypeAlias = Fraction | float
Pairs: TypeAlias = Iterable[tuple[Hashable, Hashable]]

_TOLERANCE = 1e-9
_DIGITS = (30, 100, 400)


@dataclass(frozen=True)
class Worst:
    """Where a channel leaks most: seeing `outputs` is `ratio` times as likely from `first` as from `second`."""

    first: Hashable
    second: Hashable
    outputs: tuple[Hashable, ...]
    probability: Probability
    other_probability: Probability
    ratio: Probability

    @property
    def epsilon(self) -> float:
        """The logarithm of the ratio."""
        return log_ratio(self.ratio)


class Channel:
    """A matrix of probabilities, one row per input.

    `inputs` and `outputs` name the rows and columns (0, 1, 2, … by default). Pairs of neighbouring inputs are given by
    those names; without them every two inputs are neighbours, as in local privacy. 0/0 counts as 1.

    >>> Channel([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]).ratio()
    Fraction(3, 1)
    """

    def __init__(
        self,
        matrix: Sequence[Sequence[Any]] | NDArray[Any],  # of fractions or floating-point numbers
        inputs: Sequence[Hashable] | None = None,
        outputs: Sequence[Hashable] | None = None,
    ) -> None:
        rows = [list(row) for row in matrix]
        require(bool(rows) and bool(rows[0]), "a channel has at least one input and one output")
        require(len({len(row) for row in rows}) == 1, "every row of a channel has one probability per output")
        self.exact = all(isinstance(entry, (int, Fraction)) for row in rows for entry in row)
        self._matrix = _exact_matrix(rows) if self.exact else _float_matrix(rows)
        self.inputs = _names(inputs, len(rows), "inputs")
        self.outputs = _names(outputs, len(rows[0]), "outputs")

    @property
    def matrix(self) -> NDArray[Any]:  # of fractions or floating-point numbers
        """A copy of the probabilities: floats, or objects that are Fractions."""
        return self._matrix.copy()

    def ratio(self, pairs: Pairs | None = None) -> Probability:
        """The largest P(y | x) / P(y | x') over outputs and neighbouring inputs; infinite where supports differ."""
        return self.worst(pairs).ratio

    def epsilon(self, pairs: Pairs | None = None) -> float:
        """The smallest ε for which the channel is ε-differentially private."""
        return log_ratio(self.ratio(pairs))

    def worst(self, pairs: Pairs | None = None) -> Worst:
        """The neighbours and the output with the largest ratio."""
        largest: tuple[Any, int, int, int] | None = None
        for above, below, output in self._extremes(pairs):
            ratio = _ratio(self._matrix[above, output], self._matrix[below, output])
            if largest is None or ratio > largest[0]:
                largest = (ratio, above, below, output)
        if largest is None:
            require(len(self.inputs) == 1 or pairs is not None, "no neighbouring inputs were given")
            largest = (Fraction(1) if self.exact else 1.0, 0, 0, 0)
        ratio, above, below, output = largest
        return Worst(
            self.inputs[above],
            self.inputs[below],
            (self.outputs[output],),
            self._matrix[above, output],
            self._matrix[below, output],
            ratio,
        )

    def delta(self, epsilon: Number, pairs: Pairs | None = None) -> float:
        """The smallest δ for which the channel is (ε, δ)-differentially private: the hockey-stick divergence."""
        return max((float(value) for value, _, _, _ in self._sticks(_growth(epsilon), pairs)), default=0.0)

    def worst_event(self, epsilon: Number, pairs: Pairs | None = None) -> Worst:
        """The neighbours and the set of outputs that attain `delta`."""
        _, above, below, chosen = max(self._sticks(_growth(epsilon), pairs), key=lambda stick: stick[0])
        p, q = (sum(self._matrix[row, chosen], start=Fraction(0) if self.exact else 0.0) for row in (above, below))
        return Worst(self.inputs[above], self.inputs[below], tuple(self.outputs[i] for i in chosen), p, q, _ratio(p, q))

    def holds(self, epsilon: Number, delta: Number = 0, pairs: Pairs | None = None) -> bool:
        """Whether the channel is (ε, δ)-differentially private; decided exactly where the matrix is exact."""
        claimed, allowed = exact(epsilon, "epsilon"), exact(delta, "delta")
        listed = None if pairs is None else list(pairs)
        if not self.exact:
            return self.delta(claimed, listed) <= float(allowed) + _TOLERANCE * math.exp(claimed)
        if allowed == 0:
            return within(self.ratio(listed), claimed)
        for digits in _DIGITS:
            low, high = exponential(claimed, digits)
            if max((value for value, _, _, _ in self._sticks(low, listed)), default=0) <= allowed:
                return True
            if max((value for value, _, _, _ in self._sticks(high, listed)), default=0) > allowed:
                return False
        return True  # equal to four hundred digits

    def posterior(self, prior: Sequence[Probability], output: Hashable) -> list[Probability]:
        """What an observer who believed `prior` about the input believes after seeing the output (Bayes)."""
        require(len(prior) == len(self.inputs), "a prior has one probability per input")
        column = self.outputs.index(output)
        joint = [belief * self._matrix[row, column] for row, belief in enumerate(prior)]
        total = sum(joint)
        require(total > 0, "this output is impossible under the prior")
        return [part / total for part in joint]

    def cascade(self, after: Channel) -> Channel:
        """Feed the output into another channel: post-processing, which never leaks more."""
        require(len(self.outputs) == len(after.inputs), "the second channel has one input per output of the first")
        return Channel(self._matrix.dot(after._matrix), self.inputs, after.outputs)

    def product(self, other: Channel) -> Channel:
        """Both outputs, drawn independently from the same input: what is leaked adds up at most."""
        require(len(self.inputs) == len(other.inputs), "both channels have the same inputs")
        joint = self._matrix[:, :, None] * other._matrix[:, None, :]
        names = [(one, two) for one in self.outputs for two in other.outputs]
        return Channel(joint.reshape(len(self.inputs), -1), self.inputs, names)

    def __repr__(self) -> str:
        return f"Channel({len(self.inputs)} inputs, {len(self.outputs)} outputs, {'exact' if self.exact else 'floats'})"

    def _extremes(self, pairs: Pairs | None) -> Iterable[tuple[int, int, int]]:
        """Rows above and below and the output: where all inputs are neighbours, each output needs only its extremes."""
        columns = range(len(self.outputs))
        if pairs is None:
            for output in columns:
                column = self._matrix[:, output]
                yield int(column.argmax()), int(column.argmin()), output
            return
        for one, two in self._ordered(pairs):
            for output in columns:
                yield one, two, output

    def _ordered(self, pairs: Pairs | None) -> list[tuple[int, int]]:
        if pairs is None:
            count = len(self.inputs)
            return [(one, two) for one in range(count) for two in range(count) if one != two]
        place = {name: i for i, name in enumerate(self.inputs)}
        listed = list(pairs)
        require(all(one in place and two in place for one, two in listed), "neighbours are named by inputs of the channel")
        return [order for one, two in listed for order in ((place[one], place[two]), (place[two], place[one]))]

    def _sticks(self, growth: Probability, pairs: Pairs | None) -> Iterable[tuple[Any, int, int, list[int]]]:
        for one, two in self._ordered(pairs):
            above, below = self._matrix[one], self._matrix[two]
            if growth == math.inf:  # infinity times nothing is nothing: only what the other never shows counts
                chosen = np.flatnonzero((above > 0) & (below == 0)).tolist()
                yield sum(above[chosen]), one, two, chosen
                continue
            excess = above - (growth if self.exact else float(growth)) * below
            chosen = np.flatnonzero(excess > 0).tolist()
            yield sum(excess[chosen]), one, two, chosen


def within(ratio: Probability, epsilon: Fraction) -> bool:
    """Whether ratio ≤ e^ε, decided exactly for a Fraction: the two sides are never equal unless ε = 0."""
    if ratio == math.inf:
        return False
    if isinstance(ratio, float):
        return ratio <= math.exp(epsilon) * (1 + _TOLERANCE)
    if epsilon == 0:
        return ratio <= 1
    for digits in _DIGITS:
        low, high = exponential(epsilon, digits)
        if ratio <= low:
            return True
        if ratio >= high:
            return False
    return False


def exponential(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Two fractions around e^exponent that agree to about so many digits."""
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    if exponent == 0:
        return Fraction(1), Fraction(1)
    ends = []
    for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING):
        context.rounding = rounding
        power = context.divide(decimal.Decimal(exponent.numerator), decimal.Decimal(exponent.denominator))
        raised = context.exp(power)  # correctly rounded to the nearest: one step outwards is a bound
        ends.append(Fraction(context.next_minus(raised) if rounding == decimal.ROUND_FLOOR else context.next_plus(raised)))
    return ends[0], ends[1]


def log_ratio(ratio: Probability) -> float:
    """The natural logarithm of a ratio, also of one too large or small for a float."""
    if isinstance(ratio, float):
        return math.log(ratio)
    try:
        return math.log(ratio)
    except (OverflowError, ValueError):
        return math.log(ratio.numerator) - math.log(ratio.denominator)


def _growth(epsilon: Number) -> Probability:
    if epsilon == math.inf:
        return math.inf
    claimed = exact(epsilon, "epsilon")
    require(claimed >= 0, "epsilon must not be negative")
    return Fraction(math.exp(claimed)) if claimed < 700 else math.inf


def _ratio(above: Any, below: Any) -> Any:
    if above == below:
        return above / below if below else above + 1  # 0/0 counts as 1
    return math.inf if below == 0 else above / below


def _names(listed: Sequence[Hashable] | None, count: int, what: str) -> tuple[Hashable, ...]:
    names = tuple(range(count)) if listed is None else tuple(listed)
    require(len(names) == count and len(set(names)) == count, f"{what} are as many different names as the matrix has")
    return names


def _exact_matrix(rows: list[list[Any]]) -> NDArray[Any]:
    matrix = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        matrix[i, :] = [Fraction(entry) for entry in row]
    require(all(entry >= 0 for entry in matrix.flat), "probabilities are not negative")
    require(all(sum(row) == 1 for row in matrix), "every row of a channel adds up to 1")
    return matrix


def _float_matrix(rows: list[list[Any]]) -> NDArray[Any]:
    matrix = np.array(rows, dtype=np.float64)
    require(bool(np.isfinite(matrix).all()) and bool((matrix >= 0).all()), "probabilities are finite and not negative")
    require(bool((np.abs(matrix.sum(axis=1) - 1) <= _TOLERANCE).all()), "every row of a channel adds up to 1")
    return matrix
