"""Protected cubes: what is blank and why, what leaves, and that nothing about a blank does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.attacks import BlankInference
from sfumato.cli.main import run
from sfumato.core.errors import Infeasible, InputError, VerificationFailed
from sfumato.core.outcome import Outcome
from sfumato.core.view import View
from sfumato.measures.open_blanks import additive, equations_of, open_blanks, places_of
from sfumato.tables import (
    BlanksStayOpen,
    Dimension,
    MinimumFrequency,
    PPercent,
    ProtectedCube,
    PublishedTable,
    TableCube,
    audited,
    crosstab,
    protect_cube,
    protected_crosstab,
)
from sfumato.tables.published_witnesses import with_witnesses
from tests.tables.salaries import COLUMNS, COUNTS, NAMES, ROWS, SALARIES, salary_cube

RULES = [MinimumFrequency(3), PPercent(10)]


def protected() -> ProtectedCube:
    return protect_cube(salary_cube(), RULES)


@pytest.mark.golden("G-TAB-08")
def test_the_rules_alone_lead_to_the_seven_blanks_of_the_example() -> None:
    done = protected()
    blank = [done.cube.name_of(int(cell)) for cell in np.flatnonzero(done.blank)]
    names = ("M1 P1", "M1 P5", "M2 P3", "M2 P5", "M3 P1", "M3 P3", "M3 P5")
    assert blank == [f"row={name[:2]}, column={name[3:]}" for name in names]
    assert done.suppression.cost == 2522 and done.suppression.proved
    assert done.status(done.cube.cell("M3", "P5")) == "primary: the largest contributor within 10 %"
    assert done.status(done.cube.cell("M3", "P3")) == "secondary" and done.status(0) == "published"
    assert done.intervals[done.cube.cell("M3", "P3")] == ("55", "397")


def test_the_owner_can_keep_cells_name_others_and_set_levels() -> None:
    cube = salary_cube()
    keep, blank = cube.cell("M3", "P3"), cube.cell("M2", "P2")
    done = protect_cube(cube, RULES, keep=[keep], blank=[blank], levels={cube.cell("M2", "P3"): (5, 5)})
    assert not done.blank[keep] and done.status(blank) == "primary: by its owner"
    with pytest.raises(InputError, match="row=M2, column=P3(?s:.*)must stay published"):
        protect_cube(cube, RULES, keep=[cube.cell("M2", "P3")])
    with pytest.raises(InputError, match="protection level beyond"):
        protect_cube(cube, RULES, prior=1)
    with pytest.raises(Infeasible, match="row=M2, column=P3"):
        protect_cube(cube, [MinimumFrequency(2)], keep=[cell for cell in range(cube.size) if cell != cube.cell("M2", "P3")])


def test_an_audit_says_in_words_who_comes_how_close() -> None:
    cube = salary_cube()
    cell = cube.cell("M2", "P3")
    audit = audited(cube, [MinimumFrequency(2)], [cell])
    assert not audit.safe
    assert (
        "row=M2, column=P3 (fewer than 2 contributors): anybody" in audit.explain()[1]
        and "between 22 and 22" in audit.explain()[1]
    )
    assert audited(cube, RULES, np.flatnonzero(protected().blank).tolist()).safe


def brute_force_interval(table: PublishedTable, cell: int) -> tuple[float, float]:
    from scipy.optimize import linprog

    places = places_of(table.structure())
    number = {place: i for i, place in enumerate(places)}
    rows = np.zeros((table.system.equations, len(places)))
    for row, (total, parts) in enumerate(equations_of(table.structure())):
        rows[row, number[total]] -= 1
        for part in parts:
            rows[row, number[part]] += 1
    bounds = [(0, None) if blank else (unit, unit) for unit, blank in zip(table.units.tolist(), table.blank, strict=True)]
    aims = np.zeros(len(places))
    aims[cell] = 1
    low = linprog(aims, A_eq=rows, b_eq=np.zeros(len(rows)), bounds=bounds)
    high = linprog(-aims, A_eq=rows, b_eq=np.zeros(len(rows)), bounds=bounds)
    return float(low.fun), float(-high.fun) if high.status == 0 else np.inf


@given(st.lists(st.integers(0, 40), min_size=16, max_size=16), st.booleans())
def test_every_sensitive_cell_of_any_small_table_passes_an_independent_audit(values: list[int], several: bool) -> None:
    """Counts and sums with a hierarchy; a table that nothing protects is refused and not published."""
    by = [Dimension.tree("a", {"p": "g", "q": "g", "r": "h", "s": "h"}), Dimension.flat("b", "wxyz")]
    names = [(a, b) for a in "pqrs" for b in "wxyz"]
    if not any(values):
        return
    cells = dict(zip(names, values, strict=True))
    counts = {name: min(value, 5) for name, value in cells.items()}
    cube = TableCube.from_cells(cells, by, value="v" if several else None, counts=counts if several else None)
    try:
        done = protect_cube(cube, [MinimumFrequency(3)])
    except Infeasible:
        return
    for cell in np.flatnonzero(done.sensitive.cells).tolist():
        low, high = brute_force_interval(done.published, cell)
        assert low <= cube.units[cell] - done.sensitive.lower[cell] + 1e-6
        assert high >= cube.units[cell] + done.sensitive.upper[cell] - 1e-6


def test_the_same_table_gets_the_same_pattern_on_every_run() -> None:
    assert np.array_equal(protected().blank, protected().blank)


def test_witnesses_are_made_from_the_published_table_and_add_up() -> None:
    table = with_witnesses(protected().published)
    shown = {p: int(u) for p, u, b in zip(places_of(table.structure()), table.units, table.blank, strict=True) if not b}
    assert open_blanks(table.structure(), shown, table.witnesses) == (7, 7)
    other = salary_cube()
    for step in (("M2", "P3", 5), ("M2", "P5", -5), ("M3", "P3", -5), ("M3", "P5", 5)):
        other.units[other.cell(*step[:2])] += step[2]
    again = PublishedTable(
        other.grid, table.value, 0, np.where(table.blank, 0, other.units), table.blank, table.dataset, table.method
    )
    assert with_witnesses(again).witnesses == table.witnesses  # other true values, the same published table
    wrong = [list(table.witnesses[0]), *table.witnesses[1:]]
    wrong[0][0] = str(int(wrong[0][0]) + 1)
    with pytest.raises(VerificationFailed, match="does not add up"):
        open_blanks(table.structure(), shown, wrong)
    assert not additive(table.structure(), {**shown, **dict.fromkeys(set(places_of(table.structure())) - set(shown), 0)})


@pytest.mark.golden("G-TAB-04")
def test_a_blank_that_can_be_computed_is_not_published() -> None:
    cube = salary_cube()
    blank = np.zeros(cube.size, dtype=np.bool_)
    blank[cube.cell("M2", "P3")] = True
    table = PublishedTable(cube.grid, "salary", 0, np.where(blank, 0, cube.units), blank)
    assert BlankInference().run(View(table, None)).details["cells"] == ["row=M2, column=P3"]
    with pytest.raises(VerificationFailed, match="anybody can compute 1 blanks(?s:.*)row=M2, column=P3"):
        with_witnesses(table)
    with pytest.raises(VerificationFailed):
        sf.publish(Outcome(table, (BlanksStayOpen(),), {"name": "Suppression"}))


@pytest.mark.golden("G-TAB-05")
def test_the_intervals_of_the_printed_pattern() -> None:
    cube = salary_cube()
    blank = np.zeros(cube.size, dtype=np.bool_)
    for name in (("M1", "P3"), ("M1", "P5"), ("M2", "P3"), ("M2", "P5")):
        blank[cube.cell(*name)] = True
    table = PublishedTable(cube.grid, "salary", 0, np.where(blank, 0, cube.units), blank)
    cells, low, high = BlankInference().intervals(table)
    ends = {cube.name_of(int(cell)): (round(a), round(b)) for cell, a, b in zip(cells, low, high, strict=True)}
    assert ends == {
        "row=M1, column=P3": (400, 742),
        "row=M1, column=P5": (338, 680),
        "row=M2, column=P3": (0, 342),
        "row=M2, column=P5": (0, 342),
    }


def planted() -> TableCube:
    """Every cell that will be blank has a value that no sum of published ones contains by chance."""
    values = [7_310_159, *SALARIES[1:7], 3_391_817, *SALARIES[8:14], 9_917_263]
    return TableCube.from_cells(
        dict(zip(NAMES, values, strict=True)),
        [Dimension.flat("row", ROWS), Dimension.flat("column", COLUMNS)],
        value="salary",
        counts=dict(zip(NAMES, COUNTS, strict=True)),
        largest={("M1", "P1"): [7_310_000, 159], ("M2", "P3"): [3_391_817], ("M3", "P5"): [9_917_000, 263]},
    )


def test_no_published_byte_holds_a_blank(tmp_path: Path) -> None:
    done = protect_cube(planted(), RULES)
    release = sf.publish(done.outcome())
    release.save(tmp_path / "out")
    hidden = [f"{unit}" for unit in done.cube.units[done.blank].tolist() if unit > 1000]
    assert len(hidden) >= 3
    for file in (tmp_path / "out" / "public").iterdir():
        text = file.read_text()
        for value in hidden:
            assert value not in text.replace(",", "") and f"{int(value):,}" not in text, file.name
    assert all(value in (tmp_path / "out" / "owner" / "cells.csv").read_text() for value in hidden)
    for shown in (repr(done), repr(done.cube), repr(release), repr(done.published)):
        assert not any(value in shown for value in hidden)


def test_a_release_is_saved_verified_attacked_and_forgeries_are_seen(tmp_path: Path) -> None:
    release = sf.publish(protected().outcome(), tmp_path / "ledger.db")
    folder = release.save(tmp_path / "out")
    assert {file.name for file in (folder / "public").iterdir()} >= {
        "table.csv",
        "table.html",
        "structure.json",
        "witnesses.json",
    }
    assert sf.verify(folder).verdict == "keeps" and release.verify().verdict == "keeps"
    assert [each.success for each in sf.attack(folder)] == [0.0]
    for name, before, after in (
        ("table.csv", "2522", "2523"),
        ("table.csv", "M1,P1,,x", "M1,P1,7,"),
        ("witnesses.json", "fill", "full"),
        ("structure.json", '"decimals": 0', '"decimals": 1'),
        ("table.html", "8620", "8621"),
    ):
        forged = tmp_path / "forged"
        shutil.copytree(folder, forged)
        text = (forged / "public" / name).read_text()
        assert before in text
        (forged / "public" / name).write_text(text.replace(before, after))
        assert sf.verify(forged).verdict != "keeps"
        shutil.rmtree(forged)


def test_hostile_files_get_a_verdict_and_no_crash(tmp_path: Path) -> None:
    from sfumato.workflow.contents.cube import FILES, files_of, table_of

    stored = files_of(with_witnesses(protected().published))
    for name in sorted(FILES - {"table.html"}):
        for content in (b"", b"[]", b"{}", b'{"dimensions": [], "tables": []}', b"\xff", stored[name][:100]):
            with pytest.raises((VerificationFailed, sf.errors.SfumatoError, KeyError, TypeError, ValueError, IndexError)):
                table_of({**stored, name: content})
    structure = json.loads(stored["structure.json"])
    elsewhere: list[dict[str, object]] = [{"tables": [[[0, 99], [0, 1]]]}, {"tables": [[[-1], [0]]]}, {"tables": [[[0]]]}]
    for change in [{"decimals": 10**9}, {"decimals": "2"}, *elsewhere]:
        with pytest.raises((sf.errors.SfumatoError, ValueError)):
            table_of({**stored, "structure.json": json.dumps({**structure, **change}).encode()})


PEOPLE = pa.table({"town": list("AAAAABBBBBBCCCCCC"), "sex": list("fmmmmffffmmfffmmm"), "wage": [10 * i + 20 for i in range(17)]})


def test_a_crosstab_is_protected_with_its_margins_unless_told_otherwise() -> None:
    people = sf.read(PEOPLE)
    table = crosstab(people, "town", "sex")
    done = protected_crosstab(people, "town", "sex")
    assert table.blank.sum() >= 4 and table.blank[done.cube.cell("A", "f")]
    assert table.columns == ("town", "sex", "count", "flag") and not done.blank[done.cube.cell("Total", "Total")]
    alone = crosstab(people, "town", "sex", margins=False)
    assert alone.grid.size == 6 and alone.blank.sum() == 2
    assert crosstab(people, "town", "sex", value="wage").blank.any()
    with pytest.raises(InputError, match="at least one column"):
        crosstab(people, [])


def test_the_command_line_protects_audits_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["row,column,salary,people,top,second,flag"]
    top = {("M1", "P1"): (200, 160), ("M2", "P3"): (22, 0), ("M3", "P5"): (350, 5)}
    for (row, column), salary, people in zip(NAMES, SALARIES, COUNTS, strict=True):
        first, second = top.get((row, column), (0, 0))
        lines.append(f"{row},{column},{salary},{people},{first},{second},{'x' if (row, column) == ('M2', 'P3') else ''}")
    file = tmp_path / "cells.csv"
    file.write_text("\n".join(lines) + "\n")
    common = [str(file), "--cells", "--by", "row,column", "--value", "salary", "--count", "people", "--largest", "top,second"]
    assert run(["table", "protect", *common, "-o", str(tmp_path / "out"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["blank"], facts["cost"], facts["gap"], facts["safe"]) == (7, 2522, 0, True)
    assert run(["verify", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert run(["table", "audit", *common, "--blank", "flag", "-r", "MinimumFrequency(n=2)"]) == 1
    assert "not safe" in capsys.readouterr().out
    assert run(["table", "audit", *common, "-r", "MinimumFrequency(n=2)"]) == 2
    assert run(["table", "protect", str(file)]) == 2
    assert "--by" in capsys.readouterr().err


@pytest.mark.data
def test_the_exchange_sample_is_protected_and_audited(data_dir: Path, tmp_path: Path) -> None:
    for source, name in (("tau_pp.tab", "pp.tab"), ("tau_pp.rda.txt", "pp.rda"), ("tau_region2.hrc", "region2.hrc")):
        shutil.copy(data_dir / "tables" / source, tmp_path / name)
    assert run(["table", "protect", str(tmp_path / "pp.tab"), "--rounding", "50", "-o", str(tmp_path / "out"), "--quiet"]) == 0
    assert sf.verify(tmp_path / "out").verdict == "keeps"


@pytest.mark.data
@pytest.mark.slow
def test_the_linked_turnover_tables_are_protected_together(data_dir: Path) -> None:
    from tests.tables.test_cube import turnover

    cube = turnover(data_dir, "act_cj", "act_size", "nuts_size")
    done = protect_cube(cube, [MinimumFrequency(3)], method="lp", contributors=False)
    assert done.suppression.audit.safe and done.blank_cells > int(done.sensitive.cells.sum()) > 0
    assert sf.publish(done.outcome()).certificate.claims[0].holds
