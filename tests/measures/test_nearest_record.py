"""Distance to the closest record, for released rows of any origin; attribute disclosure from the release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import InputError, ParameterError
from sfumato.measures.risk.disclosure.attribute_disclosure import AttributeDisclosure
from sfumato.measures.risk.linkage.distance_linkage import DistanceLinkage
from sfumato.measures.risk.linkage.nearest_record import NearestRecord, pointing
from tests.measures.masks import noisy, numbers, people, resampled, table

X = numbers(400)
PEOPLE = people(X)


def test_copies_are_found_and_counted() -> None:
    score = NearestRecord().score(PEOPLE, table(X))
    assert score.value == 1.0 and score.parts["exact copies"] == 1.0 and score.parts["median distance"] == 0.0
    half = np.vstack([X[:100], resampled(X)[:100]])
    assert NearestRecord().score(PEOPLE, table(half)).parts["exact copies"] == 0.5


def test_rows_of_the_same_population_reach_the_baseline() -> None:
    """2,000 new rows at rate 5 %: outside 5 % ± 2.5 points less than once in 10⁶ (five deviations)."""
    x = numbers(2_000, 3)
    score = NearestRecord().score(people(x), table(resampled(x)))
    assert score.floor == pytest.approx(0.05, abs=2 / 2_000)
    assert score.value == pytest.approx(score.floor, abs=0.025)
    assert score.parts["exact copies"] == 0.0


def test_few_different_values_have_a_baseline_of_their_own() -> None:
    """4,000 originals and 4,000 new rows over 900 uneven cells: both rates within 4 points (ten deviations of such a mean)."""
    draw = np.random.default_rng(11)
    x, y = (np.floor(draw.exponential(6, size=(4_000, 2))) for _ in range(2))
    score = NearestRecord().score(people(x), table(y))
    assert score.value == pytest.approx(score.floor, abs=0.04)
    assert score.parts["exact copies"] > 0.5


def test_an_unmasked_table_points_at_as_many_as_linkage_finds() -> None:
    x = np.round(X)
    copies = NearestRecord().score(people(x), table(x)).value
    assert copies == pytest.approx(DistanceLinkage().score(people(x), table(x)).value)


def test_the_distances_equal_brute_force() -> None:
    rows = noisy(X, 0.2)[:50]
    z, w = (X - X.mean(0)) / X.std(0), (rows - X.mean(0)) / X.std(0)
    found = [float(np.sqrt(((z - row) ** 2).sum(axis=1)).min()) for row in w]
    among = [sorted(np.sqrt(((z - row) ** 2).sum(axis=1)))[1] for row in z]
    score = NearestRecord(quantile=0.5).score(PEOPLE, table(rows))
    assert score.parts["median distance"] == pytest.approx(np.median(found))
    assert score.parts["median distance among originals"] == pytest.approx(np.median(among))
    threshold = sorted(among)[199]
    assert score.value == pytest.approx(np.mean(np.array(found) < threshold), abs=1 / 50)


def test_a_copy_counts_as_one_over_the_originals_it_equals() -> None:
    credits = pointing(np.array([0.0, 0.0, 0.5, 2.0]), np.array([1, 4, 0, 0]), 1.0)
    assert credits.tolist() == [1.0, 0.25, 1.0, 0.0]


def test_mixed_and_incomplete_rows_are_compared() -> None:
    rows = pa.table({"job": ["a", "b", None, "a"], "age": [20.0, None, 40.0, 20.0]})
    original = sf.read(rows, schema=sf.Schema.of(quasi=["job", "age"]))
    assert NearestRecord().score(original, rows.slice(0, 3)).parts["exact copies"] == 1.0


def test_refusals_of_the_nearest_record() -> None:
    with pytest.raises(ParameterError, match="quantile"):
        NearestRecord(quantile=1.0)
    with pytest.raises(ParameterError, match="distance"):
        NearestRecord(distance="taxi")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two"):
        NearestRecord().score(people(X[:1]), table(X[:1]))
    with pytest.raises(InputError, match="no records"):
        NearestRecord().score(PEOPLE, table(X[:0]))


SCHEMA = sf.Schema.of(quasi=["zip", "age"], sensitive=["illness", "income"])
ROWS = pa.table(
    {
        "zip": ["1"] * 4 + ["2"] * 4,
        "age": [20.0] * 4 + [60.0] * 4,
        "illness": ["flu"] * 4 + ["cold"] * 3 + ["flu"],
        "income": [1.0, 1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0],
    }
)
HOMOGENEOUS = sf.read(ROWS, schema=SCHEMA)


def test_a_homogeneous_class_gives_the_value_away() -> None:
    score = AttributeDisclosure("illness", neighbours=1).score(HOMOGENEOUS, ROWS)
    assert score.parts["right"] == pytest.approx(7 / 8)
    assert score.parts["prior"] == pytest.approx(5 / 8)
    assert score.value == pytest.approx((7 / 8 - 5 / 8) / (3 / 8))
    assert score.parts["presence"] == 1.0
    assert AttributeDisclosure("illness", neighbours=1).per_record(HOMOGENEOUS, ROWS).tolist() == [1.0] * 7 + [0.0]


def test_a_number_is_predicted_by_the_mean_of_its_class() -> None:
    score = AttributeDisclosure("income", neighbours=2).score(HOMOGENEOUS, ROWS)
    assert score.value == pytest.approx(1.0)
    assert score.parts == {"error": 0.0, "prior error": 4.0, "presence": 1.0, "before clipping": 1.0}
    assert AttributeDisclosure("income").per_record(HOMOGENEOUS, ROWS).max() < 9.0


def test_an_unrelated_release_teaches_nothing() -> None:
    """2,000 records, independent target: the prediction is no better than the prior but for chance (gain below 0.05)."""
    draw = np.random.default_rng(9)
    zips, illness = draw.choice(list("abcdef"), 2_000), draw.choice(["flu", "cold", "none"], 2_000, p=[0.6, 0.2, 0.2])
    original = sf.read(pa.table({"zip": zips, "illness": illness}), schema=sf.Schema.of(quasi=["zip"], sensitive=["illness"]))
    other = pa.table({"zip": draw.permutation(zips), "illness": draw.permutation(illness)})
    assert AttributeDisclosure("illness", neighbours=50).score(original, other).value < 0.05


def test_rows_without_a_person_behind_them_are_judged_too() -> None:
    assert AttributeDisclosure("illness", neighbours=1).score(HOMOGENEOUS, ROWS.slice(0, 6)).value > 0


def test_refusals_of_attribute_disclosure() -> None:
    with pytest.raises(ParameterError, match="neighbours"):
        AttributeDisclosure("illness", neighbours=0)
    with pytest.raises(ParameterError, match="target"):
        AttributeDisclosure("")
    with pytest.raises(ParameterError, match="besides the target"):
        AttributeDisclosure("illness", columns=("illness",)).score(HOMOGENEOUS, ROWS)
    unknown = ROWS.set_column(2, "illness", pa.array([None] * 8, pa.string()))
    with pytest.raises(InputError, match="no known value"):
        AttributeDisclosure("illness").score(HOMOGENEOUS, unknown)
