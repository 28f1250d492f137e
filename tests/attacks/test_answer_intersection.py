"""Exact extremes of one hidden group, intersected."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.attacks import AnswerIntersection, Extreme
from sfumato.attacks.outputs.answer_intersection import candidates, surely_inside
from sfumato.core.errors import InputError, MissingColumn, ParameterError
from sfumato.core.view import View
from tests.examples import examples

values = st.one_of(st.none(), st.integers(0, 3), st.floats(0, 3).map(lambda number: round(number, 1)))
tables = st.lists(st.tuples(values, values), min_size=1, max_size=8)
extremes = st.builds(Extreme, st.sampled_from(["a", "b"]), st.integers(0, 3), st.sampled_from(["least", "greatest"]))


@settings(max_examples=examples(30), deadline=None)
@given(tables, st.lists(extremes, min_size=1, max_size=3))
def test_candidates_attain_every_answer_and_whoever_is_sure_contradicts_none(
    rows: list[tuple[Any, Any]], answers: list[Extreme]
) -> None:
    people = pa.table({name: pa.array([row[i] for row in rows], pa.float64()) for i, name in enumerate("ab")})
    known = [dict(zip("ab", row, strict=True)) for row in rows]
    fitting = [i for i, person in enumerate(known) if all(person[one.column] == one.value for one in answers)]
    assert list(candidates(answers, people)) == fitting
    found = AnswerIntersection().run(View(answers, None), people)
    assert found.success == (1 / len(fitting) if fitting else 0.0) and found.baseline == 1 / len(rows)
    assert found.details["candidates_per_answer"] == [sum(person[one.column] == one.value for person in known) for one in answers]
    possible = [
        i
        for i, person in enumerate(known)
        if all(
            person[one.column] is not None
            and (person[one.column] >= one.value if one.which == "least" else person[one.column] <= one.value)
            for one in answers
        )
    ]
    sure = set()
    for one in answers:
        attaining = [i for i in possible if known[i][one.column] == one.value]
        sure |= set(attaining) if len(attaining) == 1 else set()
    assert list(surely_inside(answers, people)) == sorted(sure)


def test_a_column_of_words_has_no_extremes_and_is_not_repeated() -> None:
    people = pa.table({"age": ["canary-31", "40"]})
    with pytest.raises(InputError, match="'age' does not hold numbers") as refusal:
        AnswerIntersection().run(View([Extreme("age", 40)], None), people)
    assert "canary" not in str(refusal.value) and refusal.value.__cause__ is None
    assert candidates([Extreme("age", 40)], pa.table({"age": ["31", "40"]})) == (1,)


@pytest.mark.parametrize("people", [None, {"age": [40]}, pa.table({"age": pa.array([], pa.int64())})])
def test_a_table_of_people_is_needed(people: Any) -> None:
    with pytest.raises(InputError, match="table of people"):
        AnswerIntersection().run(View([Extreme("age", 40)], None), people)


@pytest.mark.parametrize("answers", [[], None, [40], pa.table({"age": [40]})])
def test_answers_are_needed(answers: Any) -> None:
    with pytest.raises(InputError, match="at least one answer"):
        AnswerIntersection().run(View(answers, None), pa.table({"age": [40]}))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(MissingColumn, match="weight"):
        candidates([Extreme("weight", 1)], pa.table({"age": [40]}))


@pytest.mark.parametrize(
    "wrong",
    [{"column": 3}, {"value": "31"}, {"value": True}, {"value": float("nan")}, {"value": float("inf")}, {"value": 10**400},
     {"which": "middle"}],
)  # fmt: skip
def test_an_extreme_is_a_finite_number_of_a_column(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Extreme(**{"column": "age", "value": 31, **wrong})
