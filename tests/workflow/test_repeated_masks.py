"""Several masked releases of one dataset: what is said about them, and that saying it never stops a release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.certificate import plain
from sfumato.core.errors import Cancelled
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.report.summary import summary_lines
from sfumato.workflow.earlier.comparing import ADDS_UP
from sfumato.workflow.verifying.stated.comparison import refuse_other_comparison

DRAW = np.random.default_rng(0)
AGES = DRAW.permutation(np.arange(1000, 1100))


def table(ages: Any = AGES) -> Microdata:
    age = Column(role="quasi", type="integer", hierarchy=HierarchySpec(intervals=(10, 50)))
    described = {"age": age, "g": Column(role="quasi", type="string")}
    groups = [["a", "b", "c", "d"][n % 4] for n in range(len(ages))]
    return sf.read(pa.table({"age": ages, "g": groups}), Schema(dataset="d", columns=described))


def released(folder: Path, method: Any, data: Microdata | None = None) -> dict[str, Any]:
    made = sf.protect(table() if data is None else data, [], method, ledger=folder / "l.db")
    return dict(made.certificate.composition)


ROUND = [[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0.5, 0, 0, 0.5]]


@pytest.mark.parametrize("unbounded", [sf.Pram(suppress=0.3, columns=("g",)), sf.Pram(matrix={"g": ROUND})])
def test_a_law_of_pram_without_a_bound_stops_no_release(unbounded: Any, tmp_path: Path) -> None:
    assert released(tmp_path, unbounded)["earlier_releases"] == 0
    again = released(tmp_path, sf.Pram(0.5, columns=("g",)))
    assert again["repeated_masks"] == {"g": "no finite ε bounds the losses in 'g' (2 releases) together"}
    both = sf.Combined(masks=(sf.AdditiveNoise(0.5, columns=("age",)), sf.Pram(0.5, columns=("g",))))
    assert released(tmp_path, both)["repeated_masks"] == {"g": f"what the releases tell of 'g' was not added up: {ADDS_UP}"}


WEAK = sf.Pram(0.5, columns=("g",))
BLUR = sf.AdditiveNoise(0.5, columns=("age",))
SHOWN = "is published as it is in 1 of the releases"
UNSUMMED = f"was not added up: {ADDS_UP}"


@pytest.mark.covering
@pytest.mark.parametrize("newest", [True, False])
@pytest.mark.parametrize(
    ("repeated", "other", "column", "words"),
    [
        (WEAK, BLUR, "g", SHOWN),
        (WEAK, sf.Mdav(5, columns=("age",)), "g", SHOWN),
        (WEAK, sf.Combined(masks=(BLUR, sf.Pram(0.9, columns=("g",)))), "g", UNSUMMED),
        (WEAK, sf.Pram(0.9, columns=("g",), strata=("s",)), "g", UNSUMMED),
        (WEAK, sf.Lattice(), "g", UNSUMMED),
        (BLUR, WEAK, "age", SHOWN),
        (BLUR, sf.RankSwapping(10, columns=("age",)), "age", UNSUMMED),
        (BLUR, sf.Lattice(), "age", UNSUMMED),
        (sf.Pram(0.8, columns=("s",)), sf.Lattice(), "s", SHOWN),
    ],
    ids=lambda each: None if isinstance(each, str) else type(each).__name__,
)
def test_no_total_stands_beside_a_release_that_it_leaves_out(
    repeated: Any, other: Any, column: str, words: str, newest: bool, tmp_path: Path
) -> None:
    data = table()
    sensitive = {**data.schema.columns, "s": Column(role="sensitive", type="string")}
    rows = data.table().append_column("s", pa.array(["x", "y"] * 50))
    people = sf.read(rows, data.schema.replace(columns=sensitive))
    for method in (repeated, repeated, other) if newest else (other, repeated, repeated):
        promised = [sf.KAnonymity(2)] if isinstance(method, sf.Lattice) else []
        composition = dict(sf.protect(people, promised, method, ledger=tmp_path / "l.db").certificate.composition)
    assert words in composition["repeated_masks"][column] and words in composition["finding"]
    for total in ("at most", "average down", "narrowest"):
        assert total not in composition["repeated_masks"][column] + composition["finding"]
    refuse_other_comparison(json.loads(json.dumps(plain(composition))))


def test_no_total_stands_beside_a_release_that_cannot_be_read(tmp_path: Path) -> None:
    released(tmp_path, WEAK)
    for kept in (tmp_path / "l.db.releases").iterdir():
        kept.unlink()
    assert "repeated_masks" not in released(tmp_path, WEAK)
    assert UNSUMMED in released(tmp_path, WEAK)["repeated_masks"]["g"]


@pytest.mark.parametrize("method", [sf.RankSwapping(10, columns=("age",)), sf.AdditiveNoise(0.5, columns=("age",))])
def test_ranks_and_noise_of_a_changed_table_are_not_put_together(method: Any, tmp_path: Path) -> None:
    """The oldest hundred get nine hundred younger neighbours: no rank of before is within a window of now."""
    grown = table(np.concatenate([AGES, np.arange(0, 900)]))
    released(tmp_path, method)
    changed = released(tmp_path, method, grown)
    assert "repeated_masks" not in changed and "Ranks and noise in 'age' were not put together" in changed["finding"]
    same = released(tmp_path, method, grown)
    assert "(2 releases)" in same["repeated_masks"]["age"] and "were not put together" in same["finding"]


class Broken:
    """Fails with whatever it is told to, wherever it is called."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *args: object, **options: object) -> Any:
        raise self.error


PLACES = (
    "sfumato.attacks.several.intersection.Intersection.run",
    "sfumato.attacks.several.repeated_masks.repeated_masks",
    "sfumato.workflow.earlier.comparing.as_it_reads",
    "sfumato.ledger.ledger.Ledger.releases",
    "sfumato.workflow.earlier.comparing._in_words",
)


def before(place: str, folder: Path) -> None:
    """An earlier release that a new one is compared with at this place: masks only with masks."""
    sf.protect(table(), sf.KAnonymity(2), sf.Lattice(), ledger=folder / "l.db")
    if place.endswith("repeated_masks"):
        released(folder, sf.AdditiveNoise(0.5, columns=("age",)))


@pytest.mark.parametrize("place", PLACES)
def test_a_comparison_that_fails_stops_no_release(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before(place, tmp_path)
    for error in (ZeroDivisionError("999"), MemoryError(), KeyError("999")):
        with monkeypatch.context() as patched:
            patched.setattr(place, Broken(error))
            made = sf.protect(table(), sf.KAnonymity(20), sf.Lattice(), ledger=tmp_path / "l.db")
        finding = made.certificate.composition["finding"]
        assert "adds up" in finding or "unknown" in finding, finding
        assert "999" not in finding


@pytest.mark.slow
def test_a_release_without_a_comparison_is_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.ledger.ledger.Ledger.releases", Broken(MemoryError()))
    made = sf.protect(table(), sf.KAnonymity(20), sf.Lattice(), ledger=tmp_path / "l.db")
    made.save(tmp_path / "out")
    assert sf.verify(tmp_path / "out").holds
    assert "could not be compared: the comparison failed (MemoryError)" in "\n".join(summary_lines(made))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Cancelled("stopped")])
@pytest.mark.parametrize("place", PLACES)
def test_who_stops_a_comparison_is_heard(
    place: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(place, tmp_path)
    monkeypatch.setattr(place, Broken(error))
    with pytest.raises(type(error)):
        sf.protect(table(), sf.KAnonymity(20), sf.Lattice(), ledger=tmp_path / "l.db")


def lettered(letters: list[str | None], **more: Any) -> Microdata:
    """A quasi-identifier g, and columns with their descriptions."""
    columns = {"g": letters, **{name: values for name, (values, _) in more.items()}}
    described = {"g": Column(role="quasi", type="string"), **{name: column for name, (_, column) in more.items()}}
    return sf.read(pa.table(columns), Schema(dataset="d", columns=described))


def test_a_total_is_about_records_that_have_a_value(tmp_path: Path) -> None:
    """Two releases leave the same cells empty: no ε bounds what that tells."""
    data = lettered([None] * 20 + ["a", "b"] * 30)
    for _ in range(2):
        made = sf.protect(data, [], sf.Pram(0.7, columns=("g",)), ledger=tmp_path / "l.db")
        empty = {row for row, shown in zip(made.content.rows_behind, made.data["g"].to_pylist(), strict=True) if shown is None}
        assert empty == set(range(20))
    assert "ε = 1.7 at most per record that has a value" in made.certificate.composition["repeated_masks"]["g"]
    [said] = made.certificate.notices
    assert said.startswith("missing values stay missing") and said.endswith(": 'g'")


def test_a_total_is_not_that_of_a_person_with_several_records(tmp_path: Path) -> None:
    """Ten people of eight records each: likelihoods multiply over all sixteen that are published about one of them."""
    ids = [f"p{n % 10}" for n in range(80)]
    numbers = ([float(n) for n in range(80)], Column(role="quasi", type="number"))
    data = lettered(["abc"[n % 10 % 3] for n in range(80)], id=(ids, Column(role="unit", type="string")), x=numbers)
    for method in (sf.Pram(0.7, columns=("g",)), sf.AdditiveNoise(0.5, columns=("x",))):
        alone = sf.protect(data, [], method)
        assert any("several records of one value of the column 'id' tell more" in notice for notice in alone.certificate.notices)
        for _ in range(2):
            made = sf.protect(data, [], method, ledger=tmp_path / f"{type(method).__name__}.db")
        [told] = made.certificate.composition["repeated_masks"].values()
        assert told.endswith("and further over several records of one person") and told in made.certificate.composition["finding"]


def test_releases_with_a_seed_are_not_added_up(tmp_path: Path) -> None:
    """Under one seed two noises are one, scaled: what is left of both is nothing."""
    values = np.array([float(n * 7 % 1000) for n in range(300)])
    data = lettered(["a"] * 300, x=(values, Column(role="quasi", type="number")))
    made = [
        sf.protect(data, [], sf.AdditiveNoise(ratio, columns=("x",)), ledger=tmp_path / "l.db", seed=1) for ratio in (0.5, 0.1)
    ]
    loud, low = (each.data["x"].to_numpy()[np.argsort(each.content.rows_behind)] for each in made)
    assert np.allclose((np.sqrt(5) * low - loud) / (np.sqrt(5) - 1), values)
    assert UNSUMMED in made[1].certificate.composition["repeated_masks"]["x"]


def test_one_release_with_a_seed_adds_up_with_others(tmp_path: Path) -> None:
    released(tmp_path, WEAK)
    made = sf.protect(table(), [], WEAK, ledger=tmp_path / "l.db", seed=1)
    assert "at most per record" in made.certificate.composition["repeated_masks"]["g"]


def test_draws_that_chance_made_the_same_are_releases_of_their_own(tmp_path: Path) -> None:
    """One record that stays with probability one half: six draws give at most two different files."""
    data = lettered(["a"], s=(["x"], Column(role="sensitive", type="string")))
    data = data.with_schema(data.schema.replace(columns={**data.schema.columns, "g": GROUP}))
    for before in range(6):
        composition = sf.protect(data, [], sf.Pram(0.6, columns=("g",)), ledger=tmp_path / "l.db").certificate.composition
        assert composition["earlier_releases"] == before
    assert "(6 releases) add up to ε = 2.44 at most" in composition["repeated_masks"]["g"]  # 6 ln(0.6/0.4)


GROUP = Column(role="quasi", type="string", domain=("a", "b"))


def test_a_mask_that_draws_nothing_gives_the_same_release_again(tmp_path: Path) -> None:
    for _ in range(2):
        assert released(tmp_path, sf.Mdav(5, columns=("age",)))["earlier_releases"] == 0


def test_the_columns_of_a_joint_law_are_added_up_and_their_combination_is_none(tmp_path: Path) -> None:
    data = lettered(["a", "b"] * 50, h=(["p", "q", "r", "s"] * 25, Column(role="quasi", type="string")))
    for _ in range(2):
        made = sf.protect(data, [], sf.Pram(0.7, columns=("g", "h"), joint=True), ledger=tmp_path / "l.db")
    composition = made.certificate.composition
    assert set(composition["repeated_masks"]) == {"g", "h"} and "each of 'g' and 'h' (2 releases)" in composition["finding"]
    assert "was not added up" not in composition["finding"]


@pytest.mark.parametrize(
    ("mask", "earlier"),
    [
        (sf.Rounding(5, columns=("age",)), 0),
        (sf.Rounding(5, columns=("age",), how="random"), 1),
        (sf.Combined(masks=(sf.Mdav(k=5, columns=("income",)), sf.Rounding(5, columns=("age",)))), 0),
        (sf.Combined(masks=(sf.Mdav(k=5, columns=("income",)), sf.Rounding(5, columns=("age",), how="random"))), 1),
    ],
)
def test_the_same_run_again_is_a_release_of_its_own_where_something_is_drawn(mask: Any, earlier: int, tmp_path: Path) -> None:
    people = sf.read(sf.data.sample_table(60), schema=sf.data.sample_schema())
    for _ in range(2):
        release = sf.protect(people, [], mask, ledger=tmp_path / "ledger.db", utility=[], risk=[])
    assert release.certificate.composition.get("earlier_releases", 0) == earlier
