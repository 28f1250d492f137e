"""Rooms are named after problems, modules after what they hold; no bags."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sfumato"

BAGS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "internals", "tools"}
DEEPEST = 4
ROOMS = set(
    "core kernels wire data engines ledger measures dp anonymity masking sets trees graphs places series"
    " tables rules local parties learning attacks report workflow server lessons web cli".split()
)


def modules() -> list[Path]:
    return [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py"))]


def test_no_module_is_a_bag() -> None:
    bags = [
        path.as_posix() for path in modules() for part in (*path.parts[:-1], path.stem) if BAGS & set(part.strip("_").split("_"))
    ]
    assert not bags, f"name these after what they hold: {bags}"


def test_modules_are_at_most_four_deep() -> None:
    deep = [path.as_posix() for path in modules() if len(path.parts) - (path.name == "__init__.py") > DEEPEST]
    assert not deep, f"deeper than {DEEPEST} below sfumato: {deep}"


def test_module_names_are_plain_words() -> None:
    odd = [
        path.as_posix()
        for path in modules()
        if path.stem not in {"__init__", "__main__"} and not re.fullmatch(r"_?[a-z][a-z0-9_]*", path.stem)
    ]
    assert not odd, odd


def test_every_folder_is_a_room_of_the_house() -> None:
    folders = {path.parts[0] for path in modules() if len(path.parts) > 1}
    assert folders <= ROOMS, f"no place in the architecture: {sorted(folders - ROOMS)}"
