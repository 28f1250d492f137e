"""What a certificate says of how rows were made, and the rows disprove: a mask's parameters, levels, trees, attacks."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.errors import SfumatoError
from sfumato.data.schema import Column, HierarchySpec, Schema
from sfumato.workflow.publishing import cards
from sfumato.workflow.verifying.folder_parts import _can_be_run
from tests.conformance.examples import examples
from tests.data.test_shown_levels import TREES as DESCRIBED
from tests.faults import forging
from tests.faults.forging import claim, refused
from tests.faults.test_forged_words import Edit, forged

PARAMETERS, LEVEL, TREES = "the rows show that the mask did not have", "does not show the level", "levels and hierarchies"
NO_MASK = "says of its mask what no mask says"
ATTACK = "states an attack in a way that no release does"
_RANDOM = np.random.default_rng(3)
ROWS = pa.table(
    {
        "age": _RANDOM.integers(18, 80, 60),
        "pay": _RANDOM.normal(3000, 500, 60).round(2),
        "town": _RANDOM.choice(["a", "b", "c"], 60),
        "ill": _RANDOM.choice(["flu", "hiv", "none"], 60),
        "ward": _RANDOM.choice(["x", "y"], 60),
    }
)
AGES = HierarchySpec(intervals=(10, 20, 40, 80))
SCHEMA = Schema(
    dataset="d",
    unit="record",
    columns={
        "age": Column(role="quasi", type="integer", hierarchy=AGES),
        "pay": Column(role="quasi", type="number"),
        "town": Column(role="quasi", type="string", hierarchy=HierarchySpec(tree={"land": ["a", "b"], "sea": ["c"]})),
        "ill": Column(role="sensitive", type="string"),
        "ward": Column(role="sensitive", type="string"),
    },
)
ALL = ("age", "pay", "town")
_COARSE = HierarchySpec(intervals=(1e4,))
TREE_SCHEMA = SCHEMA.replace(columns={**SCHEMA.columns, "pay": Column(role="quasi", type="number", hierarchy=_COARSE)})
RELEASES: dict[str, Callable[[], Any]] = {
    "whole": lambda: sf.protect(sf.read(ROWS, SCHEMA), (), sf.Mdav(5, columns=ALL)),
    "some": lambda: sf.protect(sf.read(ROWS, SCHEMA), sf.KAnonymity(1), sf.Mdav(5, columns=("age", "pay"))),
    "combined": lambda: sf.protect(
        sf.read(ROWS, SCHEMA),
        sf.KAnonymity(1),
        sf.Combined(
            masks=(sf.Mdav(5, columns=ALL), sf.Rounding(5, columns=("age",)), sf.TopBottomCoding(top=3200, columns=("pay",)))
        ),
    ),
    "levels": lambda: sf.protect(
        sf.read(ROWS, TREE_SCHEMA),
        sf.KAnonymity(5),
        sf.Lattice(),
        attacks=[{"name": "Homogeneity", "attribute": "ill"}, {"name": "Homogeneity", "attribute": "ward"}],
    ),
    "flat": lambda: sf.protect(
        sf.read(ROWS.select(["town"]), Schema(dataset="d", unit="record", columns={"town": Column(role="quasi", type="string")})),
        sf.KAnonymity(2),
        sf.Lattice(),
    ),
}

CODED = SCHEMA.replace(
    columns={
        **SCHEMA.columns,
        "code": Column(role="quasi", type="integer", order=("4", "1", "3", "2")),
        "degree": Column(role="sensitive", type="string", order=("none", "school", "master")),
    }
)
CODES = ROWS.append_column("code", pa.array([4, 1, 3, 2] * 15)).append_column(
    "degree", pa.array(["none", "school", "master"] * 20)
)
EVERY_MASK: dict[str, Callable[[], Any]] = {
    "codes": lambda: sf.TopBottomCoding(top="1", columns=("code",)),
    "codes by number": lambda: sf.TopBottomCoding(top=1, columns=("code",)),
    "codes by share": lambda: sf.TopBottomCoding(top=0.4, by="quantile", columns=("code",)),
    "codes combined": lambda: sf.Combined(
        masks=(sf.TopBottomCoding(top="1", columns=("code",)), sf.Pram(0.7, columns=("ward",)))
    ),
    "generalised": lambda: sf.Generalisation({"age": 1, "town": 1, "ward": 1}, suppress={"ill": ["hiv"]}),
    "coded": lambda: sf.TopBottomCoding(top=60, columns=("age",)),
    "coded by column": lambda: sf.TopBottomCoding(top={"age": 60, "pay": 3200}, columns=("age", "pay")),
    "degrees": lambda: sf.TopBottomCoding(top="school", columns=("degree",)),
}
RELEASES |= {
    name: lambda make=make: sf.protect(sf.read(CODES, CODED), (), make(), utility=(), risk=())
    for name, make in EVERY_MASK.items()
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that nobody changed; tests forge copies."""
    place = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "MOST_DISTINCT", 0)
        for name, make in RELEASES.items():
            make().save(place / name, "csv")
            assert sf.verify(place / name).verdict == ("promises nothing" if name in EVERY_MASK else "keeps"), name
    return place


def everywhere(name: str, old: Any, new: Any) -> Edit:
    """A parameter is stated otherwise wherever it is stated."""

    def edit(part: Any) -> None:
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if key == name and value == old:
                part[key] = new
            elif isinstance(value, (dict, list)):
                edit(value)

    return lambda certificate: [edit(certificate[part]) for part in ("method", "transparency")]


def invented_unit(certificate: dict[str, Any]) -> None:
    """Whom the records belong to is said to be known, and the column to be gone."""
    everywhere("k", 5, 50)(certificate)
    certificate["transparency"].update(unit="one value of the column 'pid'", removed_columns=["pid"])
    claim(certificate).update(unit="different 'pid'")
    claim(certificate)["also_measured"]["records per class"] = claim(certificate)["measured"]


def told(**facts: Any) -> Edit:
    """Other trees and levels."""
    return lambda c: [c["transparency"].setdefault(name, {}).update(values) for name, values in facts.items()]


def no_order(certificate: dict[str, Any]) -> None:
    """Real numbers are said to be codes, none of which lies beyond the bound."""
    certificate["transparency"]["ordered_codes"]["pay"] = []
    everywhere("pay", 3200, 2500)(certificate)


def texts_called_codes(certificate: dict[str, Any]) -> None:
    """A bound of texts is moved, and they are said to be codes, none of which can be shown."""
    certificate["transparency"]["ordered_codes"]["degree"] = []
    everywhere("top", "school", "none")(certificate)


def odd_time(certificate: dict[str, Any]) -> None:
    """A code that cannot be brought to another time zone, and a bound that is moved."""
    certificate["transparency"]["ordered_codes"]["age"] = ["0001-01-01T00:00:00+14:00"]
    everywhere("pay", 3200, 2500)(certificate)


def no_bound(certificate: dict[str, Any]) -> None:
    """A column is said to be coded, and there is no bound."""
    for method in (certificate["method"], certificate["transparency"]["method"]):
        del method["top"]["pay"]


def gone_quasi(certificate: dict[str, Any]) -> None:
    """A quasi-identifier that is not there, far generalised."""
    facts = certificate["transparency"]
    facts["removed_columns"].append("dna")
    facts["quasi_identifiers"].append("dna")
    told(hierarchies={"dna": "tree"}, levels={"dna": 3})(certificate)


def learnt(certificate: dict[str, Any]) -> None:
    """A tree of a population that nobody had."""
    certificate["transparency"].update(learnt_from_population=[])
    told(hierarchies={"town": "frequency"})(certificate)
    certificate["transparency"]["learnt_from_population"].append("town")


FORGED: dict[str, tuple[str, Edit, str]] = {
    "k over some columns": ("some", everywhere("k", 5, 30), PARAMETERS),
    "k of a unit that is invented": ("whole", invented_unit, PARAMETERS),
    "k in a combination": ("combined", everywhere("k", 5, 50), PARAMETERS),
    "base": ("combined", everywhere("base", 5, 7), PARAMETERS),
    "top": ("combined", everywhere("top", 3200, 2500), PARAMETERS),
    **{f"level {level}": ("levels", told(levels={"age": level}), LEVEL) for level in (0, 2, 4, 5, 6, 999)},
    "level of a tree": ("levels", told(levels={"town": 2}), LEVEL),
    "no such level of a tree": ("levels", told(levels={"town": 3}), LEVEL),
    "kind": ("levels", told(hierarchies={"age": "file"}), TREES),
    "flat": ("levels", told(hierarchies={"age": "flat"}, levels={"age": 0}), TREES),
    "mask": ("levels", told(hierarchies={"age": "mask"}, levels={"age": 2}), TREES),
    "tree of frequencies": ("levels", told(hierarchies={"town": "frequency"}), TREES),
    "column that is gone": ("levels", gone_quasi, TREES),
    "population that nobody had": ("levels", learnt, TREES),
    "values for ranks": ("flat", told(hierarchies={"town": "frequency"}, levels={"town": 1}), LEVEL),
    "no such level of a mask": ("generalised", everywhere("age", 1, 1_000_001), PARAMETERS),
    "no mask": ("coded", lambda c: c["transparency"].pop("method") and None, "which mask it is about"),
    "real numbers called codes": ("coded by column", no_order, PARAMETERS),
    "column without a bound": ("coded by column", no_bound, PARAMETERS),
    "bound of ordered texts": ("degrees", everywhere("top", "school", "none"), PARAMETERS),
    "texts called codes": ("degrees", texts_called_codes, PARAMETERS),
    "a time that no calendar has": ("coded by column", odd_time, PARAMETERS),
    "bound of another kind": ("degrees", everywhere("top", "school", 5), PARAMETERS),
    "bound of codes": ("codes", everywhere("top", "1", "4"), PARAMETERS),
    "bound that is no code": ("codes", everywhere("top", "1", "7"), PARAMETERS),
    "codes that are none": ("coded", lambda c: [c["transparency"].update(ordered_codes={"age": ["60"]})], PARAMETERS),
    "words for codes": ("codes", lambda c: c["transparency"]["ordered_codes"]["code"].append("Anna Muster"), NO_MASK),
    "attack on a model": ("levels", lambda c: c["attacks"][0].update(attack="MembershipInModels"), ATTACK),
    "attack that takes a register": ("levels", lambda c: c["attacks"][0].update(attack="Linkage"), ATTACK),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_the_rows_disprove_is_refused(name: str, honest: Path, tmp_path: Path) -> None:
    base, edit, reason = FORGED[name]
    public = Path(shutil.copytree(honest / base, tmp_path / "out")) / "public"
    refused(forged(public, edit), reason)


@pytest.mark.parametrize("name", [name for name in EVERY_MASK if name != "generalised"])
def test_a_folder_of_a_version_that_did_not_tell_codes_is_not_refused(name: str, honest: Path, tmp_path: Path) -> None:
    public = Path(shutil.copytree(honest / name, tmp_path / "out")) / "public"

    def untold(certificate: dict[str, Any]) -> None:
        facts = certificate["transparency"]
        for step in (facts, *facts.get("steps", ())):
            step.pop("ordered_codes", None)

    forged(public, untold)
    found = sf.verify(public.parent)
    assert found.verdict == "promises nothing", found.explain()


def test_levels_that_nobody_can_compare_rest_on_the_maker(honest: Path) -> None:
    words = "levels of a mask"
    assert words in sf.verify(honest / "generalised").explain() and words not in sf.verify(honest / "codes").explain()


@pytest.mark.parametrize("mask", [None, sf.Mdav(3, columns=ALL)], ids=["search", "mask"])
def test_an_attack_that_runs_on_rows_can_be_stated(mask: Any) -> None:
    people, ran = sf.read(ROWS, SCHEMA), set()
    for name, attack in examples("attack").items():
        try:
            sf.protect(people, () if mask else sf.KAnonymity(2), mask or sf.Lattice(), attacks=[attack], utility=(), risk=())
        except SfumatoError:
            continue
        ran.add(name)
    can = {name for name in registry.every("attack") if _can_be_run(name, mask is not None)}
    assert {"Homogeneity", "Skewness"} <= ran <= can and not can & {"Averaging", "Intersection", "Reconstruction"}


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 12])
def test_releases_at_one_level_are_accepted(k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "MOST_DISTINCT", 0)
    random = np.random.default_rng(k)
    specs: dict[str, Any] = {name: DESCRIBED[name][1] for name in ("intervals", "decimals", "mask", "dates", "tree", "frequency")}
    columns: dict[str, pa.Array] = {}
    for name in specs:
        values = [value for value in DESCRIBED[name][0] if value != "1*" and value != "1****"]
        columns[name] = pa.array([values[i] for i in random.integers(0, len(values), 40)])
    columns["set"] = pa.array(["x|y", "x"] * 20)
    columns["ill"] = pa.array(["flu", "no"] * 20)
    described = {name: Column(role="quasi", type="string", hierarchy=spec) for name, spec in specs.items()}
    described["set"] = Column(role="quasi", type="string", items="|", hierarchy=HierarchySpec(tree={"z": ["x", "y"]}))
    described["ill"] = Column(role="sensitive", type="string")
    for number, names in enumerate([["intervals", "tree"], ["decimals", "mask"], ["dates", "frequency"], ["set", "tree"]]):
        chosen = [*names, "ill"]
        schema = Schema(dataset="d", unit="record", columns={name: described[name] for name in chosen})
        people = sf.read(pa.table({name: columns[name] for name in chosen}), schema)
        release = sf.protect(people, sf.KAnonymity(k), sf.Lattice(suppression=0.2), utility=(), risk=())
        assert set(release.certificate.transparency["levels"]) == set(names)
        release.save(tmp_path / str(number), "csv")
        verdict = sf.verify(tmp_path / str(number))
        assert verdict.verdict == "keeps", verdict.explain()


def test_a_text_of_many_characters_has_as_many_levels(tmp_path: Path) -> None:
    masked = Column(role="quasi", type="string", hierarchy=HierarchySpec(mask="right"))
    people = sf.read(pa.table({"t": [letter * 1500 for letter in "abcd"] * 5}), Schema(dataset="d", columns={"t": masked}))
    sf.protect(people, (), sf.Generalisation({"t": 1200}), utility=(), risk=()).save(tmp_path / "out", "csv")
    assert sf.verify(tmp_path / "out").verdict == "promises nothing"


def test_numbers_in_an_order_are_compared_by_their_value(tmp_path: Path) -> None:
    grades = Column(role="sensitive", type="number", order=("1.5", "3", "2"))
    schema = Schema(dataset="d", columns={"grade": grades, "town": Column(role="quasi", type="string")})
    people = sf.read(pa.table({"grade": [1.5, 3.0, 2.0] * 9, "town": ["a"] * 27}), schema)
    sf.protect(people, (), sf.TopBottomCoding(top="3", columns=("grade",)), utility=(), risk=()).save(tmp_path / "out", "csv")
    assert sf.verify(tmp_path / "out").verdict == "promises nothing"
    refused(forged(tmp_path / "out" / "public", everywhere("top", "3", "1.5")), PARAMETERS)


def test_an_attack_on_a_forged_folder_says_what_is_wrong(honest: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(honest / "coded", tmp_path / "out"))
    forging.change(folder / "public", lambda certificate: certificate["transparency"].update(method=[]))
    with pytest.raises(SfumatoError, match="two different masks"):
        sf.attack(folder, register=ROWS, key="pay")
