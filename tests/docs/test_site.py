"""The documentation as a whole: every page has its place in the navigation, figures say what they said, nothing is fetched."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_every_page_is_in_the_navigation_once() -> None:
    _, _, nav = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")
    listed = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    assert sorted(listed) == PAGES


def test_a_reader_goes_on_and_attacks_stand_in_one_place() -> None:
    """Next and previous below each page; the three pages on attacks follow each other, and the first leads to the others."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "- navigation.footer" in text and (DOCS / re.findall(r"^extra_css:\n  - (\S+)$", text, re.MULTILINE)[0]).is_file()
    listed = re.findall(r": (\S+\.md)$", text, re.MULTILINE)
    place = listed.index("attacks.md")
    assert listed[place : place + 3] == ["attacks.md", "transparency-attacks.md", "attacks-on-outputs.md"]
    start = (DOCS / "attacks.md").read_text("utf-8").partition("\n## ")[0]
    assert all(f"({page})" in start for page in listed[place + 1 : place + 3])


def test_only_the_catalogue_and_the_first_page_say_what_is_not_built() -> None:
    """Elsewhere such a sentence outlives its truth."""
    unbuilt = re.compile(
        r"not (?:built|implemented|available|supported) yet|not yet (?:built|implemented|available|supported)|built so far"
    )
    said = {page for page in PAGES if unbuilt.search(" ".join((DOCS / page).read_text("utf-8").split()))}
    assert said == {"index.md", "catalogue.md"}


@pytest.mark.parametrize("page", PAGES)
def test_no_page_fetches_anything_from_elsewhere(page: str) -> None:
    text = re.sub(r"```.*?```", "", (DOCS / page).read_text("utf-8"), flags=re.DOTALL)
    assert not re.search(r"!\[[^\]]*\]\(https?:|<(script|iframe|img|link)\b|```mermaid", text)


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_of_a_kind_that_the_site_shows(page: str) -> None:
    """`python` runs, commands are typed, `pycon` runs with its docstring; `py` is for what needs a cluster."""
    kinds = set(re.findall(r"^```(.*)$", (DOCS / page).read_text("utf-8"), re.MULTILINE))
    assert kinds <= {"", "python", "pycon", "console", "text", "toml", "sql"} | ({"py"} if page == "scale.md" else set())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["methods", "lattice", "mondrian", "water-filling"])
def test_figures_of_methods_still_say_what_they_said(name: str) -> None:
    drawing = runpy.run_path(str(ROOT / "examples" / "draw_method_figures.py"))
    fresh = drawing[name.replace("-", "_")]()
    kept = (DOCS / "figures" / f"{name}.svg").read_text("utf-8")
    told = re.compile(r"<desc[^>]*>(.*?)</desc>", re.DOTALL)
    assert told.search(fresh)[1] == told.search(kept)[1]  # type: ignore[index]
    assert "<script" not in kept and "http" not in kept.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.slow
def test_the_comparison_of_methods_prints_one_row_per_method(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["compare_methods.py", "300"])
    module = runpy.run_path(str(ROOT / "examples" / "compare_methods.py"), run_name="__main__")
    printed = capsys.readouterr().out.strip().splitlines()
    assert len(printed) == len(module["METHODS"]) + 2
    page = (DOCS / "methods" / "choosing.md").read_text("utf-8")
    assert all(line.split("|")[1].strip() in page for line in printed[2:])
