"""`mask`: from a table about people to a masked release, whose risk and loss are measured before anybody sees it.

A mask changes values; what it keeps and how it was made are published with it. Where it reaches a class guarantee by
construction, or one is asked for, that is verified on the written file like any other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core import randomness as sources_of_randomness
from sfumato.core.certificate import plain
from sfumato.core.errors import Unsupported, forgetting
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.view import ONE_RECORD, AnyAttack, AnyMeasure, AttackResult, Score, View
from sfumato.data.masked import Masked
from sfumato.data.microdata import Microdata
from sfumato.data.relation import ORDERED
from sfumato.data.released import ReleasedTable
from sfumato.data.schema import Schema
from sfumato.engines.snapshots import read_once
from sfumato.workflow.answers import answers_of
from sfumato.workflow.canonical import canonical
from sfumato.workflow.claims import References
from sfumato.workflow.columns import ColumnPlan, check_size, plan_columns, released_schema
from sfumato.workflow.earlier import opened
from sfumato.workflow.owner_key import fingerprint, owner_key_of, replace_names
from sfumato.workflow.protect import Kept, about_population, microdata_of, notices_about, population_of, units_behind
from sfumato.workflow.publish import Draft, Published, publish
from sfumato.workflow.release import OwnerSide, Release
from sfumato.workflow.scoring import Attacked, Checks, Measured, plain_result, told_apart
from sfumato.workflow.transparency import KNOWS_THE_METHOD

if TYPE_CHECKING:
    from sfumato.ledger.ledger import Ledger
    from sfumato.masking.base import Mask

_ROW = "source row of sfumato"
#: What of a mask's details is plain data and may be kept.
_PLAIN = (int, float, str, bool)


@forgetting()
def mask(
    data: Any,
    method: Mask,
    guarantees: ClassGuarantee | Iterable[ClassGuarantee] = (),
    *,
    schema: Schema | str | Path | None = None,
    population: Any = None,
    population_public: bool = False,
    ledger: Ledger | str | Path | None = None,
    utility: Measured | Iterable[Measured] | None = None,
    risk: Measured | Iterable[Measured] | None = None,
    attacks: Attacked | Iterable[Attacked] = (),
    answers: Mapping[str, Any] | None = None,
    seed: int | str | None = None,
    key: Any = None,
    recipe: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Release:
    """Mask a table, measure what it cost and what it left, and certify it.

    `method` is a mask such as `sf.Mdav(5)`. `guarantees` must hold on the result, besides those that the mask claims. Risk and
    loss are measured record by record against the original (by default `disclosure_risk` and `information_loss`, for
    synthetic data `nearest_record`); those numbers are the owner's. The other parameters are those of `protect`.
    """
    given = microdata_of(data, schema)
    people = read_once(given)
    asked = (guarantees,) if isinstance(guarantees, ClassGuarantee) else tuple(guarantees)
    described = population_of(population, people.schema, public=population_public)
    register = None if described is None else read_once(described)
    plan = plan_columns(people, asked, population=register is not None, masked=True)
    check_size(len(people), asked)
    randomness = sources_of_randomness.default(seed)
    owner_key = owner_key_of(key, randomness)
    usual_risk = "nearest_record" if method.synthetic else "disclosure_risk"
    checks = Checks.of(
        "information_loss" if utility is None else utility,
        usual_risk if risk is None else risk,
        attacks,
        published=plan.schema,
        population=register,
    )
    answered = answers_of(answers or {})

    outcome = method.apply(people, randomness=randomness, progress=progress)
    wanted = (*asked, *(each for each in outcome.claimed if each not in asked))
    masked = outcome.result
    kept = tuple(name for name in plan.keep if name in masked.table.column_names)
    units = None
    if plan.unit_to_count is not None and masked.rows is not None and wanted:
        units = units_behind(masked.table, people, plan.unit_to_count, wanted)
    table, rows = _in_order(_with_pseudonyms(masked.table.select(list(kept)), plan, owner_key), masked.rows)
    draft = Draft(
        table=table,
        schema=released_schema(plan.schema, table),
        owner_schema=_described(plan.schema, table),
        guarantees=wanted,
        method=dict(outcome.method),
        references=References(
            people, register, fingerprint(people, owner_key), fingerprint(register, owner_key), population_public
        ),
        randomness=randomness,
        transparency=_transparency(masked, plan, people.schema)
        | about_population(_described(plan.schema, table), register, population_public),
        units=units,
        notices=(*_left_as_they_are(masked, plan), *notices_about(table, plan)),
        records=len(people),
    )
    # measured before anything is entered: what cannot be measured must not be published by then
    scored = _scored(
        checks,
        people,
        dataclasses.replace(masked, table=masked.table.select(list(kept))),
        draft.as_released(table),
        lenient=(utility is None, risk is None),
        progress=progress,
    )
    results = _attacked(draft, people, rows, checks.attacks, progress)
    with opened(ledger) as book:
        published = publish(draft, book, progress=progress)
    # the numbers of rows mean something to whoever can read the table in the same order again
    kept_rows = rows if given.relation.engine in ORDERED else None
    return _release(draft, published, outcome, kept_rows, scored, results, Kept(recipe or {}, answered))


@dataclasses.dataclass(frozen=True)
class _Scored:
    """The scores, which of them are risks, and what could not be measured."""

    scores: tuple[Score, ...]
    risks: tuple[str, ...]
    unmeasured: tuple[str, ...]


def _scored(
    checks: Checks, people: Microdata, masked: Masked, released: ReleasedTable, *, lenient: tuple[bool, bool], progress: Progress
) -> _Scored:
    """Measure what was asked for. Usual measures that nobody asked for may be impossible: a mask that turns numbers into words
    leaves nothing to compare record by record.
    """
    scores: list[Score] = []
    measured: list[AnyMeasure] = []
    unmeasured: list[str] = []
    useful = len(checks.measures) - checks.risks
    risks = 0
    for position, measure in enumerate(checks.measures):
        progress("measuring", position, len(checks.measures))
        is_risk = position >= useful
        try:
            scores.append(measure.score(people, masked if measure.masked else released))
        except Unsupported as error:
            if not lenient[is_risk]:
                raise
            unmeasured.append(f"{getattr(measure, 'key', type(measure).__name__)} was not measured: {error}")
            continue
        measured.append(measure)
        risks += is_risk
    told = told_apart(scores, measured)
    return _Scored(tuple(told), tuple(score.measure for score in told[len(told) - risks :]), tuple(unmeasured))


def _attacked(
    draft: Draft, people: Microdata, rows: NDArray[np.int64] | None, attacks: tuple[AnyAttack, ...], progress: Progress
) -> tuple[AttackResult, ...]:
    """Attack what is about to be published. Whoever looks people up in it is given the whole original: the worst case."""
    from sfumato.workflow.attacking import truth_of

    told = plain({"method": draft.method, "transparency": draft.transparency, "claims": []})
    view = View(draft.as_released(draft.table), draft.schema, told)
    results = []
    for position, attack in enumerate(attacks):
        progress("attacking", position, len(attacks))
        held = {}
        if "register" in attack.needs:
            held = {"register": people.table()}
        if "truth" in attack.needs and rows is not None:
            held["truth"] = truth_of(rows, len(people))
        results.append(attack.run(view, attack.knowledge_from(held) if held else None))
    return tuple(results)


def _release(
    draft: Draft,
    published: Published,
    outcome: Outcome[Masked],
    rows: NDArray[np.int64] | None,
    scored: _Scored,
    results: tuple[AttackResult, ...],
    kept: Kept,
) -> Release:
    released = draft.as_released(published.table)
    certificate = dataclasses.replace(published.certificate, attacks=tuple(plain_result(result) for result in results))
    details = {name: value for name, value in outcome.details.items() if isinstance(value, _PLAIN)}
    details["records"] = draft.records
    if scored.unmeasured:
        details["not measured"] = "; ".join(scored.unmeasured)
    return Release(
        data=published.table,
        schema=draft.schema,
        certificate=certificate,
        guarantees=draft.guarantees,
        scores=MappingProxyType({score.measure: score.value for score in scored.scores}),
        details=MappingProxyType(details),
        owner=OwnerSide(
            references=draft.references,
            released=released,
            scores=scored.scores,
            attacks=results,
            schema=draft.owner_schema,
            recipe=MappingProxyType(dict(kept.recipe)),
            answers=MappingProxyType(dict(kept.answers)),
            units=draft.units,
            risks=scored.risks,
            rows=rows,
        ),
    )


def _with_pseudonyms(table: pa.Table, plan: ColumnPlan, key: Any) -> pa.Table:
    present = [name for name in plan.pseudonymised if name in table.column_names]
    return replace_names(table, present, key) if present else table


def _in_order(table: pa.Table, rows: NDArray[np.int64] | None) -> tuple[pa.Table, NDArray[np.int64] | None]:
    """The table in the form and order of a release, and the source row behind each of its rows."""
    if rows is None:
        return canonical(table), None
    ordered = canonical(table.append_column(_ROW, pa.array(rows)))
    return ordered.drop_columns([_ROW]), ordered.column(_ROW).to_numpy().astype(np.int64)


def _described(schema: Schema, table: pa.Table) -> Schema:
    """The owner's schema of what is published; hierarchies describe original values and are left out."""
    columns = {
        name: schema.columns[name].model_copy(update={"hierarchy": None, "domain": None, "bounds": None, "type": None})
        for name in table.column_names
    }
    return schema.replace(columns=columns)


def _transparency(masked: Masked, plan: ColumnPlan, schema: Schema) -> dict[str, Any]:
    """What an honest reader needs to correct an analysis, and an attacker may know without harm (Kerckhoffs)."""
    # whose a record is cannot be counted where rows are new and the column that names people is not published
    nobody = schema.unit is None or (masked.rows is None and schema.unit not in masked.table.column_names)
    return {
        "adversary": KNOWS_THE_METHOD,
        "quasi_identifiers": list(plan.quasi),
        "removed_columns": [*plan.dropped, *(name for name in plan.keep if name not in masked.table.column_names)],
        "pseudonymised_columns": [name for name in plan.pseudonymised if name in masked.table.column_names],
        "row_order": "sorted by content",
        "unit": ONE_RECORD if nobody else f"one value of the column '{schema.unit}'",
        **masked.transparency,
    }


def _left_as_they_are(masked: Masked, plan: ColumnPlan) -> tuple[str, ...]:
    """A quasi-identifier that the mask did not touch is said out loud."""
    left: Sequence[str] = [name for name in plan.quasi if name not in masked.columns and name in masked.table.column_names]
    if not left:
        return ()
    listed = ", ".join(f"'{name}'" for name in left)
    return (f"quasi-identifiers that are published as they are, because the mask was not asked to change them: {listed}",)
