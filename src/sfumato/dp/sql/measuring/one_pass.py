"""The questions of a batch, and the parts of a question, measured on one state of the data and with as few readings as possible.

Groupings that bound nobody are put together into one query (`engines.shared_scans`). What is left reads rows that the engine
holds meanwhile: one transaction in PostgreSQL, a file that must not change in DuckDB and Spark, columns of any other frame kept
by the executors of Spark.
Answers are those of each plan by itself: what chance decides is decided by the salt of each question, drawn in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.data.relation import Relation
from sfumato.dp.sql.measuring.noise import Price
from sfumato.dp.sql.measuring.one_query import UNSALTED, Runner, plans_of, run
from sfumato.dp.sql.question import Question
from sfumato.dp.sql.reading.catalogue import scanned_as
from sfumato.engines.class_queries import ROWS
from sfumato.engines.plan import BoundedGroup, Plan
from sfumato.engines.shared_scans import shared_scans
from sfumato.engines.snapshots import held_for

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def one_pass(asked: Sequence[tuple[Question, Price]]) -> Iterator[Runner]:
    """What answers the plans of these questions."""
    planned = [(question, plan) for question, price in asked for plan in plans_of(question, price, UNSALTED)]
    if len(planned) == 1:
        yield run
        return
    alone = dict(enumerate(planned))
    shared = []
    for question in {id(question.tables[question.primary].data): question for question, _ in planned}.values():
        # Joined and uploaded tables have names of their own in each question: only plans over the table alone are put together.
        same = [(place, plan) for place, (other, plan) in alone.items() if _data(other) is _data(question)]
        shared += [(question, scan) for scan in shared_scans(same)]
    for _, scan in shared:
        for member in scan.members:
            del alone[member.place]
    with ExitStack() as stack:
        held = _HeldTables(stack, [*alone.values(), *((question, scan.plan) for question, scan in shared)])
        ready: dict[tuple[int, Plan], pa.Table] = {}
        for question, scan in shared:
            for place, answer in scan.answers(held.run(question, scan.plan)).items():
                other, plan = planned[place]
                ready[id(other), plan] = answer

        def answered(question: Question, plan: Plan) -> pa.Table:
            unsalted = replace(plan, salt=UNSALTED) if isinstance(plan, BoundedGroup) and plan.salt is not None else plan
            earlier = ready.get((id(question), unsalted))
            return held.run(question, plan) if earlier is None else earlier

        yield answered


def _data(question: Question) -> object:
    return question.tables[question.primary].data


class _HeldTables:
    """The private tables of some questions, held as they are."""

    def __init__(self, stack: ExitStack, planned: Sequence[tuple[Question, Plan]]) -> None:
        read: dict[int, tuple[Relation, list[tuple[str, Plan]]]] = {}
        for question, plan in planned:
            for name, table in question.tables.items():
                if table.data is not None:
                    called = ROWS if name == question.primary else scanned_as(name)
                    read.setdefault(id(table.data.relation), (table.data.relation, []))[1].append((called, plan))
        relations = held_for(stack, list(read.values()))
        self._held = dict(zip(read, relations, strict=True))

    def run(self, question: Question, plan: Plan) -> pa.Table:
        """The answer of what is held."""
        tables = dict(question.tables)
        for name, table in question.tables.items():
            if table.data is not None:  # its truth value would count its rows
                tables[name] = replace(table, data=replace(table.data, relation=self._held[id(table.data.relation)]))
        return run(replace(question, tables=tables), plan)
