"""Intersection of exact answers: two harmless extremes about the same group, asked of two tables, point at
one person.

The youngest sick person is 40, the lightest sick person weighs 100: whoever is 40 and weighs 100 is sick.
Each answer leaves a set of candidates; the sets are intersected. Dinur, Nissim, "Revealing information while
preserving privacy", PODS 2003, for the general law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.attacks.adversary import Beside, OutputAttack, mapping
from sfumato.core.declared import Declared, build
from sfumato.core.errors import InputError, MissingColumn
from sfumato.core.ranges import ColumnName, Number
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, View
from sfumato.data.schema import Schema
from sfumato.data.texts.values import as_numbers, texts
from sfumato.measures.risk.success import wilson

Real = NDArray[np.float64]
#: A table of people with more cells is not read, and more answers about them are not intersected.
MOST_CELLS, MOST_ANSWERS = 50_000_000, 10_000


@dataclass(frozen=True)
class Extreme(Declared):
    """An exact answer: the `value` of a `column` that is "least" or "greatest" (`which`) among the people of a hidden group."""

    column: Annotated[ColumnName, "the column of the answer"]
    value: Annotated[float, Number(), "the answer"] = field(repr=False)
    which: Annotated[Literal["least", "greatest"], "which end of the group it is"] = "least"


@dataclass(frozen=True)
class AnswerIntersection(OutputAttack[Sequence[Extreme], pa.Table]):
    """The view's result is a sequence of `Extreme` answers about one hidden group; `knowledge` is a table of
    everybody.

    Success: 1 over the number of candidates that every answer leaves; blind guessing: 1 over everybody.
    """

    needs: ClassVar[tuple[str, ...]] = ("people",)

    def fits(self, view: View[object, object]) -> bool:
        """Exact extremes."""
        return _are_extremes(view.result)

    def knowledge_from(self, entries: Mapping[str, object]) -> pa.Table:
        """The table of everybody."""
        return entries["people"]

    def game(
        self, published: object, entries: Mapping[str, object], beside: Beside
    ) -> tuple[View[Sequence[Extreme], object], pa.Table | None]:
        """Extremes of a hidden group, and the table of everybody who may be in it."""
        if not isinstance(published, list) or not 0 < len(published) <= MOST_ANSWERS:
            raise InputError(
                f"published must be a list of 1 to {MOST_ANSWERS:,} extremes, such as "
                '{"column": "age", "value": 40, "which": "least"}'
            )
        answers = [build(Extreme, mapping(entry, "an extreme")) for entry in published]
        place = entries.get("people")
        if set(entries) != {"people"} or not isinstance(place, str):
            raise InputError('knowledge must name a table of everybody, and that alone: {"people": "people.csv"}')
        return View(answers, Schema(), name="outputs"), beside.table(place, "table of people", MOST_CELLS)

    def run(self, view: View[Sequence[Extreme], object], knowledge: pa.Table | None = None) -> AttackResult:
        """Intersect the candidates of all answers."""
        columns = _columns(view.result, knowledge)
        left = _attaining(view.result, columns)
        everybody = next(iter(columns.values())).size
        rate = 1 / left.size if left.size else 0.0
        return AttackResult(
            attack="AnswerIntersection",
            success=rate,
            baseline=1 / everybody,
            interval=wilson(rate, 1),
            targets=1,
            finding=(
                f"{len(view.result)} exact answers leave {left.size:,} of {everybody:,} people as candidates "
                f"({percent(rate)} each)."
            ),
            details={
                "answers": len(view.result),
                "candidates_per_answer": [int(_attaining([answer], columns).size) for answer in view.result],
                "candidates": int(left.size),
            },
        )


def candidates(answers: Sequence[Extreme], people: pa.Table) -> tuple[int, ...]:
    """The rows that attain every answered extreme: where one person can be behind all answers, it is one of
    these."""
    return tuple(_attaining(answers, _columns(answers, people)).tolist())


def surely_inside(answers: Sequence[Extreme], people: pa.Table) -> tuple[int, ...]:
    """The rows that must belong to the hidden group: the only ones that can attain some answer and contradict
    none."""
    columns = _columns(answers, people)
    possible = np.ones(people.num_rows, dtype=np.bool_)
    for answer in answers:
        numbers = columns[answer.column]
        possible &= numbers >= answer.value if answer.which == "least" else numbers <= answer.value
    inside: set[int] = set()
    for answer in answers:
        attaining = np.flatnonzero(possible & (columns[answer.column] == answer.value))
        if attaining.size == 1:
            inside |= set(attaining.tolist())
    return tuple(sorted(inside))


def _attaining(answers: Sequence[Extreme], columns: Mapping[str, Real]) -> NDArray[np.int64]:
    left = np.ones(columns[answers[0].column].size, dtype=np.bool_)
    for answer in answers:
        left &= columns[answer.column] == answer.value
    return np.flatnonzero(left).astype(np.int64)


def _are_extremes(answers: object) -> bool:
    return isinstance(answers, Sequence) and bool(answers) and all(isinstance(answer, Extreme) for answer in answers)


def _columns(answers: Sequence[Extreme], people: pa.Table | None) -> dict[str, Real]:
    """The numbers that the answers are about, missing ones as NaN, which equals no answer."""
    if not _are_extremes(answers) or not isinstance(people, pa.Table) or not people.num_rows:
        raise InputError("the attack needs at least one answer and a table of people")
    missing = sorted({answer.column for answer in answers} - set(people.column_names))
    if missing:
        raise MissingColumn(f"the table of people lacks {', '.join(missing)}")
    columns = {}
    for name in dict.fromkeys(answer.column for answer in answers):
        numbers = as_numbers(texts(people.column(name)))
        if numbers is None:
            raise InputError(f"the table of people: the column '{name[:60]}' does not hold numbers alone, so it has no extremes")
        columns[name] = np.array(numbers, dtype=np.float64)
    return columns
