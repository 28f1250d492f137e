"""`requirements.lock`: every dependency of `make setup` with its version and the SHA-256 of its files.

`python tools/lock.py` asks pip for one set of versions (that of `constraints.txt`) and for the files of each platform and
Python named below, and writes the lock. `python tools/lock.py covers` says by its exit code whether the lock covers the
Python that runs it. Nothing is installed, and no address of an index is written down.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCK, CONSTRAINTS, PROJECT = ROOT / "requirements.lock", ROOT / "constraints.txt", ROOT / "pyproject.toml"
PYTHONS = ("3.11", "3.12", "3.13")
#: What `make setup` installs besides the core.
EXTRAS = ("formats", "postgres")
GLIBC = (17, 24, 26, 27, 28)
#: Names of platforms as the lock lists them, and the tags from which pip takes the best file. The oldest system counts: a
#: newer one takes the file whose digest is listed, although it could take another.
PLATFORMS = {
    "linux x86_64": [*(f"manylinux_2_{n}_x86_64" for n in GLIBC), "manylinux2014_x86_64"],
    "linux aarch64": [*(f"manylinux_2_{n}_aarch64" for n in GLIBC), "manylinux2014_aarch64"],
    "darwin arm64": [f"macosx_{n}_0_arm64" for n in range(11, 15)],
}
#: The oldest system that the files are for: glibc on Linux, macOS itself.
OLDEST = {"linux": (2, 28), "darwin": (14, 0)}
COVERS = "# covers: "
_LONGEST_LICENCE = 80

Package = dict[str, object]


def main() -> int:
    """Write the lock, or say whether it covers this Python."""
    if sys.argv[1:] == ["covers"]:
        return 0 if covers(LOCK.read_text(encoding="utf-8"), *this_python()) else 1
    packages = resolved()
    hashes: dict[str, set[str]] = {str(each["name"]): {str(each["sha256"])} for each in packages}
    pins = [f"{each['name']}=={each['version']}" for each in packages]
    for python in PYTHONS:
        for tags in PLATFORMS.values():
            for each in reported(pins, *_for(python, tags)):
                hashes[str(each["name"])].add(str(each["sha256"]))
    LOCK.write_text(written(packages, hashes), encoding="utf-8")
    return 0


def this_python() -> tuple[str, str, tuple[int, ...]]:
    """The version of this Python, its platform, and the version of glibc or of macOS (none where there is another libc)."""
    place = f"{platform.system().lower()} {platform.machine().lower()}"
    name, version = platform.libc_ver()
    known = version if name == "glibc" else platform.mac_ver()[0]
    system = tuple(int(part) for part in known.split(".")[:2]) if known else ()
    return f"{sys.version_info.major}.{sys.version_info.minor}", place, system


def covers(lock: str, python: str, place: str, system: tuple[int, ...]) -> bool:
    """Whether a lock has the files for a Python on a platform."""
    listed = f"{COVERS}{place}, Python {python}" in lock.splitlines()
    return listed and system >= OLDEST[place.split()[0]]


def resolved() -> list[Package]:
    """The dependencies of the core and of what `make setup` installs besides, at the versions of `constraints.txt`."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    besides = [requirement for extra in EXTRAS for requirement in project["optional-dependencies"][extra]]
    return reported([*project["dependencies"], *besides], "-c", str(CONSTRAINTS))


def reported(wanted: list[str], *options: str) -> list[Package]:
    """What pip would install: name, version, licence and digest of the file."""
    with tempfile.TemporaryDirectory() as folder:
        asked, report = Path(folder) / "wanted.txt", Path(folder) / "report.json"
        asked.write_text("\n".join(wanted), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--only-binary=:all:"]
        subprocess.run([*command, "--report", report, "-r", asked, *options], check=True, stderr=subprocess.DEVNULL)
        return [_package(entry) for entry in json.loads(report.read_text(encoding="utf-8"))["install"]]


def _package(entry: dict[str, dict[str, object]]) -> Package:
    about, archive = entry["metadata"], entry["download_info"]["archive_info"]
    name = re.sub(r"[-_.]+", "-", str(about["name"])).lower()
    digest = archive["hashes"]["sha256"]  # type: ignore[index]
    return {"name": name, "version": about["version"], "licence": _licence(about), "sha256": digest}


def _licence(about: dict[str, object]) -> str:
    """The licence in a word or two, as the package states it."""
    stated = str(about.get("license_expression") or about.get("license") or "").strip()
    if stated and "\n" not in stated and len(stated) <= _LONGEST_LICENCE:
        return stated
    classified = [text for text in about.get("classifier") or () if str(text).startswith("License :: ")]  # type: ignore[union-attr]
    return str(classified[0]).split(" :: ")[-1] if classified else "not stated"


def _for(python: str, tags: list[str]) -> list[str]:
    platforms = [part for tag in tags for part in ("--platform", tag)]
    return ["--no-deps", "--python-version", python, *platforms, "--target", tempfile.gettempdir()]


def written(packages: list[Package], hashes: dict[str, set[str]]) -> str:
    """The text of the lock: what it covers, then each package with its licence and digests."""
    lines = ["# Written by `make lock`. Installed by `make setup`: pip install --require-hashes -r requirements.lock"]
    lines += [f"{COVERS}{place}, Python {python}" for place in PLATFORMS for python in PYTHONS]
    lines += ["# Elsewhere `make setup` installs the same versions from constraints.txt, without digests."]
    for each in sorted(packages, key=lambda package: str(package["name"])):
        digests = [f"    --hash=sha256:{digest}" for digest in sorted(hashes[str(each["name"])])]
        lines += [f"# licence: {each['licence']}", " \\\n".join([f"{each['name']}=={each['version']}", *digests])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
