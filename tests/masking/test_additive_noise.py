"""Additive noise: the golden case, exact moments, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import ParameterError, Unsupported
from sfumato.data.records import Records
from sfumato.masking.noise.moments import exact_noise, grid_step

COLUMNS = ("a", "b")


def table(count: int = 300, seed: int = 1, missing: float = 0.0) -> pa.Table:
    random = np.random.default_rng(seed)
    a = random.gamma(2.0, 3.0, count)
    b = 0.5 * a + random.normal(100.0, 1.0, count)
    gone = random.random((2, count)) < missing
    return pa.table({"a": pa.array(a, mask=gone[0]), "b": pa.array(b, mask=gone[1]), "half": np.arange(count) % 2})


def known(masked: pa.Table, name: str) -> np.ndarray:
    return masked.column(name).drop_null().to_numpy()


@pytest.mark.golden("G-MSK-01")
def test_a_hundred_thousand_draws_with_half_their_variance_added() -> None:
    """Fixed seed; the standard errors are 0.005 of the ratio and 0.0045 of the mean: a false alarm is below 1e-8."""
    x = np.random.default_rng(20260801).normal(5.0, 2.0, 100_000)
    masked = sf.AdditiveNoise(0.5, columns=("x",)).apply(pa.table({"x": x}), seed=1).result
    shown = masked.table.column("x").to_numpy()
    assert shown.var() / x.var() == pytest.approx(1.5, rel=0.02)
    assert abs(shown.mean() - x.mean()) < 0.03
    assert not np.isin(shown, x).any()


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("rescale", [False, True])
@given(k=st.floats(0.01, 5.0), seed=st.integers(0, 10**6))
def test_exact_moments_hold_for_every_draw(missing: float, rescale: bool, k: float, seed: int) -> None:
    data = table(60, missing=missing)
    masked = sf.AdditiveNoise(k, "exact", rescale, columns=COLUMNS).apply(data, seed=seed).result.table
    for name in COLUMNS:
        before, after = known(data, name), known(masked, name)
        assert after.mean() == pytest.approx(before.mean(), rel=1e-12)
        assert after.var(ddof=1) == pytest.approx(before.var(ddof=1) * (1.0 if rescale else 1.0 + k), rel=1e-9)
        assert masked.column(name).is_null().equals(data.column(name).is_null())


def test_noise_of_exact_moments_has_no_covariance_with_its_column() -> None:
    data = table()
    masked = sf.AdditiveNoise(0.3, "exact", columns=COLUMNS).apply(data, seed=4).result.table
    for name in COLUMNS:
        noise = known(masked, name) - known(data, name)
        assert np.corrcoef(noise, known(data, name))[0, 1] == pytest.approx(0.0, abs=1e-12)


def test_noise_is_normal_and_independent_between_columns() -> None:
    """Fixed seed. The Kolmogorov distance of 20,000 normal draws exceeds 0.021 with probability below 1e-7; their
    correlation 0.04 with probability below 1e-7."""
    from scipy import stats

    data = table(20_000)
    masked = sf.AdditiveNoise(0.3, columns=COLUMNS).apply(data, seed=4).result.table
    noise = [(known(masked, n) - known(data, n)) / (known(data, n).std(ddof=1) * np.sqrt(0.3)) for n in COLUMNS]
    assert all(stats.kstest(part, "norm").statistic < 0.021 for part in noise)
    assert abs(np.corrcoef(noise)[0, 1]) < 0.04


def test_within_strata_the_noise_follows_the_spread_of_the_stratum() -> None:
    half = np.arange(400) % 2
    x = np.where(half == 0, 1.0, 1000.0) * np.random.default_rng(2).normal(size=400)
    data = pa.table({"x": x, "half": half})
    masked = sf.AdditiveNoise(0.5, "exact", columns=("x",), strata=("half",)).apply(data, seed=1).result.table
    shown = masked.column("x").to_numpy()
    for stratum in (0, 1):
        inside = half == stratum
        assert shown[inside].var() == pytest.approx(1.5 * x[inside].var(), rel=1e-9)


def test_what_is_published_is_the_parameter_and_no_statistic_of_the_data() -> None:
    told = sf.AdditiveNoise(0.2, rescale=True, columns=COLUMNS).apply(table(), seed=1).result.transparency
    assert told["noise"] == "independent" and told["noise_variance_ratio"] == 0.2
    assert told["scaled_by"] == pytest.approx(1 / np.sqrt(1.2))
    assert set(told) == {"method", "masked_columns", "noise", "noise_variance_ratio", "scaled_by"}


GRIDS = {
    "whole numbers": np.arange(200) % 3,
    "whole numbers as floats": (np.arange(200) % 3).astype(float),
    "single precision": (np.arange(200) % 3 / 10).astype(np.float32),
    "cents": np.arange(200) % 3 / 100,
    "fives": np.arange(200) % 4 * 5.0 + 2.0,
    "two values": np.arange(200) % 2 * 1234.5,
    "dates": pa.array(np.arange(200) % 3 * 7, pa.int32()).cast(pa.date32()),
    "hours": pa.array(np.arange(200) % 3 * 3600, pa.timestamp("s")),
    "large floats": 1e17 + 16.0 * (np.arange(200) % 3),
}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("grid", GRIDS)
def test_noise_that_rounding_to_the_grid_of_the_values_takes_back_is_refused(grid: str, whole: bool) -> None:
    """Whatever the type, and although real numbers would be published: who rounds them has the values again."""
    data = pa.table({"children": GRIDS[grid]})
    with pytest.raises(Unsupported, match="'children' is so small") as refusal:
        sf.AdditiveNoise(0.01, columns=("children",), whole=whole).apply(data)
    assert "whole=False" not in str(refusal.value) and "1234" not in str(refusal.value)
    masked = sf.AdditiveNoise(2.0, columns=("children",), whole=whole).apply(data, seed=1)
    assert masked.details["expected_unchanged"]["children"] < 0.6


def test_a_grid_is_found_by_its_values_and_few_values_make_none() -> None:
    def step(values: object, kind: pa.DataType | None = None) -> float:
        array = pa.array(values, kind)
        return grid_step(Records.of(pa.table({"x": array}), sf.Schema(), ["x"]).numbers[0])

    assert step(np.arange(20) * 5) == 5 and step([10, 20, 40]) == 1 and step([0.25, 0.5, 1.0]) == 0.01
    assert step(np.arange(20) / 200) == pytest.approx(0.005)
    assert step(np.arange(20) * 60, pa.timestamp("s")) == pytest.approx(1 / 1440)
    assert step(np.random.default_rng(1).normal(size=50)) < 1e-12
    assert step([None, None], pa.float64()) == 0.0


def test_three_values_with_exact_moments_would_be_known_up_to_a_sign() -> None:
    """Why few values are refused: the noise of three is plus or minus a vector that the masked values and k determine."""
    x, k = np.array([1.0, 5.0, 7.0]), 0.5
    noise = exact_noise(x[:, None], np.array([[0.3], [-1.1], [0.4]]), k * np.cov(x, ddof=1).reshape(1, 1))[:, 0]
    shown = x + noise
    centred = shown - shown.mean()
    across = np.cross(np.ones(3), centred)
    lengths = np.linalg.norm(centred) / np.sqrt(1 + k) / np.linalg.norm(centred)
    turned = np.arccos(lengths)
    guesses = [
        shown.mean() + lengths * (np.cos(turned) * centred + sign * np.sin(turned) * across / np.sqrt(3)) for sign in (1, -1)
    ]
    assert min(np.abs(guess - x).max() for guess in guesses) < 1e-9


@pytest.mark.parametrize("strata", [None, ("s",)])
def test_exact_moments_need_twelve_known_values_in_every_stratum(strata: tuple[str, ...] | None) -> None:
    x = np.random.default_rng(1).normal(size=24)
    x[11:12] = np.nan
    few = pa.table({"x": pa.array(x[:12], from_pandas=True), "s": ["a"] * 12})
    mask = sf.AdditiveNoise(0.1, "exact", columns=("x",), strata=strata)
    with pytest.raises(Unsupported, match="fewer than 12 known values .* could work the values out"):
        mask.apply(few)
    assert mask.apply(pa.table({"x": x[12:], "s": ["a"] * 12}), seed=1).result.table.num_rows == 12
    both = pa.concat_tables([few, pa.table({"x": x[12:], "s": ["b"] * 12})])
    if strata:
        with pytest.raises(Unsupported, match="fewer than 12 known values"):
            mask.apply(both)


def test_the_expected_share_of_unchanged_whole_numbers_is_told_to_the_owner() -> None:
    """Fixed seed; the observed share of 5,000 lies within 0.05 of the expected one but for 1e-10 of all seeds."""
    data = pa.table({"n": np.random.default_rng(1).integers(0, 6, 5000)})
    outcome = sf.AdditiveNoise(0.1, columns=("n",)).apply(data, seed=1)
    same = np.mean(outcome.result.table.column("n").to_numpy() == data.column("n").to_numpy())
    assert outcome.details["expected_unchanged"]["n"] == pytest.approx(same, abs=0.05)


@pytest.mark.parametrize("k", [0, -1, float("nan"), float("inf"), True, "0.1"])
def test_k_must_be_positive(k: object) -> None:
    with pytest.raises(ParameterError, match="AdditiveNoise: ratio must be a number above 0.*; 0 would add no noise"):
        sf.AdditiveNoise(k)  # type: ignore[arg-type]


def test_an_unknown_way_to_treat_moments_is_refused() -> None:
    with pytest.raises(ParameterError, match="moments"):
        sf.AdditiveNoise(0.1, "some")  # type: ignore[arg-type]


def test_a_column_that_does_not_vary_within_a_stratum_is_refused() -> None:
    data = pa.table({"x": [1.0, 1.0, 5.0, 6.0], "s": [0, 0, 1, 1]})
    with pytest.raises(Unsupported, match="'x' does not vary"):
        sf.AdditiveNoise(0.1, columns=("x",), strata=("s",)).apply(data)


def test_a_constant_column_is_refused() -> None:
    with pytest.raises(Unsupported, match="'x' has one value only"):
        sf.AdditiveNoise(0.1, columns=("x",)).apply(pa.table({"x": [2.0, 2.0]}))


def test_a_column_missing_throughout_a_stratum_stays_missing_there() -> None:
    data = pa.table({"x": pa.array([*np.linspace(0, 1, 12) ** 2, None, None]), "s": [0] * 12 + [1] * 2})
    masked = sf.AdditiveNoise(0.1, "exact", columns=("x",), strata=("s",)).apply(data, seed=1).result.table
    assert masked.column("x").null_count == 2


def test_dates_move_by_whole_days() -> None:
    days = pa.array(np.arange(10_000, 10_400), pa.int32()).cast(pa.date32())
    masked = sf.AdditiveNoise(0.1, columns=("day",)).apply(pa.table({"day": days}), seed=1).result.table
    assert masked.column("day").type == pa.date32() and masked.column("day").to_pylist() != days.to_pylist()


@pytest.mark.parametrize(
    "moments",
    [pa.array(np.arange(40), pa.int32()).cast(pa.date32()), pa.array(np.arange(40) * 86_400_000_000, pa.timestamp("us"))],
)
@pytest.mark.parametrize("k", [1e10, 1e12, 1e16, 1e30])
def test_dates_outside_the_calendar_are_refused_and_not_wrapped_around(moments: pa.Array, k: float) -> None:
    with pytest.raises(Unsupported, match="'day' would hold dates outside the years 1 to 9999"):
        sf.AdditiveNoise(k, columns=("day",)).apply(pa.table({"day": moments}), seed=1)


def test_moments_in_every_unit_come_back_in_it_and_within_its_range() -> None:
    for unit in ("s", "ms", "us", "ns"):
        column = Records.of(pa.table({"x": pa.array([0, 0], pa.timestamp(unit))}), sf.Schema(), ["x"]).numbers[0]
        shown = column.restored(np.array([1.0, np.nan]))
        assert shown.type == pa.timestamp(unit) and shown.to_pylist()[0].isoformat()[:10] == "1970-01-02"
    with pytest.raises(Unsupported, match="1678 to 2261"):
        column.restored(np.array([200_000.0]))
    days = Records.of(pa.table({"x": pa.array([0], pa.date32())}), sf.Schema(), ["x"]).numbers[0]
    assert [day.year for day in days.restored(np.array([-719_162.0, 2_932_896.0])).to_pylist()] == [1, 9999]
    for beyond in (-719_163.0, 2_932_897.0):
        with pytest.raises(Unsupported, match="1 to 9999"):
            days.restored(np.array([beyond]))
