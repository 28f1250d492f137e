"""Randomised response on a categorical answer: the true category with probability e^ε/(e^ε + c - 1), else any other.

Warner, "Randomized response", Journal of the American Statistical Association 60, 1965; Kairouz, Bonawitz, Ramage,
"Discrete distribution estimation under local privacy", ICML 2016.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, TypeAlias

from sfumato.core.guarantees.loss import PureDP
from sfumato.core.randomness import Randomness, below
from sfumato.core.ranges import Each, Instance
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.mechanisms.calibrated import Stated, source_of
from sfumato.dp.ranges import Epsilon
from sfumato.kernels.sampling.noise import bernoulli_exp

Category: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class RandomisedResponse(Stated[Category, Category]):
    """A category computed from the data, reported through noise; `categories` are declared.

    The true one of c categories with probability e^ε/(e^ε + c - 1), else any other. ε-private (`epsilon`), whatever one
    unit may change the category to. A value that is none of the categories is answered by a uniform draw, which is within ε
    of every other answer. When ranks or scores matter, `Exponential` does better.
    """

    categories: Annotated[
        tuple[Category, ...],
        Each(Instance(object), at_least=2, different=True, what="at least two different categories"),
        "the answers that may be given, declared by the owner",
    ]
    epsilon: Epsilon

    @cached_property
    def truth(self) -> float:
        """The probability of the true category."""
        other = math.exp(-float(self.epsilon))
        return 1 / (1 + (len(self.categories) - 1) * other)

    def loss(self) -> PureDP:
        return self._pure(self.epsilon)

    def error(self) -> Error:
        """Of the indicator of a wrong answer: its mean is the bias."""
        return Error(math.sqrt(self.truth * (1 - self.truth)), 1 - self.truth)

    def law(self, value: Category) -> dict[Category, float]:
        """The probability of every category."""
        count = len(self.categories)
        if value not in self.categories:
            return dict.fromkeys(self.categories, 1 / count)
        return {entry: self.truth if entry == value else (1 - self.truth) / (count - 1) for entry in self.categories}

    def answer(self, value: Category, randomness: Randomness | None = None) -> Category:
        source, declared = source_of(randomness), value in self.categories
        while True:
            drawn = self.categories[below(source, len(self.categories))]
            if drawn == value or not declared or bernoulli_exp(Fraction(self.epsilon), source):
                return drawn
