"""The face of the room: every name loads on first use, and importing the room loads nothing heavy."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import sfumato.data


def test_every_name_resolves() -> None:
    assert all(callable(getattr(sfumato.data, name)) for name in sfumato.data.__all__)


def test_no_name_is_hidden_by_a_module_of_the_same_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(sfumato.data.__path__)}
    assert not modules & set(sfumato.data.__all__)


def test_importing_the_room_loads_nothing_heavy() -> None:
    heavy = "numpy pyarrow pandas polars pydantic pyreadstat openpyxl cryptography".split()
    code = f"import sys, sfumato.data; print([m for m in {heavy!r} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
