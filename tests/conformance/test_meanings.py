"""Every parameter of every class that declares its parameters: a meaning beside its type, a word in the docstring, a default
within its own range."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from sfumato.core.declared import Declaration, Declared, declarations

ROOMS = ("sfumato.masking", "sfumato.dp")


def _classes() -> Iterator[type[Declared]]:
    for room in ROOMS:
        for module in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
            for found in vars(importlib.import_module(module.name)).values():
                own = isinstance(found, type) and found.__module__ == module.name
                if own and issubclass(found, Declared) and dataclasses.is_dataclass(found):
                    yield found


CASES = [pytest.param(kind, each, id=f"{kind.__name__}-{each.name}") for kind in _classes() for each in declarations(kind)]


def test_there_are_such_classes() -> None:
    assert {"Mdav", "Pram", "Laplace", "Quantiles", "PrivateHistogram", "Aim"} <= {kind.__name__ for kind in _classes()}


@pytest.mark.parametrize(("kind", "parameter"), CASES)
def test_a_parameter_has_a_meaning_and_stands_in_the_docstring(kind: type[Declared], parameter: Declaration) -> None:
    assert parameter.meaning
    docs = " ".join(base.__doc__ or "" for base in kind.__mro__)
    assert f"`{parameter.name}" in docs


@pytest.mark.parametrize(("kind", "parameter"), [case for case in CASES if not case.values[1].required])
def test_a_default_lies_in_its_range(kind: type[Declared], parameter: Declaration) -> None:
    if parameter.range is not None and not (parameter.optional and parameter.default is None):
        parameter.range.settled(parameter.default)
