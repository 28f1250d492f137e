"""Averaging: the same noisy answer asked again and again; the mean of the answers forgets the noise.

The mean of T independent Laplace answers of scale b has a standard deviation of b·sqrt(2/T). A budget stops it, and so does
an answer that is stored and shown again. Dwork, Roth, "The algorithmic foundations of differential privacy", 2014,
section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.adversary import OutputAttack
from sfumato.attacks.outputs.numeric_input import Numbers, Real, are_numbers, matrix, vector
from sfumato.core.declared import Declared, require
from sfumato.core.errors import InputError
from sfumato.core.ranges import Positive
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True, eq=False)
class NoiseKnown(Declared):
    """The `scale` of the Laplace noise, which certificates state. `truth`, a number per question, is not the adversary's:
    it scores the attack."""

    scale: Annotated[Positive | None, "the scale of the Laplace noise"] = None
    truth: Annotated[Any, "the true answer to each question, to score the attack"] = field(default=None, repr=False)


@dataclass(frozen=True)
class Averaging(OutputAttack[Numbers | Sequence[Numbers], NoiseKnown]):
    """The adversary asks each question many times and takes the mean of the answers.

    The view's result holds the answers: a row per question, or one question's answers. `knowledge` is `NoiseKnown`.
    Success: the share of questions whose mean lies within `tolerance` of the truth; without the truth, the probability
    of that under Laplace noise of the known scale (by the normal law where the answers differ). Blind guessing takes the
    first answer and stops, as whoever asks once does.

    >>> Averaging(tolerance=0.5).run(View([[3.2, 2.7, 3.1, 2.9]], None), NoiseKnown(truth=[3])).success
    1.0
    """

    tolerance: Annotated[Positive, "how far from the truth still counts as found"]

    helped_by: ClassVar[tuple[str, ...]] = ("scale", "truth")  # one of them is needed
    knows: ClassVar[type[Any]] = NoiseKnown

    def fits(self, view: View[object, object]) -> bool:
        """A row of answers per question, or one row."""
        return are_numbers(view.result) or are_numbers(view.result, rows=True)

    def run(self, view: View[Numbers | Sequence[Numbers], object], knowledge: NoiseKnown | None = None) -> AttackResult:
        """Average the answers of each question."""
        noise = NoiseKnown() if knowledge is None else knowledge
        if not isinstance(noise, NoiseKnown) or (noise.truth is None and noise.scale is None):
            raise InputError("averaging needs NoiseKnown(scale=…) or NoiseKnown(truth=…) as knowledge")
        answers = _rows(view.result)
        questions, times = answers.shape
        fresh = np.array([np.unique(row).size for row in answers])
        success, blind = self._scored(answers, noise) if noise.truth is not None else self._expected(fresh, noise)
        repeated = int((fresh == 1).sum()) if times > 1 else 0
        stored = f" For {repeated:,} of them every answer is the same number: asking again told nothing more." if repeated else ""
        return AttackResult(
            attack="Averaging",
            success=success,
            baseline=blind,
            interval=wilson(success * questions, questions),
            targets=questions,
            finding=(
                f"The mean of {times:,} answers is within {self.tolerance:g} of the truth for {percent(success)} of "
                f"{questions:,} question{'s' * (questions != 1)}, a single answer for {percent(blind)}.{stored}"
            ),
            details={
                "answers_per_question": times,
                "always_the_same_answer": repeated,
                "expected_deviation": None if noise.scale is None else deviation(noise.scale, times),
            },
        )

    def _scored(self, answers: Real, noise: NoiseKnown) -> tuple[float, float]:
        truth = vector(noise.truth, "the truth", answers.shape[0])
        means = (answers - answers[:, :1]).mean(axis=1) + answers[:, 0]
        right = [int((np.abs(guess - truth) <= self.tolerance).sum()) for guess in (means, answers[:, 0])]
        return share(right[0], truth.size), share(right[1], truth.size)

    def _expected(self, fresh: Any, noise: NoiseKnown) -> tuple[float, float]:
        scale = float(noise.scale or 0.0)
        once = -math.expm1(-self.tolerance / scale)
        # As many answers as are different: those that were stored and shown again carry the same noise.
        each = [once if n == 1 else math.erf(self.tolerance / (deviation(scale, n) * math.sqrt(2))) for n in fresh.tolist()]
        return share(sum(each), len(each)), once


def deviation(scale: float, times: int) -> float:
    """The standard deviation of the mean of that many independent Laplace answers: b·sqrt(2/T)."""
    require(scale > 0 and times >= 1, "averaging: the scale must be above 0 and the answers at least 1")
    return scale * math.sqrt(2 / times)


def _rows(result: Numbers | Sequence[Numbers]) -> Real:
    numbers = np.asarray(result, dtype=object)
    return matrix([list(numbers)] if numbers.ndim == 1 else result, "the answers")
