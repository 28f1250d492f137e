"""Who may import whom: the contracts in pyproject.toml hold, and they bite."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = str(Path(sys.executable).with_name("lint-imports"))


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def configuration() -> dict[str, object]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]


def small_house(folder: Path, modules: dict[str, str]) -> Path:
    """A package named sfumato with the contracts of this one and only the given modules."""
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")
    (folder / "tests" / "architecture").mkdir(parents=True)
    (folder / "tests" / "__init__.py").touch()
    shutil.copy(ROOT / "tests" / "architecture" / "only_in.py", folder / "tests" / "architecture")
    needed = ("kernels", "data.class_table", "anonymity", "measures.guarantees")
    for name in needed:
        modules.setdefault(name, "")
    for name, text in modules.items():
        path = folder / "src" / "sfumato" / Path(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        for parent in path.relative_to(folder / "src").parents:
            if parent != Path("."):
                (folder / "src" / parent / "__init__.py").touch()
    return folder


def test_the_contracts_hold() -> None:
    answer = lint(ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_no_contract_has_exemptions() -> None:
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text("utf-8")


def test_the_layers_are_those_of_the_architecture_page() -> None:
    page = ROOT / "ARCHITECTURE.md"
    drawn = re.search(r"```\n(cli \| web\n.*?)```", page.read_text("utf-8"), re.DOTALL) if page.is_file() else None
    if drawn is None:
        return
    layers = next(c for c in configuration()["contracts"] if c["type"] == "layers")["layers"]  # type: ignore[attr-defined]
    assert [re.sub(r"[()]", "", layer) for layer in layers] == drawn.group(1).strip().splitlines()


def test_a_sound_house_passes(tmp_path: Path) -> None:
    answer = lint(small_house(tmp_path, {"core.errors": "", "cli.main": "import rich\nfrom sfumato.core import errors"}))
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_an_upward_import_inside_a_function_is_caught(tmp_path: Path) -> None:
    answer = lint(small_house(tmp_path, {"core.errors": "def f():\n    from sfumato.cli import main", "cli.main": ""}))
    assert answer.returncode == 1
    assert "sfumato.core.errors -> sfumato.cli.main" in answer.stdout


def test_a_driver_outside_the_engines_is_caught(tmp_path: Path) -> None:
    answer = lint(small_house(tmp_path, {"report.card": "import duckdb"}))
    assert answer.returncode == 1
    assert "sfumato.report.card imports duckdb" in answer.stdout


def test_a_verifier_that_shares_code_with_the_searches_is_caught(tmp_path: Path) -> None:
    answer = lint(small_house(tmp_path, {"measures.guarantees": "from sfumato import kernels"}))
    assert answer.returncode == 1
    assert "sfumato.measures.guarantees" in answer.stdout


def test_a_folder_without_a_place_is_caught(tmp_path: Path) -> None:
    answer = lint(small_house(tmp_path, {"cellar.wine": ""}))
    assert answer.returncode == 1
    assert "cellar" in answer.stdout + answer.stderr
