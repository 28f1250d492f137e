"""What all searches share: the problem in codes, and the outcome.

A search is a frozen dataclass of parameters; `run` encodes the data once, searches on codes and returns a recoding
with the guarantees it claims. It never writes and never certifies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymity.predicates.promises import Promises, promises_of
from sfumato.anonymity.search.levels import limited, unlimited
from sfumato.core.declared import Declared, parameters
from sfumato.core.errors import Infeasible, InputError, ParameterError, SchemaError, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.guarantees.k_anonymity import AlphaKAnonymity, KAnonymity
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness
from sfumato.core.ranges import PositiveShare, Share
from sfumato.core.view import Score
from sfumato.data.class_table import ClassTable, encode
from sfumato.data.microdata import Microdata
from sfumato.data.recoding import Recoding, Shown
from sfumato.data.relation import COUNT


@dataclass(frozen=True, eq=False)
class Problem:
    """A table in codes with the promises to keep."""

    table: ClassTable = field(repr=False)
    promises: Promises = field(repr=False)
    guarantees: tuple[ClassGuarantee, ...]

    def allowed(self, share: float) -> int:
        """How many records a suppression limit permits."""
        return int(np.floor(share * self.table.records + 1e-9))


@dataclass(frozen=True, repr=False)
class SearchOutcome(Outcome[Recoding]):
    """What a search returns: a recoding of the classes of `class_table`, which is what it searched in, and the `scores` by which
    it chose that recoding."""

    class_table: ClassTable = field(kw_only=True)
    scores: tuple[Score, ...] = field(default=(), kw_only=True)


class Search(Declared, ABC):
    """A way to reach class guarantees: `run` returns an outcome whose result is a `Recoding`."""

    #: Every method of this room keeps the truth: values get coarser or disappear, none is made up.
    truthful = True
    family = "data-driven"
    protects = "respondent"
    #: Whether it generalises each attribute to one level, which a certificate names.
    one_level: ClassVar[bool] = False
    #: Whether it may show ranges of the data that are no nodes of a tree; a certificate may say so of no other search.
    makes_ranges: ClassVar[bool] = True
    #: Whether it can reckon with an adversary who knows some items of a set.
    recodes_sets = False
    #: What the searches are called of which it keeps one, where it runs several; a certificate names it.
    keeps_one_of: ClassVar[tuple[str, ...]] = ()
    #: What is measured of the use and of the risk of a release where nobody says, besides the scores that it states itself.
    usual_measures: ClassVar[tuple[tuple[str, ...], tuple[str, ...]]] = (("detail_kept",), ())

    def run(
        self,
        data: Microdata,
        guarantees: Sequence[ClassGuarantee],
        *,
        population: Microdata | None = None,
        progress: Progress = silent,
        randomness: Randomness | None = None,
    ) -> SearchOutcome:
        """Search on the data; `population` is the table that k-map and δ-presence compare with."""
        problem = self.posed(pose(data, guarantees, population, recodes_sets=self.recodes_sets))
        recoding, details = self.solve(problem, progress)
        return self.outcome(problem, recoding, details)

    def posed(self, problem: Problem) -> Problem:
        """The problem as this search looks at it."""
        return problem

    @abstractmethod
    def solve(self, problem: Problem, progress: Progress) -> tuple[Recoding, dict[str, object]]:
        """Find a recoding of the problem's table that keeps all promises."""

    def outcome(self, problem: Problem, recoding: Recoding, details: Mapping[str, object]) -> SearchOutcome:
        """Wrap a recoding with what every caller wants to know about it."""
        table = problem.table
        shared = {
            "loss": recoding.loss(table.weights),
            "loss_per_attribute": dict(zip(table.quasi, recoding.loss_per_attribute().tolist(), strict=True)),
            "records": recoding.records,
            "suppressed": recoding.suppressed,
            "classes": int((recoding.class_sizes() > 0).sum()),
        }
        method = {"name": type(self).__name__, **parameters(self)}
        whole = unlimited(table) if table.limits else table
        return SearchOutcome(recoding, problem.guarantees, method, {**shared, **details}, class_table=whole)


#: Records that a search may leave out.
Suppression = Annotated[Share, "the records that may be left out, as a share"]
#: How much a round of local recoding settles.
Step = Annotated[PositiveShare, "the records that a round must settle, as a share; smaller steps lose less and take longer"]


def pose(
    data: Microdata, guarantees: Sequence[ClassGuarantee], population: Microdata | None = None, *, recodes_sets: bool = False
) -> Problem:
    """Check the request and encode the data once."""
    promised = tuple(guarantees)
    if not promised:
        raise InputError("no guarantee was asked for: name at least one, for instance KAnonymity(5)")
    for guarantee in promised:
        if not isinstance(guarantee, ClassGuarantee):
            raise ParameterError(f"{type(guarantee).__name__} is not a guarantee of a published table")
        if guarantee.needs_population and population is None:
            raise InputError(
                f"{guarantee.name} compares with a population: pass population= (a table with the same quasi-identifiers)"
            )
    if data.schema.set_valued and not recodes_sets and any(isinstance(g, KAnonymity) and g.items for g in promised):
        raise Unsupported(
            f"this search shows or hides whole values, so it cannot use that an adversary knows only some items of "
            f"{', '.join(data.schema.set_valued)}. Use Hybrid, or ask for KAnonymity without items."
        )
    if data.schema.unit is not None and (counting := [g.key for g in promised if g.one_record_each]):
        raise Unsupported(
            f"{', '.join(counting)} supposes that each record is another person, and column '{data.schema.unit}' says that "
            "people may have several. Publish one record per person, or ask for KAnonymity, which counts different people."
        )
    _refuse_missing_units(data)
    chosen = _known_to_adversary(data, promised)
    sensitive = tuple(dict.fromkeys(g.sensitive for g in promised if g.sensitive is not None))
    table = encode(chosen, sensitive=sensitive, population=population)
    if chosen.schema.limits_levels:
        table = limited(table, chosen.schema)
    if table.records == 0:
        raise InputError(f"{data.description} has no records: there is nothing to publish")
    largest = max((g.k for g in promised if isinstance(g, (KAnonymity, AlphaKAnonymity))), default=1)
    people = table.people
    if largest > people:
        what = "records" if table.shares is None else "different units"
        raise Infeasible(
            f"k = {largest} cannot be reached: the table has only {people:,} {what}. Choose a k of at most {people:,}."
        )
    return Problem(table, promises_of(promised, table), promised)


def _refuse_missing_units(data: Microdata) -> None:
    """A record without a value in the unit column has no known unit, so different people could not be counted."""
    if data.schema.unit is None:
        return
    data.schema.require_columns(data.column_names, data.description)
    grouped = data.relation.group([data.schema.unit])
    missing = grouped.filter(grouped.column(data.schema.unit).is_null()).column(COUNT).to_pylist()
    if missing:
        have = "1 record has" if sum(missing) == 1 else f"{sum(missing):,} records have"
        raise InputError(
            f"{have} no value in the unit column '{data.schema.unit}', so different people cannot be "
            "counted. Fill it in, leave those records out, or give the column another role."
        )


def _known_to_adversary(data: Microdata, guarantees: tuple[ClassGuarantee, ...]) -> Microdata:
    """Restrict the quasi-identifiers when every guarantee assumes the same narrower knowledge; otherwise keep all,
    which is stronger."""
    knowledge = {g.knowledge.attributes if isinstance(g, KAnonymity) and g.knowledge is not None else None for g in guarantees}
    if len(knowledge) != 1 or (attributes := knowledge.pop()) is None:
        return data
    unknown = [name for name in attributes if name not in data.schema.quasi]
    if unknown:
        raise SchemaError(f"the adversary's knowledge names columns that are no quasi-identifiers: {', '.join(unknown)}")
    blurred = [name for name in data.schema.quasi if name not in attributes and data.schema.columns[name].least_level]
    if blurred:
        raise SchemaError(
            f"{', '.join(blurred)}: least_level says that the column is generalised, but the adversary's knowledge leaves it "
            "out, so that its values would be published as they are. Name the column in the knowledge, or drop its least_level"
        )
    columns = {
        name: column if column.role != "quasi" or name in attributes else column.model_copy(update={"role": "plain"})
        for name, column in data.schema.columns.items()
    }
    return data.with_schema(data.schema.replace(columns=columns))


def by_tuple(problem: Problem, class_of_tuple: NDArray[np.int64], shown: tuple[Shown, ...], classes: int) -> Recoding:
    """A recoding that treats all records of a tuple alike."""
    table = problem.table
    return Recoding.whole_cells(class_of_tuple[table.tuple_of_cell], table.cell_counts, shown, classes)
