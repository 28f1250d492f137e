"""`Any` switches the type checker off: in the signatures of these rooms it stands only with a reason beside it.

In `core` every function is looked at, elsewhere those that are public. A reason is a comment on the line of the annotation. A
value that is checked where it comes in is an `object`. An idea that many signatures share has a name (`core.plain_data.Plain`,
`engines.sources.TableLike`), which says above its definition what it stands for.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sfumato"

#: How many a room has, each with its reason. These numbers only ever get smaller.
MOST = {
    "core": 11,
    "kernels": 3,
    "wire": 0,
    "data": 2,
    "engines": 7,
    "ledger": 3,
    "measures": 0,
    "dp": 22,
    "anonymity": 0,
    "masking": 3,
    "rules": 0,
    "tables": 9,  # the solver of highspy has no types
    "attacks": 2,
    "report": 0,
    "workflow": 15,
    "lessons": 0,
    "cli": 3,
}


def signatures(node: ast.AST, everything: bool) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions and methods below a node, without those inside functions and, unless everything is wanted, without hidden."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            hidden = child.name.startswith("_") and not child.name.startswith("__")
            if hidden and not everything:
                continue
            if not isinstance(child, ast.ClassDef):
                yield child
                continue
        yield from signatures(child, everything)


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    args = function.args
    for arg in (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg):
        if arg is not None and arg.annotation is not None:
            yield arg.annotation
    if function.returns is not None:
        yield function.returns


def anys(text: str, *, everything: bool) -> list[tuple[int, bool]]:
    """The line of each annotation with `Any`, and whether a comment stands on it."""
    if "Any" not in text:
        return []
    lines = tokenize.generate_tokens(io.StringIO(text).readline)
    commented = {token.start[0] for token in lines if token.type == tokenize.COMMENT}
    return [
        (annotation.lineno, annotation.end_lineno in commented)
        for function in signatures(ast.parse(text), everything)
        for annotation in annotations(function)
        if any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(annotation))
    ]


def in_room(room: str) -> dict[str, list[tuple[int, bool]]]:
    paths = {str(path.relative_to(SOURCE)): path for path in sorted((SOURCE / room).rglob("*.py"))}
    return {name: anys(path.read_text("utf-8"), everything=room == "core") for name, path in paths.items()}


def bare_names(text: str) -> list[str]:
    """The names for types with `Any` in them that do not say what they stand for, on the line above or their own."""
    if "Any" not in text:
        return []
    lines = tokenize.generate_tokens(io.StringIO(text).readline)
    commented = {token.start[0] for token in lines if token.type == tokenize.COMMENT}
    bare = []
    for node in ast.parse(text).body:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
        value = node.value if isinstance(node, ast.AnnAssign | ast.Assign) else None
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Name | ast.Subscript | ast.BinOp):
            continue
        switched_off = any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(value))
        if switched_off and not commented & {node.lineno - 1, node.end_lineno}:
            bare.append(target.id)
    return bare


@pytest.mark.parametrize("room", MOST)
def test_any_has_a_reason_beside_it_and_becomes_rarer(room: str) -> None:
    there = in_room(room)
    assert [f"{name}:{line}" for name, lines in there.items() for line, reason in lines if not reason] == []
    count = sum(map(len, there.values()))
    assert count <= MOST[room], f"{room} has {count} annotations with Any: take another type, `object` for instance"


@pytest.mark.parametrize("room", MOST)
def test_a_name_for_a_type_with_any_says_what_it_stands_for(room: str) -> None:
    paths = sorted((SOURCE / room).rglob("*.py"))
    assert [f"{path.relative_to(SOURCE)}: {name}" for path in paths for name in bare_names(path.read_text("utf-8"))] == []


def test_a_bare_name_is_seen() -> None:
    text = """
Bare = Mapping[str, Any]
Also: TypeAlias = Any
#: JSON.
Told = dict[str, Any]
Beside: TypeAlias = list[Any]  # rows
TABLE: dict[str, Any] = {}
Typed = list[int]
"""
    assert bare_names(text) == ["Bare", "Also"]


def test_an_any_is_seen_wherever_a_caller_meets_it() -> None:
    text = """
def public(a: Any, b: list[Any], *c: int) -> int: ...
def _hidden(a: Any) -> Any: ...
class Thing:
    def method(self, a: int) -> dict[str, Any]:  # plain data
        def inner(x: Any) -> None: ...
"""
    assert anys(text, everything=False) == [(2, False), (2, False), (5, True)]
    assert anys(text, everything=True) == [(2, False), (2, False), (3, False), (3, False), (5, True)]
