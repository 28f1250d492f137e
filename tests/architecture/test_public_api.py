"""The public face: one lazy table of names, cheap to import."""

from __future__ import annotations

import json
import os
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
BUDGET_SECONDS = 0.050
UNDER_CI = os.environ.get("CI") == "true"

PROBE = """
import json, sys, time
before = time.process_time()
{statement}
spent = time.process_time() - before
print(json.dumps([spent, sorted(name for name in sys.modules if "." not in name)]))
"""


def table() -> dict[str, object]:
    found = getattr(sfumato, "_TABLE", None)
    if found is None and not UNDER_CI:
        pytest.skip("sfumato has no table of names yet")
    assert found is not None, "sfumato/__init__ has no lazy table `_TABLE`"
    return dict(found)


def probe(statement: str) -> tuple[float, set[str]]:
    """CPU seconds that the statement costs in a fresh interpreter, and the packages loaded after it."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    spent, loaded = json.loads(answer.stdout)
    return spent, set(loaded)


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
    _, loaded = probe("import sfumato")
    assert not loaded & set(HEAVY)


def test_importing_is_cheap() -> None:
    # The smallest of several runs: other work on the machine only ever adds.
    cost = min(probe("import sfumato")[0] for _ in range(5))
    assert cost < BUDGET_SECONDS, f"import sfumato costs {cost * 1000:.0f} ms of CPU"
