"""Cubes: what adds up to what, from cells and from microdata on every engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import HierarchyError, InputError, MissingColumn, SchemaError
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import Microdata
from sfumato.tables import Dimension, TableCube, count_cube, cube_of_rows
from tests.engines.conftest import OpenTable, on_engine  # noqa: F401  (a fixture)
from tests.tables.salaries import salary_cube

COUNTY = {"A": "c1", "B": "c1", "C": "c2", "D": "c2"}
SIZE = {"A": "big", "B": "small", "C": "big", "D": "small"}
FIRMS = pa.table(
    {
        "region": ["A", "A", "B", "C", "D", "D", "A", "B"],
        "kind": ["x", "y", "x", "y", "x", "x", "x", "x"],
        "firm": ["f1", "f1", "f1", "f2", "f3", "f3", "f2", "f4"],
        "weight": [1.0, 1.0, 1.0, 2.5, 1.0, 1.0, 1.0, 1.0],
        "turnover": [10.25, 4.0, 6.5, 8.0, 1.0, 2.0, 30.0, 0.1],
    }
)


def test_margins_of_the_table_of_salaries_are_its_sums() -> None:
    cube = salary_cube()
    assert [cube.value_at(row, "Total") for row in ("M1", "M2", "M3", "Total")] == [2290, 2892, 3438, 8620]
    assert [cube.value_at("Total", f"P{i}") for i in range(1, 6)] == [2522, 2168, 1117, 1770, 1043]
    assert cube.system.equations == 4 + 6 and not cube.system.residuals(cube.units).any()


def test_two_hierarchies_over_the_same_leaves_are_one_system() -> None:
    region = Dimension.tree("region", COUNTY, SIZE)
    cube = TableCube.from_cells({("A",): 1, ("B",): 2, ("C",): 4, ("D",): 8}, [region])
    assert [cube.value_at(code) for code in ("c1", "c2", "big", "small", "Total")] == [3, 12, 5, 10, 15]
    assert cube.system.equations == 6


def test_a_hierarchy_of_the_house_is_a_dimension() -> None:
    tree = Hierarchy.from_levels([["a", "g", "*"], ["b", "g", "*"], ["c", "h", "*"]])
    assert Dimension.of_hierarchy("x", tree).codes == ("Total", "g", "a", "b", "h", "c")


@pytest.mark.parametrize(
    ("parents", "error"),
    [
        ([{"a": "b", "b": "a", "c": "Total", "d": "Total"}], HierarchyError),
        ([{"a": "Total"}], SchemaError),
        ([{}], SchemaError),
    ],
)
def test_what_is_no_dimension_is_refused(parents: list[dict[str, str]], error: type[Exception]) -> None:
    with pytest.raises(error, match="dimension 'x'"):
        Dimension.tree("x", *parents)


def test_faulty_cells_are_named_by_their_coordinates_all_at_once() -> None:
    by = [Dimension.flat("town", ["A", "B"]), Dimension.flat("sex", ["f", "m"])]
    with pytest.raises(InputError, match="'C' is no code(?s:.*)'z' is no code"):
        TableCube.from_cells({("C", "f"): 1, ("A", "z"): 2}, by)
    with pytest.raises(InputError, match="town=A, sex=f is listed 2 times"):
        TableCube.from_cells([(("A", "f"), 1), (("A", "f"), 2)], by)
    with pytest.raises(InputError, match="town=A, sex=Total do not add up"):
        TableCube.from_cells({("A", "f"): 1, ("A", "m"): 2, ("A", "Total"): 4}, by)
    with pytest.raises(InputError, match="town=A, sex=f is negative"):
        TableCube.from_cells({("A", "f"): -1, ("A", "m"): 2}, by)
    with pytest.raises(InputError, match="empty"):
        TableCube.from_cells({("A", "f"): 0}, by)
    with pytest.raises(InputError, match="not a finite number"):
        TableCube.from_cells({("A", "f"): float("nan")}, by)


def test_totals_that_are_off_by_rounding_are_computed_again_only_when_asked() -> None:
    by, cells = [Dimension.flat("town", ["A", "B"])], {("A",): 1.4, ("B",): 2.4, ("Total",): 3.9}
    with pytest.raises(InputError, match="not additive"):
        TableCube.from_cells(cells, by, value="v", decimals=1)
    assert TableCube.from_cells(cells, by, value="v", decimals=1, rounding=1).value_at("Total") == pytest.approx(3.8)


def people(open_table: OpenTable) -> Microdata:
    return Microdata(open_table(FIRMS), sf.Schema.of(plain=FIRMS.column_names))


def test_every_engine_counts_the_same_cube(on_engine: OpenTable) -> None:  # noqa: F811
    """Compared with the firms added up by hand: sums, contributors by holding, the largest two, who is alone."""
    region = Dimension.tree("region", COUNTY)
    cube = count_cube(people(on_engine), ["region", "kind"], value="turnover", holding="firm", dimensions={"region": region})
    rows = FIRMS.to_pylist()
    assert cube.contributions is not None
    for cell in range(cube.size):
        place, kind = (each.codes[code] for each, code in zip(cube.dimensions, cube.grid.coordinates[cell], strict=True))
        leaves = {region.codes[leaf] for leaf in region.covered[region.place[place]]}
        held: dict[str, float] = {}
        for row in rows:
            if row["region"] in leaves and kind in ("Total", row["kind"]):
                held[row["firm"]] = held.get(row["firm"], 0) + row["turnover"]
        assert cube.values[cell] == pytest.approx(sum(held.values()))
        assert cube.contributions.count[cell] == len(held)
        top = sorted(held.values(), reverse=True)[:2]
        assert cube.contributions.largest[cell, : len(top)] / 100 == pytest.approx(top)
    alone = sorted(sorted(cube.name_of(int(cell)) for cell in group) for group in cube.singles)
    assert ["region=D, kind=Total", "region=D, kind=x", "region=c2, kind=x"] in alone


def test_a_weight_says_for_how_many_a_contribution_stands() -> None:
    cube = count_cube(sf.read(FIRMS), ["region", "kind"], value="turnover", weight="weight")
    cell = cube.cell("C", "Total")
    assert cube.values[cell] == 20 and cube.contributions is not None
    assert cube.contributions.leading(2)[cell] == 1600 and cube.contributions.leading(3)[cell] == 2000


def test_records_are_counted_where_no_value_is_named() -> None:
    cube = count_cube(sf.read(FIRMS), ["region"], tables=())
    assert cube.value_at("Total") == 8 and cube.value_at("A") == 3 and cube.shape.value is None


def test_linked_tables_share_their_cells() -> None:
    cube = count_cube(sf.read(FIRMS), ["region", "kind", "firm"], tables=[["region", "kind"], ["region", "firm"]])
    assert cube.size == 5 * 3 + 5 * 5 - 5
    assert not cube.system.residuals(cube.units).any()


@pytest.mark.parametrize("column", ["turnover", "weight"])
@pytest.mark.parametrize(("value", "words"), [(None, "1 records have no value"), (-3.0, "1 records have a negative")])
def test_contributions_that_are_missing_or_negative_are_counted_and_refused(column: str, value: float | None, words: str) -> None:
    changed = FIRMS.set_column(FIRMS.column_names.index(column), column, pa.array([value, *FIRMS[column].to_pylist()[1:]]))
    with pytest.raises(InputError, match=words) as refusal:
        count_cube(sf.read(changed), ["region"], value="turnover", weight="weight")
    assert "30" not in str(refusal.value)


def test_values_without_a_place_and_columns_that_are_missing_are_refused() -> None:
    with pytest.raises(InputError, match="1 values of the column 'region' are no leaves"):
        count_cube(sf.read(FIRMS), ["region"], dimensions={"region": {"A": "c", "B": "c", "C": "d"}})
    with pytest.raises(MissingColumn, match="'nowhere'"):
        count_cube(sf.read(FIRMS), ["nowhere"])


ACTIVITIES = {
    "AZ": "A",
    "BE": "BCDE",
    "FZ": "F",
    "GI": "GHI",
    "JZ": "J",
    "KZ": "K",
    "LZ": "L",
    "MN": "MN",
    "OQ": "OPQ",
    "RU": "RSTU",
}
SECTIONS = {3: "A", 9: "B", 33: "C", 35: "D", 39: "E", 43: "F", 47: "G", 53: "H", 56: "I", 63: "J", 66: "K", 68: "L", 75: "M",
            82: "N", 84: "O", 85: "P", 88: "Q", 93: "R", 96: "S", 98: "T", 99: "U"}  # fmt: skip


def turnover(data_dir: Path, *names: str) -> TableCube:
    tables = [sf.read(data_dir / "tables" / f"rtauargus_turnover_{name}.csv").table() for name in names]
    codes = {code for table in tables if "ACTIVITY" in table.column_names for code in table["ACTIVITY"].to_pylist()}
    sections = {section: group for group, listed in ACTIVITIES.items() for section in listed if section in codes}
    activity = sections | {code: next(s for last, s in SECTIONS.items() if int(code) <= last) for code in codes if code.isdigit()}
    places = {code for table in tables if "NUTS" in table.column_names for code in table["NUTS"].to_pylist()}
    below = {code: code[:4] for code in places if len(code) == 5 and code.startswith("FR")}
    east = {**below, **dict.fromkeys(("FR41", "FR42", "FR43"), "Total_EAST")}
    by = [name for name in ("ACTIVITY", "NUTS", "SIZE", "CJ") if any(name in table.column_names for table in tables)]
    declared = {"ACTIVITY": activity, "NUTS": Dimension.tree("NUTS", below, east)}
    return cube_of_rows(tables, by, value="TOT", count="N_OBS", largest=["MAX"], dimensions=declared, rounding=3)


@pytest.mark.data
def test_the_linked_turnover_tables_are_one_system(data_dir: Path) -> None:
    cube = turnover(data_dir, "act_cj", "act_size", "nuts_size")
    assert cube.size == 1_263 and cube.system.equations == 646
    assert np.count_nonzero(cube.units) == 1_159
    assert turnover(data_dir, "act_nuts_size").size == 5_992


@pytest.mark.data
def test_the_regional_tables_have_two_hierarchies(data_dir: Path) -> None:
    for name, region, upper, count in (
        ("d2", "region", ("county", "k_group"), "freq"),
        ("z3", "region", ("fylke", "kostragr"), "ant"),
    ):
        table = sf.read(data_dir / "tables" / f"ssbtools_{name}.csv").table()
        rows = table.to_pylist()
        trees = [{str(row[region]): f"{each} {row[each]}" for row in rows} for each in upper]
        income = "main_income" if name == "d2" else "hovedint"
        by = [region, income] + (["mnd"] if name == "z3" else [])
        cube = cube_of_rows([table], by, count=count, dimensions={region: Dimension.tree(region, *trees)})
        assert cube.value_at(*["Total"] * len(by)) == sum(row[count] for row in rows)
        assert cube.value_at(f"{upper[0]} {rows[0][upper[0]]}", *["Total"] * (len(by) - 1)) == sum(
            row[count] for row in rows if row[upper[0]] == rows[0][upper[0]]
        )
