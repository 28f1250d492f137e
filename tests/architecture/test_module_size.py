"""Modules stay small: a stranger can read one in a sitting."""

from __future__ import annotations

import statistics
import warnings
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "sfumato"

LARGEST = 800
ASKED_TO_SPLIT = 400
MEDIAN = 150


def line_counts() -> dict[str, int]:
    """Non-blank lines of every module but the packages' `__init__`."""
    return {
        path.relative_to(SOURCE).as_posix(): sum(1 for line in path.read_text("utf-8").splitlines() if line.strip())
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__init__.py"
    }


def test_no_module_is_too_long() -> None:
    too_long = {name: lines for name, lines in line_counts().items() if lines > LARGEST}
    assert not too_long, f"more than {LARGEST} lines: {too_long}"


def test_the_median_module_is_short() -> None:
    counts = list(line_counts().values())
    if counts:
        median = statistics.median(counts)
        assert median <= MEDIAN, f"the median module has {median:.0f} lines, at most {MEDIAN} are allowed"


def test_long_modules_are_named() -> None:
    long = {name: lines for name, lines in line_counts().items() if lines > ASKED_TO_SPLIT}
    if long:
        warnings.warn(f"asked to split (more than {ASKED_TO_SPLIT} lines): {long}", stacklevel=1)
    # A few may wait for their split; many would mean that nobody listens.
    assert len(long) <= max(1, len(line_counts()) // 10), long
