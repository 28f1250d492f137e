"""What both syntheses share: the budget, the domain, whose records count, and the table that leaves.

Select which marginals matter, measure them with noise, generate records from a model of the measurements; the data are
looked at only through noisy counts and noisy choices.
McKenna, Miklau, Sheldon, "Winning the NIST contest: a scalable and general approach to differentially private synthetic
data", Journal of Privacy and Confidentiality 11(3), 2021.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa

from sfumato.core.errors import ParameterError, SchemaError
from sfumato.core.exact import Number, exact, shown
from sfumato.core.guarantees.loss import ConcentratedDP, Neighbours
from sfumato.core.outcome import Outcome
from sfumato.core.progress import Progress, silent
from sfumato.core.randomness import Randomness, default
from sfumato.core.ranges import Each, Text, Whole
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Schema
from sfumato.dp.algorithms.base import Algorithm, counted_rows
from sfumato.dp.algorithms.contributions import check_order, keep_per_unit, random_keys
from sfumato.dp.algorithms.declared_values import read, unit_codes
from sfumato.dp.algorithms.engine_counts import fresh_salt, rows_in_engine
from sfumato.dp.algorithms.integer_noise import DiscreteGaussianError
from sfumato.dp.algorithms.spending import LEAST, Rho
from sfumato.dp.mechanisms.base import Error
from sfumato.dp.outcomes import private_outcome
from sfumato.dp.ranges import AsWritten
from sfumato.dp.synthesis.budget import MarginalReach, Purse
from sfumato.dp.synthesis.coded_columns import Codes
from sfumato.dp.synthesis.declared_domain import Domain, declared_domain
from sfumato.dp.synthesis.drawing import draw
from sfumato.dp.synthesis.engine_marginals import EngineMarginals, engine_codes
from sfumato.dp.synthesis.estimation import Fitted, NoisyMarginal
from sfumato.dp.synthesis.junction_tree import Columns
from sfumato.dp.synthesis.marginals import CodedRecords, Marginals
from sfumato.dp.synthesis.quality import EveryCode, EveryCount, EveryRecord
from sfumato.engines.cell_counts import KeptRows
from sfumato.engines.expressions import Kind
from sfumato.engines.sql.relation import SqlRelation

_MOST_ROWS = 100_000_000
_MOST_CODES = 1_000_000


@dataclass(frozen=True)
class Work:
    """What a synthesis works with: counts of the coded records, their domain, and the means to look at them."""

    records: Marginals
    sizes: tuple[int, ...]
    reach: MarginalReach
    purse: Purse
    source: Randomness
    progress: Progress


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model, and which columns were measured with which noise, in order."""

    fitted: Fitted
    trail: tuple[NoisyMarginal, ...]


@dataclass(frozen=True, kw_only=True)
class Synthesis(Algorithm):
    """A synthetic table from noisy marginals, with ρ-zero-concentrated differential privacy.

    `rho` is what it may cost; `epsilon` and `delta` in its place are converted (the largest ρ that implies them).
    `rows` is how many records to draw, a public number; by default the noisy number of records, and at most `most_rows`,
    so that neither noise nor a large table fills the memory. `bins` is the number of ranges a column with declared bounds
    is cut into. `missing` names columns that may be missing beside those for which the schema lists missing codes. With a
    unit column in the schema at most `max_rows` records of each unit count, by `bounding` (a random sample, or the first
    ones). `neighbours` is the relation: one record (or unit) added or removed, or one replaced. `report` computes the owner's
    quality report, which is not private and never leaves with the table.
    """

    rho: Rho = None
    epsilon: Annotated[Number | None, AsWritten(above=0), "the loss ε that the table may cost, with delta in place of rho"] = None
    delta: Annotated[Number | None, AsWritten(above=0, below=1), "δ: what is added to every bound on a probability"] = None
    rows: Annotated[int | None, Whole(at_least=0, at_most=_MOST_ROWS), "how many records are drawn"] = None
    most_rows: Annotated[int, Whole(at_least=1, at_most=_MOST_ROWS), "the most records that are drawn"] = 1 << 24
    bins: Annotated[int, Whole(at_least=1, at_most=10_000), "the ranges that numbers are cut into"] = 32
    missing: Annotated[
        tuple[str, ...], Each(Text("the name of a column"), what="a list of columns"), "columns that may be missing"
    ] = ()
    max_rows: Annotated[int | None, Whole(at_least=1, at_most=1_000_000), "the most records that one unit keeps"] = None
    bounding: Annotated[Literal["sample", "truncate"], "how a unit's records are chosen: at random, or the first ones"] = "sample"
    neighbours: Annotated[Neighbours, "which databases are neighbours"] = "add_remove"
    report: Annotated[bool, "whether the owner gets a report on quality"] = True

    def coherent(self) -> Iterable[str]:
        pair = self.epsilon is not None and self.delta is not None
        if pair == (self.rho is not None) or pair != (self.epsilon is not None or self.delta is not None):
            yield "give rho, or epsilon and delta in its place: it says how much privacy the table may cost"
        elif self.budget < LEAST:
            yield "rho is at least a millionth: below that nothing but noise would be released"

    @property
    def budget(self) -> Fraction:
        """ρ, exact."""
        if self.rho is not None:
            return exact(self.rho, "rho")
        from sfumato.dp.accounting.zcdp import rho_for

        return rho_for(self.epsilon or 0, self.delta or 0)

    def contribution(self, unit: str) -> str | None:
        return counted_rows(self.max_rows, unit)

    def left_out(self) -> str:
        return (
            "Rows with a value that is missing or not declared are left out, unless its column may be missing: there it counts "
            "as missing; a number beyond its bounds counts as the nearest bound"
        )

    def loss(self, schema: Schema | None = None) -> ConcentratedDP:
        """What one run costs; with a schema the unit has its name."""
        named = schema.unit if schema is not None else None
        unit = named or ("record" if self.max_rows is None else "unit")
        return ConcentratedDP(self.budget, neighbours=self.neighbours, unit=unit)

    def error(self, schema: Schema) -> Error:
        """The noise on one count of one column, before the model evens out what does not fit together."""
        domain = declared_domain(schema, list(schema.columns), bins=self.bins, missing=self.missing, who=self.name)
        variance = self._first_variance(len(domain.sizes), self._reach())
        return DiscreteGaussianError.of(variance)

    def run(self, data: Microdata, *, randomness: Randomness | None = None, progress: Progress = silent) -> Outcome[pa.Table]:
        source = randomness or default()
        domain = declared_domain(data.schema, data.column_names, bins=self.bins, missing=self.missing, who=self.name)
        self._refuse(data, domain)
        progress("reading", 0, 1)
        records, every = self._records(data, domain, source)
        records.prepare(self._looked_at(domain.sizes))
        work = Work(records, domain.sizes, self._reach(), Purse(self.budget), source, progress)
        trained = self._made(work)
        rows = min(round(trained.fitted.total), self.most_rows) if self.rows is None else self.rows
        progress("drawing", 0, 1)
        drawn = draw(trained.fitted, rows, source)
        synthetic = domain.decode(drawn, source)
        owner: dict[str, Any] = {}
        if self.report:
            progress("comparing", 0, 1)
            owner["quality"] = every.compared_with(drawn, domain)
        progress("comparing", 1, 1)
        return private_outcome(
            synthetic,
            self.loss(data.schema),
            {"name": self.name, **self.parameters()},
            argument=self._argument(),
            randomness=source,
            dataset=data.schema.dataset,
            owner=owner,
            rows=synthetic.num_rows,
            spent=shown(work.purse.spent),
            measured=[
                {"columns": [domain.names[column] for column in one.columns], "deviation": one.variance**0.5}
                for one in trained.trail
            ],
        )

    def _records(self, data: Microdata, domain: Domain, source: Randomness) -> tuple[Marginals, EveryRecord]:
        """Counts of the records that count, and every record for the owner's report."""
        unit = data.schema.unit
        relation = rows_in_engine(data, [*domain.names, unit])
        if relation is not None and engine_codes(domain, _kinds(relation, domain)) is not None:
            return self._engine_records(relation, unit, domain, source)
        # Units and values come from one scan: a second one may give the rows in another order, and the bound per unit
        # would then be about other people's rows.
        table = read(data, [*domain.names, unit])
        every = domain.encode(table)
        counted = self._counted(every, unit_codes(table, unit), source)
        return CodedRecords(counted, domain.sizes), EveryCode(every)

    def _engine_records(
        self, relation: SqlRelation, unit: str | None, domain: Domain, source: Randomness
    ) -> tuple[Marginals, EveryRecord]:
        codes = engine_codes(domain, _kinds(relation, domain), relation) or []
        salt = fresh_salt(source) if unit is not None and self.bounding == "sample" else None
        kept = EngineMarginals(relation, codes, KeptRows(unit, self.max_rows, salt))
        every = kept if unit is None else EngineMarginals(relation, codes, KeptRows(None))
        return kept, EveryCount(every, relation.count)

    @abstractmethod
    def _looked_at(self, sizes: Sequence[int]) -> list[Columns]:
        """The combinations of columns whose counts may be looked at, by the declared sizes alone."""

    @abstractmethod
    def _made(self, work: Work) -> TrainedModel:
        """The model, from noisy counts and noisy choices alone."""

    @abstractmethod
    def _first_variance(self, columns: int, reach: MarginalReach) -> Fraction:
        """The variance of the noise on the marginals of single columns."""

    @abstractmethod
    def _argument(self) -> str:
        """Why the claim holds, in one sentence."""

    def _reach(self) -> MarginalReach:
        return MarginalReach.of(self.max_rows or 1, self.neighbours)

    def _refuse(self, data: Microdata, domain: Domain) -> None:
        """What cannot be done is said before a row is read."""
        unit = data.schema.unit
        if unit is not None and self.max_rows is None:
            raise ParameterError(
                f"{self.name}: column '{unit}' names the person behind a record, who may have several. "
                "Say how many records of one person count: max_rows=… (--set max_rows=…); records beyond that are left out"
            )
        if unit is None and self.max_rows is not None:
            raise ParameterError(f"{self.name}: max_rows is for schemas with a unit column, and '{data.schema.dataset}' has none")
        if unit is not None and unit not in data.column_names:
            raise SchemaError(f"{self.name}: the unit column '{unit}' is not in the data")
        if unit is not None:
            check_order(data, self.bounding, None)
        large = [column.name for column in domain.columns if column.size > _MOST_CODES]
        if large:
            raise SchemaError(f"{self.name}: more than {_MOST_CODES:,} declared values in: {', '.join(large)}. Group them")

    def _counted(self, codes: Codes, units: Codes, source: Randomness) -> Codes:
        """The records that count: every value has a code, and at most `max_rows` of a unit."""
        inside = np.all(codes >= 0, axis=1)
        if self.max_rows is None:
            return np.asfortranarray(codes[inside])
        owners = np.where(inside, units, -1)
        keys = [random_keys(owners.size, source)] if self.bounding == "sample" else []
        return np.asfortranarray(codes[keep_per_unit(owners, self.max_rows, *keys)])


def _kinds(relation: SqlRelation, domain: Domain) -> list[Kind]:
    return [relation.fields[name].kind for name in domain.names]
