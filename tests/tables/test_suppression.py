"""Secondary suppression: golden cases, exact methods against each other, and every pattern against a brute-force audit."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.core.errors import Infeasible, InputError, ParameterError
from sfumato.tables.audit.auditing import audit
from sfumato.tables.suppression.suppress import METHODS, suppress
from sfumato.tables.system import LinearSystem, SuppressionProblem
from tests.examples import examples

SALARIES = np.array([[360, 450, 720, 400, 360], [1440, 540, 22, 570, 320], [722, 1178, 375, 800, 363]])
PLACES = {(1, 2): 5, (0, 0): 36, (2, 4): 36}


def with_margins(inner: np.ndarray) -> tuple[LinearSystem, np.ndarray, np.ndarray]:
    """A table of any number of dimensions with all its margins: the system, the values, and the numbers of the cells."""
    values = inner
    for axis in range(inner.ndim):
        values = np.concatenate([values, values.sum(axis=axis, keepdims=True)], axis=axis)
    cells = np.arange(values.size).reshape(values.shape)
    equations = []
    for axis in range(inner.ndim):
        lines = np.moveaxis(cells, axis, -1).reshape(-1, values.shape[axis])
        equations += [(int(line[-1]), line[:-1].tolist()) for line in lines]
    return LinearSystem.of(equations, values.size), values.ravel(), cells


def salaries(sensitive: dict[tuple[int, int], int], weights: np.ndarray | float | None = None) -> SuppressionProblem:
    system, values, cells = with_margins(SALARIES)
    fixed = np.ones(cells.shape, dtype=bool)
    fixed[:3, :5] = False
    levels = np.zeros(cells.shape)
    for place, level in sensitive.items():
        levels[place] = level
    return SuppressionProblem.of(
        system,
        values,
        levels.ravel() > 0,
        fixed=fixed.ravel(),
        weights=values if weights is None else weights,
        known_high=100_000.0,
        lower=levels.ravel(),
        upper=levels.ravel(),
    )


def blanks(suppressed: np.ndarray) -> list[tuple[int, int]]:
    return [(int(row), int(column)) for row, column in np.argwhere(suppressed.reshape(4, 6))]


def brute_force(problem: SuppressionProblem, suppressed: np.ndarray) -> list[int]:
    """The sensitive cells that are not as open as asked: two programmes each over the whole table, for everybody in it."""
    matrix = np.zeros((problem.system.equations, problem.system.size))
    matrix[problem.system.rows, problem.system.cells] = problem.system.signs
    closed = []
    for known in ((), *problem.singles):
        fixed = ~suppressed
        fixed[list(known)] = True
        bounds = [
            (value, value) if shut else (low, None if np.isinf(high) else high)
            for value, shut, low, high in zip(problem.values, fixed, problem.known_low, problem.known_high, strict=True)
        ]
        for cell in np.flatnonzero(problem.primary):
            if cell in known:
                continue
            ends = []
            for side in (1, -1):
                aim = np.zeros(problem.system.size)
                aim[cell] = -side
                answer = linprog(aim, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds, method="highs")
                ends.append(np.inf if answer.status == 3 else side * (answer.x[cell] - problem.values[cell]))
            up, down = ends
            if up < problem.upper[cell] - 1e-6 or down < problem.lower[cell] - 1e-6 or up + down < problem.spread[cell] - 1e-6:
                closed.append(int(cell))
    return closed


@pytest.mark.golden("G-TAB-06")
@pytest.mark.parametrize("method", [method for method in METHODS if method != "flow"])
def test_the_cheapest_pattern_of_the_salary_table(method: str) -> None:
    answer = suppress(salaries({(1, 2): 5}), method)  # type: ignore[arg-type]
    assert blanks(answer.suppressed) == [(1, 2), (1, 4), (2, 2), (2, 4)]
    assert (answer.cost, answer.bound, answer.gap) == (1080, pytest.approx(1080), 0)


@pytest.mark.golden("G-TAB-06")
def test_the_printed_pattern_is_safe_and_dearer() -> None:
    problem = salaries({(1, 2): 5})
    printed = np.zeros((4, 6), dtype=bool)
    printed[[0, 0, 1, 1], [2, 4, 2, 4]] = True
    assert audit(problem, printed.ravel()).safe
    assert problem.weights[printed.ravel()].sum() == 1422


@pytest.mark.golden("G-TAB-07")
def test_four_blanks_suffice_for_one_cell_and_no_fewer() -> None:
    problem = salaries({(1, 2): 5}, weights=1.0)
    assert suppress(problem, "cuts").cost == suppress(problem, "full").cost == 4
    others = [place for place in itertools.product(range(3), range(5)) if place != (1, 2)]
    safe = []
    for chosen in itertools.combinations(others, 3):
        pattern = np.zeros((4, 6), dtype=bool)
        pattern[tuple(zip((1, 2), *chosen, strict=True))] = True
        safe += [chosen] if audit(problem, pattern.ravel()).safe else []
    assert len(safe) == 8


@pytest.mark.golden("G-TAB-08")
@pytest.mark.parametrize("method", ["full", "cuts"])
def test_three_sensitive_cells_of_the_salary_table(method: str) -> None:
    answer = suppress(salaries(PLACES), method)  # type: ignore[arg-type]
    assert blanks(answer.suppressed) == [(0, 0), (0, 4), (1, 2), (1, 4), (2, 0), (2, 2), (2, 4)]
    assert (answer.cost, answer.gap) == (2522, 0)
    ends = list(zip(answer.audit.low.tolist(), answer.audit.high.tolist(), strict=True))
    assert ends == [(0, 720), (0, 720), (0, 342), (0, 342), (362, 1082), (55, 397), (0, 1043)]
    assert suppress(salaries(PLACES, weights=1.0), method).cost == 7  # type: ignore[arg-type]


@st.composite
def small_problems(draw: st.DrawFn) -> SuppressionProblem:
    shape = draw(st.sampled_from([(3, 3), (3, 4), (4, 4), (2, 3, 2)]))
    seed = draw(st.integers(0, 10_000))
    generator = np.random.default_rng(seed)
    system, values, cells = with_margins(generator.integers(0, 30, shape))
    inner = cells[tuple(slice(0, size) for size in shape)].ravel()
    primary = np.zeros(values.size, dtype=bool)
    primary[generator.choice(inner, draw(st.integers(1, 2)), replace=False)] = True
    lower = np.where(primary, np.minimum(values, generator.integers(0, 6, values.size)), 0)
    upper = np.where(primary, generator.integers(0, 6, values.size), 0)
    sliding = np.where(primary, lower + upper + generator.integers(-2, 3, values.size), 0).clip(0)
    singles = [np.array([int(generator.choice(np.flatnonzero(primary)))])] if draw(st.booleans()) else []
    return SuppressionProblem.of(
        system,
        values,
        primary,
        weights=generator.integers(1, 20, values.size).astype(float),
        known_high=(values + generator.integers(10, 40, values.size)).astype(float),
        lower=lower,
        upper=upper,
        sliding=sliding,
        singles=singles,
    )


@pytest.mark.slow
@given(small_problems())
@settings(deadline=None, max_examples=examples(8))
def test_every_pattern_passes_a_brute_force_audit_and_cuts_equal_the_full_programme(problem: SuppressionProblem) -> None:
    try:
        answers = {method: suppress(problem, method) for method in ("full", "cuts", "lp", "modular")}  # type: ignore[arg-type]
    except Infeasible:
        assert brute_force(problem, ~problem.fixed)
        return
    for method, answer in answers.items():
        assert not brute_force(problem, answer.suppressed), method
        assert answer.bound <= answers["full"].cost + 1e-6, method
        assert answer.cost >= answers["full"].cost - 1e-6, method
    assert answers["cuts"].cost == pytest.approx(answers["full"].cost)
    assert answers["cuts"].proved


@given(small_problems())
@settings(deadline=None, max_examples=examples(8))
def test_the_audit_agrees_with_brute_force_on_any_pattern(problem: SuppressionProblem) -> None:
    generator = np.random.default_rng(int(problem.values.sum()))
    pattern = problem.primary | (generator.random(problem.system.size) < 0.5)
    broken = {each.cell for each in audit(problem, pattern).broken}
    assert broken == set(brute_force(problem, pattern))


def test_a_contributor_who_knows_a_blank_cell_is_an_adversary_too() -> None:
    problem = salaries({(1, 2): 5, (2, 2): 20})
    alone = suppress(problem, "cuts")
    knowing = dataclasses.replace(problem, singles=(np.array([8]),))
    assert not audit(knowing, alone.suppressed).safe
    for method in ("cuts", "full", "lp"):
        answer = suppress(knowing, method)  # type: ignore[arg-type]
        assert answer.audit.safe
        assert not brute_force(knowing, answer.suppressed)
        assert answer.cost > alone.cost
    assert suppress(knowing, "cuts").cost == suppress(knowing, "full").cost


def test_two_dimensions_by_cycles_are_safe_and_near_the_optimum() -> None:
    generator = np.random.default_rng(5)
    system, values, cells = with_margins(generator.integers(1, 60, (12, 12)))
    primary = np.zeros(values.size, dtype=bool)
    primary[generator.choice(cells[:12, :12].ravel(), 8, replace=False)] = True
    levels = np.where(primary, np.ceil(0.15 * values), 0)
    problem = SuppressionProblem.of(
        system, values, primary, weights=values, known_high=2.0 * values + 10, lower=levels, upper=levels
    )
    best = suppress(problem)
    assert best.proved
    assert not brute_force(problem, best.suppressed)
    for method in ("flow", "lp"):
        answer = suppress(problem, method)  # type: ignore[arg-type]
        assert not brute_force(problem, answer.suppressed)
        assert answer.cost <= 1.10 * best.cost
    again = suppress(problem)
    assert (again.suppressed == best.suppressed).all()


def test_cells_that_stay_published_are_not_blank_and_what_nothing_protects_is_refused_by_name() -> None:
    problem = salaries({(1, 2): 5})
    fixed = problem.fixed.copy()
    fixed[[14, 16]] = True  # the third row of the cheapest pattern
    answer = suppress(dataclasses.replace(problem, fixed=fixed))
    assert not answer.suppressed[fixed].any()
    fixed[:] = True
    fixed[8] = False
    with pytest.raises(Infeasible, match="row 1, column 2"):
        suppress(dataclasses.replace(problem, fixed=fixed), name_of=lambda cell: f"row {cell // 6}, column {cell % 6}")


def test_levels_beyond_what_an_adversary_knows_are_refused_all_at_once() -> None:
    problem = salaries(PLACES)
    upper = np.where(problem.primary, 200_000.0, 0.0)
    with pytest.raises(InputError, match="3 faults") as error:
        suppress(dataclasses.replace(problem, upper=upper))
    assert "beyond what an adversary knows" in str(error.value)
    assert all(str(value) not in str(error.value) for value in (22, 360, 363))


def test_counts_are_open_in_whole_numbers() -> None:
    generator = np.random.default_rng(3)
    system, values, cells = with_margins(generator.integers(0, 9, (4, 4, 3)))
    primary = np.zeros(values.size, dtype=bool)
    inner = cells[:4, :4, :3].ravel()
    primary[inner[(values[inner] > 0) & (values[inner] < 3)]] = True
    problem = SuppressionProblem.of(system, values, primary, lower=primary * 1.0, upper=primary * 1.0, whole=True)
    answer = suppress(problem)
    assert answer.audit.whole
    assert (answer.audit.low % 1 == 0).all() and (answer.audit.high % 1 == 0).all()
    assert not brute_force(problem, answer.suppressed)


def test_a_method_for_two_dimensions_refuses_three() -> None:
    system, values, cells = with_margins(np.ones((2, 2, 2), dtype=np.int64))
    problem = SuppressionProblem.of(system, values, np.arange(values.size) == 0)
    with pytest.raises(ParameterError, match="two dimensions"):
        suppress(problem, "flow")
