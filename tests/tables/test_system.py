"""A table as a linear system: equations, contradictions, and problems that are refused before anything is solved."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.errors import InputError, ParameterError
from sfumato.tables.system import LinearSystem, SuppressionProblem

ROWS = [(0, [1, 2]), (3, [4, 5]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5]), (6, [7, 8])]
VALUES = np.array([10, 4, 6, 21, 1, 20, 31, 5, 26])


def test_every_total_is_an_equation_and_an_additive_table_leaves_nothing() -> None:
    system = LinearSystem.of(ROWS, 9)
    assert system.equations == 6
    assert system.residuals(VALUES).tolist() == [0] * 6
    assert (system.matrix @ VALUES == 0).all()
    assert system.residuals(VALUES).dtype == VALUES.dtype


def test_totals_that_do_not_add_up_are_refused_all_at_once_by_their_names_and_without_values() -> None:
    values = VALUES.copy()
    values[4] = 7919
    with pytest.raises(InputError, match="2 faults") as error:
        LinearSystem.of(ROWS, 9).refuse_contradictions(values, "[{}]".format)
    assert "[3]" in str(error.value) and "[7]" in str(error.value)
    assert "7919" not in str(error.value)


def test_rounding_of_floats_is_no_contradiction() -> None:
    values = np.array([0.1 + 0.2, 0.1, 0.2])
    values[0] = 0.3
    LinearSystem.of([(0, [1, 2])], 3).refuse_contradictions(values, str)
    with pytest.raises(InputError):
        LinearSystem.of([(0, [1, 2])], 3).refuse_contradictions(values + np.array([1e-6, 0, 0]), str)


def test_equations_that_name_no_cells_or_the_same_twice_are_refused() -> None:
    with pytest.raises(ParameterError, match="3 faults"):
        LinearSystem.of([(0, []), (0, [1, 1]), (0, [9])], 3)


def test_faults_of_a_problem_are_named_all_at_once() -> None:
    system = LinearSystem.of([(0, [1, 2])], 3)
    problem = SuppressionProblem.of(
        system, np.array([5.0, 2.5, 2.5]), np.array([False, True, True]), fixed=np.array([False, True, False]), known_low=3.0
    )
    with pytest.raises(InputError, match="3 faults") as error:
        problem.refuse_faults("[{}]".format)
    assert "[1] is sensitive and must stay published" in str(error.value)
    assert "[2] lies outside what an adversary is said to know" in str(error.value)
    with pytest.raises(InputError, match="not a whole number"):
        SuppressionProblem.of(system, np.array([5.0, 2.5, 2.5]), np.array([False, True, False]), whole=True).refuse_faults()
    with pytest.raises(InputError, match="no cells"):
        SuppressionProblem.of(LinearSystem.of([], 0), np.zeros(0), np.zeros(0, dtype=bool)).refuse_faults()


def test_a_blank_without_levels_must_still_not_be_determined() -> None:
    problem = SuppressionProblem.of(LinearSystem.of([(0, [1, 2])], 3), np.array([5, 2, 3]), np.array([False, True, False]))
    assert (problem.spread > 0).tolist() == [False, True, False]
    nearly = SuppressionProblem.of(problem.system, problem.values, problem.primary, upper=1e-9)
    assert nearly.spread[1] == problem.spread[1]
