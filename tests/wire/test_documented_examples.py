"""The examples on the pages about ledger, pseudonyms and anonymous communication run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["ledger.md", "pseudonyms.md", "anonymous-communication.md"])
def test_the_example_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    assert examples
    exec(compile("\n".join(examples), page, "exec"), {})  # a later one goes on where an earlier one ended
