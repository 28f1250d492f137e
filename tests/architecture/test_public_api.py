"""The public face: one lazy table of names, cheap to import."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import sfumato

HEAVY = (
    "numpy",
    "pyarrow",
    "pandas",
    "sklearn",
    "matplotlib",
    "duckdb",
    "pydantic",
    "polars",
    "numba",
    "scipy",
)

PROBE = """
import json, sys
{statement}
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


def table() -> dict[str, object]:
    return {name: module for name, module in sfumato.NAMES.items() if module != "sfumato"}


def probe(statement: str) -> set[str]:
    """The packages loaded after the statement in a fresh interpreter; its cost is measured by `make bench`."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(json.loads(answer.stdout))


def test_every_name_in_the_table_resolves() -> None:
    unresolved = {}
    for name in table():
        try:
            getattr(sfumato, name)
        except Exception as error:  # all faults at once
            unresolved[name] = f"{type(error).__name__}: {error}"
    assert not unresolved, unresolved


def test_the_public_names_are_the_table() -> None:
    names = sorted(table())
    assert list(sfumato.__all__) == names


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = sfumato.no_such_name  # type: ignore[attr-defined]


def test_importing_loads_nothing_heavy() -> None:
    assert not probe("import sfumato") & set(HEAVY)
