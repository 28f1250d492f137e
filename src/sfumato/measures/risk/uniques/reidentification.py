"""Risk of re-identification from class sizes, for three adversaries.

The prosecutor knows that a target is in the release: 1/size of the target's class. The journalist does
not, and matches against a population: 1/people behind the class. The marketer wants as many right
matches as possible: the expected share. El Emam, "Guide to the de-identification of personal health
information", CRC Press 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.core.errors import InputError
from sfumato.core.guarantees.population import KMap
from sfumato.core.ranges import Either, Instance, PositiveShare
from sfumato.core.view import Described, Measure, Original, Released, Score
from sfumato.data.masked import Compared
from sfumato.data.microdata import Microdata, ReleasedTable
from sfumato.measures.guarantees.classes import Classes, CodedColumn
from sfumato.measures.guarantees.examined import ExaminedTable
from sfumato.measures.guarantees.population import matches
from sfumato.measures.published import as_released
from sfumato.measures.utility.shown import quasi_of

#: What whoever compares with a population passes; nothing where survey weights stand for it.
Population = Annotated[
    Any, Either((Instance(Microdata), Instance(pa.Table)), "microdata or an Arrow table"), "the table of the population"
]


def classes_of(released: ReleasedTable) -> Classes:
    """The classes of a release, with units where its schema names them."""
    unit = released.schema.unit
    published = unit if unit in released.table.column_names else None
    return Classes.of(released.table, quasi_of(released), unit=published, counts=released.counts)


class FromSample(Measure[Original, Released]):
    """A measure that reckons from a sample to its population, by a sampling fraction or by survey weights."""

    key: ClassVar[str]
    sampling_fraction: float | None

    def lacks(self, published: Described) -> str | None:
        """Weights, where no fraction is given; or a column."""
        if self.sampling_fraction is None and published.weight is None:
            return _no_sampling(self.key)
        return super().lacks(published)


def _no_sampling(measure: str) -> str:
    return f"{measure} needs sampling_fraction or survey weights (a column with the role 'weight')"


def _no_population(measure: str) -> str:
    return f"{measure} needs a population (population=) or survey weights (a column with the role 'weight')"


@dataclass(frozen=True)
class ProsecutorRisk(Measure[Microdata | None, Compared]):
    """The largest 1/class size; its mean and the share of records above `threshold` are parts."""

    threshold: Annotated[PositiveShare, "the risk above which records are counted"] = 0.2
    key: ClassVar[str] = "prosecutor_risk"
    of_groups: ClassVar[bool] = True
    of_rows_alone: ClassVar[bool] = True

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """Risk of the worst record."""
        table = as_released(released, original)
        classes = classes_of(table)
        meaning = "chance of picking the right record of the worst-off person, who is known to be in the release"
        floor = 1.0 / max(units_of(table), 1)
        return _score(self.key, 1.0 / np.maximum(classes.units, 1), classes, self.threshold, meaning, floor)


@dataclass(frozen=True)
class JournalistRisk(Measure[Microdata | None, Compared]):
    """The largest 1/people behind a class: in the `population` table, or estimated by the survey weights
    of the release. Its mean and the share of records above `threshold` are parts.
    """

    population: Population = field(default=None, repr=False)
    threshold: Annotated[PositiveShare, "the risk above which records are counted"] = 0.2
    key: ClassVar[str] = "journalist_risk"
    of_rows_alone: ClassVar[bool] = True

    def lacks(self, published: Described) -> str | None:
        """Weights, where no population is given."""
        return None if self.population is not None or published.weight is not None else _no_population(self.key)

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """Risk of the worst record."""
        table = as_released(released, original)
        classes = classes_of(table)
        people = people_behind(table, classes, self.population, self.key)
        meaning = "chance of picking the right person of the population for the worst-off record"
        floor = min(1.0 / max(population_of(table, people, self.population), 1.0), 1.0)
        return _score(self.key, 1.0 / np.maximum(people, 1.0), classes, self.threshold, meaning, floor)


@dataclass(frozen=True)
class MarketerRisk(Measure[Microdata | None, Compared]):
    """Expected share of records matched correctly by linking all of them: with the release alone, or with
    a `population`. The mean over records of 1/(people behind the record's class).
    """

    population: Population = field(default=None, repr=False)
    key: ClassVar[str] = "marketer_risk"
    of_rows_alone: ClassVar[bool] = True

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """Mean over records of one over the people behind the record's class."""
        table = as_released(released, original)
        classes = classes_of(table)
        people: NDArray[Any] = classes.units
        everybody = float(units_of(table))
        if self.population is not None or table.schema.weight in table.table.column_names:
            people = people_behind(table, classes, self.population, self.key)
            everybody = population_of(table, people, self.population)
        risk = 1.0 / np.maximum(people, 1.0)
        value = float((risk * classes.sizes).sum() / classes.records) if classes.records else 0.0
        return Score(
            self.key,
            value,
            "lower",
            "share of records somebody who links all of them gets right",
            uses_original=False,
            floor=1.0 / max(everybody, 1.0),
            interval=(value, value),
        )


@dataclass(frozen=True)
class SampleUniques(Measure[Microdata | None, Compared]):
    """Share of records that are alone in their class."""

    key: ClassVar[str] = "uniques"
    of_groups: ClassVar[bool] = True
    of_rows_alone: ClassVar[bool] = True

    def score(self, original: Microdata | None, released: Compared) -> Score:
        """The share; the count is a part."""
        table = as_released(released, original)
        classes = classes_of(table)
        alone = int(classes.sizes[classes.units <= 1].sum())
        share = alone / classes.records if classes.records else 0.0
        return Score(
            self.key,
            share,
            "lower",
            "share of records that are alone in their class",
            {"records": float(alone)},
            uses_original=False,
            floor=1.0 / max(units_of(table), 1),
            interval=(share, share),
        )


def units_of(released: ReleasedTable) -> int:
    """How many people a blind guess is among: the units of the release, or its records."""
    unit = released.schema.unit
    if unit is None or unit not in released.table.column_names:
        return released.released_records
    return len(released.table.column(unit).unique())


def population_of(released: ReleasedTable, people: NDArray[np.float64], population: Microdata | pa.Table | None) -> float:
    """How many people the population has: its rows, or the sum of the survey weights of all classes."""
    if population is None:
        return float(people.sum())
    return float(len(population) if isinstance(population, Microdata) else population.num_rows)


def people_behind(
    released: ReleasedTable, classes: Classes, population: Microdata | pa.Table | None, measure: str
) -> NDArray[np.float64]:
    """People of the population per class: counted in a table, or estimated as the sum of the class's
    survey weights.
    """
    if population is not None:
        rows = population.table() if hasattr(population, "relation") else population
        examined = ExaminedTable(released.table, released.schema, None, rows)
        people, _ = matches(examined, KMap(1), classes)
        return people.astype(np.float64)
    weights = survey_weights(released)
    if weights is None:
        raise InputError(_no_population(measure))
    return np.bincount(classes.of_row, weights=weights, minlength=len(classes)).astype(np.float64)


def sampling_weights(released: ReleasedTable, sampling_fraction: float | None, measure: str) -> NDArray[np.float64]:
    """How many people of the population each released record stands for."""
    if sampling_fraction is not None:
        return np.full(released.table.num_rows, 1.0 / sampling_fraction)
    weights = survey_weights(released)
    if weights is None:
        raise InputError(_no_sampling(measure))
    return weights


def survey_weights(released: ReleasedTable) -> NDArray[np.float64] | None:
    """The survey weight of each released record, if there is such a column."""
    name = released.schema.weight
    if name is None or name not in released.table.column_names:
        return None
    coded = CodedColumn.of(released.table.column(name))
    try:
        values = np.array([float(value) for value in coded.values if value is not None], dtype=np.float64)
    except ValueError:
        raise InputError(f"the weight column '{name}' has entries that are not numbers") from None
    if len(values) != len(coded.values) or (values.size and values.min() <= 0):
        raise InputError(f"the weight column '{name}' has missing or non-positive weights")
    return values[coded.codes]


def _score(key: str, risk: NDArray[np.float64], classes: Classes, threshold: float, meaning: str, floor: float) -> Score:
    """The largest risk; it is exact for the release, so that both ends of its interval are the value."""
    records = classes.records
    parts = {
        "mean": float((risk * classes.sizes).sum() / records) if records else 0.0,
        f"share above {threshold:g}": float(classes.sizes[risk > threshold + 1e-12].sum() / records) if records else 0.0,
    }
    worst = float(risk.max()) if risk.size else 0.0
    return Score(key, worst, "lower", meaning, MappingProxyType(parts), uses_original=False, floor=floor, interval=(worst, worst))
