"""Partially synthetic data: some columns are drawn anew from a model of them given the others, which stay real.

Fit a model of Y given X and publish (X, Y'), where Y' is drawn from the model at each record's own X. Little, "Statistical
analysis of masked data", Journal of Official Statistics 9, 1993; Reiter, "Inference for partially synthetic, public use
microdata sets", Survey Methodology 29, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import InputError, Unsupported
from sfumato.core.plain_data import Plain
from sfumato.core.ranges import ColumnNames, Count
from sfumato.data.microdata import Microdata
from sfumato.data.records import CategoryColumn, Kind, NumberColumn, Records, magnitude, mean_of
from sfumato.data.texts.values import CodedText
from sfumato.kernels.sampling.draws import Draws
from sfumato.masking.base import Change, Context, Kept, Mask
from sfumato.masking.synthetic.fully_synthetic import check_values
from sfumato.masking.synthetic.leaf_donors import LeafSize, Trees
from sfumato.masking.synthetic.predictors import check_predictors, orthonormal, regressors
from sfumato.masking.transparency import Test

Real = NDArray[np.float64]
Int = NDArray[np.int64]
Column = NumberColumn | CategoryColumn


@dataclass(frozen=True)
class PartiallySynthetic(Mask):
    """Replace the masked columns by draws from a model of them given the `predictors`.

    `predictors` stay as they are (default: every column of the schema that is not masked, identifies nobody and is no
    weight). Masked columns are made in turn, each given the predictors and those made before. `model` "tree" draws the value
    of a record in the same leaf, of at least `min_leaf` records and at most `max_depth` splits deep, for numbers and
    categories (`smooth=True`: numbers with noise); "linear" is a regression with normal residuals, for numbers.
    `where="unique"` replaces only records that are unique in the quasi-identifiers, those most at risk; all others stay real.
    Missing cells stay missing.

    The rows stay aligned with the records: whoever knows the real predictors of a person finds the row. What is protected
    is the value in the masked columns, or, when these are the quasi-identifiers, the way to the rest of the record.

    >>> import sfumato as sf
    >>> people = sf.read(sf.data.sample_table(1_000), schema=sf.data.sample_schema())
    >>> mask = sf.PartiallySynthetic(predictors=("age", "education"), columns=("income",))
    >>> mask.apply(people, seed=1).result.table.num_rows
    1000
    """

    predictors: Annotated[ColumnNames | None, "columns that stay as they are and predict the masked ones"] = None
    model: Annotated[Literal["tree", "linear"], "the model of a column given the others"] = "tree"
    where: Annotated[Literal["all", "unique"], "which records are replaced"] = "all"
    min_leaf: LeafSize = 5
    max_depth: Annotated[Count | None, "the most splits of a tree in a row"] = None
    smooth: Annotated[bool, "whether trees add noise to numbers"] = False
    handles: ClassVar[frozenset[Kind]] = frozenset({"number", "ordered", "category"})
    shows_missing: ClassVar[bool] = True

    def check(self, records: Records, people: Microdata) -> None:
        """Predictors exist and are not masked; the model can make the columns."""
        names = self._predictors(records, people)
        if not names:
            raise InputError(
                "PartiallySynthetic: no column is left to predict the masked ones; name predictors=(…), mask fewer columns, or "
                "use SequentialTrees to make all of them anew"
            )
        check_predictors("PartiallySynthetic", names, records, self.strata, people)
        if self.where == "unique" and not people.schema.quasi:
            raise InputError("PartiallySynthetic: where='unique' needs a schema with quasi-identifiers")
        if self.model == "linear" and records.categories:
            raise Unsupported(
                f"PartiallySynthetic: column '{records.categories[0].name}' holds categories, and the linear model makes numbers "
                "only; use model='tree'"
            )
        if self.model == "tree":
            check_values("PartiallySynthetic", records, self.min_leaf)

    def change(self, records: Records, draws: Draws, context: Context) -> Change:
        """Masked columns in turn, given the predictors and the columns made before."""
        names = self._predictors(records, context.people)
        chosen = self._chosen(context)
        original: list[Column] = [context.column(name) for name in names]
        synthetic = list(original)
        values: dict[str, NDArray[np.generic]] = {}
        for position, column in enumerate(records.columns):
            context.progress("synthesising", position, len(records.columns))
            rows, places = np.flatnonzero(column.known), np.flatnonzero(column.known & chosen)
            drawn = (
                self._drawn(column.take(rows), _at(original, rows), _at(synthetic, places), places.size, draws)
                if places.size
                else None
            )
            new = _put(column, drawn, places)
            original.append(column)
            synthetic.append(new)
            values[column.name] = new.values if isinstance(new, NumberColumn) else new.codes
        published = {**self.tells(records.names), "predictors": list(names)}
        return Change(values, published=published, details={"replaced_records": int(chosen.sum())})

    def tells(self, names: tuple[str, ...]) -> Plain:
        """The model, what it predicts from, the order of the columns, and which records were replaced."""
        kind = "decision trees in sequence" if self.model == "tree" else "linear regressions in sequence, normal residuals"
        others = Test(
            lambda published, visible: (
                isinstance(published, list) and all(name in visible.columns - {*names} for name in published)
            )
        )
        predictors = others if self.predictors is None else list(self.predictors)
        return {"model": kind, "predictors": predictors, "order": list(names), "where": self.where}

    def keeps(self) -> tuple[Kept, ...]:
        """With all records replaced, means on average (and covariances, for the linear model)."""
        if self.where == "unique":
            return ()
        if self.model == "linear":
            return (Kept("mean"), Kept("variance"), Kept("covariance"))
        return (Kept("mean"), Kept("variance"), Kept("frequencies", note="of categories; of numbers without smoothing"))

    def _predictors(self, records: Records, people: Microdata) -> tuple[str, ...]:
        if self.predictors is not None:
            return self.predictors
        schema = people.schema
        left = {*schema.with_role("identifier"), *schema.with_role("unit"), *schema.with_role("weight"), *(self.strata or ())}
        usable = (name for name, column in schema.columns.items() if column.items is None and name in people.column_names)
        return tuple(name for name in usable if name not in left and name not in records.names)

    def _chosen(self, context: Context) -> NDArray[np.bool_]:
        """The records of this stratum that are replaced; unique means unique in the whole table."""
        if self.where == "all":
            return np.ones(context.rows.size, dtype=np.bool_)
        key = np.zeros(context.table.num_rows, dtype=np.int64)
        for name in context.people.schema.quasi:
            codes = CodedText.of(context.table.column(name)).codes.astype(np.int64) + 1
            key = np.unique(key * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
        unique: NDArray[np.bool_] = np.bincount(key)[key[context.rows]] == 1
        return unique

    def _drawn(self, target: Column, original: Sequence[Column], synthetic: Sequence[Column], size: int, draws: Draws) -> Column:
        if self.model == "tree":
            return Trees(self.min_leaf, self.max_depth, self.smooth).drawn(target, original, synthetic, size, draws)
        return NumberColumn(target.name, _regressed(_numbers(target), original, synthetic, draws), target.arrow)


def _regressed(target: Real, original: Sequence[Column], synthetic: Sequence[Column], draws: Draws) -> Real:
    """A linear regression on the known records, drawn from at the made ones."""
    unit = magnitude(target)
    target = target / unit
    both = regressors([_joined(a, b) for a, b in zip(original, synthetic, strict=True)], target.size + synthetic[0].known.size)
    fitted, predicting = both[: target.size], both[target.size :]
    if target.size <= both.shape[1] + 2:
        raise Unsupported(
            f"PartiallySynthetic: {target.size} records (of a stratum) with a value do not suffice for a regression on "
            f"{both.shape[1]} regressors; give fewer predictors, or use model='tree'"
        )
    orthonormal("PartiallySynthetic", fitted)
    terms = np.concatenate([np.ones((target.size, 1)), fitted], axis=1)
    coefficients = np.linalg.lstsq(terms, target, rcond=None)[0]
    # divided by n - 1, so that fitted and drawn parts add up to the variance of the column
    spread = np.linalg.norm(target - terms @ coefficients) / np.sqrt(target.size - 1)
    if spread <= 1e-9 * target.std():
        raise Unsupported(
            "PartiallySynthetic: a masked column follows exactly from the predictors and would be published as it is; "
            "leave out the predictors that give it away"
        )
    fit = np.concatenate([np.ones((predicting.shape[0], 1)), predicting], axis=1) @ coefficients
    with np.errstate(over="ignore"):  # what no number can hold is refused when the table is put together
        drawn: Real = (fit + spread * draws.normal(predicting.shape[0])) * unit
    return drawn


def _joined(original: Column, synthetic: Column) -> Column:
    """Both one after the other; unknown numbers at the mean of the known ones."""
    if isinstance(original, CategoryColumn) and isinstance(synthetic, CategoryColumn):
        return replace(original, codes=np.concatenate([original.codes, synthetic.codes]))
    values = np.concatenate([_numbers(original), _numbers(synthetic)])
    mean = mean_of(_numbers(original)[original.known]) if original.known.any() else 0.0
    return NumberColumn(original.name, np.where(np.isnan(values), mean, values), original.arrow)


def _numbers(column: Column) -> Real:
    return column.values if isinstance(column, NumberColumn) else column.codes.astype(np.float64)


def _at(columns: Sequence[Column], rows: Int) -> list[Column]:
    return [column.take(rows) for column in columns]


def _put(column: Column, drawn: Column | None, places: Int) -> Column:
    """The column with drawn cells at these places."""
    if isinstance(column, NumberColumn):
        values = column.values.copy()
        if isinstance(drawn, NumberColumn):
            values[places] = drawn.values
        return replace(column, values=values)
    codes = column.codes.copy()
    if isinstance(drawn, CategoryColumn):
        codes[places] = drawn.codes
    return replace(column, codes=codes)
