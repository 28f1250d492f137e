"""Minimality against a saved release: the certificate says how it was made, a register who is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import KnownAlgorithm, Minimality
from sfumato.core.errors import InputError, ParameterError, Unsupported
from sfumato.data.schema import Column, HierarchySpec, Schema
from tests.workflow.attacked import attack_folder

SCHEMA = Schema(
    dataset="clinic",
    columns={
        "age": Column(role="quasi", type="integer", bounds=(0, 8), hierarchy=HierarchySpec(intervals=(3, 9))),
        "disease": Column(role="sensitive", type="string"),
    },
)
PEOPLE = pa.table({"age": [1, 1, 2, 2, 2, 2, 5, 5], "disease": ["HIV", "HIV", "none", "none", "none", "none", "HIV", "flu"]})
HALF_SICK = sf.AlphaKAnonymity(0.5, 1, "disease", ("HIV",))


def saved(folder: Path, method: Any, *guarantees: Any) -> Path:
    sf.protect(sf.read(PEOPLE, SCHEMA), list(guarantees or (HALF_SICK,)), method).save(folder / "out")
    return folder / "out"


@pytest.mark.parametrize("method", [sf.Lattice(), sf.LocalRecoding(), sf.Mondrian(), sf.TopDown()])
def test_the_two_who_had_to_be_merged_are_both_sick(tmp_path: Path, method: Any) -> None:
    (found,) = attack_folder(saved(tmp_path, method), register=PEOPLE.select(["age"]), only=["Minimality"])
    assert (found["success"], found["baseline"], found["targets"]) == (1.0, 0.5, 2)
    assert found["details"]["max_posterior"] == "1" and found["details"]["people_above_the_promise"] == 2
    assert found["details"]["recoding"] == ("global" if isinstance(method, sf.Lattice) else "local")
    assert "HIV" not in str(found)


def test_the_folder_gives_what_the_release_gives(tmp_path: Path) -> None:
    release = sf.protect(sf.read(PEOPLE, SCHEMA), [sf.DistinctLDiversity(2, "disease")], sf.Mondrian())
    release.save(tmp_path / "out")
    (found,) = attack_folder(tmp_path / "out", register=PEOPLE, only=["Minimality"])
    real = Minimality().run(release.view(), KnownAlgorithm(PEOPLE, l=2, requirement="distinct"))
    assert (found["success"], found["baseline"], found["targets"]) == (real.success, real.baseline, real.targets)
    assert found["details"] == dict(real.details)


def test_parameters_are_written_as_in_toml(tmp_path: Path) -> None:
    folder = saved(tmp_path, sf.Mondrian())
    texts = ('Minimality(value="HIV")', 'Minimality, value="HIV", attribute="disease"', 'Minimality(l=2, protected=["HIV"])')
    for given in (*texts, {"name": "Minimality", "value": "HIV"}):
        assert attack_folder(folder, register=PEOPLE, only=[given])[0]["success"] == 1.0
    with pytest.raises(InputError, match="value asked for"):
        attack_folder(folder, register=PEOPLE, only=['Minimality(value="none")'])
    assert attack_folder(folder, register=PEOPLE, only=["Minimality(max_worlds=1)"])[0]["details"]["classes_too_large"] == 1
    with pytest.raises(ParameterError, match="unknown parameter 'valu'"):
        attack_folder(folder, register=PEOPLE, only=['Minimality(valu="HIV")'])
    with pytest.raises(ParameterError, match="'l' is missing"):
        attack_folder(folder, register=PEOPLE, only=['Minimality(recoding="local")'])
    with pytest.raises(InputError, match="not the algorithm"):
        attack_folder(folder, register=PEOPLE, only=["Minimality(l=4)"])


def test_other_attacks_take_parameters_too(tmp_path: Path) -> None:
    folder = saved(tmp_path, sf.Mondrian())
    found = attack_folder(folder, register=PEOPLE, only=['Homogeneity(attribute="disease")', "Linkage"])
    assert [entry["attack"] for entry in found] == ["Homogeneity", "Linkage"]


def test_an_algorithm_that_is_not_modelled_is_refused_but_may_be_supposed(tmp_path: Path) -> None:
    folder = saved(tmp_path, sf.KMember())
    with pytest.raises(Unsupported, match="made by KMember"):
        attack_folder(folder, register=PEOPLE, only=["Minimality"])
    with pytest.raises(InputError, match="minimality"):  # clusters of equal people that were separated overlap
        attack_folder(folder, register=PEOPLE, only=['Minimality(l=2, protected=["HIV"])'])


def test_without_a_promise_about_diseases_there_is_no_reason_to_find(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="nothing about sensitive values"):
        attack_folder(saved(tmp_path, sf.Mondrian(), sf.KAnonymity(2)), register=PEOPLE, only=["Minimality"])


def test_the_register_must_be_given_and_be_that_of_the_release(tmp_path: Path) -> None:
    folder = saved(tmp_path, sf.Mondrian())
    with pytest.raises(InputError, match="--with"):
        attack_folder(folder, only=["Minimality"])
    with pytest.raises(InputError, match="exactly the people"):
        attack_folder(folder, register=PEOPLE.slice(1), only=["Minimality"])
    with pytest.raises(InputError, match="2 people of the register are in no released class"):
        others = pa.table({"age": [1, 1, 2, 2, 2, 2, 7, 7]})
        attack_folder(folder, register=others, only=["Minimality"])
    with pytest.raises(InputError, match=r"\.json"):
        attack_folder(folder, register=PEOPLE, only=["MembershipInModels"])


def test_minimality_is_not_among_the_usual_attacks(tmp_path: Path) -> None:
    """It needs a register of exactly the people of the release; any register will do for linkage."""
    found = attack_folder(saved(tmp_path, sf.Mondrian()), register=PEOPLE.slice(1))
    assert "Linkage" in {entry["attack"] for entry in found} and "Minimality" not in {entry["attack"] for entry in found}
