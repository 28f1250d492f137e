"""Minimality: a release that was generalised no further than necessary tells why it had to be generalised.

Whoever knows the algorithm goes through all tables that could lie behind a released class and drops those for which the
algorithm would have published something finer; what is left may point at people although the class itself keeps the
requirement. Wong, Fu, Wang, Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa

from sfumato.attacks.adversary import TableAttack, is_table
from sfumato.attacks.several.joint import classes_meeting
from sfumato.attacks.tables.classes import (
    AttackedAttribute,
    Ids,
    ReleasedClasses,
    classes_of,
    require_columns,
    sensitive_attributes,
    worst,
)
from sfumato.attacks.tables.known_algorithm import KnownAlgorithm as KnownAlgorithm
from sfumato.attacks.tables.known_algorithm import published_algorithm
from sfumato.attacks.tables.linkage import Register, look_up
from sfumato.attacks.tables.possible_worlds import PossibleWorlds, Requirement, worlds_of_class
from sfumato.core.declared import build
from sfumato.core.errors import InputError, MissingColumn, ParameterError, Unsupported
from sfumato.core.ranges import Count, Made
from sfumato.core.texts import percent, text_of
from sfumato.core.view import AttackResult, Criterion, View
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import wilson


def _one_value(value: Any) -> Any:
    if not isinstance(value, (str, int, float)):
        raise ParameterError("not one value")
    return value


@dataclass(frozen=True, eq=False)
class Belief:
    """What the adversary believes about the people of one group (equal raw quasi-identifiers within one class): the
    probability of each value, exact."""

    klass: int
    people: int
    probability: Mapping[str | None, Fraction] = field(repr=False)


@dataclass(frozen=True)
class Minimality(TableAttack[KnownAlgorithm | Register | pa.Table]):
    """The adversary knows who is in the release, the requirement, and that the algorithm generalises minimally.

    `knowledge` is a `KnownAlgorithm`; or a register (an Arrow table or a `Register`), and the view's certificate says what the
    algorithm required. All assignments of a class's sensitive values to its people are equally likely beforehand; those are
    dropped for which the finer table would have kept the requirement. A class whose groups were too small for k says nothing,
    and one with more than `max_worlds` tables to go through, or with so many groups and splits that it would take long, is left
    as it is shown. Success: the largest probability that somebody has a protected value of `attribute` (with `value`: that
    one), in exact arithmetic. Blind guessing: 1/l, which the release promises not to exceed ("distinct": what the class shows,
    at most). Targets are the people who are exposed that far.
    """

    attribute: AttackedAttribute = None
    max_worlds: Annotated[Count, "tables of a class that are gone through, at the most"] = 200_000
    value: Annotated[
        str | int | float | None, Made(_one_value, "one value, not several"), "the value asked about; the worst where left out"
    ] = field(default=None, repr=False)

    criterion: ClassVar[Criterion | None] = "inference"
    needs: ClassVar[tuple[str, ...]] = ("register",)
    helped_by: ClassVar[tuple[str, ...]] = tuple(each.name for each in fields(KnownAlgorithm) if each.name != "register")
    supposed: ClassVar[tuple[str, ...]] = helped_by
    unasked: ClassVar[bool] = False  # it takes a register of exactly the people behind the release
    knows_the_method: ClassVar[bool] = True

    def fits(self, view: View[object, object]) -> bool:
        """The certificate names an algorithm that merges people for one reason alone, and nobody fits two classes."""
        if not is_table(view):
            return False
        try:
            protected = published_algorithm(view, None)[1]
            classes = classes_of(view)
            apart = classes_meeting(classes, classes)[0].size == classes.sizes.size
        except Unsupported:
            return False
        return apart and self.attribute in (None, protected) and protected in classes.table.column_names

    def knowledge_from(self, entries: Mapping[str, object]) -> KnownAlgorithm | Register:
        """The register and, where somebody says so, what the algorithm required."""
        return build(KnownAlgorithm, entries) if len(entries) > 1 else Register(entries["register"])

    def run(self, view: TableView, knowledge: KnownAlgorithm | Register | pa.Table | None = None) -> AttackResult:
        """Find the person about whom minimality tells most."""
        attribute = self.attribute
        if isinstance(knowledge, (Register, pa.Table)):
            knowledge, protected = published_algorithm(view, knowledge)
            if attribute not in (None, protected):
                raise ParameterError(
                    f"Minimality: the release promises nothing about '{str(attribute)[:60]}', so its values were no reason to "
                    f"merge people; it protects '{protected[:60]}'"
                )
            attribute = protected
        return worst((self._attacked(view, knowledge, name) for name in sensitive_attributes(view, attribute)), view)

    def beliefs(self, view: TableView, knowledge: KnownAlgorithm, attribute: str) -> list[Belief]:
        """What the adversary believes about every group of people."""
        return self._reasoned(view, _required(knowledge), attribute)[0]

    def _attacked(self, view: TableView, knowledge: KnownAlgorithm | None, name: str) -> AttackResult:
        knowledge = _required(knowledge)
        beliefs, worlds = self._reasoned(view, knowledge, name)
        promised = Fraction(1, knowledge.l)
        value = text_of(self.value)
        if value is None:
            naive = max((world.most_common_share() for world in worlds), default=Fraction(0))
            tops = [max(belief.probability.values(), default=Fraction(0)) for belief in beliefs]
        else:
            if not any(value in belief.probability for belief in beliefs):
                raise InputError(f"minimality: the value asked for is no protected value that the released '{name}' shows")
            naive = max((world.share_of(value) for world in worlds), default=Fraction(0))
            tops = [belief.probability.get(value, Fraction(0)) for belief in beliefs]
        if knowledge.requirement == "distinct":
            promised = naive
        top = max(tops, default=Fraction(0))
        exposed = sum(belief.people for belief, most in zip(beliefs, tops, strict=True) if most > promised)
        targets = sum(belief.people for belief, most in zip(beliefs, tops, strict=True) if most == top)
        return AttackResult(
            attack="Minimality",
            success=float(top),
            baseline=float(promised),
            interval=wilson(float(top) * targets, targets),
            targets=targets,
            finding=(
                f"Knowing that the algorithm generalises no further than needed, an adversary believes "
                f"{'a value' if value is None else 'the value asked for'} of '{name}' "
                f"of {targets:,} people with probability {percent(float(top))}; the release promises at most "
                f"{percent(float(promised))}, and {exposed:,} people exceed that."
            ),
            details={
                "attribute": name,
                "max_posterior": str(top),
                "without_minimality": float(naive),
                "people_above_the_promise": exposed,
                "merged_classes": sum(len(world.sizes) > 1 for world in worlds),
                "classes_merged_for_k": sum(world.forced for world in worlds),
                "classes_too_large": sum(world.too_large for world in worlds),
                "l": knowledge.l,
                "k": knowledge.k,
                "requirement": knowledge.requirement,
                "recoding": knowledge.recoding,
                "refinement": knowledge.refinement,
            },
        )

    def _reasoned(self, view: TableView, knowledge: KnownAlgorithm, name: str) -> tuple[list[Belief], list[PossibleWorlds]]:
        classes = classes_of(view)
        groups = _people_of_classes(classes, knowledge.register)
        histogram = classes.histogram(name)
        requirement = Requirement(
            knowledge.l, knowledge.k, knowledge.requirement == "distinct", knowledge.refinement == "any split"
        )
        worlds = []
        for klass in range(len(classes.sizes)):
            pairs = slice(int(histogram.starts[klass]), int(histogram.starts[klass + 1]))
            counted = zip(histogram.value[pairs].tolist(), histogram.count[pairs].tolist(), strict=True)
            counts = _lumped({histogram.values[value]: count for value, count in counted}, knowledge.protected)
            worlds.append(worlds_of_class(groups[klass], counts, requirement, self.max_worlds))
        if any(not world.released_keeps for world in worlds):
            raise InputError(
                "minimality: a released class breaks the requirement, so this is not the algorithm behind the release"
            )
        refused = _refused_globally(worlds) if knowledge.recoding == "global" else [world.refused() for world in worlds]
        beliefs = []
        for klass, (world, believed) in enumerate(zip(worlds, refused, strict=True)):
            for group, people in enumerate(world.sizes):
                chances = zip(world.values, believed[group], strict=True)
                beliefs.append(Belief(klass, people, {value: chance for value, chance in chances if value is not _OTHERS}))
        return beliefs, worlds


def _required(knowledge: object) -> KnownAlgorithm:
    if not isinstance(knowledge, KnownAlgorithm):
        raise InputError(
            "minimality needs a register of the people behind the release (a Register or an Arrow table, where the "
            "certificate names the algorithm), or a KnownAlgorithm: a register, and what the algorithm requires"
        )
    return knowledge


#: Stands for all values that are not protected.
_OTHERS: Any = object()


def _lumped(counts: Mapping[str | None, int], protected: tuple[str, ...] | None) -> dict[Any, int]:
    """The values of a class, those that nobody protects as one."""
    if protected is None:
        return dict(counts)
    kept: dict[Any, int] = {value: count for value, count in counts.items() if value in protected}
    others = sum(counts.values()) - sum(kept.values())
    return {**kept, _OTHERS: others} if others else kept


def _refused_globally(worlds: Sequence[PossibleWorlds]) -> list[list[list[Fraction]]]:
    """Beliefs when the whole table was recoded because of a violation somewhere: all classes fine at once is ruled out."""
    if any(world.forced or world.too_large for world in worlds):
        return [world.shown() for world in worlds]  # the original table was no option, or cannot be gone through
    fine = [Fraction(world.kept, world.total) for world in worlds]
    merged = [len(world.sizes) > 1 for world in worlds]
    if not any(merged):
        return [world.shown() for world in worlds]
    product = Fraction(1)
    for chance in fine:
        product *= chance
    if product == 1:
        raise InputError("minimality: no table behind this release would have needed recoding, so this is not the algorithm")
    refused = []
    for place, world in enumerate(worlds):
        others = Fraction(1)
        for chance in (*fine[:place], *fine[place + 1 :]):
            others *= chance
        refused.append(
            [
                [
                    (Fraction(total, world.total * size) - others * Fraction(kept, world.total * size)) / (1 - product)
                    for total, kept in zip(world.sums[group], world.kept_sums[group], strict=True)
                ]
                for group, size in enumerate(world.sizes)
            ]
        )
    return refused


def _people_of_classes(classes: ReleasedClasses, listed: Any) -> list[list[int]]:
    """For each class the sizes of the groups of people with equal raw quasi-identifiers in it."""
    register = listed if isinstance(listed, Register) else Register(listed)
    named = register.columns or {name: name for name in classes.quasi}
    missing = [name for name in classes.quasi if name not in named]
    if missing or not classes.quasi:
        raise MissingColumn(
            f"minimality: the register needs every quasi-identifier of the release; missing: {', '.join(missing) or 'all'}"
        )
    require_columns(register.table, [named[name] for name in classes.quasi], "the register")
    _, people, _, person, klass = look_up(classes, register, list(classes.quasi), named)
    classes_of_tuple = np.bincount(person, minlength=people.size)
    if (classes_of_tuple == 0).any():
        absent = int(people[classes_of_tuple == 0].sum())
        raise InputError(
            f"minimality: {absent:,} people of the register are in no released class (left out or suppressed); the register must "
            "list exactly the people behind the release"
        )
    if (classes_of_tuple > 1).any():
        raise Unsupported(
            "minimality: everybody in the register must fit exactly one released class, and classes of this release overlap, so "
            "that it does not tell who is in which"
        )
    held: Ids = np.bincount(klass, weights=people[person], minlength=classes.sizes.size).astype(np.int64)
    if not np.array_equal(held, classes.sizes):
        raise InputError(
            "minimality: the register must list exactly the people behind the release, one row each; a class has more or fewer "
            "records than people in the register"
        )
    groups: list[list[int]] = [[] for _ in classes.sizes]
    for who, where in zip(person.tolist(), klass.tolist(), strict=True):
        groups[where].append(int(people[who]))
    return groups
