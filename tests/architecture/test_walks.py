"""One piece of data walks through few modules: the bars of `benchmarks.walks`, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_walks_stay_below_their_bars() -> None:
    walked = subprocess.run(
        [sys.executable, "-m", "benchmarks.walks"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert "MISSED" not in walked.stdout and walked.stdout.count("modules") == 3
