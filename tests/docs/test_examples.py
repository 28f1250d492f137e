"""Every Python example in the README and the documentation runs, page by page, from top to bottom, in an
empty folder.
"""

from __future__ import annotations

import re
import runpy
import shlex
import warnings
from functools import partial
from pathlib import Path

import pytest

import sfumato as sf

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def blocks(page: Path) -> list[tuple[int, str]]:
    text = page.read_text("utf-8")
    return [(text.count("\n", 0, found.start()) + 2, found[1]) for found in BLOCK.finditer(text)]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def comparing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons start no processes, which tests of their own show to find the same: most of their time is the start."""
    monkeypatch.setattr(sf, "compare", partial(sf.compare, workers=1))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that pages assume somebody has, adult.csv with its schema, and no others."""
    from sfumato.data.sample import write_sample

    data, schema = write_sample(tmp_path, rows=2_000)
    text = schema.read_text("utf-8")
    head, occupation, tail = text.partition("[columns.occupation]")
    (tmp_path / "adult.csv").write_bytes(data.read_bytes())
    (tmp_path / "adult.toml").write_text(head + occupation + tail.replace('role = "quasi"', 'role = "sensitive"', 1), "utf-8")
    data.unlink()
    schema.unlink()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # what a comparison remembers
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
@pytest.mark.usefixtures("comparing_here")
def test_the_examples_of_a_page_run(page: Path, folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__page__"}  # a page runs as it is written
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        for line, source in blocks(page):
            exec(compile("\n" * (line - 1) + source, named(page), "exec"), names)


def test_the_readme_shows_what_was_promised() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    (_, source), *_ = blocks(ROOT / "README.md")
    assert len([line for line in source.splitlines() if line.strip()]) <= 20
    commands = re.search(r"## Command line\n\n```\n(.*?)```", text, re.DOTALL)
    assert commands is not None and len([line for line in commands[1].splitlines() if line.startswith("sfumato ")]) == 5
    for part in ("make demo", "make test", "docs/catalogue.md", ".svg)"):
        assert part in text


@pytest.mark.slow
@pytest.mark.parametrize("after_python", [False, True])
def test_the_commands_of_the_readme_run_in_order(
    after_python: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty folder, and in the one that the Python example leaves behind."""
    from sfumato.cli.main import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if after_python:
        exec(compile(blocks(ROOT / "README.md")[0][1], "README.md", "exec"), {"__name__": "__page__"})
    _, _, told = (ROOT / "README.md").read_text("utf-8").partition("## Command line")
    lines = [line for block in re.findall(r"^```\n(.*?)^```$", told, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            exec(arguments[1], {})
        elif arguments[0] != "compare":  # which takes long, and is run in tests of its own
            assert run(arguments) == 0, line
        if arguments[0] == "inspect":
            proposed = capsys.readouterr().out.splitlines()[-1].partition("then: ")[2]
            assert run(shlex.split(proposed)[1:]) == 0, proposed
    assert len(lines) == 12


@pytest.mark.slow
def test_the_readme_s_way_to_refute_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.cli.main import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_module.py").write_text("def my_function(rows):\n    return len(rows)\n")
    command = re.search(r"^`(sfumato refute .*?)`", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert command is not None and run(shlex.split(command[1])[1:]) == 1  # refuted: there is no noise


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    dead = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert not dead, dead


@pytest.mark.slow
def test_the_example_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "publish_a_table.py"), run_name="__main__")
    assert (tmp_path / "out" / "public" / "certificate.json").is_file()


@pytest.mark.slow
@pytest.mark.usefixtures("comparing_here")
def test_the_figures_can_be_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = runpy.run_path(str(ROOT / "examples" / "draw_figures.py"))
    told = re.compile(r"<desc[^>]*>(.*?)</desc>", re.DOTALL)
    for name in ("tradeoff", "risk-utility"):
        drawn = (ROOT / "docs" / "figures" / f"{name}.svg").read_text("utf-8")
        assert "<svg" in drawn[:500] and "<script" not in drawn
    fresh, kept = module["risk_utility_map"](), drawn
    assert told.search(fresh)[1] == told.search(kept)[1]  # type: ignore[index]
