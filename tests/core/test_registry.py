"""One registry: every kind in every room, and a method that is added by its file and one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

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
from sfumato.kernels.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask


@dataclass(frozen=True)
class Toy(Mask):
    """The mean for everybody."""

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        return Change({each.name: np.full_like(each.values, each.values.mean()) for each in records.numbers})

    def keeps(self) -> tuple[Kept, ...]:
        return (Kept("mean", True),)
'''

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


@pytest.mark.slow
def test_a_mask_is_added_by_its_file_and_one_line(tmp_path: Path) -> None:
    """In a copy of the package: the file, and its line in the list of names."""
    package = tmp_path / "sfumato"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "masking" / "toy.py").write_text(TOY)
    with (package / "__init__.pyi").open("a") as stub:
        stub.write("from sfumato.masking.toy import Toy as Toy\n")
    answer = subprocess.run(
        [sys.executable, "-c", PROBE], env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stdout) == ["Toy", True, True, "Toy"]
