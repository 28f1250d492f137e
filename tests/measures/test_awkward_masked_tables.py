"""Every measure of masked data on tables that invite mistakes: no warning, no NaN, nothing lost where nothing changed, and one
clear error where there is nothing to compare.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import SfumatoError, Unsupported
from sfumato.core.view import Measure
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.measures.utility.classification import Classification
from sfumato.measures.utility.clustering import ClusteringAgreement
from sfumato.measures.utility.divergence import Hellinger, KullbackLeibler
from sfumato.measures.utility.information_loss import InformationLoss
from sfumato.measures.utility.moments import MomentsLoss
from sfumato.measures.utility.probabilistic_loss import ProbabilisticInformationLoss
from sfumato.measures.utility.propensity import PropensityScore
from sfumato.measures.utility.regression import RegressionLoss
from tests.measures.masked_tables import data_like, microdata, synthetic, taken

MEASURES: list[Measure] = [
    ProbabilisticInformationLoss(),
    InformationLoss(),
    MomentsLoss(eigenvalues=True),
    Hellinger(pairs=True),
    KullbackLeibler(pairs=True),
    PropensityScore(),
    PropensityScore(interactions=True),
    PropensityScore(model="tree"),
    ClusteringAgreement(2),
    ClusteringAgreement(2, "fuzzy"),
    RegressionLoss("n"),
    Classification("g", folds=2),
]


def mixed(size: int = 60) -> Microdata:
    """Dates, whole numbers, true and false, a constant, gaps, a category that only a few have."""
    draw = np.random.default_rng(0)
    day = [datetime.date(2000, 1, 1) + datetime.timedelta(days=int(d)) for d in draw.integers(0, 9000, size)]
    return microdata(
        {
            "n": draw.normal(1e6, 1, size),
            "day": pa.array(day),
            "count": pa.array(draw.integers(0, 3, size), mask=draw.random(size) < 0.2),
            "flag": pa.array(draw.random(size) < 0.5),
            "g": pa.array([["a", "b"][i % 2] for i in range(size)], mask=draw.random(size) < 0.1),
            "rare": [f"r{i}" if i < 3 else "common" for i in range(size)],
        }
    )


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: f"{type(measure).__name__}")
def test_nothing_is_lost_where_nothing_changed(measure: Measure) -> None:
    data = mixed()
    assert measure.score(data, data).value == pytest.approx(0, abs=1e-12)


def emptied(data: Microdata, name: str) -> pa.Table:
    table = data.table()
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.nulls(table.num_rows, table.column(name).type))


def flattened(data: Microdata) -> pa.Table:
    """Every column holds its first known value throughout."""
    table = data.table()
    columns = {}
    for name in table.column_names:
        first = next(value for value in table.column(name).to_pylist() if value is not None)
        columns[name] = pa.array([first] * table.num_rows, table.column(name).type)
    return pa.table(columns)


def masks(data: Microdata) -> dict[str, Any]:
    draw = np.random.default_rng(1)
    size = len(data)
    turned = {name: data.table().column(name).take(pa.array(draw.permutation(size))) for name in data.column_names}
    return {
        "a column emptied": emptied(data, "count"),
        "the numbers emptied": emptied(data, "n"),
        "one record throughout": flattened(data),
        "columns shuffled": pa.table(turned),
        "some rows": taken(data, draw.permutation(size)[:40]),
        "rows repeated": taken(data, draw.integers(0, size, 100)),
        "synthetic": synthetic(data, pa.table(turned).slice(0, 30)),
        "far away": data.table().set_column(0, "n", pa.array(draw.normal(-1e9, 1e3, size))),
    }


@pytest.mark.parametrize("name", list(masks(mixed())))
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: f"{type(measure).__name__}")
def test_every_score_is_a_number(measure: Measure, name: str) -> None:
    data = mixed()
    predicted = isinstance(measure, RegressionLoss)
    found = measure.score(data, masks(data)[name])
    assert np.isfinite(found.value)
    assert all(np.isfinite(part) for part in found.parts.values())
    if not isinstance(measure, MomentsLoss | KullbackLeibler | Classification):
        assert -1e-9 <= found.value <= 1
    if predicted and name in ("the numbers emptied", "one record throughout"):
        assert found.value == 1


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: f"{type(measure).__name__}")
def test_an_empty_table_has_nothing_to_compare(measure: Measure) -> None:
    data = mixed()
    with pytest.raises(Unsupported, match="masked table has no records"):
        measure.score(data, data.table().slice(0, 0))
    with pytest.raises(Unsupported, match="original table has no records"):
        measure.score(data_like(data, data.table().slice(0, 0)), data)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: f"{type(measure).__name__}")
def test_one_record_gives_a_number_or_one_clear_error(measure: Measure) -> None:
    data = data_like(mixed(), mixed().table().slice(0, 1).set_column(2, "count", pa.array([1])))
    try:
        assert measure.score(data, data).value == pytest.approx(0, abs=1e-12)
    except Unsupported as refused:
        assert "has no known value" in str(refused) or isinstance(measure, ClusteringAgreement | RegressionLoss | Classification)


def stretched(table: pa.Table, factors: dict[str, float]) -> pa.Table:
    """Some columns in another unit."""
    for place, name in enumerate(table.column_names):
        if name in factors:
            table = table.set_column(place, name, pa.array(table.column(name).to_numpy() * factors[name]))
    return table


def numbers() -> tuple[pa.Table, pa.Table]:
    """Original and masked."""
    draw = np.random.default_rng(3)
    a, b = draw.normal(size=(2, 60))
    noise = draw.normal(size=(2, 60)) / 3
    group = ["a", "b"] * 30
    return pa.table({"n": a, "b": b + a, "g": group}), pa.table({"n": a + noise[0], "b": b + a + noise[1], "g": group})


def as_data(table: pa.Table) -> Microdata:
    return microdata({name: table.column(name) for name in table.column_names})


@pytest.mark.parametrize("exponent", [664, 1020, -664, -900])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: f"{type(measure).__name__}")
def test_the_size_of_the_unit_changes_no_loss(measure: Measure, exponent: int) -> None:
    """2^664 is about 1e200: squares of such numbers have no float."""
    made, shown = numbers()
    units = {"n": 2.0**exponent, "b": 2.0**-664}
    plain = measure.score(as_data(made), shown)
    found = measure.score(as_data(stretched(made, units)), stretched(shown, units))
    assert found.value == pytest.approx(plain.value, rel=1e-6, abs=1e-9)
    assert dict(found.parts) == pytest.approx(dict(plain.parts), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: f"{type(measure).__name__}")
@pytest.mark.parametrize("factor", [1e200, 1e-200])
def test_masked_numbers_of_another_size_give_a_number_or_one_clear_error(measure: Measure, factor: float) -> None:
    made, shown = numbers()
    try:
        found = measure.score(as_data(made), stretched(shown, {"n": factor}))
    except Unsupported as refused:
        assert factor > 1 and isinstance(measure, MomentsLoss | RegressionLoss)
        assert "column 'n' has masked values" in str(refused)
    else:
        assert np.isfinite(found.value) and all(np.isfinite(part) for part in found.parts.values())


def test_no_error_shows_a_value_of_a_record() -> None:
    secret = "canary-7391"
    data = microdata({"x": [secret] * 4, "k": ["a", "b", "a", "b"], "n": [1.0, 2.0, 3.0, 7391.25]})
    numbers = Masked(pa.table({"x": [1.0] * 4, "k": ["a"] * 4, "n": [1.0] * 4}), data.schema, ("x",), None)
    for measure in (*MEASURES[:10], RegressionLoss("x"), RegressionLoss("n", ("x",)), Classification("x"), Classification("n")):
        for shown in (data, numbers):
            try:
                assert secret not in repr(measure.score(data, shown))
            except SfumatoError as error:
                assert secret not in str(error) and "7391" not in str(error)
