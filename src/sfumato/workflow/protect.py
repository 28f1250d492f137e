"""`protect`: from a table about people to a release that keeps the guarantees asked for.

Check the request, search for a recoding, let the engine apply it, bring the rows into one form and order,
and publish.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core import randomness as sources_of_randomness
from sfumato.core.errors import Infeasible, forgetting
from sfumato.core.guarantees.base import ANY_ADVERSARY, ClassGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.params import require
from sfumato.core.progress import Progress, silent
from sfumato.core.view import ONE_RECORD, View
from sfumato.data.item_sets import sorted_sets
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.engines.snapshots import one_state, one_state_or_none, remember
from sfumato.workflow.answers import answers_of
from sfumato.workflow.canonical import canonical
from sfumato.workflow.claims import References, UnitCounts, counts_units, each_once, measure_all, refuse_violations
from sfumato.workflow.columns import ColumnPlan, check_size, plan_columns, released_schema, with_sensitive_hierarchies
from sfumato.workflow.earlier import opened
from sfumato.workflow.owner_key import fingerprint, owner_key_of, replace_names
from sfumato.workflow.publish import Draft, enter, verified
from sfumato.workflow.readings import written_as
from sfumato.workflow.release import OwnerSide, Release
from sfumato.workflow.scoring import Attacked, Checks, Measured, attack_all, plain_result, scores_of, shown_ranges
from sfumato.workflow.transparency import AS_EACH_PROMISE, HIDDEN_POPULATION, HIERARCHY_KINDS, KNOWS_THE_PERSON, PUBLIC_POPULATION

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.randomness import Randomness
    from sfumato.data.class_table import ClassTable
    from sfumato.data.hierarchy import Hierarchy
    from sfumato.data.recoding import Recoding
    from sfumato.ledger.ledger import Ledger
    from sfumato.report.content import Answer

#: Below this many records nearly every column has nearly as many values as records.
_FEW_RECORDS = 50
#: What of a search's details is plain data and may be kept.
_NOT_KEPT = ("table",)


@dataclasses.dataclass(frozen=True)
class Kept:
    """What the owner said and keeps with the release: the recipe, and the answers to the checklist."""

    recipe: Mapping[str, Any]
    answers: Mapping[str, Answer]


@forgetting()
def protect(
    data: Any,
    guarantees: ClassGuarantee | Iterable[ClassGuarantee],
    method: Any = None,
    *,
    schema: Schema | str | Path | None = None,
    population: Any = None,
    population_public: bool = False,
    ledger: Ledger | str | Path | None = None,
    utility: Measured | Iterable[Measured] = ("loss",),
    risk: Measured | Iterable[Measured] = (),
    attacks: Attacked | Iterable[Attacked] = (),
    answers: Mapping[str, Any] | None = None,
    seed: int | str | None = None,
    key: Any = None,
    recipe: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Release:
    """Protect a table and certify what was reached.

    `data` is microdata, or anything `read` takes together with `schema`. `method` is a table search (the
    default is local recoding) or a mask, which needs no guarantee. `population` is the table that k-map and
    δ-presence compare with; `population_public` declares that everybody can have it, so that what is learnt from it may be
    published. `ledger` enters the release in a ledger (a file, a URL or an open one) and compares
    it with earlier releases of the same dataset. `utility` and `risk` are measures and `attacks` adversaries to
    run against the result: by name, by a mapping with `name` and parameters, or as values. `answers` answers the
    questions of the checklist that no program can (`sfumato.report.checklist.QUESTIONS`), with True, False or a
    mapping of `given` and `note`. `seed` makes the run repeatable and the release a demonstration. `key` is the
    owner's key, or its file, for fingerprint and pseudonyms.
    """
    from sfumato.masking.base import Mask

    if isinstance(method, Mask):
        from sfumato.workflow.mask import mask

        return mask(
            data,
            method,
            guarantees,
            schema=schema,
            population=population,
            population_public=population_public,
            ledger=ledger,
            utility=None if utility in ("loss", ("loss",)) else utility,
            risk=risk or None,
            attacks=attacks,
            answers=answers,
            seed=seed,
            key=key,
            recipe=recipe,
            progress=progress,
        )
    wanted = each_once(guarantees)
    people = microdata_of(data, schema)
    register = population_of(population, people.schema, public=population_public)
    with one_state(people) as held, one_state_or_none(register) as compared:
        return _protected(
            held,
            compared,
            wanted,
            _default_method() if method is None else method,
            (utility, risk, attacks),
            Kept(recipe or {}, answers_of(answers or {})),
            population_public=population_public,
            ledger=ledger,
            randomness=sources_of_randomness.default(seed),
            key=key,
            progress=progress,
        )


def _protected(
    people: Microdata,
    register: Microdata | None,
    wanted: tuple[ClassGuarantee, ...],
    search: Any,
    asked: tuple[Any, Any, Any],
    kept: Kept,
    *,
    population_public: bool,
    ledger: Ledger | str | Path | None,
    randomness: Randomness,
    key: Any,
    progress: Progress,
) -> Release:
    """Protect one state of a table; `asked` are the measures of utility, those of risk, and the attacks."""
    plan = plan_columns(people, wanted, population=register is not None)
    check_size(len(people), wanted)
    owner_key = owner_key_of(key, randomness)
    checks = Checks.of(*asked, published=plan.schema, population=register)
    remember(people, (*people.schema.quasi, *people.schema.sensitive))
    if register is not None and population_public:
        remember(register, _by_frequency(people.schema))

    outcome = search.run(people, wanted, population=register, progress=progress, randomness=randomness)
    _refuse_empty(outcome)
    progress("recoding", 0, 1)
    codes: ClassTable = outcome.details["table"]
    table, units = _apply(people, outcome, plan, wanted, owner_key)
    progress("recoding", 1, 1)

    draft = Draft(
        table=table,
        schema=released_schema(plan.schema, table),
        owner_schema=plan.schema,
        guarantees=wanted,
        method=dict(outcome.method),
        references=References(
            people, register, fingerprint(people, owner_key), fingerprint(register, owner_key), population_public
        ),
        randomness=randomness,
        transparency=_transparency(outcome, plan, people.schema)
        | {"written_as": written_as(people, plan.keep)}
        | about_population(people.schema, register, population_public),
        units=units,
        notices=(*notices_about(table, plan), *_widths_left_open(plan.schema)),
        hierarchies=_trees(codes),
        ranges=shown_ranges(codes, outcome.result),
        records=codes.records,
    )
    return _certified(draft, outcome, ledger, checks, kept, progress)


def _certified(
    draft: Draft,
    outcome: Outcome[Recoding],
    ledger: Ledger | str | Path | None,
    checks: Checks,
    kept: Kept,
    progress: Progress,
) -> Release:
    """Measure and attack what is about to be published, then enter it."""
    done = verified(draft, progress=progress)
    table: ClassTable = outcome.details["table"]
    released = draft.as_released(done.table)
    original = draft.references.original
    # before anything is entered: what cannot be measured must not be published by then
    scores = scores_of(original, released, checks, outcome.result.loss(table.weights), progress)
    results = attack_all(View(released, draft.schema, done.certificate.to_mapping()), checks.attacks, progress)
    with opened(ledger) as book:
        published = enter(draft, done, book, progress=progress)
    certificate = dataclasses.replace(published.certificate, attacks=tuple(plain_result(result) for result in results))
    details = {name: value for name, value in outcome.details.items() if name not in _NOT_KEPT}
    for whom in {"people", "records"} & published.composition.keys():
        details["composition"] = {f"{whom} counted in the original": published.composition["finding"]}
    return Release(
        data=published.table,
        schema=with_sensitive_hierarchies(draft.schema, draft.owner_schema),
        certificate=certificate,
        guarantees=draft.guarantees,
        scores=MappingProxyType({score.measure: score.value for score in scores}),
        details=MappingProxyType(details),
        owner=OwnerSide(
            references=draft.references,
            released=released,
            hierarchies=MappingProxyType(dict(draft.hierarchies)),
            scores=scores,
            attacks=results,
            loss_per_attribute=MappingProxyType(
                dict(zip(table.quasi, outcome.result.loss_per_attribute().tolist(), strict=True))
            ),
            schema=draft.owner_schema,
            recipe=MappingProxyType(dict(kept.recipe)),
            answers=MappingProxyType(dict(kept.answers)),
            units=draft.units,
            risks=tuple(score.measure for score in scores[len(scores) - checks.risks :]),
        ),
    )


def _apply(
    people: Microdata,
    outcome: Outcome[Recoding],
    plan: ColumnPlan,
    guarantees: Sequence[ClassGuarantee],
    key: Any,
) -> tuple[pa.Table, UnitCounts | None]:
    """The rows after the recoding, without names, in the form and order of a release; and the different units
    per class.
    """
    recoding_table = outcome.details["table"].decode(outcome.result)
    rows = sorted_sets(people.relation.recode(recoding_table, plan.delivered), people.schema, but=people.schema.quasi)
    units = None if plan.unit_to_count is None else units_behind(rows, people, plan.unit_to_count, guarantees)
    rows = rows.select(list(plan.keep))
    if plan.pseudonymised:
        rows = replace_names(rows, plan.pseudonymised, key)
    return canonical(rows), units


def _trees(codes: ClassTable) -> dict[str, Hierarchy]:
    """The hierarchies of quasi-identifiers and sensitive attributes by column."""
    trees = dict(zip(codes.quasi, codes.hierarchies, strict=True))
    return trees | {attribute.name: attribute.hierarchy for attribute in codes.sensitive}


def units_behind(rows: pa.Table, people: Microdata, unit: str, guarantees: Sequence[ClassGuarantee]) -> UnitCounts:
    """Measure what counts different people before the column that names them is dropped; outsiders cannot
    repeat this.
    """
    described = people.schema.replace(
        columns={name: column for name, column in people.schema.columns.items() if name in rows.column_names}
    )
    counting = [guarantee for guarantee in guarantees if counts_units(guarantee)]
    found = measure_all(rows, described, counting, References(people))
    refuse_violations(list(zip(counting, found, strict=True)), "the recoded table")
    return UnitCounts(unit, MappingProxyType(dict(zip(counting, found, strict=True))))


def _transparency(outcome: Outcome[Recoding], plan: ColumnPlan, schema: Schema) -> dict[str, Any]:
    """What an honest reader needs to interpret the data and an attacker may know without harm
    (Kerckhoffs).
    """
    told: dict[str, Any] = {
        "adversary": _adversary(outcome.claimed),
        "quasi_identifiers": list(plan.quasi),
        "hierarchies": {name: _hierarchy_kind(schema, name) for name in plan.quasi},
        "removed_columns": list(plan.dropped),
        "pseudonymised_columns": list(plan.pseudonymised),
        "row_order": "sorted by content",
        "unit": ONE_RECORD if schema.unit is None else f"one value of the column '{schema.unit}'",
    }
    if "levels" in outcome.details:
        told["levels"] = dict(outcome.details["levels"])
    return told


def _adversary(guarantees: Sequence[ClassGuarantee]) -> str:
    if all(guarantee.adversary == ANY_ADVERSARY for guarantee in guarantees):
        return KNOWS_THE_PERSON
    return AS_EACH_PROMISE


def about_population(schema: Schema, population: Microdata | None, public: bool) -> dict[str, Any]:
    """Whether the population is declared public, and which hierarchies were learnt from it."""
    if population is None:
        return {}
    learnt = _by_frequency(schema)
    told: dict[str, Any] = {"population": PUBLIC_POPULATION if public else HIDDEN_POPULATION}
    return told | ({"learnt_from_population": learnt} if learnt else {})


def _by_frequency(schema: Schema) -> list[str]:
    """Quasi-identifiers whose hierarchy is learnt from how often values occur."""
    specs = {name: schema.columns[name].hierarchy for name in schema.quasi}
    return [name for name, spec in specs.items() if spec is not None and spec.frequency is not None]


def notices_about(table: pa.Table, plan: ColumnPlan, changed: Collection[str] = ()) -> tuple[str, ...]:
    """What the owner should think about although no guarantee forbids it; `changed` columns are not published as they were."""
    from sfumato.anonymity.pseudonyms import WARNING

    telling = []
    for name in table.column_names:
        if name in plan.quasi or name in plan.pseudonymised or name in changed or table.num_rows < _FEW_RECORDS:
            continue
        different = len(table.column(name).drop_null().unique())
        if different > table.num_rows / 2:
            telling.append(
                f"column '{name}' is published as it is and has {different:,} different values in {table.num_rows:,} "
                "records: whoever knows one finds the record. Should it be a quasi-identifier?"
            )
    return (*((WARNING,) if set(plan.pseudonymised) & set(table.column_names) else ()), *telling)


def _widths_left_open(schema: Schema) -> tuple[str, ...]:
    """Masks without a declared width, whatever the data are: that lengths differ may be news of a suppressed record."""
    open_masks = [name for name in schema.quasi if (spec := schema.columns[name].hierarchy) and spec.mask and not spec.width]
    return tuple(
        f"column '{name}' is masked without a declared width: the longest value, which may be of a record that is not released, "
        "sets the length of every text. Declare width in its hierarchy unless all values have one length."
        for name in open_masks
    )


def _hierarchy_kind(schema: Schema, name: str) -> str:
    spec = schema.columns[name].hierarchy
    if spec is None:
        return "flat"
    return next((kind for kind in HIERARCHY_KINDS if getattr(spec, kind)), "flat")


def microdata_of(data: Any, schema: Schema | str | Path | None) -> Microdata:
    """Microdata as they are, under another schema where one is given, or read from anything `read` takes."""
    if isinstance(data, Microdata):
        if schema is None or schema is data.schema:
            return data
        return data.with_schema(schema if isinstance(schema, Schema) else Schema.load(schema))
    from sfumato.engines.sources import read

    return read(data, schema)


def population_of(population: Any, schema: Schema, *, public: bool) -> Microdata | None:
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


def _default_method() -> Any:
    from sfumato.anonymity.search.local_recoding import LocalRecoding

    return LocalRecoding()


def _refuse_empty(outcome: Outcome[Recoding]) -> None:
    if outcome.result.records and outcome.result.suppressed == outcome.result.records:
        raise Infeasible(
            "the guarantees can only be kept by suppressing every record, and an empty release helps nobody. "
            "Weaken a guarantee, generalise further (longer hierarchies) or leave out a quasi-identifier."
        )
