"""The examples in the documentation of data and hierarchies run, and their schemas are valid."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from sfumato.data.schema import Schema

PAGES = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (PAGES / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("page", ["data.md", "hierarchies.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, example in enumerate(blocks(page, "python"), 1):
        exec(compile(example, f"{page}, example {number}", "exec"), names)


@pytest.mark.parametrize("page", ["data.md", "hierarchies.md"])
def test_schemas_are_valid(page: str) -> None:
    for example in blocks(page, "toml"):
        assert Schema.parse(tomllib.loads(example)).columns
