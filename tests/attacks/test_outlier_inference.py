"""How visible one extreme person is in a mean or a regression."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato import attacks
from sfumato.attacks.outputs.outlier_inference import (
    OutlierInference,
    TypicalPeople,
    _mean_shifts,
    _regression_shifts,
    value_behind_jump,
)
from sfumato.core.errors import InputError, ParameterError
from sfumato.core.view import View
from sfumato.lessons.regression_leak import MILLIONAIRE, generated_incomes, least_squares

VILLAGE = [[income] for income in (1000.0, 2000, 3000, 2000, 1000, 6000, 2000, 10000, 2000, 4000)]


def test_the_mean_of_a_village_tells_that_a_rich_person_moved_in() -> None:
    known = TypicalPeople(VILLAGE, [[100_000.0]], count=11, present=[True])
    found = attacks.OutlierInference().run(View([12090.909], None), known)
    assert (found.success, found.baseline, found.details["called_present"]) == (1.0, 0.5, 1)
    assert found.details["expected_success"] > 0.999
    # (12090.909 - 3300) over the standard deviation of the difference of two means, by hand
    deviation = np.std([row[0] for row in VILLAGE], ddof=1) * np.sqrt(1 / 11 + 1 / 10)
    assert found.details["largest_shift_seen"] == pytest.approx((12090.909 - 3300) / deviation, rel=1e-6)
    absent = TypicalPeople(VILLAGE, [[100_000.0]], count=11, present=[False])
    assert OutlierInference().run(View([3300.0], None), absent).success == 1.0


def test_an_ordinary_person_does_not_show() -> None:
    found = OutlierInference().run(View([3300.0], None), TypicalPeople(VILLAGE, [[3500.0]], count=1000))
    assert found.success == pytest.approx(0.5, abs=0.001)
    same = OutlierInference().presence([3300.0], TypicalPeople(VILLAGE, [[3300.0]], count=1000))
    assert (same.z[0], same.expected[0], same.posterior[0]) == (0.0, 0.0, 0.5)


def test_the_jump_of_a_mean_is_the_person() -> None:
    assert value_behind_jump(3300, 133_000 / 11, 10) == pytest.approx(100_000)


def test_a_regression_betrays_the_millionaire() -> None:
    people = generated_incomes()
    published = least_squares([*people, MILLIONAIRE])
    found = OutlierInference("regression").run(View(published, None), TypicalPeople(people, [MILLIONAIRE], len(people) + 1))
    assert found.success > 0.999
    without = OutlierInference("regression").presence(
        least_squares(people), TypicalPeople(people, [MILLIONAIRE], len(people) + 1)
    )
    assert without.posterior[0] < 0.001


def test_shifts_are_those_of_fitting_again_with_the_person() -> None:
    rng = np.random.default_rng(1)
    people, person = rng.normal(size=(30, 4)), rng.normal(size=(2, 4)) * 3
    fitted, shifts, _ = _regression_shifts(people, person, 31)
    for shift, one in zip(shifts, person, strict=True):
        together = np.vstack([people, one])
        again = np.linalg.lstsq(np.column_stack([np.ones(31), together[:, :-1]]), together[:, -1], rcond=None)[0]
        assert fitted + shift == pytest.approx(again)
    centre, moved, _ = _mean_shifts(people, person, 31)
    assert centre + moved[0] == pytest.approx(np.vstack([people, person[:1]]).mean(axis=0))


@pytest.mark.parametrize("output", ["mean", "regression"])
def test_without_the_person_z_is_standard_normal_and_with_it_shifted_as_expected(output: str) -> None:
    """2 000 runs: 6 standard errors of a mean are 0.14, of a standard deviation 0.1; wrong alarm below 10^-8."""
    rng = np.random.default_rng(2)
    person = np.array([[1.0, 4.0, 25.0]])
    attack = OutlierInference(output)  # type: ignore[arg-type]

    def drawn(count: int) -> np.ndarray:
        x = rng.normal(size=(count, 2))
        return np.column_stack([x, x @ [1.0, 2.0] + rng.normal(size=count)])

    def published(rows: np.ndarray) -> np.ndarray:
        if output == "mean":
            return rows.mean(axis=0)
        return np.linalg.lstsq(np.column_stack([np.ones(len(rows)), rows[:, :-1]]), rows[:, -1], rcond=None)[0]

    z = np.empty((2, 2000))
    expected = np.empty(2000)
    for run in range(2000):
        typical, others = drawn(400), drawn(400)
        known = TypicalPeople(typical, person, 401)
        z[0, run] = attack.presence(published(others), known).z[0]
        seen = attack.presence(published(np.vstack([others, person])), known)
        z[1, run], expected[run] = seen.z[0], seen.expected[0]
    assert abs(z[0].mean()) < 0.14
    assert abs(z[0].std() - 1) < 0.1
    assert abs((z[1] - expected).mean()) < 0.2


def test_what_cannot_be_attacked_is_said() -> None:
    with pytest.raises(InputError, match="TypicalPeople"):
        OutlierInference().run(View([1.0], None))
    with pytest.raises(InputError, match="constant"):
        OutlierInference().run(View([1.0], None), TypicalPeople([[1.0], [1.0]], [[2.0]], 5))
    with pytest.raises(InputError, match="at least two"):
        OutlierInference().run(View([1.0], None), TypicalPeople([[1.0]], [[2.0]], 5))
    with pytest.raises(InputError, match="more people than coefficients"):
        OutlierInference("regression").run(View([1.0, 1], None), TypicalPeople([[1.0, 1], [2, 1]], [[2.0, 1]], 5))
    with pytest.raises(InputError, match="follows from the others"):
        OutlierInference("regression").run(View([1.0, 1], None), TypicalPeople([[1.0, 1], [1, 2], [1, 3]], [[2.0, 1]], 5))
    with pytest.raises(InputError, match="without any residual"):
        OutlierInference("regression").run(View([0.0, 0], None), TypicalPeople([[1.0, 0], [2, 0], [3, 0]], [[2.0, 1]], 5))
    with pytest.raises(InputError, match="true or false"):
        OutlierInference().run(View([1.0], None), TypicalPeople(VILLAGE, [[2.0]], 5, present=[1, 0]))
    with pytest.raises(ParameterError):
        TypicalPeople(VILLAGE, VILLAGE, 1)
    with pytest.raises(ParameterError):
        OutlierInference("median")  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        value_behind_jump(1, 2, 0)
