"""What `make demo` shows while it installs."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "installing.py"


def wheel(folder: Path) -> Path:
    """A package of one line."""
    path = folder / "one_line-1.0-py3-none-any.whl"
    about = {
        "one_line.py": "",
        "one_line-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: one-line\nVersion: 1.0\n",
        "one_line-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "one_line-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in about.items():
            archive.writestr(name, text)
    return path


@pytest.mark.slow
def test_installing_says_how_far_it_is(tmp_path: Path) -> None:
    wheel(tmp_path)
    (tmp_path / "lock").write_text("one-line==1.0\n")
    command = [sys.executable, str(TOOL), "--target", str(tmp_path / "there")]
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    done = subprocess.run([*command, "-r", str(tmp_path / "lock")], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and (tmp_path / "there" / "one_line.py").is_file()
    assert done.stdout == "installing 1 package; this may take some minutes\ninstalled 1 package\n" and done.stderr == ""
    failed = subprocess.run([*command, "no-such-package"], capture_output=True, text=True, env=environment)
    assert failed.returncode != 0 and "no-such-package" in failed.stderr
    leader, follower = os.openpty()
    with subprocess.Popen([*command, "--upgrade", "one-line"], stdout=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        try:
            while part := os.read(leader, 65536):
                shown += part
        except OSError:
            pass
    os.close(leader)
    assert process.returncode == 0 and b"\rinstalling 1: one_line" in shown and b"\n" in shown


def test_make_demo_installs_with_it() -> None:
    assert (TOOL.parents[1] / "Makefile").read_text().count("$(BIN)/python tools/installing.py") == 2
