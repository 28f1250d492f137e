"""Reconstruction: many counts of random groups, each only slightly wrong, give away nearly everybody's bit.

Find the values between the bounds whose sums miss the published answers least in total (a linear programme) and round
them. With errors far below the square root of the number of people nearly all values come out right: the fundamental law
of information recovery. Dinur, Nissim, "Revealing information while preserving privacy", PODS 2003; decoding by L1 error:
Dwork, McSherry, Talwar, "The price of privacy and the limits of LP decoding", STOC 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from sfumato.attacks.adversary import OutputAttack
from sfumato.attacks.outputs.numeric_input import Numbers, Real, are_numbers, vector
from sfumato.core.declared import Declared, build
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import Number, Positive, Seconds
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.measures.risk.success import share, wilson

#: Memberships (people in questions) that a linear programme is tried with.
MAX_MEMBERSHIPS = 20_000_000


@dataclass(frozen=True, eq=False)
class KnownQuestions(Declared):
    """Who is in which question: `members` has a row per question and a column per person, 1 where the person
    counts (or a weight), as an array or a sparse matrix of SciPy. Values lie between `lowest` and `highest`. `truth`,
    a value per person, is not the adversary's: it scores the attack."""

    members: Annotated[Any, "a row per question, a column per person"] = field(repr=False)
    truth: Annotated[Any, "a value per person, to score the attack"] = field(default=None, repr=False)
    lowest: Annotated[float, Number(), "what no value lies below"] = 0.0
    highest: Annotated[float, Number(), "what no value lies above"] = 1.0

    def coherent(self) -> Iterable[str]:
        if self.lowest >= self.highest:
            yield "lowest must lie below highest"


@dataclass(frozen=True)
class Reconstruction(OutputAttack[Numbers, KnownQuestions]):
    """The adversary knows who is in each question and solves for everybody's value.

    The view's result holds one published number per question: a count, or a sum of bounded values. `knowledge` is
    `KnownQuestions`. Values are whole multiples of `step` above the lowest (1 for bits; None: any number), and a value is
    recovered when it is off by at most `tolerance`. The search ends with an error after `time_limit` seconds. Success:
    the share of people whose value is recovered. Blind guessing: the share that the best single guess for everybody gets.

    >>> secret = np.array([1, 0, 0, 1])
    >>> groups = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]])
    >>> Reconstruction().run(View(groups @ secret, None), KnownQuestions(groups, secret)).success
    1.0
    """

    step: Annotated[Positive | None, "values are whole multiples of it above the lowest; None: any number"] = 1.0
    tolerance: Annotated[float, Number(at_least=0), "how far off still counts as recovered"] = 0.0
    time_limit: Annotated[Seconds, "seconds that the search may take"] = 120.0

    def coherent(self) -> Iterable[str]:
        if self.step is None and not self.tolerance:
            yield "values without a step need a tolerance above 0"

    needs: ClassVar[tuple[str, ...]] = ("members",)
    knows: ClassVar[type[Any]] = KnownQuestions

    def fits(self, view: View[object, object]) -> bool:
        """One number per question."""
        return are_numbers(view.result)

    def knowledge_from(self, entries: Mapping[str, object]) -> KnownQuestions:
        """Who is in which question, as a matrix."""
        try:
            members = np.asarray(entries.get("members"), dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("members must be a matrix of numbers: a row per question, a column per person") from None
        return build(KnownQuestions, {**entries, "members": members})

    def run(self, view: View[Numbers, object], knowledge: KnownQuestions | None = None) -> AttackResult:
        """Decode the answers and compare with the truth."""
        guesses = self.values(view.result, knowledge)
        if knowledge is None or knowledge.truth is None:
            raise InputError("reconstruction is scored against the truth: give KnownQuestions(…, truth=…), or take .values()")
        truth = vector(knowledge.truth, "the truth", guesses.size)
        right = int((np.abs(guesses - truth) <= self._slack).sum())
        blind = best_single_guess(truth, self._slack)
        questions = int(np.size(view.result))
        return AttackResult(
            attack="Reconstruction",
            success=share(right, guesses.size),
            baseline=blind,
            interval=wilson(right, guesses.size),
            targets=int(guesses.size),
            finding=(
                f"{questions:,} published sums give back the values of {percent(share(right, guesses.size))} of "
                f"{guesses.size:,} people; one guess for all is right for {percent(blind)}."
            ),
            details={"questions": questions, "recovered": right, "tolerance": self.tolerance},
        )

    def values(self, answers: Numbers, knowledge: KnownQuestions | None) -> Real:
        """What the adversary believes: a value per person."""
        if not isinstance(knowledge, KnownQuestions):
            raise InputError("reconstruction needs KnownQuestions as knowledge: who is in which question")
        fitted = _least_total_error(vector(answers, "the answers"), knowledge, self.time_limit)
        if self.step is None:
            return fitted
        # The half goes up, so that a bit that nothing speaks for is a 1 as under rounding at 1/2.
        steps = np.floor((fitted - knowledge.lowest) / self.step + 0.5)
        most = math.floor((knowledge.highest - knowledge.lowest) / self.step + 1e-9)
        rounded: Real = knowledge.lowest + self.step * np.clip(steps, 0, most)
        return rounded

    @property
    def _slack(self) -> float:
        # Values on a step differ by a step or not at all; the margin absorbs the rounding of floats.
        return self.tolerance + 1e-9 * (self.step or self.tolerance)


def best_single_guess(truth: Real, tolerance: float) -> float:
    """The largest share of values within the tolerance of one number."""
    ordered = np.sort(truth)
    reach = np.searchsorted(ordered, ordered + 2 * tolerance, side="right") - np.arange(ordered.size)
    return share(int(reach.max()), ordered.size)


def _least_total_error(answers: Real, knowledge: KnownQuestions, time_limit: float) -> Real:
    """Values between the bounds that miss the answers least in total: minimise Σ(over + under), A x + under - over = b."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    try:
        members = csr_array(knowledge.members, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the questions: a matrix of numbers is needed, a row per question, a column per person") from None
    questions, people = members.shape
    if questions != answers.size or not people:
        raise InputError(f"the questions: {answers.size:,} answers need as many rows of members, {questions:,} are given")
    if not np.isfinite(members.data).all():
        raise InputError("the questions: a weight is missing or not finite")
    if members.nnz > MAX_MEMBERSHIPS:
        raise Unsupported(f"reconstruction: more than {MAX_MEMBERSHIPS:,} memberships. Attack fewer people or questions.")
    unit = eye_array(questions, format="csr")
    cost = np.concatenate([np.zeros(people), np.ones(2 * questions)])
    bounds = np.zeros((people + 2 * questions, 2))
    bounds[:people] = knowledge.lowest, knowledge.highest
    bounds[people:, 1] = np.inf
    system = hstack([members, unit, -unit], format="csr")
    solved = linprog(cost, A_eq=system, b_eq=answers, bounds=bounds, method="highs", options={"time_limit": time_limit})
    if solved.x is None or solved.status != 0:
        raise Unsupported(
            f"reconstruction: the linear programme of {people:,} people and {questions:,} questions was not solved "
            f"within {time_limit:g} s. Raise time_limit, or attack fewer people."
        )
    values: Real = np.asarray(solved.x[:people], dtype=np.float64)
    return values
