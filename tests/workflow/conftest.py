"""Every test has an owner's key of its own and never touches the user's."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def owner_key(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path_factory.mktemp("keys") / "owner.key"
    monkeypatch.setenv("SFUMATO_KEY", str(path))
    return path
