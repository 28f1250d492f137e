"""Attacking a release: the attacks that fit it and what the attacker has, each beside blind guessing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from sfumato.attacks.adversary import OutputAttack, Target, target_in
from sfumato.core import registry
from sfumato.core.declared import declarations, require
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported, VerificationFailed, as_name
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.progress import ProgressLike, shown, silent
from sfumato.core.view import AnyAttack, Attack, AttackResult, View
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.masked import TableView
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.data.relation import ORDERED
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.values import texts
from sfumato.workflow import named
from sfumato.workflow.attacking.registers import read_register
from sfumato.workflow.attacking.truth import truth_about
from sfumato.workflow.contents.base import Content
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.publishing.scoring import Attacked, plain_result
from sfumato.workflow.verifying.verify import OpenRelease, open_release

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike

#: What the attacker may hand over by an option, and what is said where an attack needs it and it is not there.
LACKING: Mapping[str, str] = {
    "register": "{attack} needs a register of people: pass it with --with",
    "truth": "who is who in a masked release can only be counted where the truth is known. If the register is the very table "
    "that was masked, say --aligned (it needs the owner's folder beside public/); if it has a column that identifies people, "
    "published or known to the owner's folder (unit and identifiers of the source), name it with --key.",
    "earlier": "{attack} needs at least one other release about the same people: pass it with --earlier",
}


class Viewed(Protocol):
    """A release that is available."""

    @property
    def content(self) -> Content:
        """What was published, with what its owner knows of it."""

    def view(self, name: str = ..., *, register: TableLike = ...) -> TableView:
        """What an outsider sees of it who knows the people of a register."""


#: A release to attack: its folder, itself, or what an outsider sees of it.
Attackable: TypeAlias = str | Path | TableView | Viewed


def attack(
    release: Attackable,
    *,
    register: TableLike = None,
    table: str | None = None,
    reading: Plain | None = None,
    earlier: Sequence[Attackable] = (),
    only: Attacked | Sequence[Attacked] = (),
    knowledge: Mapping[str, object] = MappingProxyType({}),
    aligned: bool = False,
    key: str | None = None,
    data: TableLike = None,
    data_table: str | None = None,
    progress: ProgressLike = silent,
) -> list[AttackResult]:
    """Run the attacks on a release, each beside blind guessing: `release` is its folder, itself, or what an outsider sees of it.

    Without more, those that need the release alone and fit it; with a `register` of people also those who look them up, with
    `earlier` releases also their intersection, and with other `knowledge` by name those who need that. `only` names the attacks
    to run, with their parameters where they have some (`"Minimality(value='HIV')"`, or a mapping). A masked table is attacked by
    distance and with all that its certificate tells about the mask; to count what was right, either the register is the very
    source of the release (`aligned`, which needs the owner's folder), or it holds some of the people and the column `key`, which
    is published or which the owner's folder knows (the unit and the identifiers of the source; the unit is taken unasked, or the
    column that the register's own schema gives that role). Entries who are not in the release by that column are not counted.
    A register is read with the types and codes for missing values that the releases name, from `table` where it is a database of
    several, and as `reading` says (`{"decimal": ","}`, over what the owner's schema says); one that `sf.read` returned is taken
    as it is. `data` is where the rows of the release are that was published into a database, with `data_table`. Results are
    counts and rates, never values. `progress=True` shows a bar in a terminal or a notebook.
    """
    asked = [only] if isinstance(only, (str, Mapping, Attack)) else list(only)
    if register is None and table is not None:
        raise ParameterError("table= names a table of the register's database; give register= as well")
    read = None
    if register is not None:
        read = read_register(register, (release, *earlier), aligned=aligned, table=table, reading=reading)
    people = None if read is None else _table(read, aligned)
    registered = person(target_in(knowledge)) if people is None and "target" in knowledge else people
    view = view_of(release, registered, data, data_table)
    truth = None if people is None else truth_about(release, view, people, aligned=aligned, key=key, declared=_unit(register))
    who = {} if truth is None else {"truth": truth.rows, "owners": truth.owners}
    held = {"register": people, **who, "earlier": earlier or None, **knowledge}
    held = {name: value for name, value in held.items() if value is not None}
    adversaries = [_asked_for(entry) for entry in asked] or [(attack, {}) for attack in _inviting(view, held)]
    _refuse_records(view, [attack for attack, _ in adversaries])
    if any("earlier" in attack.needs for attack, _ in adversaries):
        held |= {"earlier": tuple(view_of(other, people) for other in earlier)} if earlier else {}
    taken = {name for attack, _ in adversaries for name in (*attack.needs, *attack.helped_by)}
    idle = ", ".join(as_name(name) for name in knowledge if name not in taken)
    require(not idle, f"no attack that is run here takes {idle}; name one that does")
    briefs = [_knowledge(attack, held, supposed) for attack, supposed in adversaries]
    results: list[tuple[AnyAttack, AttackResult]] = []
    refusals: list[tuple[AnyAttack, InputError]] = []
    with shown(progress) as receiver:
        for position, (attack, _) in enumerate(adversaries):
            receiver("attacking", position, len(adversaries))
            try:
                results.append((attack, attack.run(view, briefs[position])))
            except (Unsupported, MissingColumn) as refusal:
                if asked:
                    raise
                refusals.append((attack, refusal))
    _raise_unless_used(refusals, [attack for attack, _ in results])
    return [result for _, result in results]


def _by_groups(view: TableView) -> bool:
    """Whether the rows of a release are known by their groups alone."""
    return isinstance(view.result, ReleasedTable) and view.result.counts is not None


def _refuse_records(view: TableView, attacks: Sequence[AnyAttack]) -> None:
    """An attack that looks at single records has none to look at where rows are known by their groups."""
    names = [type(attack).__name__ for attack in attacks if not attack.of_groups] if _by_groups(view) else []
    if names:
        raise Unsupported(
            f"{', '.join(names)} looks at single records, and this release is read by its groups; read its parts "
            "(public/data) as a table, or attack a sample"
        )


def stated(result: AttackResult) -> PlainDict:
    """An attack's result as commands print it."""
    from sfumato.attacks.several.intersection import as_stated

    return {**plain_result(result), "details": dict(as_stated(result).details)}


def _asked_for(entry: Attacked) -> tuple[AnyAttack, dict[str, Any]]:
    """The attack that somebody names, and what is supposed about the method where it is named (`Minimality(l=2)`)."""
    if isinstance(entry, Attack):
        return entry, {}
    parameters = named.inline(entry) if isinstance(entry, str) else dict(entry)
    name = str(parameters.get("name"))
    kind = registry.find("attack", name) if registry.has("attack", name) else None
    if kind is not None and issubclass(kind, OutputAttack):
        raise InputError(
            f"{name} attacks no table that was published: describe what was published (numbers, answers of a model, "
            "ratings) and what is known in a .json file, and pass that in place of the folder"
        )
    supposed = {each: value for each, value in parameters.items() if kind is not None and each in kind.supposed}
    return registry.make("attack", {each: value for each, value in parameters.items() if each not in supposed}), supposed


def _inviting(view: TableView, held: Mapping[str, Any]) -> list[AnyAttack]:
    """The attacks that the release invites, of somebody who has these things; whoever knows least comes first."""
    usual = [kind() for kind in registry.every("attack").values() if kind.unasked and not _requires_parameters(kind)]
    usual = [attack for attack in usual if attack.of_groups or not _by_groups(view)]
    fitting = [attack for attack in usual if attack.fits(view)]
    chosen = [attack for attack in fitting if not attack.needs or not held.keys().isdisjoint(attack.needs)]
    used = {name for attack in chosen for name in attack.needs}
    # what somebody has and no attack that fits can use is not passed over in silence: those who need it say why not
    chosen += [attack for attack in usual if attack.needs and held.keys() >= set(attack.needs) and used.isdisjoint(attack.needs)]
    return sorted(chosen, key=_how_much_it_knows)


def _requires_parameters(kind: type[AnyAttack]) -> bool:
    return any(each.required for each in declarations(kind))


def _how_much_it_knows(attack: AnyAttack) -> tuple[list[int], bool, str]:
    options = list(LACKING)
    places = [options.index(name) if name in options else len(options) for name in attack.needs]
    return places, attack.knows_the_method, type(attack).__name__


def _knowledge(attack: AnyAttack, held: Mapping[str, Any], supposed: Mapping[str, Any]) -> object:
    """What the attack takes of what somebody has; refused where it needs more."""
    name = type(attack).__name__
    for need in attack.needs:
        if need not in held:
            raise InputError(
                LACKING.get(need, f"{{attack}} needs '{need}': pass it as knowledge={{{{'{need}': …}}}}").format(attack=name)
            )
    entries = {each: held[each] for each in (*attack.needs, *attack.helped_by) if each in held}
    return attack.knowledge_from({**entries, **supposed})


def _raise_unless_used(refusals: Iterable[tuple[AnyAttack, InputError]], successful: Sequence[AnyAttack]) -> None:
    """An attack that does not fit is passed over, unless no other has used what it needs: that releases could not be compared
    must not read as if nothing had been found. A column that is missing from a register is said, unless another attack on the
    method went without it."""
    for attack, refusal in refusals:
        others = [each for each in successful if set(attack.needs) <= set(each.needs)]
        if isinstance(refusal, MissingColumn):
            others = [each for each in others if each.knows_the_method == attack.knows_the_method]
        if attack.needs and not others:
            raise refusal


def view_of(release: Attackable, people: pa.Table | None, data: TableLike = None, data_table: str | None = None) -> TableView:
    """What somebody sees of a release in a folder who knows these people: of rows also what their texts stand for, by the
    published hierarchies over the values the attacker knows. The texts of a view are read so again, whoever it was made for.
    """
    if data is not None and not isinstance(release, (str, Path)):
        raise ParameterError("data= says where the rows of a release folder are; name the folder")
    if isinstance(release, View):
        return _read_over(release, people)
    if not isinstance(release, (str, Path)):
        return release.view(register=people)
    try:
        with open_release(release, data, data_table) as opened:
            return seen(opened, Path(release).name, people)
    except VerificationFailed as error:
        raise InputError(f"'{release}' is not a release that can be attacked: {error}") from None


def seen(opened: OpenRelease, name: str, people: TableLike = None) -> TableView:
    """What somebody sees of a release who knows these people, while its folder is open."""
    result, schema = opened.data, opened.schema
    register = None if people is None else _table(people, aligned=False)
    if isinstance(result, pa.Table):
        result = ReleasedTable(result, schema, _trees(result, schema, register), result.num_rows)
    elif isinstance(result, GroupedRows):
        if result.ungrouped:
            raise Unsupported("the rows of this masked release are in a database and were not read: attack them as a table")
        table, counts = result.groups.table, result.groups.counts
        schema = schema.replace(columns={column: schema.columns[column] for column in table.column_names})
        result = ReleasedTable(table, schema, _trees(table, schema, register), result.num_rows, counts=counts)
    return View(result, schema, opened.certificate.to_mapping(), name)


def _trees(table: pa.Table, schema: Schema, people: pa.Table | None) -> dict[str, Hierarchy]:
    """The published hierarchies, over the values the attacker knows."""
    from sfumato.data.hierarchies import hierarchy_builders

    trees = {}
    for name, column in schema.columns.items():
        values = _known_values(name, column, table, people)
        if values is not None:
            trees[name] = hierarchy_builders.build(name, column, values, None, schema.folder)
    return trees


def _read_over(view: TableView, people: pa.Table | None) -> TableView:
    """The view with its quasi-identifiers read over the values of these people; files of hierarchies are in it already."""
    from sfumato.data.hierarchies import hierarchy_builders

    result = view.result
    if people is None or not isinstance(result, ReleasedTable):
        return view
    trees = dict(result.hierarchies)
    for name, column in view.schema.columns.items():
        spec, values = column.hierarchy, _known_values(name, column, result.table, people)
        if spec is None or values is None or column.role == "sensitive":
            continue
        if spec.file is None or column.items is not None:
            trees[name] = hierarchy_builders.build(name, column, values)
        elif name in trees:
            trees[name] = hierarchy_builders.cover(trees[name], values, name=name, missing=spec.missing)
    return replace(view, result=replace(result, hierarchies=trees))


def person(target: Target) -> pa.Table | None:
    """One person as a register of one; None where nothing is known."""
    return pa.table({name: pa.array([value], pa.string()) for name, value in target.items()}) if target else None


def _known_values(name: str, column: Column, table: pa.Table, people: pa.Table | None) -> list[str | None] | None:
    """The values a hierarchy is built over: those of the register, or the leaves of a file alone; None where
    it takes more.
    """
    if column.hierarchy is None or column.hierarchy.kind == "frequency":  # learnt from a population that is not here
        return None
    if column.role == "sensitive":
        return texts(table.column(name).unique())
    if people is not None and name in people.column_names:
        return texts(people.column(name).unique())
    return [] if column.hierarchy.file is not None else None


def _unit(register: TableLike) -> str | None:
    """The column that a register's own schema declares to name its people."""
    return register.schema.unit if isinstance(register, Microdata) else None


def _table(source: Any, aligned: bool) -> pa.Table:
    from sfumato.engines.sources import read

    opened = source if isinstance(source, Microdata) else read(source)
    if aligned and opened.relation.engine not in ORDERED:
        raise InputError(
            f"--aligned counts on the order of the records, and records on {opened.relation.engine} have none of their own; "
            "name a column that tells people apart with --key"
        )
    return opened.table()
