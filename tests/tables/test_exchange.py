"""The exchange format of τ-ARGUS, hierarchies and a-priori files: read, written, bounded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import HierarchyError, InputError, SfumatoError, SourceError
from sfumato.tables import Dimension, read_exchange
from sfumato.tables.formats import hierarchy_file, metadata
from sfumato.tables.formats.apriori import apriori_text, told_apriori
from sfumato.tables.formats.exchange import ExchangedTable, exchange_files, table_in
from tests.tables.salaries import salary_cube

RDA = """   <SEPARATOR> ";"
Size "99"
    <RECODEABLE>
    <TOTCODE> "Total"
Turnover
    <NUMERIC>
    <DECIMALS> 1
Freq
    <FREQUENCY>
Top1
    <MAXSCORE>
Status
    <STATUS>
Low
    <NUMERIC> <LOWERPL>
Up
    <NUMERIC> <UPPERPL>
"""
TAB = '"Total";30,5;9;9,0;S;0;0\n"a";10,5;2;9,0;U;1,5;2,5\n"b";20,0;7;5,0;P;0;0\n'


def test_a_table_is_read_with_its_statuses_and_levels() -> None:
    table = table_in(TAB, metadata.metadata_in(RDA), {})
    cube = table.cube
    assert cube.value_at("a") == 10.5 and cube.contributions is not None
    assert cube.contributions.count.tolist() == [9, 2, 7] and cube.contributions.largest[:, 0].tolist() == [90, 90, 50]
    assert table.unsafe == (cube.cell("a"),) and table.keep == (cube.cell("b"),)
    assert table.levels == {cube.cell("a"): (15, 25)}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    cube = salary_cube()
    table = ExchangedTable(cube, {3: "U", 4: "P", 5: "S"}, {3: (2.0, 5.0)}, {4: 7.0})
    for name, content in exchange_files(table, "salary").items():
        (tmp_path / name).write_bytes(content)
    again = read_exchange(tmp_path / "salary.tab")
    assert (again.cube.units == cube.units).all() and again.cube.contributions is not None and cube.contributions is not None
    assert (again.cube.contributions.largest == cube.contributions.largest).all()
    assert (again.unsafe, again.keep) == (table.unsafe, table.keep)
    assert again.levels == table.levels and again.costs[4] == 7


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvwxyz")), min_size=2, max_size=9, unique=True))
def test_a_hierarchy_file_of_any_tree_gives_that_tree_again(pairs: list[tuple[str, str]]) -> None:
    parents = {f"{inner}{leaf}": inner for leaf, inner in pairs}
    tree = Dimension.tree("x", parents)
    again = Dimension.tree("x", hierarchy_file.parents_in(hierarchy_file.as_text(tree)))
    assert set(again.codes) == set(tree.codes)
    assert {again.codes[t]: {again.codes[p] for p in ps} for t, ps in again.sums} == {
        tree.codes[t]: {tree.codes[p] for p in ps} for t, ps in tree.sums
    }


@pytest.mark.parametrize("text", ["", "@a", "a\n@@b", "a\na", "Total", "a\n@"])
def test_what_is_no_hierarchy_file_is_refused(text: str) -> None:
    with pytest.raises(HierarchyError):
        hierarchy_file.parents_in(text)


def test_an_a_priori_file_changes_statuses_costs_and_levels() -> None:
    table = ExchangedTable(salary_cube())
    told = told_apriori(table, "M1,P1,u\nM1,P2,p\nM1,P3,c,2.5\nM1,P1,pl,10,20\n")
    assert told.unsafe == (told.cube.cell("M1", "P1"),) and told.keep == (told.cube.cell("M1", "P2"),)
    assert told.costs == {told.cube.cell("M1", "P3"): 2.5} and told.levels == {told.unsafe[0]: (10, 20)}
    again = told_apriori(table, apriori_text(told, range(told.cube.size)))
    assert (again.status, again.levels, again.costs) == (told.status, told.levels, told.costs)
    with pytest.raises(SourceError, match="line 1 names no cell(?s:.*)line 2 says none(?s:.*)line 3 lacks a number"):
        told_apriori(table, "M9,P1,u\nM1,P1,zz\nM1,P1,pl,1\n")


@pytest.mark.parametrize(
    ("tab", "rda"),
    [
        (TAB.replace("20,0", "canary"), RDA),
        (TAB.replace("U", "canary"), RDA),
        (TAB + "1;2\n", RDA),
        (TAB, RDA.replace("<RECODEABLE>", "")),
        (TAB, RDA.replace("<DECIMALS> 1", "<DECIMALS> many")),
        (TAB, "<NUMERIC>\n" + RDA),
        (TAB, RDA.replace('";"', '";;"')),
        (TAB.replace("30,5", "31,9"), RDA),
        ("", RDA),
    ],
)
def test_a_hostile_or_broken_file_is_one_clear_error(tab: str, rda: str) -> None:
    with pytest.raises(SfumatoError) as refusal:
        table_in(tab, metadata.metadata_in(rda), {})
    assert "canary" not in str(refusal.value)


@given(st.text(alphabet='"Total;ab,0123456789.\n<>SUP', max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        table_in(text, metadata.metadata_in(RDA), {})
    except SfumatoError:
        return


@pytest.mark.data
def test_the_sample_with_its_three_wrong_totals(data_dir: Path, tmp_path: Path) -> None:
    """The sample file states three totals that are 1 too large; they are named, and computed again where that is allowed."""
    for source, name in (("tau_pp.tab", "pp.tab"), ("tau_pp.rda.txt", "pp.rda"), ("tau_region2.hrc", "region2.hrc")):
        shutil.copy(data_dir / "tables" / source, tmp_path / name)
    with pytest.raises(InputError, match="Size=Total, Region=Os(?s:.*)Size=Total, Region=4(?s:.*)Size=4, Region=Total"):
        read_exchange(tmp_path / "pp.tab")
    table = read_exchange(tmp_path / "pp.tab", rounding=50)
    assert table.cube.size == 162 and len(table.unsafe) == 9
    assert table.cube.value_at("Total", "Os") == 3_703_895


@pytest.mark.data
def test_all_hierarchy_files_are_read(data_dir: Path) -> None:
    sizes = {file.name: len(hierarchy_file.parents_in(file.read_text())) for file in sorted((data_dir / "tables").glob("*.hrc"))}
    assert sizes == {"tau_Region.hrc": 11, "tau_ck_dim_age.hrc": 8, "tau_ck_dim_sex.hrc": 4, "tau_region2.hrc": 16}
