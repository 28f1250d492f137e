"""Record swapping: pairs agree on what is counted, differ on what is exchanged, and the rare go first."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.declared import build, parameters
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported
from sfumato.data.schema import Schema

ROWS = st.lists(
    st.tuples(st.sampled_from("fm"), st.integers(0, 2), st.sampled_from(["north", "south", "west", None]), st.integers(0, 5)),
    min_size=4,
    max_size=60,
)


def table_of(rows: list[tuple[object, ...]], names: tuple[str, ...] = ("sex", "age", "region", "income")) -> pa.Table:
    return pa.table({name: pa.array([row[position] for row in rows]) for position, name in enumerate(names)})


def cross(table: pa.Table, *names: str) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


@given(ROWS, st.sampled_from([0.1, 0.5, 1.0]), st.integers(0, 50))
def test_tables_of_match_and_swapped_columns_stay_exactly_as_they_are(
    rows: list[tuple[object, ...]], rate: float, seed: int
) -> None:
    table = table_of(rows)
    try:
        outcome = sf.RecordSwapping(rate, match=("sex", "age"), swapped=("region", "income")).apply(table, seed=seed)
    except Unsupported:
        return
    masked = outcome.result.table
    assert cross(masked, "sex", "age", "region", "income") == cross(table, "sex", "age", "region", "income")
    pairs = zip(*(part[name].to_pylist() for part in (table, masked) for name in ("region", "income")), strict=True)
    changed = sum((old_region, old_income) != (region, income) for old_region, old_income, region, income in pairs)
    assert changed == outcome.details["exchanged"] <= outcome.details["asked"]  # partners always differ
    assert [value is None for value in masked["region"].to_pylist()] == [value is None for value in table["region"].to_pylist()]


def geography(size: int = 600, seed: int = 3) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": random.choice(["f", "m"], size),
            "size": random.integers(1, 4, size),
            "job": random.choice([f"job {i}" for i in range(40)], size, p=np.r_[np.full(20, 0.049), np.full(20, 0.001)]),
            "region": random.choice(["north", "south", "east", "west"], size),
        }
    )


def test_the_share_asked_for_is_exchanged() -> None:
    table = geography()
    for rate in (0.01, 0.1, 0.5):
        outcome = sf.RecordSwapping(rate, match=("sex", "size"), swapped=("region",)).apply(table, seed=1)
        changed = sum(
            old != new for old, new in zip(table["region"].to_pylist(), outcome.result.table["region"].to_pylist(), strict=True)
        )
        assert changed == outcome.details["asked"] == round(rate * 300) * 2


def test_targeted_swapping_takes_the_rarest_first() -> None:
    table = geography()
    sizes = cross(table, "sex", "job")
    risk = np.array([1 / sizes[key] for key in zip(table["sex"].to_pylist(), table["job"].to_pylist(), strict=True)])
    unique = np.flatnonzero(risk == 1)
    assert 3 < unique.size < 30
    mask = sf.RecordSwapping(0.2, match=("size",), swapped=("region",), targeted=True, key=("sex", "job"))
    changed = np.array(mask.apply(table, seed=4).result.table["region"].to_pylist()) != np.array(table["region"].to_pylist())
    assert changed[unique].all()  # 120 records are exchanged, at least 60 of them by choice
    plain = sf.RecordSwapping(0.2, match=("size",), swapped=("region",)).apply(table, seed=4).result.table["region"].to_pylist()
    assert not (np.array(plain) != np.array(table["region"].to_pylist()))[unique].all()


def test_the_quasi_identifiers_are_the_key_where_none_is_named() -> None:
    schema = Schema.of(quasi=["sex", "job", "region"], plain=["size"])
    people = sf.read(geography(), schema=schema)
    outcome = sf.RecordSwapping(0.1, match=("sex",), swapped=("region",), targeted=True).apply(people, seed=1)
    assert outcome.result.columns == ("region",)
    assert sf.RecordSwapping(0.1, columns=("region",)).apply(people, seed=1).result.columns == ("region",)


@pytest.mark.slow
def test_partners_are_drawn_uniformly() -> None:
    """Record 0 and its five possible partners over 1,000 seeds: chi-square below 41 (four degrees of freedom, false alarm
    below 10⁻⁷). The record chosen first is the only one with its key."""
    table = pa.table({"g": ["x"] * 6 + ["y"] * 6, "key": ["rare"] + ["often"] * 11, "place": [*range(6), *range(6)]})
    mask = sf.RecordSwapping(0.1, match=("g",), swapped=("place",), targeted=True, key=("key",))
    reached = [mask.apply(table, seed=seed).result.table["place"][0].as_py() for seed in range(1000)]
    counts = np.bincount(reached, minlength=6)
    assert counts[0] == 0
    assert np.sum((counts[1:] - 200) ** 2 / 200) < 41


def test_a_rare_partner_is_found_among_many_alike() -> None:
    table = pa.table({"place": ["a"] * 5000 + ["b"]})
    outcome = sf.RecordSwapping(1.0, swapped=("place",)).apply(table, seed=1)
    assert outcome.details["exchanged"] == 2
    assert outcome.result.table["place"][5000].as_py() == "a"


def households(seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)
    rows = []
    for house in range(120):
        region = random.choice(["north", "south", "east"])
        rows += [(house, str(random.choice(["f", "m"])), region) for _ in range(random.integers(1, 4))]
    random.shuffle(rows)
    return table_of([(int(house), sex, str(region)) for house, sex, region in rows], ("house", "sex", "region"))


def test_whole_households_move() -> None:
    table = households()
    outcome = sf.RecordSwapping(0.3, match=("sex",), swapped=("region",), household="house").apply(table, seed=2)
    masked = outcome.result.table
    regions: dict[int, set[str]] = {}
    for house, region in zip(masked["house"].to_pylist(), masked["region"].to_pylist(), strict=True):
        regions.setdefault(house, set()).add(region)
    assert all(len(found) == 1 for found in regions.values())
    assert outcome.details["exchanged"] == 36
    assert cross(masked, "sex", "region") == cross(table, "sex", "region")
    composition = Counter[tuple[object, ...]]()
    original = Counter[tuple[object, ...]]()
    for part, counted in ((masked, composition), (table, original)):
        members: dict[int, list[tuple[str, str]]] = {}
        for house, sex, region in zip(*(part[name].to_pylist() for name in ("house", "sex", "region")), strict=True):
            members.setdefault(house, []).append((sex, region))
        counted.update(tuple(sorted(found)) for found in members.values())
    assert composition == original  # households of each composition in each region are as many as before


def test_strata_are_not_mixed() -> None:
    table = geography()
    masked = sf.RecordSwapping(0.5, swapped=("region",), strata=("sex",)).apply(table, seed=1).result.table
    assert cross(masked, "sex", "region") == cross(table, "sex", "region")
    assert masked["region"].to_pylist() != table["region"].to_pylist()


def test_a_seed_gives_the_same_file_and_parameters_come_back() -> None:
    mask = sf.RecordSwapping(0.2, match=("sex",), swapped=("region",), targeted=True, key=("job",))
    assert mask.apply(geography(), seed=5).result.table.equals(mask.apply(geography(), seed=5).result.table)
    assert build(sf.RecordSwapping, parameters(mask)) == mask


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rate": 0}, "above 0"),
        ({"rate": 1.2}, "at most 1"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": True}, "rate"),
        ({"rate": 0.5, "match": ("a", "a")}, "match must be a list of different columns"),
        ({"rate": 0.5, "match": "sex"}, "match must be a list of different columns"),
        ({"rate": 0.5, "key": ("a",)}, "targeted"),
        ({"rate": 0.5, "swapped": ("a",), "columns": ("b",)}, "the same columns"),
    ],
)
def test_meaningless_parameters_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        sf.RecordSwapping(**arguments)  # type: ignore[arg-type]


def test_what_cannot_be_swapped_is_refused() -> None:
    table = geography()
    with pytest.raises(Unsupported, match="nothing would change"):
        sf.RecordSwapping(0.5, match=("place",), swapped=("x",)).apply(
            pa.table({"place": list("aabb"), "x": list("ccdd")}), seed=1
        )
    with pytest.raises(MissingColumn, match="'street'"):
        sf.RecordSwapping(0.5, match=("street",), swapped=("region",)).apply(table, seed=1)
    with pytest.raises(ParameterError, match="'region' cannot be swapped and stay"):
        sf.RecordSwapping(0.5, match=("region",), swapped=("region",)).apply(table, seed=1)
    with pytest.raises(ParameterError, match="needs key columns"):
        sf.RecordSwapping(0.5, swapped=("region",), targeted=True).apply(table, seed=1)
    with pytest.raises(Unsupported, match="one value only"):
        sf.RecordSwapping(0.5, swapped=("x",)).apply(pa.table({"x": ["same"] * 5}), seed=1)
    with pytest.raises(Unsupported, match="every record needs a household"):
        gaps = pa.table({"h": [1, None, 2], "x": ["a", "b", "c"]})
        sf.RecordSwapping(0.5, swapped=("x",), household="h").apply(gaps, seed=1)


def test_a_low_rate_is_what_was_asked_for_and_the_unchanged_share_is_told() -> None:
    outcome = sf.RecordSwapping(0.01, match=("sex",), swapped=("region",)).apply(geography(), seed=1)
    assert outcome.details["unchanged"] == {"region": pytest.approx(0.99)}


def test_a_column_that_never_changes_beside_others_is_refused() -> None:
    """Partners agree on the district, which settles the region: the jobs move and the regions do not."""
    random = np.random.default_rng(1)
    district = random.integers(0, 8, 600)
    table = pa.table({"district": district, "region": district // 2, "job": random.integers(0, 9, 600)})
    with pytest.raises(Unsupported, match="'region' would be published nearly as it is: 100.0 %"):
        sf.RecordSwapping(0.4, match=("district",), swapped=("region", "job")).apply(table, seed=1)
    sf.RecordSwapping(0.4, swapped=("region", "job")).apply(table, seed=1)
