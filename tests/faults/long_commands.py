"""The commands that take long, on a table whose every row can be recognised, to be killed in the middle of their work."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sfumato as sf
from sfumato.data.schema import Column
from sfumato.data.writers import write_file
from tests.workflow.people import schema, table

ROOT = Path(__file__).resolve().parents[2]
#: Stands in the name of everybody in the table, and in nothing that leaves or is kept.
CANARY = b"Zylberquist"
RUN = "from sfumato.cli.main import main; main()"
_PATIENCE = 120.0

_FUNCTION = """
import random
def answer(rows):
    return len(rows) + random.gauss(0, 3)
"""

COMMANDS: dict[str, tuple[str, ...]] = {
    "protect": (
        *("protect", "people.csv", "--schema", "people.toml", "--k", "5", "--method", "Mondrian"),
        *("--output", "out", "--overwrite", "--ledger", "ledger.db"),
    ),
    "compare": (
        *("compare", "people.csv", "--schema", "people.toml", "--workers", "2", "--no-cache", "--output", "map.html"),
        *("--methods", "Mdav(k=[3, 4])"),
    ),
    "query": (
        *("query", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "--data", "people.csv", "--schema", "people.toml"),
        *("--ledger", "ledger.db", "--epsilon", "0.001", "--max-rows", "1", "--max-groups", "1"),
        *("--output", "out", "--overwrite"),
    ),
    "publish": (
        *("publish", "PrivateHistogram", "people.csv", "--schema", "people.toml", "--set", "columns=sex"),
        *("--set", "max_rows=1", "--set", "epsilon=0.001", "--ledger", "ledger.db", "--output", "out", "--overwrite"),
    ),
    "attack": ("attack", "release", "--with", "people.csv"),
    "verify": ("verify", "release"),
    "refute": ("refute", "function.py:answer", "--neighbours", "pair.json", "--epsilon", "5", "--seconds", "0.5"),
    "inspect": ("inspect", "people.csv", "--schema-out", "learnt.toml"),
}
#: Commands that copy public files, or let foreign code write, into a folder that is removed at the next start.
HOLDS_FILES = ("attack", "verify", "refute")


@dataclass(frozen=True)
class Place:
    """A folder with the table, a release and a ledger, and a temporary folder of its own."""

    folder: Path

    @classmethod
    def furnish(cls, folder: Path, rows: int) -> Place:
        """Write the table and what the commands need besides."""
        (folder / "tmp").mkdir()
        people = table(rows)
        names = [f"{CANARY.decode()} {number:06d}" for number in range(rows)]
        described = schema(name=Column(role="unit", type="string"), sex=Column(role="quasi", type="string", domain=("f", "m")))
        write_file(people.set_column(0, "name", [names]), folder / "people.csv")
        (folder / "people.toml").write_text(described.to_toml(), encoding="utf-8")
        (folder / "function.py").write_text(_FUNCTION, encoding="utf-8")
        (folder / "pair.json").write_text(json.dumps([names[:50], names[:49]]), encoding="utf-8")
        place = cls(folder)
        data, key = sf.read(folder / "people.csv", described), folder / "owner.key"
        made = sf.protect(data, [sf.KAnonymity(5)], sf.Lattice(suppression=0.05), key=key)
        made.save(folder / "release")
        code, text = place.start(
            ("ledger", "grant", "clinic", "analyst", "--epsilon", "50", "--ledger", "ledger.db", "--unit", "name")
        )
        assert code == 0, text
        return place

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def start(self, arguments: Sequence[str], stop: int | None = None, after: float = 0.0) -> tuple[int, str]:
        """Run a command, and send it a signal after so many seconds; returns when none of its processes is left."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
            "SFUMATO_KEY": str(self.folder / "owner.key"),
            "TMPDIR": str(self.temporary),
        }
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=_hear_everything,
        )
        if stop is not None:
            try:
                process.wait(after)
            except subprocess.TimeoutExpired:
                process.send_signal(stop)
        text, _ = process.communicate(timeout=_PATIENCE)
        self._wait_for_descendants(process.pid)
        return process.returncode, text

    def reset(self) -> None:
        """Remove what a command made where it would refuse to make it again."""
        (self.folder / "learnt.toml").unlink(missing_ok=True)

    def assert_nothing_raw(self, command: str) -> None:
        """No row in the temporary folder, nor anywhere beside the table and the files that were given."""
        given = {"people.csv", "pair.json", "learnt.toml"}
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name not in given:
                assert CANARY not in path.read_bytes(), f"{command} left a row in {path.relative_to(self.folder)}"
        files = [path for path in self.temporary.rglob("*") if path.is_file()]
        if command not in HOLDS_FILES:
            assert not files, f"{command} left {[path.name for path in files]}"
        public = {path.read_bytes() for path in (self.folder / "release" / "public").iterdir()}
        if command != "refute":
            assert all(path.read_bytes() in public or _is_part(path, public) for path in files)

    def assert_whole_or_absent(self) -> None:
        """Outputs are there whole, or not at all; the ledger is in order."""
        out = self.folder / "out"
        if out.exists():
            found = sf.verify(out, ledger=self.folder / "ledger.db")
            assert found.certificate is not None and all(finding.passed is not False for finding in found.findings), (
                found.explain()
            )
            assert (out / "owner" / "card.html").stat().st_size > 1000
        page = self.folder / "map.html"
        assert not page.exists() or page.read_text().rstrip().endswith("</html>")
        learnt = self.folder / "learnt.toml"
        assert not learnt.exists() or sf.Schema.load(learnt).columns
        with sf.Ledger.open(self.folder / "ledger.db") as ledger:
            assert ledger.verify().ok

    def assert_clean(self) -> None:
        """After a run that nobody disturbed nothing is left of the killed ones."""
        assert list(self.temporary.iterdir()) == []
        assert not [path.name for path in self.folder.iterdir() if ".partial-" in path.name]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _wait_for_descendants(self, session: int) -> None:
        """Workers end with the process that started them; this waits until they have."""
        until = time.monotonic() + _PATIENCE
        while left := _processes_below(self.folder, session):
            assert time.monotonic() < until, f"processes {left} outlived the command"
            time.sleep(0.02)


def _hear_everything() -> None:
    """A test that runs under nohup hands down that a hang-up is not heard."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _is_part(path: Path, public: set[bytes]) -> bool:
    """A copy that was being made."""
    return any(content.startswith(path.read_bytes()) for content in public)


def _processes_below(folder: Path, session: int) -> list[int]:
    """Processes of a session, or that work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            state, group = fields[0], int(fields[3])
            inside = os.readlink(entry / "cwd").startswith(str(folder))
        except (OSError, ValueError, IndexError):
            continue
        if state != "Z" and (group == session or inside):
            found.append(int(entry.name))
    return found


SIGNALS = {"TERM": signal.SIGTERM, "HUP": signal.SIGHUP, "KILL": signal.SIGKILL}
