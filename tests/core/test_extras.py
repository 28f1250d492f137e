"""Packages that are not installed: one error that names the extra and the command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.errors import MissingExtra
from sfumato.core.extras import require_extra
from tests.workflow.people import people, release


def answer() -> Any:
    return sf.Session(people(100), budget=sf.PureDP(10)).sql("SELECT COUNT(*) AS n FROM people", epsilon=1)


@pytest.mark.parametrize(
    ("package", "made", "method"),
    [
        ("pandas", lambda: release(100), "to_pandas"),
        ("pandas", lambda: people(10), "to_pandas"),
        ("pandas", answer, "to_pandas"),
        ("polars", lambda: release(100), "to_polars"),
        ("polars", lambda: people(10), "to_polars"),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    package: str, made: Callable[[], Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    thing = made()
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    with pytest.raises(MissingExtra) as refused:
        getattr(thing, method)()
    assert str(refused.value) == (f"{method}() needs the package '{package}'. Install it with: pip install 'sfumato[{package}]'")


@pytest.mark.parametrize("opened", [lambda url: sf.read(url, table="people"), sf.Ledger.open])
def test_postgresql_without_its_driver_is_refused_with_the_command(
    opened: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra) as refused:
        opened("postgresql://owner:secret@nowhere.invalid/clinic")
    assert "pip install 'sfumato[postgres]'" in str(refused.value) and "secret" not in str(refused.value)


def test_an_installed_package_without_one_that_it_needs_is_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("import what_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="what_nobody_has"):
        require_extra("broken_package", "other", "this")
