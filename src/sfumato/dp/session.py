"""A session: questions in SQL to sensitive tables, answered with noise under a budget that cannot be overspent.

Parse, allow, lower to a plan, compute sensitivity, noise, expected error and cost; reserve in the ledger; run one
push-down query; add exact noise; commit together with the stored answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Unpack

from sfumato.core.declared import require
from sfumato.core.errors import ParameterError, Unsupported, notify
from sfumato.core.exact import Number
from sfumato.core.guarantees.loss import RECORD, LossGuarantee
from sfumato.core.markup import shorten
from sfumato.core.outcome import Outcome
from sfumato.core.progress import ProgressLike, shown, silent
from sfumato.core.randomness import Randomness, default
from sfumato.data.microdata import Microdata
from sfumato.dp.book import OtherLedger, open_book, other_ledgers
from sfumato.dp.releasing import ArtefactCost, charged_run, cost_of_artefact
from sfumato.dp.session_arguments import QuestionOptions, dataset_of, declared_keys, named_tables
from sfumato.engines.sql.relation import lenient
from sfumato.engines.time_limits import check_timeout, statements_within
from sfumato.ledger.amounts import LossAmount

if TYPE_CHECKING:
    from sqlglot import exp

    from sfumato.dp.accounting.odometer import OdometerReading
    from sfumato.dp.algorithms.base import Algorithm
    from sfumato.dp.frame import Frame
    from sfumato.dp.sql.asking.answer import QueryAnswer
    from sfumato.dp.sql.asking.batch import BatchAnswer, BatchCost, Parts
    from sfumato.dp.sql.asking.description import QueryDescription
    from sfumato.dp.sql.asking.explanation import Explanation
    from sfumato.dp.sql.asking.once import Asker
    from sfumato.dp.sql.asking.paid_bounds import PaidBounds
    from sfumato.dp.sql.asking.paid_contributions import PaidContributions
    from sfumato.dp.sql.measuring.noise import DeclaredBounds, Price, Request
    from sfumato.dp.sql.question import Question
    from sfumato.engines.expressions import Value
    from sfumato.ledger.ledger import Ledger


class Session:
    """Questions of one analyst to the tables of one dataset.

    `data` is a table (a query may call it as it likes), or several by name; `public` are tables that need no protection. `unit`
    names the column whose values are the people (or other units) to protect, or is "record" where each record is a unit;
    without it the schema says so, and one that has names of people and says neither is refused. A budget is about one unit:
    what would protect another than the ledger's is refused. One unit contributes at most `max_rows` rows to each of at most
    `max_groups` groups of a question, chosen by `bounding`: at random ("sample") or the first in `order` ("truncate"); rows
    beyond that are left out, so that neither bound is assumed: a question that needs one is refused until it is declared here
    or with the question. `budget` may lower what the ledger grants, and becomes the first grant where nobody was granted
    anything on the dataset yet. `version` tells versions of the data apart: a stored answer is shown again for the same version
    only. A keyed digest of the tables, taken here, tells the owner in the ledger (`ledger.versions`) when the data changed
    under the same version; `digest=False` leaves it out. With a `seed` the noise is a demonstration and is certified as such.
    `timeout` is how many seconds one statement may run in the engine; it is then stopped there, and its question stays charged.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1000), schema=sf.data.sample_schema())
    >>> session = sf.Session(people, budget=sf.PureDP(1))
    >>> answer = session.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    >>> answer.table.column_names, str(session.remaining())
    (['n'], 'ε = 0.5')
    """

    def __init__(
        self,
        data: Microdata | Mapping[str, Microdata],
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        unit: str | None = None,
        budget: LossGuarantee | None = None,
        analyst: str = "analyst",
        public: Mapping[str, object] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        bounding: Literal["sample", "truncate"] = "sample",
        order: str | Sequence[str] = (),
        version: str = "",
        digest: bool = True,
        seed: int | str | None = None,
        timeout: float | None = None,
    ) -> None:
        from sfumato.dp.sql.measuring.noise import DeclaredBounds
        from sfumato.dp.sql.reading.catalogue import Catalogue, private_table, public_table

        require(isinstance(version, str), "version is a text, so that 4 and '4' are not two versions")
        tables = {name: replace(table, relation=lenient(table.relation)) for name, table in named_tables(data).items()}
        self.dataset = dataset_of(tables)
        self.analyst = analyst
        self._bounds = DeclaredBounds(max_rows, max_groups, bounding, (order,) if isinstance(order, str) else tuple(order))
        self._version = version
        self._seed = seed
        self._timeout = check_timeout(timeout)
        self._source: Randomness = default(seed)
        catalogued = {name: private_table(name, table, unit) for name, table in tables.items()}
        if len({table.unit is None for table in catalogued.values()}) > 1:
            raise ParameterError(
                "some tables have a unit column and others have none; a budget is about one kind of unit. Name it with unit=…, "
                "or open a session for each"
            )
        units = {table.unit or RECORD for table in catalogued.values()}
        for name, source in (public or {}).items():
            if name in catalogued:
                raise ParameterError(f"the name '{name}' is given to a private and a public table")
            catalogued[name] = public_table(name, source)
        self._catalogue = Catalogue(catalogued, alone=isinstance(data, Microdata) and not public)
        self._tables = tables
        self._book, self.ledger = open_book(ledger, self.dataset, analyst, budget, units=units)
        notify(other_ledgers((table.schema.ledger for table in tables.values()), self.ledger), OtherLedger)
        if self.ledger is not None and self._source.private:
            from sfumato.dp.data_digest import note_data

            with self._in_time():
                note_data(self.ledger, version, tables, digest=digest)

    def __repr__(self) -> str:
        tables = shorten(", ".join(self._catalogue.tables), 120)
        return f"Session('{shorten(self.dataset, 60)}', tables {tables}, analyst '{shorten(self.analyst, 60)}')"

    def _repr_html_(self) -> str:
        from sfumato.core.panel import panel

        units = {table.unit or "each record" for table in self._catalogue.tables.values() if table.private}
        facts = {
            "dataset": shorten(self.dataset, 200),
            "tables": shorten(", ".join(self._catalogue.tables), 200),
            "unit": shorten(", ".join(sorted(units)), 200),
            "analyst": shorten(self.analyst, 200),
            "left": "nothing was granted" if (left := self.remaining()) is None else str(left),
        }
        return panel("Session", facts.items())

    @property
    def has_units(self) -> bool:
        """Whether a private table has a column that names the unit; without one each record is a unit of its own."""
        return any(table.unit is not None for table in self._catalogue.tables.values())

    def sql(self, query: str, **options: Unpack[QuestionOptions]) -> QueryAnswer:
        """Answer a question at this cost. What was measured before, as finely or finer, is shown again and costs nothing.

        The cost is `epsilon`, with `delta` where keys are discovered, or `rho`. `max_rows` and `max_groups` go before the
        session's. `keys` declares the values of grouping keys whose domain the schema does not:
        `keys={"city": ["Bern", "Basel"]}`, or a SELECT of one column of public tables. Every combination of them is a group.
        """
        return self.ask(self._parsed(query), *self._stated(options))

    def sql_batch(self, queries: Sequence[str], **options: Unpack[QuestionOptions]) -> BatchAnswer:
        """Answer several questions, each at this loss, under one charge: all of them or none.

        The charge is the sum of their losses, and of questions that provably have no unit in common the largest alone; `batch`
        says which beforehand. Options are those of `sql`; `keys` are for the questions that have such a grouping key.
        """
        from sfumato.dp.sql.asking.together import answer_batch
        from sfumato.dp.sql.measuring.one_query import check_plans

        asked, parts = self._several(queries, options)
        with self._in_time():
            for question, priced in asked:
                check_plans(question, priced)
            return answer_batch(self._asker(), asked, parts)

    def table(self, name: str | None = None) -> Frame:
        """A builder of questions about a table: `session.table().where("age > 30").group_by("city").agg(n="COUNT(*)")`."""
        from sfumato.dp.frame import Frame

        return Frame(self, self._catalogue.table(name or next(iter(self._tables))).name)

    def explain(self, query: str, *, confidence: float = 0.95, **options: Unpack[QuestionOptions]) -> Explanation:
        """Sensitivity, noise, expected error and cost; nothing is spent and no row is read. Options are those of `sql`."""
        return self._explained(self._parsed(query), *self._stated(options), confidence)

    def batch(self, queries: Sequence[str], *, confidence: float = 0.95, **options: Unpack[QuestionOptions]) -> BatchCost:
        """What several questions cost as one batch, before any is asked: each at the given loss. Nothing is spent."""
        from sfumato.dp.sql.asking.batch import BatchCost
        from sfumato.dp.sql.asking.explanation import explain

        asked, parts = self._several(queries, options)
        notes = tuple(self._with_earlier(explain(question, priced, confidence)) for question, priced in asked)
        return BatchCost(notes, parts.loss([note.loss for note in notes]), parts.sentence)

    def describe(self, query: str, *, keys: Mapping[str, Sequence[object]] | None = None) -> QueryDescription:
        """The columns of the answer: names, kinds, bounds, and which have noise. Nothing is spent and no row is read."""
        from sfumato.dp.sql.asking.description import describe

        return describe(self._question(self._parsed(query), keys))

    def describe_batch(
        self, queries: Sequence[str], *, keys: Mapping[str, Sequence[object]] | None = None
    ) -> tuple[tuple[QueryDescription, ...], str]:
        """The columns of each answer of a batch, and in words how their costs would compose. Nothing is spent."""
        from sfumato.dp.sql.asking.batch import parts_of
        from sfumato.dp.sql.asking.description import describe

        questions = self._questions(queries, keys)
        return tuple(map(describe, questions)), parts_of(questions).sentence

    def cost(
        self,
        query: str,
        *,
        within: float | None = None,
        rank_within: float | None = None,
        confidence: float = 0.95,
        rows: int | None = None,
        delta: Number | None = None,
        concentrated: bool = False,
        max_rows: int | None = None,
        max_groups: int | None = None,
        keys: Mapping[str, Sequence[object]] | None = None,
    ) -> Explanation:
        """The least loss at which every number is within ±`within` at the confidence.

        Means, variances and ratios depend on how many rows a group has: say so with `rows`. Of quantiles it can be said how
        many rows they are off their rank: `rank_within`. With `concentrated` the loss is in ρ.
        """
        from sfumato.dp.sql.asking.explanation import explain, least_loss
        from sfumato.dp.sql.margins.expected_error import SIZES, reaches
        from sfumato.dp.sql.measuring.noise import Request, price

        if within is None and rank_within is None:
            raise ParameterError("say how exact the answer shall be: within=100, or rank_within=50 for quantiles")
        for name, value in (("within", within), ("rank_within", rank_within), ("rows", rows)):
            if value is not None and not value > 0:
                raise ParameterError(f"{name} must be above 0")
        bounds = self._bounded(max_rows, max_groups)
        question = self._question(self._parsed(query), keys)

        def priced(amount: Fraction) -> Price:
            request = Request(rho=amount, delta=delta) if concentrated else Request(epsilon=amount, delta=delta)
            return price(question, request, bounds)

        def reached(amount: Fraction) -> bool:
            return reaches(question, priced(amount), confidence, rows, within, rank_within)

        sizes = SIZES if rows is None else tuple(sorted({*SIZES, rows}))
        return self._with_earlier(explain(question, priced(least_loss(reached)), confidence, sizes))

    def bounds(
        self, column: str, *, table: str | None = None, epsilon: Number, confidence: float = 0.99, max_rows: int = 1
    ) -> PaidBounds:
        """Bounds of a number that nobody declared, found privately: rough, and charged like any question.

        Use them in the next question: `SUM(CLAMP(x, low, high))`. Of each unit `max_rows` rows in one bucket are looked at.
        """
        from sfumato.dp.sql.asking.paid_bounds import bounds_of, bucket_query
        from sfumato.dp.sql.measuring.noise import Request

        name = self._catalogue.table(table or next(iter(self._tables))).name
        answer = self.ask(bucket_query(column, name), Request(epsilon), self._bounded(max_rows, 1))
        return bounds_of(answer, answer.explanation.measurements[0].scale, confidence)

    def contributions(
        self, *, table: str | None = None, by: str | Sequence[str] = (), epsilon: Number, share: float = 0.95
    ) -> PaidContributions:
        """How much one unit contributes, found privately and charged like any question: a `max_rows`, a `max_groups`.

        Each unit counts once, by how many rows it has. `max_rows` is the power of two that about a `share` of the units do not
        exceed, as noisy numbers tell; with grouping keys in `by`, half of ε finds `max_groups`, by in how many groups of all
        these keys together a unit is.
        """
        from sfumato.core.exact import exact
        from sfumato.dp.sql.asking.paid_contributions import bound_of, contribution_queries, paid_contributions
        from sfumato.dp.sql.measuring.noise import Request

        queries = contribution_queries(self._catalogue.table(table or next(iter(self._tables))), by)
        require(0 < share <= 1, "share lies between 0 and 1")
        request = Request(exact(epsilon, "epsilon") / len(queries))
        for query in queries:  # what is refused is refused before anything is charged
            self._explained(query.copy(), request, self._bounds, None)
        answers = [self.ask(query, request, self._bounds) for query in queries]
        return paid_contributions([bound_of(answer, share) for answer in answers], answers)

    def remaining(self) -> LossAmount | None:
        """What the analyst may still spend."""
        return self._book.remaining(self.dataset, self.analyst)

    def spent_so_far(self, delta: Number = Fraction(1, 10**6)) -> OdometerReading:
        """What the analyst's answers have lost so far, in this session and others on the ledger, at whatever time one looks.

        The bound holds also if you look, stop or go on because of the answers. `delta` is the probability that it is ever
        exceeded; what pure ε adds up to needs none.
        """
        from sfumato.dp.accounting.odometer import Odometer

        charges = self._book.charges(self.dataset, self.analyst)
        reading = Odometer(delta, charges.allowed).reading(each.guarantee() for each in charges.amounts)
        return replace(reading, not_covered=tuple(self._not_covered()))

    def release(
        self, algorithm: Algorithm, table: str | None = None, *, for_owner: bool = False, progress: ProgressLike = silent
    ) -> Outcome[Any]:  # the artefact
        """Run an algorithm that publishes one artefact, charged like a question. Each run is a new artefact.

        With `for_owner` the outcome also holds what was computed without noise (`details["owner"]`, such as the quality
        of a synthetic table). That tells about the data exactly: never pass it on to an analyst.
        """
        protected = self._catalogue.table(table or next(iter(self._tables)))
        source = default(self._seed)
        not_covered = self._not_covered()
        notify(not_covered)
        account = (self._book, self.dataset, self.analyst)
        with shown(progress) as receiver, self._in_time():
            outcome = charged_run(algorithm, protected, *account, randomness=source, progress=receiver, for_owner=for_owner)
        return replace(outcome, details={**outcome.details, "not_covered": not_covered})

    def release_cost(self, algorithm: Algorithm, table: str | None = None) -> ArtefactCost:
        """What `release` would charge and make, before it does: no row is read, and nothing is spent."""
        return cost_of_artefact(algorithm, self._catalogue.table(table or next(iter(self._tables))))

    def ask(
        self, select: exp.Select, request: Request, bounds: DeclaredBounds, keys: Mapping[str, Sequence[object]] | None = None
    ) -> QueryAnswer:
        """Answer a parsed question; `sql` and the builder of questions both come here."""
        from sfumato.dp.sql.measuring.noise import price
        from sfumato.dp.sql.measuring.one_query import check_plans

        question = self._question(select, keys)
        priced = price(question, request, bounds)
        with self._in_time():
            check_plans(question, priced)
            return self._asker().answer(question, priced)

    def _in_time(self) -> AbstractContextManager[None]:
        return nullcontext() if self._timeout is None else statements_within(self._timeout)

    def _asker(self) -> Asker:
        from sfumato.data.publication import NOTHING_SAID
        from sfumato.dp.sql.asking.once import Asker

        source = (self._version, self._seed, self._source)
        publications = (table.schema.publication for table in self._tables.values())
        said = next((each for each in publications if each != NOTHING_SAID), NOTHING_SAID)
        not_covered = tuple(self._not_covered())
        notify(not_covered)
        return Asker(self._book, self.dataset, self.analyst, *source, not_covered, said)

    def _several(self, queries: Sequence[str], options: QuestionOptions) -> tuple[list[tuple[Question, Price]], Parts]:
        """The questions of a batch with their prices, and which of them have no unit in common."""
        from sfumato.dp.sql.asking.batch import parts_of
        from sfumato.dp.sql.measuring.noise import price

        request, bounds, keys = self._stated(options)
        questions = self._questions(queries, keys)
        return [(question, price(question, request, bounds)) for question in questions], parts_of(questions)

    def _explained(
        self,
        select: exp.Select,
        request: Request,
        bounds: DeclaredBounds,
        keys: Mapping[str, Sequence[Any]] | None,
        confidence: float = 0.95,
    ) -> Explanation:
        from sfumato.dp.sql.asking.explanation import explain
        from sfumato.dp.sql.measuring.noise import price

        question = self._question(select, keys)
        return self._with_earlier(explain(question, price(question, request, bounds), confidence))

    def _with_earlier(self, explanation: Explanation) -> Explanation:
        return replace(explanation, notes=(*explanation.notes, *self._not_covered()))

    def _not_covered(self) -> list[str]:
        """What was charged about another unit and not carried over: it depends on the ledger alone."""
        return [] if self.ledger is None else [str(each) for each in self.ledger.not_covered(self.dataset)]

    def _parsed(self, query: str) -> exp.Select:
        from sfumato.dp.sql.parse import parse

        return parse(query)

    def _question(self, select: exp.Select, keys: Mapping[str, Sequence[Any]] | None) -> Question:
        declared = declared_keys(keys, self._catalogue) if keys else {}
        question = self._understood(select, declared)
        unknown = [name for name in declared if name not in {key.label for key in question.keys}]
        if unknown:
            raise Unsupported(f"keys={{…}} names '{unknown[0][:60]}', which is not a grouping key of the query")
        return question

    def _questions(self, queries: Sequence[str], keys: Mapping[str, Sequence[Any]] | None) -> list[Question]:
        """The questions of a batch; values of keys are for those that have such a key."""
        from sfumato.dp.sql.asking.batch import check_batch, understood

        declared = declared_keys(keys, self._catalogue) if keys else {}
        return understood(check_batch(queries), declared, lambda query: self._understood(self._parsed(query), declared))

    def _understood(self, select: exp.Select, declared: Mapping[str, tuple[Value, ...]]) -> Question:
        from sfumato.dp.sql.parse import check_size
        from sfumato.dp.sql.question import understand

        check_size(select)
        try:
            return understand(select, self._catalogue, declared, self._bounds.order)
        except RecursionError:
            raise Unsupported("the query is too deeply nested") from None

    def _stated(self, options: QuestionOptions) -> tuple[Request, DeclaredBounds, Mapping[str, Sequence[Any]] | None]:
        """The loss that a question may cost, what one unit may contribute to it, and values of its keys."""
        from sfumato.dp.sql.measuring.noise import Request

        unknown = sorted(options.keys() - QuestionOptions.__annotations__.keys())
        if unknown:
            raise TypeError(f"a question has no option {unknown[0]!r}; there are {', '.join(QuestionOptions.__annotations__)}")
        request = Request(options.get("epsilon"), options.get("delta"), options.get("rho"))
        return request, self._bounded(options.get("max_rows"), options.get("max_groups")), options.get("keys")

    def _bounded(self, max_rows: int | None, max_groups: int | None) -> DeclaredBounds:
        stated = self._bounds
        return replace(
            stated,
            max_rows=stated.max_rows if max_rows is None else max_rows,
            max_groups=stated.max_groups if max_groups is None else max_groups,
        )
