"""Inside a room no module imports one that imports it, not even inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sfumato"

#: Cycles that are still there. This list only ever gets shorter: a cycle that is gone must leave it.
KNOWN: list[set[str]] = []


def modules(source: Path) -> dict[str, Path]:
    """The modules of a package by their dotted names below it; a package by its own."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    """What a module imports when it runs, wherever that stands; not what only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name.removeprefix("sfumato.") in known else node.module for name in below]
        yield from (name.removeprefix("sfumato.") for name in names if name.startswith("sfumato."))
        yield from imported(node, known)


def cycles(source: Path) -> list[set[str]]:
    """Modules of one room of which each reaches every other by imports."""
    known = modules(source)
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        room = name.partition(".")[0]
        others = set(imported(ast.parse(path.read_text("utf-8")), known)) & known.keys()
        graph[name] = {other for other in others if other.partition(".")[0] == room}
    reached = {name: reachable(name, graph) for name in graph}
    found = []
    for name in graph:
        circle = {other for other in reached[name] if name in reached[other]}
        if name in circle and circle not in found:
            found.append(circle)
    return found


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def test_no_room_has_an_import_cycle() -> None:
    found = cycles(SOURCE)
    assert [sorted(circle) for circle in found if circle not in KNOWN] == [], "a cycle: what both need belongs below them"
    assert [sorted(circle) for circle in KNOWN if circle not in found] == [], "this cycle is gone: take it off the list"


@pytest.mark.parametrize(
    ("one", "circles"),
    [
        ("from sfumato.data.two import f", [{"data.one", "data.two"}]),
        ("def f():\n    from sfumato.data import two", [{"data.one", "data.two"}]),
        ("if TYPE_CHECKING:\n    from sfumato.data.two import f", []),
        ("from sfumato.data.three import f", []),
    ],
)
def test_a_cycle_inside_a_function_is_caught_and_one_for_type_checkers_is_none(
    tmp_path: Path, one: str, circles: list[set[str]]
) -> None:
    (tmp_path / "data").mkdir()
    for name, text in {"one": one, "two": "import sfumato.data.one", "three": ""}.items():
        (tmp_path / "data" / f"{name}.py").write_text(text, "utf-8")
    assert cycles(tmp_path) == circles
