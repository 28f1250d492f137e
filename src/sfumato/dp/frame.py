"""Questions without SQL text: a builder whose parts are expressions, asked exactly like a query.

Every step returns a new builder; nothing is read before `ask`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

from sqlglot import exp

from sfumato.core.errors import ParameterError
from sfumato.dp.session_arguments import QuestionOptions
from sfumato.dp.sql.parse import parse_expression, sql_text, without_alias

if TYPE_CHECKING:
    from sfumato.dp.session import Session
    from sfumato.dp.sql.asking.answer import QueryAnswer
    from sfumato.dp.sql.asking.explanation import Explanation


@dataclass(frozen=True)
class Frame:
    """A question about a table of a session.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> session = sf.Session(people, budget=sf.PureDP(1))
    >>> question = session.table().where("age >= 65").agg(retired="COUNT(*)")
    >>> question.ask(epsilon=0.5).table.column_names
    ['retired']
    """

    session: Session = field(repr=False)
    name: str
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    aggregates: Mapping[str, str] = field(default_factory=dict)
    joined: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    first: int | None = None

    def where(self, condition: str) -> Frame:
        """Only rows for which the condition holds."""
        return replace(self, conditions=(*self.conditions, condition))

    def join(self, table: str, on: str) -> Frame:
        """Joined with another table of the session: a public one, or a private one on the unit."""
        return replace(self, joined=(*self.joined, (table, on)))

    def group_by(self, *keys: str) -> Frame:
        """One row per value of these columns or expressions."""
        return replace(self, keys=(*self.keys, *keys))

    def agg(self, **aggregates: str) -> Frame:
        """The columns of the answer: `income="AVG(income)"`."""
        return replace(self, aggregates={**self.aggregates, **aggregates})

    def having(self, condition: str) -> Frame:
        """Only groups whose noisy answer meets the condition."""
        return replace(self, kept=(*self.kept, condition))

    def sort(self, *terms: str) -> Frame:
        """Sorted by columns of the answer; a leading minus sorts downwards."""
        return replace(self, order=(*self.order, *terms))

    def limit(self, count: int) -> Frame:
        """The first groups only."""
        return replace(self, first=count)

    def histogram(self, column: str, low: float, high: float, bins: int) -> Frame:
        """Counts in equal bins of a number: 0 below, 1 … bins inside, bins + 1 above."""
        bucket = f"WIDTH_BUCKET({column}, {low!r}, {high!r}, {bins!r}) AS bin"
        return replace(self, keys=(*self.keys, bucket), aggregates={"count": "COUNT(*)"})

    def select(self) -> exp.Select:
        """The syntax tree that is asked."""
        if not self.aggregates:
            raise ParameterError('say what to compute: .agg(n="COUNT(*)")')
        keys = [parse_expression(key) for key in self.keys]
        shown = [exp.alias_(parse_expression(text), name, quoted=True) for name, text in self.aggregates.items()]
        named = [key if isinstance(key, (exp.Column, exp.Alias)) else exp.alias_(key, sql_text(key), quoted=True) for key in keys]
        query = exp.select(*named, *shown, copy=False).from_(exp.Table(this=exp.to_identifier(self.name, quoted=True)))
        for table, on in self.joined:
            query = query.join(exp.Table(this=exp.to_identifier(table, quoted=True)), on=parse_expression(on))
        for condition in self.conditions:
            query = query.where(parse_expression(condition))
        if keys:
            query = query.group_by(*(without_alias(key).copy() for key in keys))
        for condition in self.kept:
            query = query.having(parse_expression(condition))
        for term in self.order:
            node = parse_expression(term.removeprefix("-"))
            query = query.order_by(exp.Ordered(this=node, desc=term.startswith("-"), nulls_first=False))
        return query if self.first is None else query.limit(self.first)

    def ask(self, **options: Unpack[QuestionOptions]) -> QueryAnswer:
        """The noisy answer at the cost of `epsilon`, `delta` and `rho`; see `Session.sql` for these and the other options."""
        return self.session.ask(self.select(), *self.session._stated(options))

    def explain(self, **options: Unpack[QuestionOptions]) -> Explanation:
        """What it would cost and how far it may be off."""
        return self.session._explained(self.select(), *self.session._stated(options))
