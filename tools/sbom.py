"""The software bill of materials that goes with a wheel: CycloneDX 1.6 as JSON, made from `requirements.lock` alone.

The same lock and version give the same bytes. `python tools/sbom.py FOLDER` writes it there; the build of a wheel puts
it into the wheel (`hatch_build.py`). https://cyclonedx.org/docs/1.6/json/, PEP 770.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_LICENCE, _HASH = "# licence: ", re.compile(r"--hash=sha256:([0-9a-f]{64})")
_PIN = re.compile(r"([a-z0-9][a-z0-9.-]*)==([^\s\\]+)")
#: An SPDX licence expression: identifiers, AND, OR, WITH and brackets.
_EXPRESSION = re.compile(r"\(*[A-Za-z0-9.+-]+\)*(?: (?:AND|OR|WITH) \(*[A-Za-z0-9.+-]+\)*)*")


def locked(text: str) -> list[dict[str, Any]]:
    """The packages of a lock: name, version, licence, digests."""
    packages: list[dict[str, Any]] = []
    licence = ""
    for line in text.splitlines():
        if line.startswith(_LICENCE):
            licence = line.removeprefix(_LICENCE)
        elif found := _PIN.match(line):
            packages.append({"name": found[1], "version": found[2], "licence": licence, "hashes": []})
        if digest := _HASH.search(line):
            packages[-1]["hashes"].append(digest[1])
    return packages


def bill(lock: str, project: dict[str, Any]) -> dict[str, Any]:
    """The bill: the package itself, and every package of the lock as a component it depends on."""
    components = [_component(package) for package in locked(lock)]
    own = _reference(project["name"], project["version"])
    described = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": _licences(project["license"]),
            }
        },
        "components": components,
        "dependencies": [
            {"ref": own, "dependsOn": [component["bom-ref"] for component in components]},
            *({"ref": component["bom-ref"]} for component in components),
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(described, sort_keys=True))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{number}", **described}


def _component(package: dict[str, Any]) -> dict[str, Any]:
    reference = _reference(package["name"], package["version"])
    return {
        "type": "library",
        "bom-ref": reference,
        "name": package["name"],
        "version": package["version"],
        "purl": reference,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in package["hashes"]],  # one for each file of the lock
        **({"licenses": _licences(package["licence"])} if package["licence"] not in ("", "not stated") else {}),
    }


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _licences(stated: str) -> list[dict[str, Any]]:
    spdx = _EXPRESSION.fullmatch(stated) and ("-" in stated or stated in ("MIT", "ISC", "0BSD", "Zlib"))
    return [{"expression": stated}] if spdx else [{"license": {"name": stated}}]


def write(folder: Path, root: Path = ROOT) -> Path:
    """Write the bill of this source tree into a folder; returns its file."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    content = bill((root / "requirements.lock").read_text(encoding="utf-8"), project)
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{project['name']}-{project['version']}.cdx.json"
    place.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return place


if __name__ == "__main__":
    write(Path(sys.argv[1]))
