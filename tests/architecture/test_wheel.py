"""The wheel: what it says of itself, and what it does in an environment that has nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.architecture.test_supply_chain import tool
from tests.conftest import unavailable

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: What the core may take on a disk, in bytes, with its bytecode.
LARGEST = 900_000_000


def test_metadata_makefile_and_lock_name_the_same_pythons() -> None:
    pythons = tool("lock").PYTHONS
    least, most = pythons[0], f"3.{int(pythons[-1].split('.')[1]) + 1}"
    assert PROJECT["requires-python"] == f">={least},<{most}"
    classified = [
        each.rsplit(" ", 1)[1] for each in PROJECT["classifiers"] if each.startswith("Programming Language :: Python :: 3.")
    ]
    assert tuple(classified) == pythons
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"({least.replace('.', ', ')}) <= sys.version_info[:2] < ({most.replace('.', ', ')})" in makefile
    page = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    assert all(version in page for version in pythons)


def test_what_few_need_is_an_extra_that_the_errors_name() -> None:
    extras = PROJECT["optional-dependencies"]
    core = {re.split(r"[<>=\[ ;]", requirement)[0].lower() for requirement in PROJECT["dependencies"]}
    assert not core & {"pandas", "polars", "pot", "psycopg", "pyspark", "openpyxl", "pyreadstat", "dp-accounting"}
    asked = re.compile(r"(?:require_extra|MissingExtra)\(\s*\"([\w-]+)\", \"(\w+)\"")
    named = {pair for path in (ROOT / "src").rglob("*.py") for pair in asked.findall(path.read_text(encoding="utf-8"))}
    assert len(named) >= 7
    for package, extra in named:
        assert any(re.match(rf"{package}\b", requirement) for requirement in extras[extra]), (package, extra)
    assert set(extras["all"][0].partition("[")[2].rstrip("]").split(",")) == set(extras) - {"all", "test", "docs"}


@pytest.mark.stress
def test_the_wheel_works_in_an_empty_environment_and_the_core_is_small(tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=True)
    packages = next(place.glob("lib/python*/site-packages"))
    python, before = place / "bin" / "python", bytes_in(packages)
    pip = [str(python), "-m", "pip"]
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "SFUMATO_KEY": str(tmp_path / "owner.key")}

    def done(*command: str) -> str:
        process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-2000:]
        return process.stdout + process.stderr

    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], capture_output=True, text=True
    )
    if built.returncode != 0:
        unavailable("what builds the wheel: pip could not get it")
    (wheel,) = tmp_path.glob("sfumato-*.whl")
    done(*pip, "install", "-q", "--only-binary", ":all:", "-c", str(ROOT / "constraints.txt"), str(wheel))
    assert bytes_in(packages) - before <= LARGEST
    done(*pip, "check")
    sfumato = str(place / "bin" / "sfumato")
    said = done(sfumato, "demo", "shown", "--rows", "1000")
    assert said.count("`sfumato warm`") == 1
    assert "`sfumato warm`" not in done(sfumato, "demo", "again", "--rows", "1000")
    missing = "import sfumato as sf; sf.read(sf.data.sample_table(10)).to_polars()"
    refused = subprocess.run([str(python), "-c", missing], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert "pip install 'sfumato[polars]'" in refused.stderr
    assert "kernels are compiled" in done(sfumato, "warm")
    assert "were removed" in done(sfumato, "warm", "--remove")
    done(*pip, "uninstall", "-q", "-y", "sfumato")
    assert [path for path in packages.glob("sfumato/**/*") if path.is_file()] == []


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
