"""The Python reference is what the code says: every public name of every stub, its first words, its parameters and ranges."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core import registry
from sfumato.core.declared import declarations

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sfumato"
REFERENCE = ROOT / "docs" / "reference"
TOOL = runpy.run_path(str(ROOT / "tools" / "reference.py"))
STUB_LINE = re.compile(r"^from ([\w.]+) import (\w+) as \2\b", re.MULTILINE)


def public_names() -> dict[str, Any]:
    """Every class, function and value that a stub lists, by its place and name, read without the script that is tested."""
    listed = {}
    for stub in sorted(SOURCE.rglob("__init__.pyi")):
        for module, name in STUB_LINE.findall(stub.read_text("utf-8")):
            home = importlib.import_module(module)
            value = getattr(home, name) if hasattr(home, name) else importlib.import_module(f"{module}.{name}")
            if not inspect.ismodule(value):
                listed[f"{module}.{name}"] = value
    return listed


NAMES = public_names()


def entry(name: str) -> str:
    """What the reference says of a class, wherever it stands."""
    pages = "\n".join(page.read_text("utf-8") for page in sorted(REFERENCE.glob("*.md")))
    found = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", pages, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found[1]


def test_the_pages_are_as_the_code_is() -> None:
    written = TOOL["written"]()
    assert {page.name for page in REFERENCE.glob("*.md")} == set(written)
    stale = [file for file, text in written.items() if (REFERENCE / file).read_text("utf-8") != text]
    assert not stale, f"run `make reference`: {stale}"


def test_every_public_name_is_listed_with_its_meaning() -> None:
    index = (REFERENCE / "index.md").read_text("utf-8")
    meanings = dict(re.findall(r"^\| \[`sf\.(?:[\w.]+\.)?(\w+)`\]\([^)]*\) \| (.*) \|$", index, re.MULTILINE))
    meanings |= dict.fromkeys(
        re.findall(r'^\| \[`sf\.find\("measure", "(\w+)"\)`\]\([^)]*\) \| .+ \|$', index, re.MULTILINE), "a measure"
    )
    missing = [place for place in NAMES if not meanings.get(place.rpartition(".")[2], "").strip()]
    assert not missing, missing
    assert len(NAMES) > 250
    assert set(registry.every("measure")) <= set(meanings)


@pytest.mark.parametrize(
    "name", ["KAnonymity", "TCloseness", "PureDP", "Lattice", "Mdav", "Pram", "Homogeneity", "PrivateHistogram", "Aim"]
)
def test_parameters_have_the_ranges_that_errors_name(name: str) -> None:
    cls = next(value for place, value in NAMES.items() if place.endswith(f".{name}"))
    rows = entry(name)
    for each in declarations(cls):
        row = re.search(rf"^\| `{each.name}` \| (.*) \|$", rows, re.MULTILINE)
        assert row is not None, each.name
        assert each.words in row[1] and each.meaning in row[1]


def test_a_range_on_the_page_is_the_one_that_refuses() -> None:
    stated = re.search(r"^\| `k` \| (.*?) \|", entry("Mdav"), re.MULTILINE)
    assert stated is not None
    with pytest.raises(sf.errors.ParameterError, match=re.escape(f"k must be {stated[1]}")):
        sf.Mdav(k=1)


@pytest.mark.slow
def test_examples_of_public_names_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    places = dict(NAMES) | {f"measure {key}": cls for key, cls in registry.every("measure").items()}
    for value in {id(value): value for value in places.values() if inspect.isclass(value) or inspect.isfunction(value)}.values():
        module = sys.modules[value.__module__]
        for test in finder.find(value, value.__name__, module=module, globs={**vars(module), "sf": sf}):
            runner.run(test, out=lambda text: failures.append(text)) if test.examples else None
    assert runner.tries > 150 and not failures, "".join(failures)


failures: list[str] = []
