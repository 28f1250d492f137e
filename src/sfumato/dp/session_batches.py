"""The part of a session that asks several questions at once: described, priced, and answered under one charge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sfumato.core.exact import Number

if TYPE_CHECKING:
    from sfumato.dp.sql.asking_once import Asker
    from sfumato.dp.sql.batch import BatchAnswer, BatchCost, Parts
    from sfumato.dp.sql.description import QueryDescription
    from sfumato.dp.sql.noise import DeclaredBounds, Price
    from sfumato.dp.sql.question import Question


class Batches(ABC):
    """Several questions of one analyst as one charge."""

    def batch(self, queries: Sequence[str], *, confidence: float = 0.95, **loss: Any) -> BatchCost:  # as `explain` takes it
        """What several questions cost as one batch, before any is asked: each at the given loss. Nothing is spent."""
        from sfumato.dp.sql.batch import BatchCost, check_batch
        from sfumato.dp.sql.explanation import explain

        asked, parts = self._several(check_batch(queries), **loss)
        explained = [explain(question, priced, confidence) for question, priced in asked]
        notes = tuple(replace(note, notes=(*note.notes, *self._not_covered())) for note in explained)
        return BatchCost(notes, parts.loss([note.loss for note in notes]), parts.sentence)

    def describe_batch(
        self, queries: Sequence[str], *, keys: Mapping[str, Sequence[object]] | None = None
    ) -> tuple[tuple[QueryDescription, ...], str]:
        """The columns of each answer of a batch, and in words how their costs would compose. Nothing is spent."""
        from sfumato.dp.sql.batch import check_batch, parts_of, understood
        from sfumato.dp.sql.description import describe

        questions = understood(check_batch(queries), keys, self._reader)
        return tuple(map(describe, questions)), parts_of(questions).sentence

    def sql_batch(
        self,
        queries: Sequence[str],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        keys: Mapping[str, Sequence[object]] | None = None,
    ) -> BatchAnswer:
        """Answer several questions, each at this loss, under one charge: all of them or none.

        The charge is the sum of their losses, and of questions that provably have no unit in common the largest alone; `batch`
        says which beforehand. `keys` are for the questions that have such a grouping key.
        """
        from sfumato.dp.sql.asking_batch import answer_batch
        from sfumato.dp.sql.batch import check_batch
        from sfumato.dp.sql.measuring import check_plans

        loss: dict[str, Number | None] = {"epsilon": epsilon, "delta": delta, "rho": rho}
        asked, _ = self._several(check_batch(queries), **loss, max_rows=max_rows, max_groups=max_groups, keys=keys)
        for question, priced in asked:
            check_plans(question, priced)
        return answer_batch(self._asker(), asked)

    def _several(
        self,
        queries: Sequence[str],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        keys: Mapping[str, Sequence[object]] | None = None,
    ) -> tuple[list[tuple[Question, Price]], Parts]:
        """The questions of a batch with their prices, and which of them have no unit in common."""
        from sfumato.dp.sql.batch import parts_of, understood
        from sfumato.dp.sql.noise import Request, price

        request, bounds = Request(epsilon, delta, rho), self._bounded(max_rows, max_groups)
        questions = understood(queries, keys, self._reader)
        return [(question, price(question, request, bounds)) for question in questions], parts_of(questions)

    @abstractmethod
    def _reader(self, query: str, keys: Mapping[str, Sequence[object]] | None) -> Question:
        """A query understood."""

    @abstractmethod
    def _asker(self) -> Asker:
        """Who asks."""

    @abstractmethod
    def _bounded(self, max_rows: int | None, max_groups: int | None) -> DeclaredBounds:
        """What one unit may contribute."""

    @abstractmethod
    def _not_covered(self) -> list[str]:
        """What was charged about another unit and not carried over."""
