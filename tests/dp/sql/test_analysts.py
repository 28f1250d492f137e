"""Sixty questions that analysts type: which of them the query language accepts today."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import Unsupported
from tests.dp.sql.database import session

QUESTIONS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("analysts.toml").read_text(encoding="utf-8"))["question"]
#: By their numbers, from 1. Batches, and keys discovered with Gaussian noise, cannot be asked at all.
ACCEPTED = {44, 45, 48, 49, *range(52, 61)}
NOT_ASKED = {46, 47, 50, 51}


def test_the_list_asks_for_every_operator_at_least_twice() -> None:
    times = Counter(operator for question in QUESTIONS for operator in question["operators"])
    assert len(QUESTIONS) == 60 and min(times.values()) >= 2 and len(times) == 25


def test_the_accepted_ones_are_those_that_are_listed() -> None:
    shop = session()
    for number, question in enumerate(QUESTIONS, 1):
        if number in ACCEPTED:
            assert shop.explain(question["ask"], epsilon=1, keys=question.get("keys", {})).columns
        elif number not in NOT_ASKED:
            with pytest.raises(Unsupported):
                shop.explain(question["ask"], epsilon=1)
