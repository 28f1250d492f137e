"""Every parameter of a guarantee, a search, a measure or an attack says what it may be and what it means, and its class tells."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from sfumato.core.declared import Declared, declarations
from sfumato.core.registry import every

ROOMS = ("sfumato.attacks", "sfumato.measures.risk", "sfumato.measures.utility")


def _public() -> dict[str, type[Any]]:
    by_name = {**every("guarantee"), **every("loss"), **every("search")}
    for room in map(importlib.import_module, ROOMS):
        by_name |= {name: getattr(room, name) for name in room.__all__}
    return {name: kind for name, kind in by_name.items() if isinstance(kind, type) and is_dataclass(kind)}


DECLARED: dict[str, type[Any]] = {name: kind for name, kind in _public().items() if issubclass(kind, Declared)}


def test_whatever_is_checked_when_it_is_made_is_declared() -> None:
    assert [name for name, kind in _public().items() if hasattr(kind, "__post_init__") and name not in DECLARED] == []
    assert len(DECLARED) > 80


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_parameter_has_a_meaning_and_stands_in_the_description(name: str) -> None:
    kind = DECLARED[name]
    described = inspect.getdoc(kind) or ""
    listed = declarations(kind)
    assert [each.name for each in listed] == [field.name for field in fields(kind) if field.init]
    assert [each.name for each in listed if not each.meaning] == []
    assert [each.name for each in listed if f"`{each.name}" not in described] == []
