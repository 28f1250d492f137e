"""`protect`: from a table about people to a release that keeps the guarantees asked for, by a search or a mask.

Check the request, let the method change the rows, bring them into one form and order, and publish.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.core import randomness as sources_of_randomness
from sfumato.core.declared import require
from sfumato.core.errors import ParameterError, forgetting
from sfumato.core.guarantees.base import ClassGuarantee, Guarantee, supposed_known
from sfumato.core.plain_data import Plain
from sfumato.core.progress import Progress, ProgressLike, shown, silent
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.engines.snapshots import one_state, one_state_or_none, read_once
from sfumato.report.checklist import answers_of
from sfumato.report.headline import DEMONSTRATION, unread, warn_before
from sfumato.workflow.contents.base import Content, Promise, Submission
from sfumato.workflow.contents.rows import Rows
from sfumato.workflow.contents.stored_rows import StoredRows
from sfumato.workflow.publishing.claims import References, each_once
from sfumato.workflow.publishing.columns import ColumnPlan, check_size, plan_columns, released_schema, warned_of_people
from sfumato.workflow.publishing.publish import publish
from sfumato.workflow.publishing.saving import asked_destination
from sfumato.workflow.publishing.scoring import Attacked, Checks, Measured
from sfumato.workflow.release import Release
from sfumato.workflow.verifying.stated.transparency import HIDDEN_POPULATION, PUBLIC_POPULATION, SAMPLE

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.anonymity.search.base import Search
    from sfumato.core.randomness import Randomness
    from sfumato.engines.sources import TableLike
    from sfumato.ledger.ledger import Ledger
    from sfumato.masking.base import Mask
    from sfumato.report.content import Answer
    from sfumato.wire.keys import OwnerKey
    from sfumato.workflow.comparing.grid import Unplaced
    from sfumato.workflow.shorthand import Columns, GuaranteeLike

C = TypeVar("C", bound=Content)


@dataclass(frozen=True, eq=False)
class ReleaseRequest:
    """What was asked for, checked as far as it can be before the long work."""

    people: Microdata
    population: Microdata | None
    population_public: bool
    guarantees: tuple[ClassGuarantee, ...]
    plan: ColumnPlan
    key: OwnerKey = field(repr=False)
    randomness: Randomness = field(repr=False)
    recipe: Plain = field(repr=False)
    answers: Mapping[str, Answer] = field(repr=False)
    progress: Progress = field(default=silent, repr=False)
    in_engine: bool = False  # no row may come into this process
    sampled_of: int | None = None  # how many records there were, where a sample of them is protected
    draft: bool = False  # made to be looked at: nothing is entered
    strict: bool = False  # anything but a release that keeps its promises is refused
    warned: tuple[str, ...] = ()  # of what its owner was warned, and nobody else can know

    @property
    def by_frequency(self) -> list[str]:
        """Quasi-identifiers whose hierarchy is learnt from how often values occur."""
        schema = self.plan.schema
        return [name for name in schema.quasi if (spec := schema.columns[name].hierarchy) and spec.kind == "frequency"]

    @cached_property
    def references(self) -> References:
        """The tables that guarantees compare with, named by their fingerprints."""
        original, population = (fingerprint(each, self.key, in_engine=self.in_engine) for each in (self.people, self.population))
        return References(self.people, self.population, original, population, self.population_public)

    def described(self, table: pa.Table) -> Schema:
        """Roles and types of the rows that are published."""
        return released_schema(self.plan.schema, table)

    def submission(
        self,
        content: C,
        guarantees: Iterable[Guarantee],
        method: Plain,
        transparency: Plain,
        details: Plain,
        *,
        notices: tuple[str, ...] = (),
        masked: Collection[str] = (),
        unchanged: Collection[str] = (),
    ) -> Submission[C]:
        """What a method made, to be published: its rows, and what is promised and told about them. Of `masked` columns those that
        are `unchanged` show what the records behind them had."""
        private = self.randomness.private
        sample = {} if self.sampled_of is None else {"sample": SAMPLE}
        owners = {} if self.sampled_of is None else {"sample": f"{len(self.people):,} of {self.sampled_of:,} records"}
        notices = (*notices, *sample.values(), *_notices_about(content, self.plan, self.guarantees, masked, unchanged))
        return Submission(
            content=content,
            promises=tuple(Promise(each) for each in guarantees),
            method=method,
            randomness=self.randomness.description,
            private=private,
            draft=self.draft,
            warned=self.warned,
            strict=self.strict,
            fingerprint=self.references.original_digest,
            transparency={
                **transparency,
                **sample,
                **_about_population(self, masked=isinstance(content, (Rows, StoredRows)) and bool(content.masked)),
            },
            notices=notices if private else (*notices, DEMONSTRATION),
            details={**details, **owners},
            recipe=dict(self.recipe),
            answers=self.answers,
        )


@forgetting()
def protect(
    data: TableLike,
    guarantees: GuaranteeLike | Iterable[GuaranteeLike] = (),
    method: Search | Mask | str | Plain | None = None,
    *,
    k: int | None = None,
    quasi: Columns | None = None,
    sensitive: Columns | None = None,
    identifier: Columns | None = None,
    plain: Columns | None = None,
    schema: Schema | str | Path | None = None,
    population: TableLike = None,
    population_public: bool = False,
    ledger: Ledger | str | Path | None = None,
    utility: Measured | Iterable[Measured] | None = None,
    risk: Measured | Iterable[Measured] | None = None,
    attacks: Attacked | Iterable[Attacked] = (),
    answers: Plain | None = None,
    seed: int | str | None = None,
    key: OwnerKey | Path | str | None = None,
    recipe: Plain | None = None,
    destination: str | Path | None = None,
    table_name: str | None = None,
    overwrite: bool = False,
    sign: Path | str | None = None,
    memory: int | str | None = None,
    sample: int | None = None,
    draft: bool = False,
    strict: bool = False,
    progress: ProgressLike = silent,
) -> Release[Rows | StoredRows]:
    """Protect a table and certify what was reached.

    `data` is microdata, or anything `read` takes together with `schema`. `method` is a table search (the
    default, `LeastLoss`, runs several and keeps the best) or a mask such as `sf.Mdav(5)`, which needs no guarantee;
    guarantees hold on its result besides those that the mask claims. Both may be texts: "DistinctLDiversity(l=2,
    attribute='diagnosis')", "Lattice(suppression=0.05)"; a method also as `compare` prints it: "KAnonymity(k=10) by Mondrian",
    "RankSwapping(p=25) + Pram(stay=0.8)". `k=5` asks for k-anonymity besides. In place of a `schema`,
    the columns of a file or frame may be named by their roles: `quasi`, `sensitive`, `identifier` (dropped) and `plain`; every
    column needs one, and types and hierarchies are then those that `inspect` suggests. `population` is the table that k-map
    and δ-presence compare with; `population_public` declares that everybody can have it, so that what is learnt from it may be
    published. `ledger` enters the release in a ledger (a file, a URL or an open one) and compares
    it with earlier releases of the same dataset. `utility` and `risk` are measures and `attacks` adversaries to
    run against the result: by name, by a mapping with `name` and parameters, or as values; where they are left out, a search
    measures its loss, and a mask is compared record by record with the original (`information_loss` and `disclosure_risk`, for
    synthetic data `nearest_record`) as far as that can be done. `answers` answers the
    questions of the checklist that no program can (`sfumato.report.checklist.QUESTIONS`), with True, False or a
    mapping of `given` and `note`. `seed` makes the run repeatable and the release a demonstration. `key` is the
    owner's key, or its file, for fingerprint and pseudonyms.

    With a `destination` the rows stay in their engine, which recodes and writes them itself: into a new folder, where the
    release appears whole (Parquet files in `public/data`, certificate, cards; `sign` names the file of a signing key), or into
    the table `table_name` of a DuckDB file, of a PostgreSQL database (URL) or of Spark (`spark:catalogue.schema.table`).
    `overwrite` replaces what is there. `memory` is what the cells of the table may take here, such as "2GB". Masks that are no
    matter of single records, such as microaggregation, are refused there.

    `sample` protects so many of the records in this process, drawn uniformly by the engine that holds them; the release says that
    it is a sample, and `details` of how many.

    A `draft` is made to be looked at: it is measured and compared with earlier releases like any other, nothing is entered in the
    ledger, and certificate, cards and `verify` call it a draft. Make the release without it before anything is given away.

    `strict` refuses all but a verdict `kept`, before anything is written or entered. `progress=True` shows a bar.
    """
    from sfumato.anonymity.search.base import Search
    from sfumato.masking.base import Mask
    from sfumato.wire.keys import owner_key_of
    from sfumato.workflow.publishing.masked_rows import masked_rows, refuse_too_many_records
    from sfumato.workflow.publishing.recoded_rows import recoded_rows

    unplaced, besides = _stated_method(method)
    promised = each_once((*_stated_guarantees(guarantees, k), *besides))
    columns = {"quasi": quasi, "sensitive": sensitive, "identifier": identifier, "plain": plain}
    described = any(each is not None for each in columns.values())
    source = _described(data, schema, columns) if described else microdata_of(data, schema)
    chosen = unplaced if isinstance(unplaced, (Mask, Search)) else _placed(unplaced, source)
    warn_before(source.schema, promised, strict=strict and isinstance(chosen, Search))
    register = population_of(population, source.schema, public=population_public)
    place = asked_destination(destination, table_name, source, overwrite=overwrite, sign=sign, memory=memory, draft=draft)
    require(sample is None or place is None, "a sample is protected in this process: leave destination= or sample= out")
    randomness, sampled_of = sources_of_randomness.default(seed), None
    if sample is not None:
        from sfumato.workflow.publishing.sampled_rows import refuse_promises_about_the_original, sample_of

        refuse_promises_about_the_original(promised)
        source, sampled_of = sample_of(source, sample, randomness)
    in_memory = isinstance(chosen, Mask) and place is None
    if in_memory:
        refuse_too_many_records(source)
    with shown(progress) as receiver, _held(source, register, in_memory=in_memory) as (people, compared):
        plan = plan_columns(people, promised, population=compared is not None, masked=isinstance(chosen, Mask))
        check_size(len(people), promised)
        warned = (*unread(people.schema), *warned_of_people(people, strict=strict))
        owner_key = owner_key_of(key, randomness)
        if isinstance(chosen, Mask) and place is not None:  # what is usual for a mask compares records
            utility, risk = (() if each is None else each for each in (utility, risk))
        checks = Checks.of(utility, risk, attacks, method=chosen, published=plan.schema, population=compared)
        stated = answers_of(answers or {})
        request = ReleaseRequest(
            people,
            compared,
            population_public,
            promised,
            plan,
            owner_key,
            randomness,
            recipe or {},
            stated,
            receiver,
            in_engine=place is not None,
            sampled_of=sampled_of,
            draft=draft,
            strict=strict,
            warned=warned,
        )
        if place is not None:
            from sfumato.workflow.publishing.forecast import memory_of
            from sfumato.workflow.publishing.storing import store

            limit, signed = memory_of(memory), None if sign is None else Path(sign)
            return store(request, chosen, place, ledger=ledger, checks=checks, overwrite=overwrite, sign=signed, memory=limit)
        if isinstance(chosen, Mask):
            submission = masked_rows(request, chosen, source.relation)
        else:
            submission = recoded_rows(request, chosen)
        return publish(submission, ledger, checks=checks, progress=receiver)


def mask(
    data: TableLike,
    method: Mask | str | Plain,
    guarantees: GuaranteeLike | Iterable[GuaranteeLike] = (),
    **options: Any,  # those of `protect`
) -> Release[Rows | StoredRows]:
    """Mask a table, measure what it cost and what it left, and certify it: `protect` with a mask, which needs no guarantee.

    `options` are the other parameters of `protect`.
    """
    return protect(data, guarantees, method, **options)


@contextmanager
def _held(source: Microdata, register: Microdata | None, *, in_memory: bool) -> Iterator[tuple[Microdata, Microdata | None]]:
    """One state of the tables: a mask works on records that were read once, a search lets the engine work."""
    if in_memory:
        yield read_once(source), None if register is None else read_once(register)
        return
    with one_state(source) as people, one_state_or_none(register) as compared:
        yield people, compared


def fingerprint(data: Microdata | None, key: OwnerKey, *, in_engine: bool = False) -> str | None:
    """The keyed fingerprint of all rows, read a batch at a time; their order does not matter. `in_engine` gives the second
    format, for which no row comes here."""
    from sfumato.wire.fingerprint import Fingerprint

    if data is None:
        return None
    if in_engine:
        from sfumato.engines.digests.row_digest import row_sums

        return row_sums(data.relation).fingerprint(key)
    running = Fingerprint(data.relation.schema().names, key)
    for batch in data.relation.batches():
        running.add(batch)
    return running.finish()


def has_fingerprint(data: Microdata, stated: str, key: OwnerKey) -> bool:
    """Whether a certificate states the fingerprint of these rows under this key, in the format that it names."""
    from sfumato.wire.fingerprint import SECOND_FORMAT

    return fingerprint(data, key, in_engine=stated.startswith(f"{SECOND_FORMAT}:")) == stated


def _about_population(request: ReleaseRequest, *, masked: bool) -> dict[str, Any]:
    """Whether the population is declared public, and which hierarchies were learnt from it."""
    if request.population is None:
        return {}
    learnt = [] if masked else request.by_frequency
    stated: dict[str, Any] = {"population": PUBLIC_POPULATION if request.population_public else HIDDEN_POPULATION}
    return stated | ({"learnt_from_population": learnt} if learnt else {})


def _notices_about(
    content: Content,
    plan: ColumnPlan,
    guarantees: Iterable[ClassGuarantee],
    masked: Collection[str],
    unchanged: Collection[str],
) -> tuple[str, ...]:
    """What the owner should think about although no guarantee forbids it."""
    from sfumato.anonymity.pseudonyms import WARNING
    from sfumato.workflow.publishing.recoded_rows import telling_columns

    warned = (WARNING,) if set(plan.pseudonymised) & set(content.schema.columns) else ()
    if not isinstance(content, Rows):
        return warned
    covered = {*supposed_known(guarantees, plan.quasi), *plan.pseudonymised}
    others = [name for name in content.table.column_names if name not in covered]
    as_they_are = [name for name in others if name not in masked]
    return (*warned, *telling_columns(content.table, as_they_are, [name for name in others if name in unchanged]))


def microdata_of(data: TableLike, schema: Schema | str | Path | None) -> Microdata:
    """Microdata as they are, under another schema where one is given, or read from anything `read` takes."""
    if isinstance(data, Microdata):
        if schema is None or schema is data.schema:
            return data
        return data.with_schema(schema if isinstance(schema, Schema) else Schema.load(schema))
    from sfumato.engines.sources import read

    return read(data, schema)


def population_of(population: TableLike, schema: Schema, *, public: bool) -> Microdata | None:
    """The population: its quasi-identifiers are all that is needed, as its own schema describes them or else as
    that of the people does.
    """
    if population is None:
        require(not public, "population_public says that everybody can have the population; pass population= as well")
        return None
    if isinstance(population, Microdata) and set(schema.quasi) <= set(population.schema.columns):
        return population
    needed = schema.replace(columns={name: schema.columns[name] for name in schema.quasi})
    return microdata_of(population, needed)


def _stated_guarantees(guarantees: GuaranteeLike | Iterable[GuaranteeLike], k: int | None) -> tuple[ClassGuarantee, ...]:
    """What is to be promised; what is no guarantee yet is read by `shorthand`."""
    if not isinstance(guarantees, Iterable | Guarantee):
        raise ParameterError(
            f"protect: guarantees is a guarantee or a list of them, and this is {type(guarantees).__name__}. For k-anonymity "
            "alone write k=5"
        )
    listed = (guarantees,) if isinstance(guarantees, (Guarantee, str, Mapping)) else tuple(guarantees)
    promises = tuple(each for each in listed if isinstance(each, ClassGuarantee))
    if k is None and len(promises) == len(listed):
        return promises
    from sfumato.workflow.shorthand import promised

    return promised(listed, k)


def _stated_method(method: Search | Mask | str | Plain | None) -> tuple[Unplaced, tuple[ClassGuarantee, ...]]:
    """The method, the default search where none is named, and the guarantees that its text names."""
    from sfumato.anonymity.search.base import Search
    from sfumato.anonymity.search.least_loss import LeastLoss
    from sfumato.masking.base import Mask

    if method is None:
        return LeastLoss(), ()
    if isinstance(method, (Search, Mask)):
        return method, ()
    from sfumato.workflow.shorthand import method_with_guarantees

    return method_with_guarantees(method)


def _placed(method: Unplaced, people: Microdata) -> Search | Mask:
    """Masks that share the quasi-identifiers, with the columns of each."""
    from sfumato.workflow.comparing.grid import placed

    return placed(method, people)


def _described(data: TableLike, schema: object, columns: Mapping[str, Columns | None]) -> Microdata:
    """The table with the roles that its columns were named by."""
    from sfumato.workflow.shorthand import ColumnsByRole

    return ColumnsByRole.of(**columns).described(data, schema)
