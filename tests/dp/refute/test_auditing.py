"""Auditing of exact sums: the decision is exact, and about the questions alone."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError

PEOPLE = tuple("abcdef")
queries = st.lists(st.sets(st.sampled_from(PEOPLE), min_size=1), min_size=1, max_size=7)
weighted = st.lists(st.dictionaries(st.sampled_from(PEOPLE), st.integers(-3, 3).filter(bool), min_size=1), min_size=1, max_size=6)


def spans(vectors: list[list[F]], target: list[F]) -> bool:
    """Whether the target is a combination of the vectors: plain elimination on the side."""

    def rank(rows: list[list[F]]) -> int:
        rows, found = [list(row) for row in rows], 0
        for column in range(len(target)):
            pivot = next((i for i in range(found, len(rows)) if rows[i][column]), None)
            if pivot is None:
                continue
            rows[found], rows[pivot] = rows[pivot], rows[found]
            for i in range(found + 1, len(rows)):
                factor = rows[i][column] / rows[found][column]
                rows[i] = [one - factor * two for one, two in zip(rows[i], rows[found], strict=True)]
            found += 1
        return found

    return rank([*vectors, target]) == rank(vectors)


def vector(query: dict[str, int]) -> list[F]:
    return [F(query.get(person, 0)) for person in PEOPLE]


def unit(person: str) -> list[F]:
    return [F(int(person == other)) for other in PEOPLE]


@given(weighted)
def test_a_value_follows_exactly_when_its_unit_vector_is_spanned(asked: list[dict[str, int]]) -> None:
    expected = {person for person in PEOPLE if spans([vector(query) for query in asked], unit(person))}
    decision = sf.dp.audit(asked)
    assert {found.person for found in decision.disclosures} == expected
    assert decision.allowed == (not expected)


@given(weighted, st.lists(st.integers(-100, 100), min_size=6, max_size=6))
def test_the_stated_combination_yields_the_value(asked: list[dict[str, int]], values: list[int]) -> None:
    held = dict(zip(PEOPLE, values, strict=True))
    answers = [sum(weight * held[person] for person, weight in query.items()) for query in asked]
    for found in sf.dp.audit(asked).disclosures:
        assert sum(factor * answers[number] for number, factor in found.combination) == held[found.person]  # type: ignore[index]


@given(queries)
def test_what_is_answered_online_never_gives_a_value_away(asked: list[set[str]]) -> None:
    auditor = sf.dp.SumAuditor()
    answered = [query for query in asked if auditor.answer(query).allowed]
    assert auditor.answered == len(answered)
    assert sf.dp.audit(answered).allowed if answered else True


@given(queries)
def test_asking_again_is_always_allowed(asked: list[set[str]]) -> None:
    auditor = sf.dp.SumAuditor()
    for query in asked:
        if auditor.answer(query).allowed:
            rank = auditor.rank
            assert auditor.answer(query).allowed and auditor.rank == rank


def test_the_difference_of_two_sums_is_refused() -> None:
    auditor = sf.dp.SumAuditor()
    assert auditor.answer(["ada", "ben", "cem"]).allowed
    decision = auditor.decide(["ada", "ben"])
    assert not decision.allowed and "cem" not in repr(decision.disclosures)
    assert [found.person for found in decision.disclosures] == ["cem"]
    assert decision.disclosures[0].combination == ((0, F(1)), (1, F(-1)))


def test_the_classic_tracker_is_stopped_at_its_last_sum() -> None:
    """Sets of a forbidden size are avoided by padding with a tracker T: q(C) = q(C or T) + q(C or not T) - q(everyone)."""
    everyone, tracker, target = set(range(20)), set(range(10)), {13}
    auditor = sf.dp.SumAuditor()
    assert auditor.answer(everyone).allowed
    assert auditor.answer(tracker | target).allowed
    assert not auditor.answer(everyone - tracker | target).allowed
    together = sf.dp.audit([everyone, tracker | target, everyone - tracker | target])
    assert [found.person for found in together.disclosures] == [13]


def test_three_overlapping_pairs_give_everybody_away() -> None:
    assert {found.person for found in sf.dp.audit([("a", "b"), ("b", "c"), ("a", "c")]).disclosures} == {"a", "b", "c"}


def test_people_the_outsider_knows_protect_nobody() -> None:
    assert sf.dp.SumAuditor().answer(["me", "you"]).allowed
    insider = sf.dp.SumAuditor(known=["me"])
    assert not insider.answer(["me", "you"]).allowed
    assert insider.answer(["me"]).allowed and insider.answer(["you", "them", "me"]).allowed


@pytest.mark.parametrize("query", [[], ["a", "a"], {"a": 0}, {"a": float("nan")}])
def test_what_is_no_sum_is_refused(query: object) -> None:
    with pytest.raises(ParameterError):
        sf.dp.SumAuditor().answer(query)  # type: ignore[arg-type]
