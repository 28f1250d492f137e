"""Intervals by quantiles where equal widths are of no use, and masks for postcodes: proposed with a reason, and not published."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.data.hierarchies.shown_levels import ShownLevel
from sfumato.data.profiling.profile import profile_table
from sfumato.data.profiling.suggested_intervals import FINEST_INTERVALS, fullest_interval, nested_widths, quantile_cuts
from sfumato.data.profiling.suggested_schema import proposal_reasons, starting_schema
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.measures.guarantees.cover import interval_of

ROWS = 2_000


def _spending() -> np.ndarray:
    """Nearly everybody spends little, and one spends a million."""
    amounts = np.round(np.random.default_rng(5).lognormal(6, 1.2, ROWS)).astype(np.int64)
    amounts[0] = 1_000_000
    return amounts


def _people() -> pa.Table:
    return pa.table({"spending": _spending(), "age": [18 + place % 70 for place in range(ROWS)], "sex": ["f", "m"] * (ROWS // 2)})


def test_cuts_at_quantiles_are_proposed_where_equal_widths_put_nearly_everybody_into_one() -> None:
    profile = profile_table(_people())
    columns = starting_schema(profile, "d").columns
    spec = columns["spending"].hierarchy
    assert spec is not None and spec.cuts is not None and columns["spending"].source == "data"
    assert columns["age"].hierarchy is not None and columns["age"].hierarchy.intervals is not None
    reasons = proposal_reasons(profile)
    assert set(reasons) == {"spending"} and "100 %" not in reasons["spending"]
    assert "of the known values into one interval (75 % or more)" in reasons["spending"]
    spending = _spending()
    equal = np.bincount((spending // 100_000).astype(int)).max() / ROWS  # 16 intervals of 62,500 rounded up to 100,000
    assert profile.column("spending").fullest == pytest.approx(equal) and equal > 0.99
    between = np.histogram(spending, [-np.inf, *spec.cuts, np.inf])[0]
    assert between.max() < 0.15 * ROWS and len(between) > FINEST_INTERVALS / 2


@given(
    st.lists(st.floats(-1e9, 1e9).map(lambda number: float(f"{number:.6g}")), min_size=2, max_size=60, unique=True),
    st.data(),
)
def test_cuts_grow_and_lie_between_the_values(values: list[float], data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(1, 1000), min_size=len(values), max_size=len(values)))
    whole = all(value.is_integer() for value in values)
    cuts = quantile_cuts(np.array(values), np.array(counts), whole)
    assert len(cuts) < FINEST_INTERVALS and all(a < b for a, b in itertools.pairwise(cuts))
    assert all(min(values) < cut <= max(values) for cut in cuts)
    assert not whole or all(cut.is_integer() for cut in cuts)


def test_a_value_that_most_share_does_not_use_up_the_cuts() -> None:
    values, counts = np.array([0.0, *range(1, 101)]), np.array([9_000, *[10] * 100])
    cuts = quantile_cuts(values, counts, True)
    assert len(cuts) >= 8 and fullest_interval(values, counts, 10.0) > 0.9


def test_levels_of_cuts_nest_and_hold_the_values_that_they_say() -> None:
    spec = HierarchySpec(cuts=(10, 20, 50, 100, 500))
    assert spec.cut_levels == ((10, 20, 50, 100, 500), (20, 100), (100,))
    values = [str(number) for number in (-3, 9.5, 10, 19, 20, 60, 100, 499, 500, 7000)]
    tree = hierarchy_builders.build("x", Column(hierarchy=spec), values)
    assert tree.height == 4 and tree.generalise("7000", 1) == "[500, inf)" and tree.generalise("-3", 2) == "[-inf, 20)"
    for value, level in itertools.product(values, (1, 2, 3)):
        text = str(tree.generalise(value, level))
        low, high, with_low, with_high = interval_of(text) or (0, 0, False, False)
        assert with_low and not with_high and low <= float(value) < high
        assert ShownLevel(Column(hierarchy=spec), level).can_show(text)
        assert not ShownLevel(Column(hierarchy=spec), 1).can_show("[10, 50)")
    assert not ShownLevel(Column(hierarchy=spec), 5).exists


@pytest.mark.parametrize("cuts", [(), (3, 3), (5, 4), (0, float("inf")), (float("nan"),)])
def test_cuts_that_do_not_grow_are_refused(cuts: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="cuts must be a list of growing numbers"):
        HierarchySpec(cuts=cuts)


@pytest.mark.parametrize("source", ["data", "declared"])
def test_learnt_cuts_stay_with_the_owner_and_declared_ones_are_published(source: str, tmp_path: Path) -> None:
    schema = starting_schema(profile_table(_people()), "d")
    described = {name: column.model_copy(update={"source": source}) for name, column in schema.columns.items()}
    people = sf.read(_people(), schema.replace(columns=described))
    release = sf.protect(people, [sf.KAnonymity(5)], sf.Lattice(suppression=0.01))
    release.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").holds
    public = Schema.load(tmp_path / "out" / "public" / "schema.toml")
    assert (public.columns["spending"].hierarchy is not None) is (source == "declared")
    certificate = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["transparency"]["hierarchies"]["spending"] == "cuts"
    assert certificate["transparency"]["levels"]["spending"] > 1  # beyond what a flat column has
    cuts = (schema.columns["spending"].hierarchy or HierarchySpec(flat=True)).cuts or ()
    shown = {text for text in release.data.column("spending").to_pylist() if text and interval_of(text)}
    ends = {end for text in shown for end in interval_of(text)[:2]}  # type: ignore[index]
    assert ends <= {*cuts, float("inf"), float("-inf")} and 1_000_000 not in ends


def test_the_default_search_may_show_narrower_ranges_than_learnt_cuts() -> None:
    release = sf.protect(sf.read(_people(), starting_schema(profile_table(_people()), "d")), [sf.KAnonymity(5)])
    assert release.scores["loss"] < 0.2


@pytest.mark.parametrize(
    ("name", "values", "kind", "spec"),
    [
        ("zip", [f"{i:05d}" for i in range(0, 4000, 20)], "string", HierarchySpec(mask="right", width=5)),
        ("PLZ", list(range(10_115, 10_315)), "string", HierarchySpec(mask="right", width=5)),
        ("postal code", list(range(900, 1_100)), "integer", HierarchySpec(intervals=(10, 100, 1_000, 10_000))),
        ("home", [f"SW{i % 9 + 1}A {i % 10}AA" for i in range(200)], "string", HierarchySpec(mask="right", width=8)),
        ("postcode", ["M1 1AA", "SW1A 1AA"] * 100, "string", HierarchySpec(mask="right", width=8)),
        ("visits", list(range(10_115, 10_315)), "integer", None),
    ],
)
def test_postcodes_are_masked_texts_of_a_declared_width(name: str, values: list, kind: str, spec: HierarchySpec | None) -> None:
    profile = profile_table(pa.table({name: values * 5}))
    column = starting_schema(profile, "d").columns[name]
    assert column.role == "quasi" and column.type == kind and column.source == "data"
    assert column.hierarchy == spec or spec is None and column.hierarchy is not None and column.hierarchy.mask is None
    assert (name in proposal_reasons(profile)) is (spec is not None)
    if spec is not None and spec.mask:
        assert f"{spec.width} characters wide" in proposal_reasons(profile)[name]


def test_a_proposed_mask_carries_no_notice_about_its_width() -> None:
    table = pa.table({"zip": [f"{i % 50:05d}" for i in range(500)], "v": ["a", "b"] * 250})
    release = sf.protect(sf.read(table, starting_schema(profile_table(table), "d")), [sf.KAnonymity(3)])
    assert not any("width" in notice for notice in release.certificate.notices)


@pytest.mark.parametrize("step", [5e-324, 1e-310, 1e-300, 1e300])
def test_numbers_at_the_ends_of_their_range_are_looked_at(step: float) -> None:
    values = np.array([0.0, *(step * n for n in range(1, 40))])
    counts = np.array([360, *([1] * 39)])
    cuts = quantile_cuts(values, counts, whole=False)
    assert list(cuts) == sorted(set(cuts)) and all(values[0] < cut <= values[-1] for cut in cuts)
    assert all(width > 0 for width in nested_widths(float(np.ptp(values)), whole=False))
