"""Attacks on aggregate tables: each names the cells it breaks, and no others."""

from __future__ import annotations

import pytest

from sfumato.attacks import (
    ContributorDisclosure,
    ExternalDisclosure,
    LargeContributor,
    LargestContributions,
    OtherTable,
    ShownCells,
    TableDifferencing,
)
from sfumato.core.errors import InputError
from sfumato.core.view import View
from tests.tables.salaries import COUNTS, NAMES, SALARIES

CELLS = ShownCells([", ".join(name) for name in NAMES], COUNTS, SALARIES)
VIEW = View(CELLS, None)


@pytest.mark.golden("G-TAB-01")
def test_an_outsider_reads_the_salary_of_22() -> None:
    attack = ExternalDisclosure()
    result = attack.run(VIEW)
    assert result.details["cells"] == ["M2, P3"] and result.success == 1 / 15
    assert attack.contributions(VIEW) == {"M2, P3": 22}
    assert "22" not in result.finding


@pytest.mark.golden("G-TAB-02")
def test_two_people_of_a_cell_learn_each_others_salary() -> None:
    assert ContributorDisclosure().run(VIEW).details["cells"] == ["M1, P1"]


@pytest.mark.golden("G-TAB-03")
def test_who_earns_350_of_363_bounds_the_others() -> None:
    largest = [0.0] * 14 + [350.0]
    attack = LargeContributor()
    assert attack.run(VIEW, LargestContributions(largest)).details["cells"] == ["M3, P5"]
    assert attack.rests(VIEW, LargestContributions(largest))["M3, P5"] == 13
    second = [0.0] * 14 + [6.0]
    assert attack.run(VIEW, LargestContributions(largest, second)).details["cells"] == ["M3, P5"]
    assert LargeContributor(within=0.01).run(VIEW, LargestContributions(largest)).details["cells"] == []


def test_blanks_break_nothing() -> None:
    blank = ShownCells(CELLS.names, COUNTS, [None] * 15)
    for attack in (ExternalDisclosure(), ContributorDisclosure()):
        assert attack.run(View(blank, None)).success == 0.0


def test_a_second_table_breaks_cells_that_differ_by_few_and_fills_blanks() -> None:
    other = OtherTable(counts=[*COUNTS[:14], 3], totals=[*SALARIES[:14], 13])
    result = TableDifferencing().run(VIEW, other)
    assert result.details["cells"] == ["M3, P5"] and result.details["few_people"] == 1
    some = ShownCells(CELLS.names, (), [None, *SALARIES[1:]])
    filled = TableDifferencing().run(View(some, None), OtherTable(totals=list(SALARIES)))
    assert filled.details["cells"] == ["M1, P1"] and filled.details["blanks_filled"] == 1


def test_knowledge_that_does_not_fit_is_refused_without_a_value() -> None:
    with pytest.raises(InputError, match="exceed their totals") as refusal:
        LargeContributor().run(VIEW, LargestContributions([3391.0] * 15))
    assert "3391" not in str(refusal.value)
    with pytest.raises(InputError, match="15 entries"):
        ShownCells(CELLS.names, [1])
    with pytest.raises(InputError, match="LargestContributions"):
        LargeContributor().run(VIEW)
    with pytest.raises(InputError, match="OtherTable"):
        TableDifferencing().run(VIEW)
