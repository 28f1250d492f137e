"""What a session returns: a noisy table with its errors, what it cost, and where that is entered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.dp.sql.answer import AnswerTable
    from sfumato.dp.sql.explanation import Explanation


@dataclass(frozen=True)
class QueryAnswer:
    """A noisy answer: the `table` asked for, standard errors, what it cost, and where that is entered.

    `repeated` says that what it needs was measured before: the same numbers, at no cost, with the margins of the noise that
    was drawn then.
    """

    explanation: Explanation
    shown: Outcome[Any] = field(repr=False)
    entry: str | None = None
    repeated: bool = False
    answer: AnswerTable = field(repr=False, kw_only=True)

    @cached_property
    def outcome(self) -> Outcome[Any]:  # an Arrow table, which has no types
        """The answer as it is published: with its claim, and with the errors."""
        return replace(self.shown, details={**self.shown.details, "errors": self.errors})

    @property
    def table(self) -> pa.Table:
        """What was asked for, as an Arrow table."""
        return self.answer.table()

    @property
    def errors(self) -> pa.Table:
        """Standard errors, column by column; empty for keys."""
        return self.answer.error_table()

    def margins(self, confidence: float = 0.95) -> pa.Table:
        """How far each number may be from what the counted rows say (see `contribution`), at a confidence."""
        return self.answer.margin_table(confidence)

    def intervals(self, confidence: float = 0.95) -> pa.Table:
        """Between which `low` and `high` what the counted rows say lies, at a confidence: both sides need not be equally long."""
        return self.answer.interval_table(confidence)

    @property
    def contribution(self) -> str:
        """What of each unit is counted: the margins are about that, and say nothing of rows beyond it."""
        return self.explanation.contribution

    @property
    def loss(self) -> LossGuarantee:
        """What its measurements were charged (when it is repeated, to the question that was asked first)."""
        return self.explanation.loss

    def to_pandas(self) -> Any:  # pandas has no types
        """The table as a pandas DataFrame."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        return f"QueryAnswer({len(self.answer.rows)} rows, columns {', '.join(self.answer.names)}; {self.contribution})"


@dataclass(frozen=True)
class BatchCost:
    """What several questions cost together, and each of them."""

    explanations: tuple[Explanation, ...]
    total: LossGuarantee

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.explanations)

    def __len__(self) -> int:
        return len(self.explanations)
