"""Rules of sensitivity, by hand and by what their levels promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import registry
from sfumato.core.errors import InputError, ParameterError
from sfumato.tables import PQ, Contributions, Dominance, MinimumFrequency, PPercent
from sfumato.tables.sensitivity import SensitivityRule, sensitive_cells
from tests.tables.salaries import salary_cube

WAGES = st.lists(st.integers(1, 1_000), min_size=1, max_size=12)


@pytest.mark.golden("G-TAB-03")
def test_the_salary_of_350_dominates_its_cell() -> None:
    cell = Contributions.of([[350, 5, 4, 2, 2]])
    assert Dominance(1, 0.6).sensitive(cell).tolist() == [True]
    assert Dominance(1, 0.6).excess(cell) / 363 + 0.6 == pytest.approx(0.9642, abs=1e-4)
    assert PPercent(10).sensitive(Contributions.of([[350, 13]])).tolist() == [True]


@pytest.mark.golden("G-TAB-10")
def test_the_prior_posterior_rule_on_three_cells() -> None:
    cells = Contributions.of([[50, 30, 10, 10], [90, 8, 1, 1]])
    assert PQ(10, 50).sensitive(cells).tolist() == [False, True]
    assert (PQ(10, 50).excess(cells) / 100).tolist() == [5 - 10, 9 - 1]
    large = Contributions(np.array([100_000.0]), np.array([9]), np.array([[50_000.0, 49_000.0]]), np.ones((1, 2)))
    assert PPercent(10).sensitive(large).tolist() == [True]
    assert Dominance(1, 0.9).sensitive(large).tolist() == [False]


def test_the_status_says_which_rule_fired() -> None:
    cube = salary_cube()
    assert cube.contributions is not None
    sensitive = sensitive_cells(cube.contributions, [MinimumFrequency(3), PPercent(10)])
    assert sensitive.status(cube.cell("M2", "P3")) == "fewer than 3 contributors"
    assert sensitive.status(cube.cell("M3", "P5")) == "the largest contributor within 10 %"
    assert sensitive.status(cube.cell("M2", "P1")) == ""
    assert sensitive.upper[cube.cell("M3", "P5")] == 35 - 8 and sensitive.lower[cube.cell("M2", "P3")] == 7


@given(WAGES, st.sampled_from([Dominance(1, 0.6), Dominance(2, 0.75), PPercent(10), PPercent(40), PQ(10, 50)]))
def test_a_total_at_its_upper_level_is_no_longer_sensitive(wages: list[int], rule: SensitivityRule) -> None:
    """The level is the least one: at a unit below, the rule still fires."""
    cell = Contributions.of([wages])
    level = float(rule.upper(cell)[0])
    assert (level > 1e-9) == bool(rule.sensitive(cell)[0]) or abs(level) < 1e-9

    def believed(total: float) -> float:
        held = Contributions(np.array([total]), cell.count, cell.largest, cell.weights)
        return float(rule.excess(held)[0])

    if level > 1:
        assert believed(cell.totals[0] + level) <= 1e-6 < believed(cell.totals[0] + level - 1)


@given(WAGES, st.integers(2, 5))
def test_a_weight_counts_like_repeated_contributors(wages: list[int], times: int) -> None:
    wages = sorted(wages, reverse=True)[:4]
    repeated = Contributions.of([[wage for wage in wages for _ in range(times)]], keep=24)
    top = np.zeros((1, 4))
    top[0, : len(wages)] = wages
    weighted = Contributions(repeated.totals, repeated.count, top, np.full((1, 4), float(times)))
    for contributors in (1, 2, 3, 4):
        assert weighted.leading(contributors) == repeated.leading(contributors)


def test_an_empty_cell_is_never_sensitive() -> None:
    cells = Contributions.of([[], [5]])
    for rule in (MinimumFrequency(3), Dominance(1, 0.5), PPercent(10), PQ(10, 50)):
        assert rule.sensitive(cells).tolist() == [False, True]


def test_parameters_that_contradict_each_other_and_missing_contributions_are_refused() -> None:
    with pytest.raises(ParameterError, match="p must lie below q"):
        PQ(50, 10)
    with pytest.raises(InputError, match="largest=6"):
        Dominance(6, 0.9).sensitive(Contributions.of([[1, 2]]))
    with pytest.raises(InputError, match="at least one rule"):
        sensitive_cells(Contributions.of([[1]]), [])
    assert registry.find("sensitivity", "PPercent") is PPercent
