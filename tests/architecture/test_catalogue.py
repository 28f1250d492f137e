"""The catalogue names things that exist, each once."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "docs" / "catalogue.md"
REFERENCES = ROOT / "docs" / "references.md"

NOT_BUILT = "not built yet"
ITEMS = 313


class Row(NamedTuple):
    """One line of the catalogue."""

    id: str
    what: str
    where: str
    reference: str
    test: str


def rows() -> list[Row]:
    lines = CATALOGUE.read_text("utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [Row(*cell) for cell in cells if len(cell) == len(Row._fields) and re.fullmatch(r"[A-Z]+-\d+", cell[0])]


def named(text: str) -> list[str]:
    """The places in a cell: separated by commas or line breaks, in backquotes or as links or bare."""
    places = re.split(r",|;|<br ?/?>", text)
    return [re.sub(r"^\[([^\]]*)\]\(.*\)$", r"\1", place.strip()).strip("`") for place in places if place.strip()]


def exists(place: str) -> bool:
    """A file or folder of the repository, or an importable dotted name below sfumato."""
    if "/" in place or place.endswith((".md", ".py", ".toml")) or place in {"Makefile", "LICENSE"}:
        return any((root / place.split("#")[0]).exists() for root in (ROOT, ROOT / "docs", ROOT / "src" / "sfumato"))
    parts = re.sub(r"^sf\.", "sfumato.", place).removesuffix("()").split(".")
    if parts[0] != "sfumato":
        parts = ["sfumato", *parts]
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for attribute in parts[cut:]:
                found = getattr(found, attribute)
        except AttributeError:
            return False
        return True
    return False


@functools.cache
def defined_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def is_a_test(place: str) -> bool:
    file, _, name = place.partition("::")
    path = ROOT / (file if file.startswith("tests/") else f"tests/{file}")
    if not path.exists():
        return False
    return not name or set(re.sub(r"\[.*\]$", "", name).split("::")) <= defined_tests(path)


def test_every_item_has_one_row() -> None:
    ids = [row.id for row in rows()]
    repeated = sorted({name for name in ids if ids.count(name) > 1})
    assert not repeated
    assert len(ids) == ITEMS


def test_rows_of_an_area_are_numbered_without_gaps() -> None:
    numbers: dict[str, list[int]] = {}
    for row in rows():
        area, number = row.id.rsplit("-", 1)
        numbers.setdefault(area, []).append(int(number))
    assert {area: found for area, found in numbers.items() if found != list(range(1, len(found) + 1))} == {}


def test_every_row_says_what_and_from_whom() -> None:
    assert [row.id for row in rows() if not row.what or not row.where or not row.reference] == []


def test_every_place_exists() -> None:
    missing = {
        row.id: bad
        for row in rows()
        if row.where != NOT_BUILT and (bad := [place for place in named(row.where) if not exists(place)])
    }
    assert not missing, missing


def test_every_test_exists() -> None:
    missing = {row.id: bad for row in rows() if (bad := [place for place in named(row.test) if not is_a_test(place)])}
    assert not missing, missing


def test_every_reference_of_what_is_built_is_written_out() -> None:
    known = set(re.findall(r"\*\*(.+?)\.\*\*", REFERENCES.read_text("utf-8")))
    unknown = {
        row.id: bad
        for row in rows()
        if row.where != NOT_BUILT and (bad := [name for name in re.split(r"; ", row.reference) if name not in known])
    }
    assert not unknown, unknown


def test_what_is_built_has_a_test() -> None:
    untested = [row.id for row in rows() if row.where != NOT_BUILT and not row.test]
    assert not untested


def test_the_reader_of_places_tells_what_exists() -> None:
    assert exists("docs/glossary.md")
    assert exists("sfumato")
    assert not exists("sfumato.no_such_room.Nothing")
    assert not exists("docs/no-such-page.md")
    assert is_a_test("tests/architecture/test_catalogue.py::test_every_item_has_one_row")
    assert not is_a_test("tests/architecture/test_catalogue.py::test_no_such_test")
