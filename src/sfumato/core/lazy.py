"""Names that load on first use (PEP 562), listed once: in the stub beside a package's `__init__`, which type checkers read too.

The stub of `sfumato.masking` is `masking/__init__.pyi`; each of its lines `from sfumato.masking.base import Mask as Mask` is a
public name of the package. `from sfumato import data as data` names a package below it.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_LINE = re.compile(r"^from ([\w.]+) import (\w+) as \2\b", re.MULTILINE)


class Kind(NamedTuple):
    """A kind of things that a room brings: the concrete classes below `base` ("module:Class") that live `within` some packages.

    `keys` names a function ("module:function") that gives module and class of each name, where things are not called by the
    names of their classes. `core.registry` looks things up by kind.
    """

    base: str
    within: tuple[str, ...]
    keys: str = ""


def names_in_stub(init: str) -> dict[str, str]:
    """Name and module of every line in the stub beside an `__init__.py`."""
    return {name: module for module, name in _LINE.findall(Path(init).with_suffix(".pyi").read_text("utf-8"))}


def listed_above(package: str) -> dict[str, str]:
    """The names of the whole package whose modules lie in one of its rooms."""
    import sfumato

    return {name: module for name, module in sfumato.NAMES.items() if module.startswith(f"{package}.")}


def face(package: str, names: Mapping[str, str]) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package with these names."""

    def value_of(name: str) -> Any:
        module = names.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = importlib.import_module(f"{package}.{name}") if module == package else _loaded(module, name)
        setattr(sys.modules[package], name, value)
        return value

    public = sorted(name for name, module in names.items() if module != package)
    return public, value_of, lambda: sorted(names)


def _loaded(module: str, name: str) -> object:
    home = importlib.import_module(module)
    return getattr(home, name) if hasattr(home, name) else importlib.import_module(f"{module}.{name}")
