"""Every parameter of every class that declares its parameters: a meaning beside its type, a word in the docstring, a default
within its own range."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

from sfumato.core import registry
from sfumato.core.declared import Declared, declarations

ROOMS = ("core", "wire", "measures", "dp", "anonymity", "masking", "rules", "attacks")


def _classes() -> Iterator[type[Any]]:
    for room in (f"sfumato.{name}" for name in ROOMS):
        for module in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
            for found in vars(importlib.import_module(module.name)).values():
                if isinstance(found, type) and found.__module__ == module.name and dataclasses.is_dataclass(found):
                    yield found


DECLARED = {f"{kind.__module__}.{kind.__name__}": kind for kind in _classes() if issubclass(kind, Declared)}


def test_whatever_can_be_found_declares_its_parameters() -> None:
    """Content is made of data and not of parameters."""
    kinds = [kind for each in registry.kinds() if each != "content" for kind in registry.every(each).values()]
    assert len(kinds) > 120
    assert [kind.__name__ for kind in kinds if not issubclass(kind, Declared) and dataclasses.fields(kind)] == []


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_every_parameter_has_a_meaning_a_word_in_the_docstring_and_a_default_in_its_range(name: str) -> None:
    kind = DECLARED[name]
    described = " ".join(base.__doc__ or "" for base in kind.__mro__)
    listed = declarations(kind)
    assert [each.name for each in listed] == [field.name for field in dataclasses.fields(kind) if field.init]
    assert [each.name for each in listed if not each.meaning] == []
    assert [each.name for each in listed if f"`{each.name}" not in described] == []
    for each in listed:
        if each.range is not None and not each.required and not (each.optional and each.default is None):
            each.range.settled(each.default)
