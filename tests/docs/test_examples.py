"""Every page stands alone: its Python examples and its commands run from top to bottom in a fresh process, in an empty folder,
with an empty home folder and without a name that the page did not make.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

import sfumato as sf
from sfumato.cli.main import run
from tests.docs.pages import LINK, PAGES, ROOT, Piece, blocks, command_lines, headings, named, pieces

RUN = [page for page in PAGES if pieces(page)]
README = ROOT / "README.md"

Read = Callable[[list[Piece], Path], str | None]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Read]:
    """Has pieces of a page run by a process that knows nothing but the libraries; what went wrong, or None."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(sf.__file__).parents[1]), environment.get("PYTHONPATH", "")]).rstrip(
        os.pathsep
    )
    server = Path(__file__).with_name("page_server.py")
    with subprocess.Popen(
        [sys.executable, str(server)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        into, out = _pipes(process)

        def read(asked: list[Piece], folder: Path) -> str | None:
            home = tmp_path_factory.mktemp("home")
            into.write(json.dumps({"folder": str(folder), "home": str(home), "pieces": asked}) + "\n")
            into.flush()
            answer = out.readline()
            assert answer, "the process that runs pages ended"
            failed: str | None = json.loads(answer)["failed"]
            return failed

        yield read
        into.close()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None and process.stdout is not None
    return process.stdin, process.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=named)
def test_a_page_stands_alone(page: Path, fresh: Read, tmp_path: Path) -> None:
    failed = fresh(pieces(page), tmp_path)
    assert failed is None, failed


@pytest.mark.slow
def test_commands_of_the_readme_need_nothing_of_its_python(fresh: Read, tmp_path: Path) -> None:
    """Somebody who types the commands alone, from the first to the last in an empty folder."""
    commands = [piece for piece in pieces(README) if piece[0] == "command"]
    assert len(commands) >= 14
    failed = fresh(commands, tmp_path)
    assert failed is None, failed
    assert {"people.csv", "start.toml", "released", "masked", "histogram", "my_module.py"} <= {
        each.name for each in tmp_path.iterdir()
    }


@pytest.mark.slow
def test_nothing_is_there_that_a_page_did_not_make(fresh: Read, tmp_path: Path) -> None:
    """What this file says of a page would be worth nothing if names, files or a key were lying about."""
    there = """
import os
from pathlib import Path
assert set(globals()) <= {"__name__", "__builtins__", "os", "Path"}, sorted(globals())
assert not list(Path().iterdir()) and not list(Path.home().glob("[!l]*"))
assert not [name for name in os.environ if name.startswith("SFUMATO_")]
"""
    assert fresh([("python", there, 1)], tmp_path) is None
    assert "NameError" in (fresh([("python", "people", 1)], tmp_path) or "")
    wrong = {"words": ["sfumato", "verify", "nowhere"], "code": 0, "shown": ""}
    assert "ends with 2" in (fresh([("command", wrong, 1)], tmp_path) or "")
    right = {"words": ["sfumato", "verify", "nowhere"], "code": 2, "shown": "no such answer"}
    assert "does not answer" in (fresh([("command", right, 1)], tmp_path) or "")


@pytest.mark.slow
def test_the_command_that_inspect_proposes_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sf.data.write_sample(".", rows=300)
    assert run(["inspect", "people.csv", "-o", "start.toml"]) == 0
    proposed = re.search(r"(sfumato protect people\.csv .*)$", capsys.readouterr().out.rstrip())
    assert proposed is not None and run(shlex.split(proposed[1])[1:]) == 0


def test_commands_are_read_as_a_shell_would() -> None:
    typed = command_lines('sfumato query "SELECT 1" \\\n    --epsilon 1   # exit code 3: nothing was granted\n')
    assert typed == [{"words": ["sfumato", "query", "SELECT 1", "--epsilon", "1"], "code": 3, "shown": ""}]
    shown = command_lines("$ sfumato ledger\nann  ε = … left\n\n$ sfumato version\n")
    assert [each["words"] for each in shown] == [["sfumato", "ledger"], ["sfumato", "version"]]
    assert re.search(str(shown[0]["shown"]), "ann ε = 1 left") and not re.search(str(shown[0]["shown"]), "bob ε = 1 left")
    assert command_lines("make test\n") == []


def test_the_readme_shows_what_was_promised() -> None:
    text = README.read_text("utf-8")
    (_, source), *_ = blocks(README)
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
    commands = re.search(r"## Command line\n\n```\n(.*?)```", text, re.DOTALL)
    assert commands is not None and len([line for line in commands[1].splitlines() if line.startswith("sfumato ")]) == 5
    for part in ("make demo", "make test", "docs/catalogue.md", ".svg)"):
        assert part in text


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for target, anchor in LINK.findall(page.read_text("utf-8")):
        place = page if not target else page.parent / target
        if not place.exists() or (anchor and place.suffix == ".md" and anchor not in headings(place)):
            dead.append(f"{target}#{anchor}")
    assert not dead, dead


@pytest.mark.slow
def test_the_example_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "publish_a_table.py"), run_name="__main__")
    assert (tmp_path / "out" / "public" / "certificate.json").is_file()


@pytest.mark.slow
def test_the_figures_can_be_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "cpu_count", lambda: 1
    )  # a comparison starts no processes; tests of their own show that these find the same
    module = runpy.run_path(str(ROOT / "examples" / "draw_figures.py"))
    told = re.compile(r"<desc[^>]*>(.*?)</desc>", re.DOTALL)
    for name in ("tradeoff", "risk-utility"):
        drawn = (ROOT / "docs" / "figures" / f"{name}.svg").read_text("utf-8")
        assert "<svg" in drawn[:500] and "<script" not in drawn
    hiding = (ROOT / "docs" / "figures" / "hiding-map.svg").read_text("utf-8")
    assert told.search(module["hiding_map"]())[1] == told.search(hiding)[1] and "<script" not in hiding  # type: ignore[index]
    fresh_map, kept = module["risk_utility_map"](), drawn
    assert told.search(fresh_map)[1] == told.search(kept)[1]  # type: ignore[index]


@pytest.mark.slow
def test_the_pictures_of_the_hospital_are_those_of_its_page() -> None:
    told = re.compile(r"<desc[^>]*>(.*?)</desc>", re.DOTALL)
    page = (ROOT / "docs" / "hospital.md").read_text("utf-8")
    for name, drawn in runpy.run_path(str(ROOT / "examples" / "draw_hospital_figures.py"))["figures"]().items():
        kept = (ROOT / "docs" / "figures" / f"{name}.svg").read_text("utf-8")
        assert told.search(drawn)[1] == told.search(kept)[1]  # type: ignore[index]
        assert f"figures/{name}.svg" in page and "<script" not in kept and len(kept) < 30_000
