"""The audit and the witnesses: what a table with blanks says, to whom, and how anybody can check it."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InputError, Unsupported
from sfumato.tables.audit.auditing import audit
from sfumato.tables.audit.witnesses import witnesses
from sfumato.tables.suppression.suppress import suppress
from sfumato.tables.system import LinearSystem, SuppressionProblem
from tests.examples import examples
from tests.tables.test_suppression import PLACES, salaries, with_margins


def pattern_of(*places: tuple[int, int]) -> np.ndarray:
    pattern = np.zeros((4, 6), dtype=bool)
    pattern[tuple(zip(*places, strict=True))] = True
    return pattern.ravel()


@pytest.mark.golden("G-TAB-04")
def test_one_blank_alone_is_no_protection() -> None:
    answer = audit(salaries({(1, 2): 5}), pattern_of((1, 2)))
    assert not answer.safe
    assert (answer.low.tolist(), answer.high.tolist()) == ([22], [22])
    assert [(each.cell, each.group, each.why) for each in answer.broken] == [(8, -1, "is determined exactly")]


@pytest.mark.golden("G-TAB-05")
def test_the_intervals_of_the_printed_pattern() -> None:
    answer = audit(salaries({(1, 2): 5}), pattern_of((0, 2), (0, 4), (1, 2), (1, 4)))
    assert answer.safe and answer.exact.all()
    assert answer.cells.tolist() == [2, 4, 8, 10]
    assert list(zip(answer.low, answer.high, strict=True)) == [(400, 742), (338, 680), (0, 342), (0, 342)]


def test_a_sensitive_cell_that_is_published_is_broken() -> None:
    answer = audit(salaries(PLACES), pattern_of((1, 2), (1, 4), (2, 2), (2, 4)))
    assert [(each.cell, each.why) for each in answer.broken] == [
        (0, "is published"),
        (16, "cannot be far enough below its value"),
    ]
    assert (answer.broken[1].low, answer.broken[1].high) == (341, 683)


def test_what_an_earlier_version_showed_is_no_blank() -> None:
    problem = salaries({(1, 2): 5})
    now, before = pattern_of((1, 2), (1, 4), (2, 2), (2, 4)), pattern_of((0, 2), (0, 4), (1, 2), (1, 4))
    assert audit(problem, now).safe and audit(problem, before).safe
    assert not audit(problem, now, earlier=[before]).safe


def test_rounded_totals_leave_a_blank_open_by_as_much_as_they_hide() -> None:
    system, values, cells = with_margins(np.array([[12, 31], [41, 27]]))
    primary = np.arange(values.size) == 0
    problem = SuppressionProblem.of(system, values, primary, lower=2.0, upper=2.0)
    rounded = 10.0 * np.round(values / 10)
    margins = np.ones(cells.shape, dtype=bool)
    margins[:2, :2] = False
    low, high = (np.where(margins.ravel(), rounded + side * 5, values) for side in (-1, 1))
    assert not audit(problem, primary).safe
    answer = audit(problem, primary, between=(low, high))
    assert answer.safe
    assert (answer.low[0], answer.high[0]) == (6, 14)  # the totals are 35 to 45, 45 to 55 and 105 to 115
    assert answer.sums == ()
    wide = dataclasses.replace(problem, upper=np.where(primary, 6.0, 0.0))
    assert not audit(wide, primary, between=(low, high)).safe


def test_counts_that_add_up_to_one_are_told_apart_in_whole_numbers() -> None:
    # Blanks a + b = 1, b + c = 1, a + c = 2: in whole numbers and in fractions a = 1; with d the fractions stay open.
    system = LinearSystem.of([(4, [0, 1]), (5, [1, 2]), (6, [0, 2, 3, 3 + 4])], 8)
    values = np.array([1, 0, 1, 0, 1, 1, 2, 0])
    suppressed = np.array([True, True, True, False, False, False, False, False])
    problem = SuppressionProblem.of(system, values, suppressed, whole=True)
    assert {each.cell for each in audit(problem, suppressed).broken} == {0, 1, 2}
    # 2a + … : three blanks of which each pair adds up to a blank that lies between 0 and 1 is half open in fractions only
    halves = LinearSystem.of([(3, [0, 1]), (4, [1, 2]), (5, [0, 2])], 6)
    counts = np.array([0, 1, 0, 1, 1, 0])
    blank = np.array([True, True, True, False, False, True])
    open_total = SuppressionProblem.of(halves, counts, np.arange(6) == 0, known_high=np.array([9, 9, 9, 9, 9, 1.0]))
    assert audit(open_total, blank).safe  # a = c = 1/2 is possible
    assert not audit(dataclasses.replace(open_total, whole=True), blank).safe


def test_sums_of_blanks_that_the_table_determines_are_listed() -> None:
    answer = suppress(salaries(PLACES))
    sums = {tuple(each.cells.tolist()) for each in answer.audit.sums}
    assert (8, 10) in sums  # both blanks of the second row


def published(problem: SuppressionProblem, suppressed: np.ndarray) -> np.ndarray:
    return np.where(suppressed, np.nan, problem.values)


def test_witnesses_add_up_reach_the_ends_and_see_the_published_table_alone() -> None:
    problem = salaries(PLACES)
    suppressed = suppress(problem).suppressed
    shown = published(problem, suppressed)
    tables = witnesses(shown, suppressed, problem.system)
    tables.refuse_wrong(shown, problem.system)
    ends = [(int(low), int(high)) for low, high in tables.ends()]
    assert ends == [(0, 720), (0, 720), (0, 342), (0, 342), (362, 1082), (55, 397), (0, 1043)]
    for hidden in (0, 7919):
        other = witnesses(np.where(suppressed, hidden, problem.values), suppressed, problem.system)
        assert (other.tables == tables.tables).all()
    wrong = dataclasses.replace(tables, tables=tables.tables + np.eye(*tables.tables.shape, dtype=np.int64))
    with pytest.raises(InputError, match="does not add up"):
        wrong.refuse_wrong(shown, problem.system)
    with pytest.raises(InputError, match="outside what is known"):
        tables.refuse_wrong(shown, problem.system, known_high=700.0)


def test_witnesses_of_numbers_with_decimals_are_exact() -> None:
    system, values, cells = with_margins(np.array([[1.1, 2.2, 0.3], [3.3, 0.7, 1.9]]))
    suppressed = np.zeros(cells.shape, dtype=bool)
    suppressed[:2, :2] = True
    shown = np.where(suppressed.ravel(), np.nan, values)
    tables = witnesses(shown, suppressed.ravel(), system)
    tables.refuse_wrong(shown, system)
    assert tables.unit == 10
    assert all(low < high for low, high in tables.ends())
    with pytest.raises(Unsupported, match="fixed number of decimals"):
        witnesses(shown / 3, suppressed.ravel(), system)


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=examples(8))
def test_witnesses_of_three_dimensions_agree_with_the_published_table(seed: int) -> None:
    generator = np.random.default_rng(seed)
    system, values, cells = with_margins(generator.integers(0, 9, (3, 3, 2)))
    suppressed = generator.random(values.size) < 0.5
    shown = np.where(suppressed, np.nan, values)
    tables = witnesses(shown, suppressed, system)
    tables.refuse_wrong(shown, system)
    problem = SuppressionProblem.of(system, values, np.zeros(values.size, dtype=bool))
    seen = audit(problem, suppressed, exact=True)
    for (low, high), least, most in zip(tables.ends(), seen.low, seen.high, strict=True):
        assert least - 1e-6 <= low <= high <= most + 1e-6


def test_ends_are_those_of_all_tables_counted_out() -> None:
    system, values, cells = with_margins(np.array([[1, 2], [2, 1]]))
    inner = cells[:2, :2].ravel()
    suppressed = np.isin(np.arange(values.size), inner)
    problem = SuppressionProblem.of(system, values, suppressed, whole=True)
    tables = [
        table
        for table in itertools.product(range(5), repeat=4)
        if not system.residuals(np.array([*table[:2], 3, *table[2:], 3, 3, 3, 6])).any()
    ]
    answer = audit(problem, suppressed)
    assert answer.low.tolist() == np.min(tables, axis=0).tolist()
    assert answer.high.tolist() == np.max(tables, axis=0).tolist()
