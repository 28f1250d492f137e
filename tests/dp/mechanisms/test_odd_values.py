"""Values of any size and type: what is a number is held, what is missing counts as missing, and no value is an error."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato import dp
from sfumato.core.errors import ParameterError
from sfumato.core.randomness import default
from sfumato.dp.mechanisms.statistics.records import numbers

HUGE: list[Any] = [
    10**400,
    Fraction(10**400),
    Decimal("1e400"),
    Decimal("1e999999999"),
    math.inf,
    Decimal("inf"),
    np.float32("inf"),
]
MISSING: list[Any] = [None, math.nan, Decimal("nan"), Decimal("snan"), np.float16("nan"), np.float32("nan"), np.longdouble("nan")]
PLAIN: list[Any] = [2, 2.0, Decimal(2), Fraction(2), np.int8(2), np.uint64(2), np.float32(2), np.longdouble(2), np.bool_(True)]

NEGATIVE = [entry.copy_negate() if isinstance(entry, Decimal) else -entry for entry in HUGE]
EVERY = [*HUGE, *NEGATIVE, *MISSING, *PLAIN]

LISTED = {
    "Median": dp.Median(0, 10, 1),
    "NoisyAverage": dp.NoisyAverage(0, 10, 1),
    "Histogram": dp.Histogram(edges=(0, 5, 10), epsilon=1),
    "Variance": dp.Variance(0, 10, 1),
    "Covariance": dp.Covariance(((0, 10),), 1),
}
SINGLE = {
    "Laplace": dp.Laplace(sensitivity=1, epsilon=1),
    "Gaussian": dp.Gaussian(sensitivity=1, epsilon=1, delta="1e-6"),
    "BoundedLaplace": dp.BoundedLaplace(0, 10, sensitivity=1, epsilon=1, steps=100),
    "TruncatedGeometric": dp.TruncatedGeometric(tuple(range(11)), epsilon=1),
}


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("value", EVERY, ids=range(len(EVERY)))
def test_no_number_in_a_list_is_an_error(name: str, value: Any) -> None:
    mechanism: Any = LISTED[name]
    rows = [[1], [value]] if name == "Covariance" else [1, value]
    mechanism.answer(rows, default("odd values"))


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("value", EVERY, ids=range(len(EVERY)))
def test_no_single_number_is_an_error(name: str, value: Any) -> None:
    mechanism: Any = SINGLE[name]
    assert math.isfinite(mechanism.answer(value, default("odd values")))


@pytest.mark.parametrize("name", SINGLE)
def test_all_forms_of_a_number_are_answered_alike(name: str) -> None:
    mechanism: Any = SINGLE[name]
    for alike in (HUGE[:4] if name in ("Laplace", "Gaussian") else HUGE, MISSING, PLAIN[:-1]):
        assert len({mechanism.answer(value, default("alike")) for value in alike}) == 1


def test_numbers_are_held_or_missing_and_others_are_refused_by_type() -> None:
    assert numbers([1, 10**400, -(10**400), None, Decimal("snan")]).tolist()[:3] == [1, math.inf, -math.inf]
    assert np.isnan(numbers([1, 10**400, None, Decimal("snan")])[2:]).all()
    for wrong in (
        ["1"],
        ["abc"],
        [1, "1"],
        [1, 10**400, "1"],
        [1j],
        [[1], [1, 2]],
        [1, object()],
        np.array(["2020-01-01"], "M8[D]"),
    ):
        with pytest.raises(ParameterError, match="must be numbers") as refused:
            numbers(wrong)
        assert "abc" not in str(refused.value)
    for text in ("1", "abc"):
        with pytest.raises(ParameterError, match="number"):
            dp.Laplace(sensitivity=1, epsilon=1).answer(text, default("text"))  # type: ignore[arg-type]


def test_a_record_that_is_no_category_is_not_counted_whatever_it_is() -> None:
    histogram = dp.Histogram(categories=("a", "b"), epsilon=1)
    assert histogram.counts(["a", ["a"], {}, None, 1, "b", "b"]).tolist() == [1, 2]


def test_whole_numbers_of_any_size_are_held_and_never_wrapped() -> None:
    geometric = dp.Geometric(sensitivity=1, epsilon=1)
    for large in ([1, 10**400], [1, 2**63], np.array([1, 2**63], np.uint64)):
        assert geometric.answer(large, default("large"))[1] > 2**61
    for wrong in ([1, 2.0], [1, "2"], np.array([1.0]), [True]):
        with pytest.raises(ParameterError, match="whole numbers"):
            geometric.answer(wrong, default("wrong"))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["accumulated", "renormalised"])
@pytest.mark.parametrize("sensitivity", [1, 2, 3, 12])
@pytest.mark.parametrize("domain", [tuple(range(6)), tuple(range(5, -1, -1)), (0.0, 1.0, 2.0, 3.0)])
def test_truncated_geometric_keeps_its_loss_inside_and_outside_its_domain(domain: Any, sensitivity: int, form: Any) -> None:
    mechanism = dp.TruncatedGeometric(domain, ratio="1/2", sensitivity=sensitivity, form=form)
    values = [*range(-4, 12), 10**400 // 10**398, 0.5, 2.75, 5.25, 7.5]
    worst = 0.0
    for one, two in itertools.product(values, repeat=2):
        if abs(one - two) <= sensitivity:
            first, second = mechanism.law(one), mechanism.law(two)
            worst = max(worst, *(abs(math.log(first[entry] / second[entry])) for entry in domain))
    assert worst <= float(mechanism.loss().epsilon) * (1 + 1e-12)


def test_truncated_geometric_moves_a_number_to_the_nearer_end() -> None:
    rising, falling = (dp.TruncatedGeometric(domain, ratio="1/2") for domain in ((0, 1, 2), (2, 1, 0)))
    for mechanism in (rising, falling):
        for value, entry in ((3, 2), (10**400, 2), (math.inf, 2), (-1, 0), (-math.inf, 0), (1.5, 1)):
            assert mechanism.law(value) == mechanism.law(entry)
        assert mechanism.law(math.nan) == mechanism.law(mechanism.domain[0])


@pytest.mark.parametrize("domain", [("low", "middle", "high"), (3, 1, 2)])
def test_truncated_geometric_without_a_scale_refuses_what_is_no_entry(domain: Any) -> None:
    mechanism = dp.TruncatedGeometric(domain, epsilon=1)
    assert mechanism.answer(domain[0], default("entry")) in domain
    for other in ("unknown", 7, None, ["low"]):
        with pytest.raises(ParameterError, match="not in the declared domain"):
            mechanism.answer(other, default("other"))  # type: ignore[arg-type]
