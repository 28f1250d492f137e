"""Intersection of exact answers: two harmless extremes about the same group, asked of two tables, point at
one person.

The youngest sick person is 40, the lightest sick person weighs 100: whoever is 40 and weighs 100 is sick.
Each answer leaves a set of candidates; the sets are intersected. Dinur, Nissim, "Revealing information while
preserving privacy", PODS 2003, for the general law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sfumato.attacks.success import percent, wilson
from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.view import Attack, AttackResult, View

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Extreme:
    """An exact answer: the `least` or `greatest` value of a column among the people of a hidden group."""

    column: str
    value: float
    which: Literal["least", "greatest"] = "least"


@dataclass(frozen=True)
class AnswerIntersection(Attack):
    """The view's result is a sequence of `Extreme` answers about one hidden group; `knowledge` is a table of
    everybody.

    Success: 1 over the number of candidates that every answer leaves; blind guessing: 1 over everybody.
    """

    def run(self, view: View, knowledge: Any = None) -> AttackResult:
        """Intersect the candidates of all answers."""
        left = candidates(view.result, knowledge)
        everybody = int(knowledge.num_rows)
        rate = 1 / len(left) if left else 0.0
        return AttackResult(
            attack="AnswerIntersection",
            success=rate,
            baseline=1 / everybody,
            interval=wilson(rate, 1),
            targets=1,
            finding=(
                f"{len(view.result)} exact answers leave {len(left):,} of {everybody:,} people as candidates "
                f"({percent(rate)} each)."
            ),
            details={
                "answers": len(view.result),
                "candidates_per_answer": [len(candidates([answer], knowledge)) for answer in view.result],
                "candidates": len(left),
            },
        )


def candidates(answers: Sequence[Extreme], people: pa.Table) -> tuple[int, ...]:
    """The rows that attain every answered extreme: where one person can be behind all answers, it is one of
    these."""
    if not answers or people is None or not people.num_rows:
        raise InputError("the attack needs at least one answer and a table of people")
    missing = sorted({answer.column for answer in answers} - set(people.column_names))
    if missing:
        raise MissingColumn(f"the table of people lacks {', '.join(missing)}")
    left = set(range(people.num_rows))
    for answer in answers:
        column = people.column(answer.column).to_pylist()
        left &= {row for row, value in enumerate(column) if value is not None and float(value) == answer.value}
    return tuple(sorted(left))


def surely_inside(answers: Sequence[Extreme], people: pa.Table) -> tuple[int, ...]:
    """The rows that must belong to the hidden group: the only ones that can attain some answer and contradict
    none."""
    possible = set(range(people.num_rows))
    for answer in answers:
        column = people.column(answer.column).to_pylist()
        least = answer.which == "least"
        possible &= {
            row
            for row, value in enumerate(column)
            if value is not None and (value >= answer.value if least else value <= answer.value)
        }
    inside = set()
    for answer in answers:
        attaining = possible & set(candidates([answer], people))
        if len(attaining) == 1:
            inside |= attaining
    return tuple(sorted(inside))
