"""A new room: its files, its lines in the lists of names, its layer; then its content is published, verified and attacked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

SOURCE = Path(sfumato.__file__).parent
TOY = Path(__file__).parent / "toy_room"

PROBE = """
import json
import sfumato as sf
from sfumato.sets import DropRare
ballot = DropRare(3).run({"a": 5, "b": 3, "c": 1})
release = sf.publish(ballot, ledger="ledger.db", dataset="poll")
folder = release.save("out")
honest = sf.verify(folder, ledger="ledger.db")
again = sf.publish(DropRare(4).run({"a": 5, "b": 4}), ledger="ledger.db", dataset="poll")
found = sf.attack(folder)
stored = folder / "public" / "ballot.json"
stored.write_text(stored.read_text().replace("3", "9"))
print(json.dumps({
    "kind": release.certificate.kind_of_content, "files": sorted(release.certificate.files), "verdict": honest.verdict,
    "findings": [each.text for each in honest.findings if each.claim], "forged": sf.verify(folder).verdict,
    "in memory": release.verify().verdict, "attack": [[each.attack, each.success] for each in found],
    "earlier": again.certificate.composition["earlier_releases"], "registered": sf.find("content", "Ballot").__name__,
}))
"""


@pytest.mark.slow
def test_a_room_is_added_by_its_files_and_its_lines(tmp_path: Path) -> None:
    package = tmp_path / "sfumato"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "sets").mkdir()
    for name, place in (
        ("votes", "sets"),
        ("ballot_count", "measures"),
        ("lone_voter", "attacks"),
        ("ballot", "workflow/contents"),
    ):
        shutil.copy(TOY / f"{name}.py", package / place / f"{name}.py")
    face = "from sfumato.core.lazy import face, names_in_stub\nNAMES = names_in_stub(__file__)\n"
    (package / "sets" / "__init__.py").write_text(f"{face}__all__, __getattr__, __dir__ = face(__name__, NAMES)\n")
    lines = {
        "__init__.pyi": "from sfumato import sets as sets",
        "sets/__init__.pyi": "from sfumato.sets.votes import DropRare as DropRare",
        "attacks/__init__.pyi": "from sfumato.attacks.lone_voter import LoneVoter as LoneVoter",
        "workflow/__init__.pyi": "from sfumato.workflow.contents.ballot import Ballot as Ballot",
    }
    for stub, line in lines.items():
        with (package / stub).open("a") as file:
            file.write(f"{line}\n")
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "kind": "Ballot",
        "files": ["ballot.json", "card.html"],
        "verdict": "keeps",
        "findings": ["every item has at least 3 votes; counted 3"],
        "forged": "does not keep",
        "in memory": "keeps",
        "attack": [["LoneVoter", 1 / 3]],
        "earlier": 1,
        "registered": "Ballot",
    }
    project = Path(__file__).parents[2]
    layers = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache", "--config", project / "pyproject.toml"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{project}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert layers.returncode == 0 and "0 broken" in layers.stdout, layers.stdout
    (package / "sets" / "votes.py").write_text((package / "sets" / "votes.py").read_text() + "\nimport sfumato.workflow\n")
    layers = subprocess.run(
        layers.args, env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{project}"}, cwd=tmp_path, check=False
    )
    assert layers.returncode == 1
