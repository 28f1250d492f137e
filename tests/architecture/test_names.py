"""Rooms are named after problems, modules after what they hold, values after what they are; no bags, no class name twice."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sfumato"

BAGS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "internals", "tools"}
DEEPEST = 4
ROOMS = set(
    "core kernels wire data engines ledger measures dp anonymity masking sets trees graphs places series"
    " tables rules local parties learning attacks report workflow server lessons web cli".split()
)

#: They say how a value came about, not what it is.
NARRATORS = {"found", "known", "given", "made", "told"}
#: Names that callers and files use, by module, place and name, and why they stay.
KEPT = {
    "attacks/outputs/aggregate_differencing.py Membership known": "callers write it: Membership(known={...})",
    "attacks/outputs/model_differencing.py EarlierVersion known": "callers write it: EarlierVersion(known={...})",
    "dp/refute/auditing.py SumAuditor.__init__ known": "callers write it: SumAuditor(known=[...])",
    "dp/refute/auditing.py audit known": "the same argument as that of SumAuditor",
    "lessons/disclosure_logic.py disclosures known": "docs/risk.md calls it: disclosures(patients, known=[...])",
    "lessons/disclosure_logic.py Disclosures known": "gives back what `disclosures` was called with",
    "report/content.py Answer given": "recipes and certificates write it: {given = true, note = ...}",
    "workflow/verifying/certificate_form.py AnswerForm given": "the form of that answer in a certificate",
}


def modules() -> list[Path]:
    return [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py"))]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse((SOURCE / path).read_text("utf-8"))


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


def bound(node: ast.AST, place: str = "") -> Iterator[tuple[str, str]]:
    """The names that a tree binds to values, as variables, parameters and fields, each with the function or class around it."""
    for child in ast.iter_child_nodes(node):
        inner = place
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{place}.{child.name}".lstrip(".")
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield place, child.id
        elif isinstance(child, ast.arg):
            yield place, child.arg
        elif isinstance(child, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and child.name:
            yield place, child.name
        yield from bound(child, inner)


def test_every_binding_is_seen() -> None:
    text = """
class A:
    field: int
    def f(self, one, *two, three=3, **four):
        five = [six for six in one if (seven := six)]
        for eight, (nine, *ten) in five:
            with open(nine) as eleven: pass
        try: pass
        except ValueError as twelve: pass
        match one:
            case [thirteen, *fourteen]: return lambda fifteen: fifteen
"""
    names = "self one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    assert set(bound(ast.parse(text))) == {("A", "field"), *(("A.f", name) for name in names.split())}


def test_names_say_what_a_thing_is() -> None:
    narrated = {
        f"{path.as_posix()} {place} {name}" for path in modules() for place, name in bound(tree(path)) if name in NARRATORS
    }
    assert not narrated - KEPT.keys(), f"name these after what they are: {sorted(narrated - KEPT.keys())}"
    assert not KEPT.keys() - narrated, f"no longer there: {sorted(KEPT.keys() - narrated)}"


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.as_posix())
    twice = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert not twice, f"say what each is in its room: {twice}"
