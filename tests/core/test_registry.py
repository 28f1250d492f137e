"""One registry: every kind in every room, and a method that is added by its file and one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato
import sfumato as sf
from sfumato.core import registry
from sfumato.core.errors import ParameterError, RecipeError

SOURCE = Path(sfumato.__file__).parent

TOY = '''"""Toy: every number of a column becomes its mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.data.records import Records
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask


@dataclass(frozen=True)
class Toy(Mask):
    """The mean for everybody."""

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        return Change({each.name: np.full_like(each.values, each.values.mean()) for each in records.numbers})

    def keeps(self) -> tuple[Kept, ...]:
        return (Kept("mean", True),)
'''

TOY_ATTACK = '''"""Gossip: rumours about diseases, held against those that the release shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.attacks.adversary import TableAttack, is_table
from sfumato.attacks.tables.classes import released_table
from sfumato.core.view import AttackResult, View
from sfumato.data.masked import TableView


@dataclass(frozen=True)
class Gossip(TableAttack[frozenset[str]]):
    """Somebody has heard which diseases there are."""

    needs: ClassVar[tuple[str, ...]] = ("rumours",)

    def fits(self, view: View[object, object]) -> bool:
        return is_table(view) and "diagnosis" in view.schema.sensitive

    def knowledge_from(self, entries: Mapping[str, Any]) -> frozenset[str]:
        return frozenset(entries["rumours"])

    def run(self, view: TableView, knowledge: frozenset[str] | None = None) -> AttackResult:
        shown = released_table(view).table.column("diagnosis").to_pylist()
        rate = sum(value in (knowledge or ()) for value in shown) / len(shown)
        return AttackResult("Gossip", rate, 0.0, (rate, rate), len(shown), "Rumours were held against the release.")
'''

PROBE_ATTACK = """
import json
import sfumato as sf
from sfumato.core.errors import InputError
from sfumato.workflow.attacking.outputs import attack_outputs
people = sf.read(sf.data.sample_table(50), schema=sf.data.sample_schema())
release = sf.protect(people, sf.KAnonymity(2), sf.Mondrian(), seed=1)
release.save("out")
told = {"rumours": release.data.column("diagnosis").to_pylist()}
def names(**more):
    return [each.attack for each in sf.attack("out", **more)]
try:
    names(only=["Gossip"])
except InputError as error:
    refusal = str(error)
game = {"attack": "Gossip", "published": {"release": "out"}, "knowledge": told}
open("game.json", "w").write(json.dumps(game))
success = attack_outputs("game.json")["success"]
print(json.dumps([names(), names(knowledge=told), names(knowledge=told, only=["Gossip"]), refusal, success]))
"""

PROBE = """
import json, sys
import sfumato as sf
from sfumato.core import registry
people = sf.read(sf.data.sample_table(50), schema=sf.data.sample_schema())
release = sf.protect(people, (), registry.make("method", {"name": "Toy", "columns": ["income"]}))
found = [sf.find("mask", "Toy").__name__, sf.Toy is sf.masking.Toy, "Toy" in registry.names("method")]
print(json.dumps([*found, release.certificate.method["name"]]))
"""


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("guarantee", "KAnonymity"),
        ("loss", "PureDP"),
        ("search", "Lattice"),
        ("mask", "Mdav"),
        ("measure", "loss"),
        ("attack", "Homogeneity"),
        ("mechanism", "Laplace"),
        ("algorithm", "Aim"),
        ("content", "Rows"),
    ],
)
def test_something_of_every_kind_is_found(kind: str, name: str) -> None:
    assert registry.every(kind)[name] is sf.find(kind, name)
    assert registry.has(kind, name)
    assert not registry.has(kind, "Nothing")


def test_the_kinds_are_those_that_rooms_bring() -> None:
    assert set(registry.kinds()) == {
        "guarantee",
        "loss",
        "search",
        "mask",
        "measure",
        "attack",
        "mechanism",
        "algorithm",
        "content",
        "result",
        "hiding",
        "sensitivity",
    }


def test_a_name_of_another_kind_is_unknown() -> None:
    for kind, name in (
        ("mask", "Lattice"),
        ("search", "Mdav"),
        ("guarantee", "PureDP"),
        ("mask", "Mask"),
        ("attack", "Register"),
    ):
        with pytest.raises(RecipeError, match=f"unknown {kind}"):
            sf.find(kind, name)


def test_the_nearest_name_is_proposed() -> None:
    with pytest.raises(RecipeError, match="Did you mean 'RankSwapping'"):
        sf.find("method", "RankSwaping")
    with pytest.raises(ParameterError, match="there is no kind 'masks'"):
        sf.find("masks", "Mdav")


def test_every_name_is_listed_once() -> None:
    stubs = sorted(SOURCE.rglob("__init__.pyi"))
    lines = [line for stub in stubs for line in stub.read_text().splitlines() if line.startswith("from sfumato.")]
    methods = [
        line for line in lines if ".masking." in line or ".attacks." in line or ".search." in line or ".dp.mechanisms." in line
    ]
    assert methods and len(methods) == len(set(methods))


def answer_with(place: Path, file: str, content: str, stub: str, line: str, probe: str) -> list[Any]:
    """What a program says in a copy of the package with one file more, and its line in a list of names."""
    package = place / "sfumato"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / file).write_text(content)
    with (package / stub).open("a") as names:
        names.write(f"{line}\n")
    surroundings = {"PYTHONPATH": str(place), "SFUMATO_KEY": str(place / "owner.key")}
    told = subprocess.run([sys.executable, "-c", probe], env=surroundings, cwd=place, capture_output=True, text=True, check=True)
    said: list[Any] = json.loads(told.stdout)
    return said


@pytest.mark.slow
def test_a_mask_is_added_by_its_file_and_one_line(tmp_path: Path) -> None:
    line = "from sfumato.masking.toy import Toy as Toy"
    assert answer_with(tmp_path, "masking/toy.py", TOY, "__init__.pyi", line, PROBE) == ["Toy", True, True, "Toy"]


@pytest.mark.slow
def test_an_attack_is_added_by_its_file_and_one_line(tmp_path: Path) -> None:
    """It says itself what it needs and fits, and is then run by folder, by name and by file."""
    line = "from sfumato.attacks.gossip import Gossip as Gossip"
    alone, told, named, refusal, success = answer_with(
        tmp_path, "attacks/gossip.py", TOY_ATTACK, "attacks/__init__.pyi", line, PROBE_ATTACK
    )
    assert "Homogeneity" in alone and "Gossip" not in alone
    assert told == [*alone, "Gossip"] and named == ["Gossip"] and success == 1.0
    assert refusal == "Gossip needs 'rumours': pass it as knowledge={'rumours': …}"
