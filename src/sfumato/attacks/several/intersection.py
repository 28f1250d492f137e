"""Intersection: two releases about the same people, each safe alone, are combined.

Whoever knows a person's quasi-identifiers finds a class in each release; the person's record must be in all
of them. What the classes have in common is what remains: sensitive values that all of them show, records that
can be the same one. k-anonymity and its relatives do not compose. Ganta, Kasiviswanathan, Smith, "Composition
attacks and auxiliary information in data privacy", KDD 2008.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from sfumato.attacks.adversary import TableAttack, is_masked, is_table
from sfumato.attacks.several.comparable import refuse_unread, refuse_untied
from sfumato.attacks.several.differencing import Differences, differences
from sfumato.attacks.several.joint import Joint, LookedUp, joint_by_overlap
from sfumato.attacks.several.remaining import Linked, Remaining, attributes_of, link_columns, linked, remaining
from sfumato.attacks.tables.candidates import target_classes
from sfumato.attacks.tables.classes import Ids, ReleasedClasses, classes_of, of_units, released_table
from sfumato.core.declared import Declared
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.ranges import ColumnName
from sfumato.core.texts import percent, rough, rough_percent
from sfumato.core.view import AttackResult, Criterion, Detail, View
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson

if TYPE_CHECKING:
    import pyarrow as pa

#: Whose combinations of classes they are, where some people are looked up and not everybody.
OF_A_REGISTER = "of the register"


@dataclass(frozen=True, eq=False)
class OtherReleases(Declared):
    """The earlier releases about the same people (`views`), and the `original` rows where the owner runs the attack, or in their
    place a `register` of some people, who need not be all; row i of the original stands for `counts[i]` people where it was
    grouped. Nobody knows what the texts of `unread` columns stand for: any may
    stand for any value. Where releases have to be `comparable`, texts that nobody can read for certain, or that were written
    otherwise, are refused."""

    views: Annotated[tuple[TableView, ...], "the other releases"] = field(repr=False)
    original: Annotated["pa.Table | None", "the original rows, where the owner runs the attack"] = field(  # noqa: UP037
        default=None, repr=False
    )
    unread: Annotated[frozenset[str], "columns whose texts nobody can read"] = frozenset()
    comparable: Annotated[bool, "whether texts that cannot be read for certain are refused"] = False
    counts: Annotated["NDArray[np.int64] | None", "for how many people each row of the original stands"] = field(  # noqa: UP037
        default=None, repr=False
    )
    register: Annotated["pa.Table | None", "some people, looked up in place of the original"] = field(  # noqa: UP037
        default=None, repr=False
    )


@dataclass(frozen=True)
class Intersection(TableAttack["OtherReleases | TableView | Sequence[TableView]"]):
    """An adversary who knows a target's raw quasi-identifiers, and that the target is in every release.

    `knowledge`: `OtherReleases`, a view or several. With the original the combinations of classes are
    those of real people, with a register those of its people; without either all combinations whose texts may stand for the
    same raw values, each record being spread evenly over those that can be the same one: a rough estimate, often of too many
    people, as some combinations hold nobody.

    What is a quasi-identifier in one release is taken for one in all: who knows it finds it wherever it is
    shown. Masked and synthetic releases are refused (`Unsupported`): their values are not those of people.
    Where the texts of the releases have nothing in common that is said, and proves nothing about people.

    More than two releases are combined two at a time and all together, each time by the columns that those
    concerned show, and the worst of it is told.

    Success: the share of people for whom one value of `attribute` (by default of some sensitive one) is left, wherever it is
    shown. Blind guessing: those of them who have its most frequent value. Details: `worst_remaining_group`, the fewest
    records that can still be the target's (records can be the same one when they agree in every column that
    the releases show as it is), `worst_group_alone`, the smallest class before, and, with the original,
    `worst_joint_group`, the fewest people who share all their classes: what remains if the records of the
    releases could be seen to belong together. People missing from one release and present in another are
    looked for by subtraction: `differencing_groups` groups smaller than any class of the release that they are in,
    `differencing_people` in them, `smallest_difference` in the smallest (`attacks.several.differencing`).
    """

    attribute: Annotated[ColumnName | None, "the sensitive attribute that is attacked; all of them where left out"] = None

    criterion: ClassVar[Criterion | None] = "linkability"
    needs: ClassVar[tuple[str, ...]] = ("earlier",)
    helped_by: ClassVar[tuple[str, ...]] = ("register",)
    of_groups: ClassVar[bool] = True

    def fits(self, view: View[object, object]) -> bool:
        """The release has classes, and not values that were changed."""
        return is_table(view) and not _changed(view)

    def knowledge_from(self, entries: Mapping[str, object]) -> OtherReleases:
        """The other releases, over the people of a register where there is one."""
        views, register = tuple(cast("Sequence[TableView]", entries["earlier"])), entries.get("register")
        return OtherReleases(views, comparable=True, register=cast("pa.Table | None", register))

    def run(self, view: TableView, knowledge: OtherReleases | TableView | Sequence[TableView] | None = None) -> AttackResult:
        """Combine the releases."""
        others = _others(knowledge)
        views = (view, *others.views)
        for each in views:
            refuse_changed_values(each)
        if others.comparable:
            refuse_unread(views)
            refuse_untied(views)
        releases = _releases(views)
        quasi = {name for each in views for name in each.schema.quasi}
        names = _sensitive(views, quasi, self.attribute)
        overlays = _overlays(views, releases, quasi, names, others)
        # some people of a register say nothing of how many there are
        apart = differences(releases, overlays[0].joint, others.unread, everybody=others.original is not None)
        people_are = "counted" if others.original is not None else "estimated" if others.register is None else OF_A_REGISTER
        return _result(views, releases, overlays, names, apart, people_are)


def sensitive_candidates(views: Sequence[TableView], target: Mapping[str, str | None], attribute: str) -> frozenset[str | None]:
    """The values of a sensitive attribute that every release allows for a person with these raw quasi-
    identifiers."""
    if not views:
        raise InputError("there is no release to look the target up in")
    sets = []
    for view in views:
        classes = classes_of(view)
        histogram = classes.histogram(attribute)
        visible = {name: value for name, value in target.items() if name in classes.quasi}
        inside = np.isin(histogram.klass, target_classes(classes, visible))
        sets.append(frozenset(histogram.values[int(code)] for code in histogram.value[inside]))
    return frozenset.intersection(*sets)


@dataclass(frozen=True, eq=False)
class _Overlay:
    """Some of the releases, combined: per combination of classes the records that are left, and what they show."""

    joint: Joint = field(repr=False)
    link: tuple[str, ...]
    records: Ids = field(repr=False)
    attributes: list[Remaining] = field(repr=False)

    @property
    def possible(self) -> Any:
        """A combination without a common record contradicts the assumption that the target is in all releases."""
        return self.records > 0

    def people(self, combinations: Any) -> float:
        """How many people are in these combinations, if they are possible."""
        return float(self.joint.people[self.possible & combinations].sum())

    def certain(self, names: Collection[str]) -> Any:
        """Combinations for whose people one value of one of these attributes is left."""
        return self._any(each.values == 1 for each in self.attributes if each.attribute.name in names)

    def guessed(self) -> Any:
        """Those of them whose value is the most frequent one."""
        return self._any((each.values == 1) & (each.only == _most_frequent(each.attribute.linked)) for each in self.attributes)

    def alone(self) -> Any:
        """Combinations whose people are singled out by one of the releases without the others."""
        return self._any(
            self.joint.distinct_alone(place, rows, np.diff(rows.indptr)) == 1
            for each in self.attributes
            for place, rows in zip(each.attribute.places, each.attribute.linked.rows, strict=True)
        )

    def rate(self, names: Collection[str]) -> float:
        """The share of people for whom one value is left."""
        return share(self.people(self.certain(names)), self.people(True))

    def _any(self, masks: Iterable[Any]) -> Any:
        return np.logical_or.reduce([np.zeros(self.records.size, dtype=np.bool_), *masks])


def _overlays(
    views: Sequence[TableView],
    releases: Sequence[ReleasedClasses],
    quasi: Collection[str],
    names: Sequence[str],
    others: OtherReleases,
) -> list[_Overlay]:
    """All releases combined, then each two of them."""
    every = tuple(range(len(views)))
    people = others.register if others.original is None else others.original
    counts = others.counts if people is others.original else None
    looked_up = None if people is None else LookedUp.of(releases, people, counts)
    overlays = []
    for chosen in (every, *(combinations(every, 2) if len(every) > 2 else ())):
        some = [releases[place] for place in chosen]
        link = link_columns([views[place] for place in chosen], quasi)
        whole = linked(some, link)
        joint = joint_by_overlap(some, whole.rows, others.unread) if looked_up is None else looked_up.joint(chosen)
        records, attributes = remaining(joint, some, whole, attributes_of(some, names, link))
        overlays.append(_Overlay(joint, link, records, attributes))
    return overlays


def _result(
    views: Sequence[TableView],
    releases: Sequence[ReleasedClasses],
    overlays: Sequence[_Overlay],
    names: Sequence[str],
    apart: Differences,
    people_are: str,
) -> AttackResult:
    possible = all(each.possible.any() for each in overlays)
    worst = min(int(each.records[each.possible].min()) for each in overlays) if possible else 0
    most = max(overlays, key=lambda each: each.rate(names))  # the first of several: all releases together
    exact = most.joint.exact
    people, exposed = (most.people(True), most.people(most.certain(names))) if possible else (0.0, 0.0)
    alone = min((int(classes.sizes.min()) for classes in releases if classes.sizes.size), default=0)
    targets = round(people)
    details: dict[str, Detail] = {
        "releases": len(views),
        "people_are": people_are,
        "worst_remaining_group": worst,
        "worst_group_alone": alone,
        "singled_out": exposed if not exact else round(exposed),
        "singled_out_by_one_release_alone": _singled_out_alone(releases, names, most if exact else None) if possible else 0,
        "combinations": min(int(each.possible.sum()) for each in overlays),
        "differencing_groups": apart.groups,
        "differencing_people": apart.people,
        "smallest_difference": apart.smallest,
    }
    if len(names) > 1:
        details["singled_out_by_attribute"] = {name: most.people(most.certain([name])) if possible else 0.0 for name in names}
    if people_are == "counted":
        details["worst_joint_group"] = min(int(each.joint.people[each.possible].min()) for each in overlays) if possible else 0
    return AttackResult(
        attack="Intersection",
        success=share(exposed, people),
        baseline=share(most.people(most.guessed()), people),
        # no interval holds what is wrong with an estimate
        interval=wilson(share(exposed, people) * targets, targets) if exact else (0.0, 1.0),
        targets=targets,
        finding=_finding(views, overlays, worst, alone, names, share(exposed, people), apart, people_are),
        details=details,
    )


def _singled_out_alone(releases: Sequence[ReleasedClasses], names: Sequence[str], counted: _Overlay | None) -> int:
    """The people whom one of the releases leaves with one value without the others; where they are not `counted` in the
    original, those in the classes with one value of the release that has most of them."""
    if counted is not None:
        return round(counted.people(counted.alone()))
    most = 0
    for classes in releases:
        shown = [name for name in names if name in classes.table.column_names]
        certain = np.logical_or.reduce([np.zeros(classes.sizes.size, dtype=np.bool_), *(_one_value(classes, n) for n in shown)])
        most = max(most, int(classes.units[certain].sum()))
    return most


def _one_value(classes: ReleasedClasses, name: str) -> Any:
    return classes.histogram(name).distinct == 1


def as_stated(result: AttackResult) -> AttackResult:
    """The result as it is shown and published: what is only estimated has one digit."""
    if result.details.get("people_are") != "estimated":
        return result
    of_attributes = cast("Mapping[str, float]", result.details.get("singled_out_by_attribute", {}))
    details: dict[str, Detail] = {**result.details, "singled_out": _rough_count(cast("float", result.details["singled_out"]))}
    if of_attributes:
        details["singled_out_by_attribute"] = {name: _rough_count(people) for name, people in of_attributes.items()}
    return replace(
        result,
        success=rough(result.success),
        baseline=rough(result.baseline),
        targets=round(_rough_count(result.targets)),
        details=details,
    )


def _rough_count(people: float) -> float:
    shown = float(f"{people:.1g}")
    return int(shown) if shown.is_integer() else shown


def _finding(
    views: Sequence[TableView],
    overlays: Sequence[_Overlay],
    worst: int,
    alone: int,
    names: Sequence[str],
    rate: float,
    apart: Differences,
    people_are: str,
) -> str:
    releases, exact = len(views), overlays[0].joint.exact
    if not worst:
        which = f"{releases} releases" if releases == 2 else f"{releases} releases, or two of them,"
        return (
            f"As they are written, the {which} have nothing in common. This does not show that nobody is in all of "
            "them: values may have changed, or be written differently."
        )
    how, who = ("", "every release") if releases == 2 else (" two at a time and all together", "those concerned")
    records = _records(worst)
    left = f"leave a target among {records} at the worst" if exact else f"may leave a target among as few as {records}"
    change = f"instead of {alone:,} in the weakest release alone"
    if worst >= alone:
        change = f"and the smallest group of one release alone, alike in what counts as known, has {_records(alone)}"
    people = "people of the register" if people_are == OF_A_REGISTER else "people"
    parts = [f"Combined{how}, for {people} who are in {who}, the {releases} releases {left}, {change}."]
    several = any(of_units(view) for view in views)
    if several:
        parts.append("One person may stand behind several records.")
    if names:
        most = "up to " * (releases > 2 and rate > 0)
        whom = f"{percent(rate)} of them" if exact or not rate else f"roughly {rough_percent(rate)} of them (estimated)"
        parts.append(f"For {most}{whom} one value of {_quoted(names)} is left.")
    if counted := [
        name
        for view in views
        for name, column in view.schema.columns.items()
        if column.role != "quasi" and any(name in each.schema.quasi for each in views)
    ]:
        parts.append(f"What is a quasi-identifier in one of them counts as known in all: {_quoted(dict.fromkeys(counted))}.")
    if len({each.link for each in overlays}) > 1:
        parts.append("Links from one release to another by way of a third were not followed.")
    return " ".join([*parts, apart.sentence(records=several)])


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _quoted(names: Iterable[str]) -> str:
    return " or ".join(f"'{name}'" for name in names)


def _releases(views: Sequence[TableView]) -> list[ReleasedClasses]:
    """The classes of each release by whatever is a quasi-identifier in one of them."""
    quasi = dict.fromkeys(name for view in views for name in view.schema.quasi)
    columns = [released_table(view).table.column_names for view in views]
    return [classes_of(view, [name for name in quasi if name in held]) for view, held in zip(views, columns, strict=True)]


def _most_frequent(link: Linked) -> int:
    totals = np.asarray(link.rows[0].sum(axis=0)).reshape(-1)
    return int(np.argmax(totals)) if totals.size else -1


def _sensitive(views: Sequence[TableView], quasi: Collection[str], attribute: str | None) -> tuple[str, ...]:
    """The attribute asked for, or what is sensitive in any release; what is a quasi-identifier in one of them is known."""
    if attribute is not None:
        if attribute not in link_columns(views, quasi):
            raise InputError(f"not every release shows the column '{attribute}' as it is, so it cannot be compared")
        return (attribute,)
    shown = dict.fromkeys(
        name for view in views for name in view.schema.sensitive if name in released_table(view).table.column_names
    )
    return tuple(name for name in shown if name not in quasi)


def _changed(view: TableView) -> bool:
    """Whether a mask changed the values, or noise made them: then they are nobody's own."""
    evidence = [claim.get("evidence") for claim in view.certificate.get("claims", ()) if isinstance(claim, Mapping)]
    return is_masked(view) or (bool(evidence) and set(evidence) == {"process"})


def refuse_changed_values(view: TableView) -> None:
    """Only classes can be combined."""
    if _changed(view):
        raise Unsupported(
            f"the values of {view.name} were changed, so that its classes cannot be combined with those of other releases: "
            "assume that everything the releases tell adds up."
        )


def _others(knowledge: object) -> OtherReleases:
    if isinstance(knowledge, OtherReleases) and knowledge.views:
        return knowledge
    if isinstance(knowledge, View):
        return OtherReleases((knowledge,))
    if isinstance(knowledge, Sequence) and knowledge and all(isinstance(entry, View) for entry in knowledge):
        return OtherReleases(tuple(knowledge))
    raise InputError("the intersection attack needs at least one other release: a View, several, or OtherReleases(views)")
