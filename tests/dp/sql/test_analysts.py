"""Sixty questions that analysts type: the list as it was written before the language was widened to answer it."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

QUESTIONS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("analysts.toml").read_text(encoding="utf-8"))["question"]


def test_the_list_asks_for_every_operator_at_least_twice() -> None:
    times = Counter(operator for question in QUESTIONS for operator in question["operators"])
    assert len(QUESTIONS) == 60 and min(times.values()) >= 2 and len(times) == 25
