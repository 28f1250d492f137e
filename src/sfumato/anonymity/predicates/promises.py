"""All promises of a search at once: which classes fail, and how many records any finer partition must lose.

Totals are one row of integers per class: records, units, people of the population, then the histograms of the sensitive
attributes side by side. A guarantee becomes a check on them here, by its type; a new guarantee adds one entry to `_MAKERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.checks import (
    AtLeast,
    Check,
    Closeness,
    DiversityCheck,
    Int,
    Presence,
    Shares,
    alpha_limits,
    beta_limits,
    delta_limits,
    hierarchy_levels,
)
from sfumato.anonymity.predicates.whole_table import small_classes_out
from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.guarantees.l_diversity import DistinctLDiversity, EntropyLDiversity, RecursiveLDiversity
from sfumato.core.guarantees.likeness import BetaLikeness, DeltaDisclosure
from sfumato.core.guarantees.population import DeltaPresence, KMap
from sfumato.core.guarantees.risk import AverageRisk, KMapByModel, UniquenessByModel, WholeTableGuarantee
from sfumato.core.guarantees.t_closeness import TCloseness
from sfumato.data.class_table import ClassTable, SensitiveAttribute
from sfumato.data.relation import WHOLE
from sfumato.kernels.classes.checks import keep_enough


@dataclass(frozen=True)
class Layout:
    """Where the columns of the totals are: records are column 0; `units` may be the same column; `population` may be
    absent (-1).

    People with several rows do not add up over tuples, so the column of units holds what adds up and never says too much:
    what the units of a tuple give to it (`Relation.group`), or `enough` where it has k different units by itself. A class
    whose column reaches `enough` has k different units, see docs/theory/class-bounds.md.
    """

    units: int
    population: int
    starts: dict[str, int]
    widths: dict[str, int]
    columns: int
    #: The column of each value, where values that one record alone has share the last one.
    places: dict[str, Int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, eq=False)
class Promises:
    """Every guarantee of a search as checks on totals.

    `k` is the largest k asked for, on units; `fixed` are the other checks; `moving` are checks whose reference is
    the released rows, with the histogram columns they follow; `hopeless` marks tables in which no class may be
    suppressed; `on_average` are promises about all classes together, where a search looks at all of them at once.
    """

    layout: Layout
    k: int
    fixed: tuple[Check, ...]
    moving: tuple[Closeness | Shares, ...]
    no_suppression: bool
    monotone: bool
    table: ClassTable = field(repr=False)
    on_average: tuple[WholeTableGuarantee, ...] = ()

    @property
    def only_k(self) -> bool:
        """True when k-anonymity is all that is asked."""
        return not self.fixed and not self.moving and not self.no_suppression and not self.on_average

    @property
    def enough(self) -> int:
        """What the column of units must reach: k, where it counts records."""
        return enough_of(self.k, self.layout)

    @property
    def counts_exactly(self) -> bool:
        """False where people of several classes are counted cautiously, so that a class may have more than is seen."""
        return not self.layout.units or self.table.one_tuple_each

    @cached_property
    def _fewest(self) -> int:
        """A class with fewer records than this breaks a promise, whichever records they are."""
        return max([self.k, *(check.fewest for check in self.fixed if isinstance(check, Closeness))])

    def totals(self) -> Int:
        """Totals of the distinct tuples."""
        return totals_of(self.table, self.layout, self.enough)

    def needs(self, totals: Int) -> Int:
        """Per class: 0 when all promises are kept, otherwise the bound described in `checks` (`NO_BOUND` for none)."""
        need = self.needs_alone(totals)
        return small_classes_out(self.on_average, totals[:, 0], need) if self.on_average else need

    def needs_alone(self, totals: Int) -> Int:
        """The same by the promises that look at one class at a time."""
        least = self.enough if self.layout.units else self._fewest
        need = AtLeast(self.layout.units, least)(totals)
        for check in self.fixed:
            if isinstance(check, Closeness) and check.passes_over and not self.no_suppression:
                need = check.among(totals, need)
                continue
            # a class that must go completely needs no second opinion, unless it is hopeless
            open_ = np.flatnonzero(need == 0) if not self.no_suppression else np.arange(need.size)
            more = check(totals[open_] if open_.size < need.size else totals)
            before = need[open_]
            # a class that keeps this promise still breaks the other one, also where that has no bound (-1)
            need[open_] = np.where(before == 0, more, np.where(more == 0, before, np.maximum(more, before)))
        if self._fewest > 1 and self.fixed:
            # what could be kept is too small for a class of its own
            need = keep_enough(totals, self._fewest, need)
        if self.moving:
            need = self._follow_released(totals, need)
        if self.no_suppression:
            # parts of a class that must lose records do so too; of a class without a bound they may keep everything
            need = np.where(need > 0, self.table.records + 1, need)
        return need

    def holds(self, totals: Int) -> NDArray[np.bool_]:
        """Which classes keep all promises; a reference that follows the released rows is taken over these classes."""
        return np.asarray(self.needs(totals) == 0)

    def settled(self, kept: Int) -> Promises:
        """The same promises with the reference fixed to the rows that are kept (totals summed over them)."""
        if not self.moving:
            return self
        fixed = []
        for check in self.moving:
            counts = kept[check.start : check.start + check.width]
            fixed.append(check.with_shares(counts / max(int(counts.sum()), 1)))
        return replace(self, fixed=(*self.fixed, *fixed), moving=())

    def _follow_released(self, totals: Int, need: Int) -> Int:
        """Suppress until every kept class is close to the distribution of the kept rows; a fixed point, not an optimum."""
        failing = need != 0
        while True:
            kept = totals[~failing].sum(axis=0)
            too_far = np.zeros(totals.shape[0], dtype=np.bool_)
            for check in self.moving:
                counts = kept[check.start : check.start + check.width]
                too_far |= check.with_shares(counts / max(int(counts.sum()), 1))(totals) != 0
            if not np.any(too_far & ~failing):
                return np.where(failing & (need == 0), -1, need)
            failing |= too_far


def layout_of(
    table: ClassTable, sensitive: tuple[str, ...], *, count_units: bool = True, only_different: Collection[str] = ()
) -> Layout:
    """The layout for the sensitive attributes that the guarantees name; of `only_different` it matters how many different values
    there are and not which, so that one column is enough for all values that one record alone has."""
    column = 1
    units = 0
    if count_units and table.units is not table.counts:
        units, column = column, column + 1
    population = -1
    if table.population.any():
        population, column = column, column + 1
    starts, widths, places = {}, {}, {}
    for name in sensitive:
        index = table.sensitive_index(name)
        starts[name], widths[name] = column, len(table.sensitive[index].values)
        if name in only_different:
            shared = table.values_of_several(index)
            if (several := int(shared.sum())) + 1 < shared.size:
                places[name] = np.where(shared, np.cumsum(shared) - 1, several)
                widths[name] = several + 1
        column += widths[name]
    return Layout(units, population, starts, widths, column, places)


def enough_of(k: int, layout: Layout) -> int:
    """What the column of units holds at least where a class has k of them: more than k - 1 units could give to it."""
    return (k - 1) * WHOLE + 1 if layout.units else k


def cautious_units(table: ClassTable, enough: int) -> Int:
    """What each tuple adds to the column of units."""
    if table.shares is None:
        return table.units
    return np.where(table.units * WHOLE >= enough, enough, table.shares)


def totals_of(table: ClassTable, layout: Layout, enough: int) -> Int:
    """The totals of the distinct tuples: the finest classes. In half the memory, where no sum of them needs more."""
    table.refuse_large_histograms(sum(layout.widths.values()))
    columns = {0: table.counts}
    if layout.units:
        columns[layout.units] = cautious_units(table, enough)
    if layout.population > 0:
        columns[layout.population] = table.population
    small = all(int(column.sum()) < 2**31 for column in columns.values())
    totals: Int = np.zeros((table.tuples, layout.columns), dtype=np.int32 if small else np.int64)
    for place, column in columns.items():
        totals[:, place] = column
    for name, start in layout.starts.items():
        table.count_values(table.sensitive_index(name), totals, start, layout.places.get(name))
    return totals


def input_shares(table: ClassTable, attribute: SensitiveAttribute) -> NDArray[np.float64]:
    """The distribution of a sensitive attribute over all records of the input."""
    index = table.sensitive_index(attribute.name)
    counts = np.bincount(table.sensitive_codes[index], weights=table.cell_counts, minlength=len(attribute.values))
    return np.asarray(counts / max(counts.sum(), 1.0))


def protected_mask(attribute: SensitiveAttribute, protected: tuple[str, ...] | None) -> NDArray[np.bool_] | None:
    """Which values are protected; None when all are."""
    if protected is None:
        return None
    values = set(protected)
    unknown = sorted(values - {*attribute.values, *attribute.hierarchy.leaves})
    if unknown:
        raise Unsupported(
            f"{len(unknown)} of the protected values of '{attribute.name}' occur neither in the table nor in the column's "
            f"hierarchy or domain, so they would protect nobody: {', '.join(map(repr, unknown[:5]))}. Check their spelling."
        )
    return np.array([value in values for value in attribute.values], dtype=np.bool_)


def promises_of(guarantees: Sequence[ClassGuarantee], table: ClassTable, *, at_once: bool = False) -> Promises:
    """Turn guarantees into checks on this table's totals.

    A search that looks at all classes of a table `at_once` keeps promises about all records together as they are; for any other
    every class gets the size that is enough for them. So it does where a reference follows the released rows.
    """
    named = tuple(dict.fromkeys(g.sensitive for g in guarantees if g.sensitive is not None))
    together = tuple(g for g in guarantees if isinstance(g, WholeTableGuarantee))
    follows = any(getattr(g, "reference", "input") == "released" for g in guarantees)
    on_average = together if at_once and not follows else ()
    sizes = [g.k for g in guarantees if isinstance(g, (KAnonymity, AlphaKAnonymity))]
    sizes += [g.least_records for g in guarantees if isinstance(g, KMapByModel)]
    sizes += [] if on_average else [g.sufficient_size for g in together]
    k = max(sizes, default=1)
    # every class has one unit; the cautious count of units might not see it
    layout = layout_of(table, named, count_units=k > 1, only_different=_only_different(guarantees))
    fixed, moving = [], []
    for guarantee in guarantees:
        maker = _MAKERS.get(type(guarantee))
        if maker is None:
            raise Unsupported(
                f"{guarantee.name} cannot be reached by a search over classes; the searches know "
                f"{', '.join(sorted(kind.__name__ for kind in _MAKERS))}"
            )
        check = maker(guarantee, table, layout)
        if check is None:
            continue
        if getattr(guarantee, "reference", "input") == "released" and isinstance(check, (Closeness, Shares)):
            moving.append(check)
        else:
            fixed.append(check)
    strict = any(isinstance(g, DeltaPresence) and g.minimum > 0 for g in guarantees)
    monotone = all(g.monotone for g in guarantees) and not moving
    return Promises(layout, k, tuple(fixed), tuple(moving), strict, monotone, table, on_average)


def _only_different(guarantees: Sequence[ClassGuarantee]) -> set[str]:
    """The sensitive attributes of which promises say only how many different values a class shows."""
    named = {g.sensitive for g in guarantees if isinstance(g, DistinctLDiversity) and g.protected_values is None}
    others = {g.sensitive for g in guarantees if not isinstance(g, DistinctLDiversity) or g.protected_values is not None}
    return {name for name in named - others if name is not None}


Maker = Callable[..., Check | None]


def _size(guarantee: ClassGuarantee, table: ClassTable, layout: Layout) -> Check | None:
    return None  # the largest k of all guarantees is checked first, on units; what is about all classes together comes last


def _map(guarantee: KMap, table: ClassTable, layout: Layout) -> Check:
    return AtLeast(_population(layout), guarantee.k)


def _presence(guarantee: DeltaPresence, table: ClassTable, layout: Layout) -> Check:
    return Presence(_population(layout), guarantee.minimum, guarantee.maximum, table.records + 1)


def _population(layout: Layout) -> int:
    if layout.population < 0:
        raise Unsupported(
            "k-map and δ-presence compare with a population: pass population= (a table with the same quasi-identifiers)"
        )
    return layout.population


def _diversity(
    guarantee: DistinctLDiversity | EntropyLDiversity | RecursiveLDiversity, table: ClassTable, layout: Layout
) -> Check:
    attribute = table.sensitive[table.sensitive_index(guarantee.attribute)]
    start, width = layout.starts[attribute.name], layout.widths[attribute.name]
    protected = protected_mask(attribute, guarantee.protected_values)
    if isinstance(guarantee, DistinctLDiversity):
        alone = attribute.name in layout.places
        return DiversityCheck("distinct", start, width, guarantee.l, protected=protected, alone=alone)
    if isinstance(guarantee, EntropyLDiversity):
        return DiversityCheck("entropy", start, width, guarantee.l, protected=protected)
    return DiversityCheck("recursive", start, width, guarantee.l, guarantee.c, protected)


def _closeness(guarantee: TCloseness, table: ClassTable, layout: Layout) -> Check:
    attribute = table.sensitive[table.sensitive_index(guarantee.attribute)]
    if guarantee.distance == "ordered" and not attribute.ordered:
        raise Unsupported(
            f"TCloseness with distance='ordered' needs an order of '{attribute.name}': give it a numeric or date type, "
            "or list its values in `order` in the schema"
        )
    return Closeness(
        guarantee.distance,
        layout.starts[attribute.name],
        layout.widths[attribute.name],
        guarantee.t,
        input_shares(table, attribute),
        hierarchy_levels(attribute),
        protected_mask(attribute, guarantee.protected_values),
    )


def _shares(guarantee: BetaLikeness | DeltaDisclosure | AlphaKAnonymity, table: ClassTable, layout: Layout) -> Check:
    attribute = table.sensitive[table.sensitive_index(guarantee.attribute)]
    if isinstance(guarantee, BetaLikeness):
        limits, strict = beta_limits(guarantee.beta, guarantee.enhanced), False
    elif isinstance(guarantee, DeltaDisclosure):
        limits, strict = delta_limits(guarantee.delta), True
    else:
        limits, strict = alpha_limits(guarantee.alpha), False
    return Shares(
        layout.starts[attribute.name],
        layout.widths[attribute.name],
        input_shares(table, attribute),
        limits,
        strict,
        protected_mask(attribute, guarantee.protected_values),
    )


_MAKERS: dict[type[ClassGuarantee], Maker] = {
    KAnonymity: _size,
    KMap: _map,
    DeltaPresence: _presence,
    DistinctLDiversity: _diversity,
    EntropyLDiversity: _diversity,
    RecursiveLDiversity: _diversity,
    TCloseness: _closeness,
    BetaLikeness: _shares,
    DeltaDisclosure: _shares,
    AlphaKAnonymity: _shares,
    AverageRisk: _size,
    KMapByModel: _size,
    UniquenessByModel: _size,
}
