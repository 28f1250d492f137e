"""Top and bottom coding of numbers, dates and ordered categories."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.schema import Column, Schema

DAY = datetime.date(1995, 1, 1)
GRADES = ("E", "D", "C", "B", "A")


def coded(mask: sf.masking.Mask, **columns: object) -> list[object]:
    (name,) = columns
    return mask.apply(pa.table(columns)).result.table.column(name).to_pylist()


def test_values_beyond_the_bounds_are_shown_as_the_bounds() -> None:
    mask = sf.TopBottomCoding(top=8, bottom=3, columns=("x",))
    assert coded(mask, x=[1, 3, 5, None, 8, 90]) == [3, 3, 5, None, 8, 8]


def test_the_mean_of_the_coded_values_keeps_the_mean_of_the_column() -> None:
    mask = sf.TopBottomCoding(top={"x": 8}, show="mean", columns=("x",))
    assert coded(mask, x=[1.0, 8.0, 9.0, 10.0, 20.0]) == [1.0, 8.0, 13.0, 13.0, 13.0]


@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.none(), min_size=40, max_size=60).filter(
        lambda v: len({x for x in v if x is not None}) > 30
    ),
    share=st.floats(0.02, 0.3),
)
def test_means_are_kept_exactly_and_order_never_turns(values: list[float | None], share: float) -> None:
    mask = sf.TopBottomCoding(top=1 - share, bottom=share, by="quantile", show="mean", columns=("x",))
    try:
        shown = coded(mask, x=pa.array(values, pa.float64()))
    except Unsupported as refusal:
        assert "their mean would give them away" in str(refusal) or "code nothing" in str(refusal)
        return
    before = np.array([v for v in values if v is not None])
    after = np.array([v for v in shown if v is not None])
    assert [v is None for v in shown] == [v is None for v in values]
    assert after.mean() == pytest.approx(before.mean(), rel=1e-9, abs=1e-6)
    assert np.all(np.diff(after[np.argsort(before, kind="stable")]) >= -1e-6)


def test_quantiles_code_that_share_of_the_records() -> None:
    x = np.random.default_rng(1).permutation(1000).astype(float)
    outcome = sf.TopBottomCoding(top=0.95, bottom=0.1, by="quantile", columns=("x",)).apply(pa.table({"x": x}))
    assert outcome.details["coded"]["x"] == {"bottom": 100, "top": 50}
    shown = outcome.result.table.column("x").to_numpy()
    assert shown.max() == 949 and shown.min() == 100


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=60, unique=True),
    top=st.floats(0.55, 0.95),
    other=st.floats(1.0, 1e6),
)
def test_a_quantile_bound_tells_nothing_about_the_coded_values(values: list[float], top: float, other: float) -> None:
    """Whatever the coded values are, the masked column is the same; its bounds are values that are shown anyway."""
    mask = sf.TopBottomCoding(top=top, bottom=1 - top, by="quantile", columns=("x",))
    before, after = np.array(values), np.array(values)
    low, high = np.quantile(before, 1 - top, method="higher"), np.quantile(before, top, method="lower")
    if low > high:
        return
    after[before > high] += other
    after[before < low] -= other
    shown = coded(mask, x=before)
    assert shown == coded(mask, x=after)
    inside = before[(before >= low) & (before <= high)]
    assert {*shown} <= {*inside.tolist()}


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0, 9.0], [1.0, 2.0, 9.0, 9.0]])
def test_a_stratum_of_which_quantiles_code_nothing_is_refused(values: list[float]) -> None:
    data = pa.table({"x": values, "s": ["a", "a", "a", "b"] if values[2] == 3.0 else ["a", "a", "b", "b"]})
    with pytest.raises(Unsupported, match=r"quantiles of column 'x' code nothing .* merge strata"):
        sf.TopBottomCoding(top=0.9, by="quantile", columns=("x",), strata=("s",)).apply(data)
    shown = sf.TopBottomCoding(top=5, columns=("x",), strata=("s",)).apply(data).result.table.column("x").to_pylist()
    assert shown == [min(value, 5.0) for value in values]


def test_ordered_categories_are_coded_by_their_order() -> None:
    schema = {"columns": {"grade": {"role": "quasi", "type": "string", "order": list(GRADES)}}}
    data = sf.read(pa.table({"grade": ["A", "C", None, "E", "B", "D"]}), schema)
    masked = sf.TopBottomCoding(top="B", bottom="D").apply(data).result.table
    assert masked.column("grade").to_pylist() == ["B", "C", None, "D", "B", "D"]
    by_share = sf.TopBottomCoding(top=0.6, by="quantile").apply(data).result.table
    assert by_share.column("grade").to_pylist() == ["C", "C", None, "E", "C", "D"]


def test_dates_are_coded_by_iso_dates() -> None:
    days = [datetime.date(1900, 1, 1), datetime.date(1950, 5, 5), datetime.date(2020, 1, 1)]
    shown = coded(sf.TopBottomCoding(bottom="1930-01-01", columns=("born",)), born=days)
    assert shown == [datetime.date(1930, 1, 1), *days[1:]]


def test_a_column_without_anything_beyond_its_bounds_is_reported() -> None:
    outcome = sf.TopBottomCoding(top=100, columns=("x",)).apply(pa.table({"x": [1, 2, 3]}))
    assert outcome.result.transparency["nothing_coded"] == ["x"]
    assert outcome.details["coded"]["x"] == {"bottom": 0, "top": 0}


def test_quantiles_are_taken_within_each_stratum() -> None:
    data = pa.table({"x": [*range(10), *range(100, 110)], "s": [0] * 10 + [1] * 10})
    masked = sf.TopBottomCoding(top=0.5, by="quantile", columns=("x",), strata=("s",), whole=False).apply(data).result.table
    shown = masked.column("x").to_numpy()
    assert shown[:10].max() == 4 and shown[10:].max() == 104


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        (lambda: sf.TopBottomCoding(), "give top, bottom or both"),
        (lambda: sf.TopBottomCoding(top={}), "top must be a number, .* or a table of bounds by column"),
        (lambda: sf.TopBottomCoding(top=5, by="rank"), "by must be"),
        (lambda: sf.TopBottomCoding(top=5, show="median"), "show must be"),
        (lambda: sf.TopBottomCoding(top=1.0, by="quantile"), "between 0 and 1"),
        (lambda: sf.TopBottomCoding(top=float("inf")), "top must be a number, .*, not inf$"),
    ],
)
def test_parameters_out_of_range_are_refused(mask: object, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        mask()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        (sf.TopBottomCoding(top={"x": 3}, columns=("x", "y")), "'y' has neither a top nor a bottom"),
        (sf.TopBottomCoding(top={"z": 3}, columns=("x",)), "'z', which is not among the masked columns"),
        (sf.TopBottomCoding(top=1, bottom=3, columns=("x",)), "bottom of column 'x' lies above its top"),
        (sf.TopBottomCoding(top=3, show="mean", columns=("x",)), "fewer than 3 values of column 'x'"),
        (sf.TopBottomCoding(top="C", columns=("x",)), "'x' must be a number"),
        (sf.TopBottomCoding(top={"x": True}, columns=("x",)), "'x' must be a number"),
        (sf.TopBottomCoding(top=3, columns=("word",)), "'word' holds categories"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(mask: sf.masking.Mask, match: str) -> None:
    data = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0], "word": ["a", "b", "c", "d"]})
    with pytest.raises((ParameterError, Unsupported), match=match):
        mask.apply(data)


def test_ordered_categories_have_no_mean_and_no_other_labels() -> None:
    schema = {"columns": {"grade": {"role": "quasi", "type": "string", "order": list(GRADES)}}}
    data = sf.read(pa.table({"grade": ["A", "C"]}), schema)
    with pytest.raises(Unsupported, match="have no mean"):
        sf.TopBottomCoding(top="B", show="mean").apply(data)
    with pytest.raises(ParameterError, match="none of the categories"):
        sf.TopBottomCoding(top="F").apply(data)


def test_a_bound_that_is_a_date_is_kept_as_its_text() -> None:
    mask = sf.TopBottomCoding(top=DAY, columns=("x",))
    assert mask == sf.TopBottomCoding(top="1995-01-01", columns=("x",)) and mask.top == "1995-01-01"
    assert sf.TopBottomCoding(top={"x": DAY}).top == {"x": "1995-01-01"}
    days = [datetime.date(1994, 12, 31), DAY, datetime.date(2001, 5, 6)]
    assert coded(mask, x=days) == [days[0], DAY, DAY]


def test_a_moment_is_a_bound_of_moments_and_not_of_days() -> None:
    noon = datetime.datetime(1995, 1, 1, 12)
    mask = sf.TopBottomCoding(top=noon, columns=("x",))
    before, after = datetime.datetime(1995, 1, 1, 11, 59), datetime.datetime(1995, 1, 1, 12, 1)
    assert coded(mask, x=[before, noon, after]) == [before, noon, noon]
    zoned = sf.TopBottomCoding(top="1995-01-01T14:00+02:00", columns=("x",))
    assert coded(zoned, x=[before, noon, after]) == [before, noon, noon]
    with pytest.raises(ParameterError, match="must be a date without a time of day"):
        coded(mask, x=[DAY, datetime.date(1996, 1, 1)])
    with pytest.raises(ParameterError, match="must be an ISO date"):
        coded(sf.TopBottomCoding(top="1995-01-01 or so", columns=("x",)), x=[DAY, datetime.date(1996, 1, 1)])


def test_a_column_of_numbers_cannot_show_a_word() -> None:
    codes = Schema(columns={"x": Column(role="quasi", type="integer", order=("3", "none", "2", "1"))})
    people = sf.read(pa.table({"x": [1, 2, 3, None]}), codes)
    with pytest.raises(Unsupported, match="'x' cannot show its bound"):
        sf.TopBottomCoding(top="none", columns=("x",)).apply(people)
