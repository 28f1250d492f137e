"""What is installed and what is said about it: the lock, the constraints beside it, and the bill of materials."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def tool(name: str) -> ModuleType:
    place = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert place is not None and place.loader is not None
    made = importlib.util.module_from_spec(place)
    place.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def packages() -> list[dict[str, Any]]:
    return tool("sbom").locked(LOCK)  # type: ignore[no-any-return]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_of_the_lock_has_digests_and_the_version_of_the_constraints(packages: list[dict[str, Any]]) -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    constrained = {normal(name): version for name, version in pins.items()}
    assert len(packages) > 30
    for package in packages:
        assert package["hashes"], package["name"]
        assert constrained[package["name"]] == package["version"]


def test_every_dependency_of_setup_is_in_the_lock(packages: list[dict[str, Any]]) -> None:
    besides = (PROJECT["optional-dependencies"][extra] for extra in tool("lock").EXTRAS)
    wanted = [*PROJECT["dependencies"], *(requirement for extra in besides for requirement in extra)]
    names = {normal(re.split(r"[<>=\[ ;]", requirement)[0]) for requirement in wanted}
    assert names <= {package["name"] for package in packages}


def test_the_lock_names_no_index() -> None:
    assert "://" not in LOCK
    assert not re.search(r"^\s*-(?!-hash)", LOCK, re.MULTILINE)


def test_the_lock_says_what_it_covers() -> None:
    covers = tool("lock").covers
    assert covers(LOCK, "3.11", "linux x86_64", (2, 36))
    assert covers(LOCK, "3.12", "linux aarch64", (2, 28))
    assert covers(LOCK, "3.12", "darwin arm64", (14, 5))
    assert not covers(LOCK, "3.12", "darwin arm64", (13, 6))
    assert not covers(LOCK, "3.11", "linux x86_64", (2, 17))  # too old for the files listed
    assert not covers(LOCK, "3.11", "linux x86_64", ())  # another C library
    assert covers(LOCK, "3.13", "linux x86_64", (2, 36))
    assert not covers(LOCK, "3.14", "linux x86_64", (2, 36))
    assert not covers(LOCK, "3.11", "windows amd64", ())


def test_the_bill_lists_the_lock_and_is_the_same_every_time(tmp_path: Path, packages: list[dict[str, Any]]) -> None:
    sbom = tool("sbom")
    first, second = sbom.write(tmp_path / "a"), sbom.write(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    content = json.loads(first.read_text())
    assert (content["bomFormat"], content["specVersion"], content["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", content["serialNumber"])
    own = content["metadata"]["component"]
    assert (own["name"], own["version"]) == (PROJECT["name"], PROJECT["version"])
    listed = {component["purl"]: component for component in content["components"]}
    assert set(listed) == {f"pkg:pypi/{package['name']}@{package['version']}" for package in packages}
    assert content["dependencies"][0] == {"ref": own["bom-ref"], "dependsOn": list(listed)}
    references = [own["bom-ref"], *(component["bom-ref"] for component in listed.values())]
    assert len(references) == len(set(references)) == len(content["dependencies"])
    for component in listed.values():
        assert component["type"] == "library"
        assert all(entry["alg"] == "SHA-256" and len(entry["content"]) == 64 for entry in component["hashes"])
        assert component["hashes"]
        for licence in component.get("licenses", ()):
            assert set(licence) in ({"expression"}, {"license"})
    assert sum("licenses" in component for component in listed.values()) > 30
