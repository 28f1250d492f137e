"""What tests that repeat a question share: the engine is asked once, the noise is drawn each time."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sfumato.dp.sql.measuring import one_query
from sfumato.dp.sql.question import Question


@pytest.fixture
def engine_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's exact numbers per question and plan, whatever the salt."""
    answered: dict[Any, Any] = {}
    ask = one_query.run

    def once(question: Question, plan: Any) -> pa.Table:
        key = (id(question), plan.aggregates, plan.within, repr(plan.source) if plan.within else "")
        if key not in answered:
            answered[key] = (question, ask(question, plan))
        return answered[key][1]

    monkeypatch.setattr(one_query, "run", once)
