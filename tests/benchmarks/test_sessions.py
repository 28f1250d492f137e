"""What the cases of the query layer judge: an answer that is wrong or came from the store has failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import sessions
from benchmarks.harness import all_threads, measure
from benchmarks.queries import CITIES


def answer(*, cities: int = CITIES, each: int = 1000, income: float = 100_000.0, mean: float = 100_000.0) -> Any:
    counts = [each] * cities
    return SimpleNamespace(table=pa.table({"n": counts, "s": [each * income] * cities, "m": [mean] * cities}))


def test_a_small_question_is_new_each_time_and_entered_in_the_ledger(tmp_path: Path) -> None:
    [case] = sessions.cases(tmp_path)
    found = measure(case, repeats=2)
    assert "WRONG" not in found.note
    assert (tmp_path / "small-questions.db").stat().st_size > 0


def test_a_stored_answer_is_not_measured_as_a_new_one(tmp_path: Path) -> None:
    [case] = sessions.cases(tmp_path)
    found = measure(replace(case, prepare=lambda: sessions.QUESTION), repeats=1)
    assert "WRONG RESULT: not a new answer" in found.note


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (answer(), None),
        (answer(cities=CITIES - 1), "not every city"),
        (answer(each=10_001), "more rows than the bounds allow"),
        (answer(each=0), "more rows than the bounds allow"),
        (answer(income=102_000.0), "counts, sums and means do not belong together"),
        (answer(mean=98_000.0), "counts, sums and means do not belong together"),
    ],
)
def test_an_answer_is_held_against_what_is_known_of_the_rows(given: Any, fault: str | None) -> None:
    assert sessions.fault(given, 5) == fault


def test_a_child_that_may_use_its_cores_is_not_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    assert "POLARS_MAX_THREADS" not in all_threads()
    assert all_threads()["SOMETHING_ELSE"] == "1"
