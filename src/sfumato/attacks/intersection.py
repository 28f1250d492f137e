"""Intersection: two releases about the same people, each safe alone, are laid over each other.

Whoever knows a person's quasi-identifiers finds a class in each release; the person's record must be in all
of them. What the classes have in common is what remains: sensitive values that all of them show, records that
can be the same one. k-anonymity and its relatives do not compose. Ganta, Kasiviswanathan, Smith, "Composition
attacks and auxiliary information in data privacy", KDD 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.attacks.candidates import target_classes
from sfumato.attacks.classes import Classes, classes_of, of_units, released_table
from sfumato.attacks.differencing import Differences, differences
from sfumato.attacks.joint import Joint, joint_by_overlap, joint_by_people
from sfumato.attacks.remaining import Linked, Remaining, link_columns, linked, remaining
from sfumato.attacks.success import percent, share, wilson
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.view import Attack, AttackResult, View

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class OtherReleases:
    """The earlier releases about the same people, and the `original` rows where the owner runs the attack."""

    views: tuple[View, ...] = field(repr=False)
    original: pa.Table | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Intersection(Attack):
    """An adversary who knows a target's raw quasi-identifiers, and that the target is in every release.

    `knowledge`: `OtherReleases`, a view or several. With the original at hand the combinations of classes are
    those of real people; without it all combinations whose texts may stand for the same raw values, people
    being spread over them evenly.

    What is a quasi-identifier in one release is taken for one in all: who knows it finds it wherever it is
    shown. Masked and synthetic releases are refused (`Unsupported`): their values are not those of people.
    Where the texts of the releases have nothing in common that is said, and proves nothing about people.

    Success: the share of people for whom one value of some sensitive attribute is left. Blind guessing: those
    of them who have the most frequent value of this release. Details: `worst_remaining_group`, the fewest
    records that can still be the target's (records can be the same one when they agree in every column that
    all releases show as it is), `worst_group_alone`, the smallest class before, and, with the original,
    `worst_joint_group`, the fewest people who share all their classes: what remains if the records of the
    releases could be told to belong together. People missing from one release and present in another are
    looked for by subtraction: `differencing_groups` groups smaller than any class, `differencing_people` in
    them, `smallest_difference` in the smallest (`attacks.differencing`).
    """

    attribute: str | None = None

    def run(self, view: View, knowledge: Any = None) -> AttackResult:
        """Lay the releases over each other."""
        others = _others(knowledge)
        views = (view, *others.views)
        for each in views:
            refuse_changed_values(each)
        releases = _releases(views)
        names = _shared_sensitive(views, self.attribute)
        joint = joint_by_people(releases, others.original) if others.original is not None else joint_by_overlap(releases)
        attributes = [linked(releases, (name,)) for name in names]
        left, *each_left = remaining(joint, linked(releases, link_columns(views)), attributes)
        by_attribute = dict(zip(names, each_left, strict=True))
        return _result(views, releases, joint, left, by_attribute, differences(releases, joint))


def sensitive_candidates(views: Sequence[View], target: Mapping[str, str | None], attribute: str) -> frozenset[str | None]:
    """The values of a sensitive attribute that every release allows for a person with these raw quasi-
    identifiers."""
    if not views:
        raise InputError("there is no release to look the target up in")
    sets = []
    for view in views:
        classes = classes_of(view)
        histogram = classes.histogram(attribute)
        known = {name: value for name, value in target.items() if name in classes.quasi}
        inside = np.isin(histogram.klass, target_classes(classes, known))
        sets.append(frozenset(histogram.values[int(code)] for code in histogram.value[inside]))
    return frozenset.intersection(*sets)


def _result(
    views: Sequence[View],
    releases: Sequence[Classes],
    joint: Joint,
    left: Remaining,
    by_attribute: Mapping[str, Remaining],
    apart: Differences,
) -> AttackResult:
    # A combination without a common record contradicts the assumption that the target is in all releases.
    possible = left.records > 0
    people = float(joint.people[possible].sum())
    singled = np.zeros(joint.people.size, dtype=np.bool_)
    blind = np.zeros(joint.people.size, dtype=np.bool_)
    counts: dict[str, float] = {}
    for name, found in by_attribute.items():
        certain = possible & (found.values == 1)
        counts[name] = float(joint.people[certain].sum())
        singled |= certain
        blind |= certain & (found.only == _most_frequent(found.linked))
    exposed = float(joint.people[singled].sum())
    worst = int(left.records[possible].min()) if possible.any() else 0
    alone = min((int(classes.sizes.min()) for classes in releases if classes.sizes.size), default=0)
    targets = round(people)
    details: dict[str, Any] = {
        "releases": len(views),
        "people_are": "counted" if joint.exact else "estimated",
        "worst_remaining_group": worst,
        "worst_group_alone": alone,
        "singled_out": exposed if not joint.exact else round(exposed),
        "singled_out_by_one_release_alone": float(joint.people[possible & _alone(joint, by_attribute)].sum()),
        "combinations": int(possible.sum()),
        "differencing_groups": apart.groups,
        "differencing_people": apart.people,
        "smallest_difference": apart.smallest,
    }
    if len(by_attribute) > 1:
        details["singled_out_by_attribute"] = counts
    if joint.exact:
        details["worst_joint_group"] = int(joint.people[possible].min()) if possible.any() else 0
    return AttackResult(
        attack="Intersection",
        success=share(exposed, people),
        baseline=share(float(joint.people[blind].sum()), people),
        interval=wilson(share(exposed, people) * targets, targets),
        targets=targets,
        finding=_finding(views, joint, worst, alone, share(exposed, people) if by_attribute else None, apart),
        details=details,
    )


def _finding(views: Sequence[View], joint: Joint, worst: int, alone: int, rate: float | None, apart: Differences) -> str:
    releases = len(views)
    if not worst:
        return (
            f"As they are written, the {releases} releases have nothing in common. This does not show that nobody is in all of "
            "them: values may have changed, or be written differently."
        )
    change = "as before" if worst >= alone else f"instead of {alone:,} in the weakest release alone"
    records = "1 record" if worst == 1 else f"{worst:,} records"
    left = f"leave a target among {records} at the worst" if joint.exact else f"may leave a target among as few as {records}"
    parts = [f"Laid over each other, for people who are in every release, the {releases} releases {left}, {change}."]
    several = any(of_units(view) for view in views)
    if several:
        parts.append("One person may stand behind several records.")
    if rate is not None:
        estimated = "" if joint.exact else "an estimated "
        parts.append(f"For {estimated}{percent(rate)} of them one sensitive value is left.")
    return " ".join([*parts, apart.sentence(records=several)])


def _releases(views: Sequence[View]) -> list[Classes]:
    """The classes of each release by whatever is a quasi-identifier in one of them."""
    known = dict.fromkeys(name for view in views for name in view.schema.quasi)
    columns = [released_table(view).table.column_names for view in views]
    return [classes_of(view, [name for name in known if name in held]) for view, held in zip(views, columns, strict=True)]


def _alone(joint: Joint, by_attribute: Mapping[str, Remaining]) -> Any:
    """Combinations whose people are singled out by one of the releases without the others."""
    alone = np.zeros(joint.people.size, dtype=np.bool_)
    for found in by_attribute.values():
        for release, rows in enumerate(found.linked.rows):
            distinct = np.diff(rows.indptr)
            alone |= joint.distinct_alone(release, rows, distinct) == 1
    return alone


def _most_frequent(found: Linked) -> int:
    totals = np.asarray(found.rows[0].sum(axis=0)).reshape(-1)
    return int(np.argmax(totals)) if totals.size else -1


def _shared_sensitive(views: Sequence[View], attribute: str | None) -> tuple[str, ...]:
    shared = link_columns(views)
    if attribute is not None:
        if attribute not in shared:
            raise InputError(f"not every release shows the column '{attribute}' as it is, so it cannot be compared")
        return (attribute,)
    return tuple(name for name in views[0].schema.sensitive if name in shared)


def refuse_changed_values(view: View) -> None:
    """Only classes can be laid over each other: what a mask changed, or noise made, is nobody's own value."""
    told = view.certificate.get("transparency", {})
    evidence = [claim.get("evidence") for claim in view.certificate.get("claims", ()) if isinstance(claim, Mapping)]
    if "masked_columns" in told or "steps" in told or (evidence and set(evidence) == {"process"}):
        raise Unsupported(
            f"the values of {view.name} were changed, so that its classes cannot be laid over those of other releases: "
            "assume that everything the releases tell adds up."
        )


def _others(knowledge: Any) -> OtherReleases:
    if isinstance(knowledge, OtherReleases) and knowledge.views:
        return knowledge
    if isinstance(knowledge, View):
        return OtherReleases((knowledge,))
    if isinstance(knowledge, Sequence) and knowledge and all(isinstance(entry, View) for entry in knowledge):
        return OtherReleases(tuple(knowledge))
    raise InputError("the intersection attack needs at least one other release: a View, several, or OtherReleases(views)")
