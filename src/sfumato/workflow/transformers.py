"""Masks and pseudonyms as transformers of scikit-learn, for pipelines that learn from masked columns.

What comes out is no release: nobody has measured it, verified it or entered it in a ledger, and it has no certificate. A pandas
frame and an Arrow table carry that as metadata (`MARK`); arrays and polars frames cannot. To give rows away, use `protect`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymity.pseudonyms import Pseudonyms
from sfumato.core.declared import require
from sfumato.core.errors import MissingColumn, ParameterError, Unsupported, all_at_once
from sfumato.core.randomness import SystemRandomness
from sfumato.data.readers.frames import from_frame, is_frame
from sfumato.masking.base import Mask
from sfumato.wire.keys import OwnerKey, owner_key_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The name under which pandas (`frame.attrs`) and Arrow (`table.schema.metadata`) carry `NO_RELEASE`.
MARK = "sfumato"
NO_RELEASE = "not a release: nobody has measured or verified these rows, and they have no certificate"

T = TypeVar("T", bound="_ChangedColumns")


class _ChangedColumns(ABC, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # it has no types
    """What both transformers share: the columns that go in come out, in the same kind of table. `fit` notes their names and
    learns nothing."""

    _dtype: Any = "numeric"

    def fit(self: T, X: Any, y: object = None) -> T:
        """Check the parameters and note the columns."""
        self._method()
        self._seen(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """The rows with changed columns: a frame for a frame, an array for an array. What comes out is no release."""
        check_is_fitted(self)
        seen = self._seen(X, reset=False)
        if not is_frame(X):
            columns = [pa.array(seen[:, place], from_pandas=True) for place in range(seen.shape[1])]
            return self._array(self._changed(pa.table(columns, names=[f"x{place}" for place in range(seen.shape[1])])))
        frame = X.set_axis(list(map(str, X.columns)), axis=1) if hasattr(X, "set_axis") else X
        return _like(X, self._changed(from_frame(frame).table))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _seen(self, X: Any, *, reset: bool) -> Any:
        """The rows as scikit-learn checks them; frames keep the types of their columns."""
        if is_frame(X):
            require(len(X) > 0, "0 samples: the table has no rows")
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype=self._dtype, ensure_all_finite="allow-nan")

    @abstractmethod
    def _method(self) -> Any:
        """What changes the columns, made of the parameters."""

    @abstractmethod
    def _changed(self, table: pa.Table) -> pa.Table:
        """The rows with changed columns."""

    @abstractmethod
    def _array(self, table: pa.Table) -> Any:
        """The rows as an array."""


class MaskTransformer(_ChangedColumns):
    """A mask as a transformer: it masks whatever rows pass through, at `fit_transform` and at `transform` alike.

    `mask` is a mask or a text such as "AdditiveNoise(ratio=0.1)"; its own `columns` are masked, or all of them. Masks that give
    no row for each row (samples, synthetic data) are refused. With a `random_state` (a number or a text) the same rows give the
    same result, and what was drawn can be repeated by anyone who knows it; without one the noise is secret.

    >>> import numpy as np
    >>> MaskTransformer("Rounding(base=10)").fit_transform(np.array([[12.0], [27.0]])).tolist()
    [[10.0], [30.0]]
    """

    def __init__(self, mask: Mask | str = "Mdav(k=3)", *, random_state: int | str | None = None) -> None:
        self.mask = mask
        self.random_state = random_state

    def _method(self) -> Mask:
        from sfumato.workflow.shorthand import method_of

        mask = method_of(self.mask)
        if not isinstance(mask, Mask):
            raise ParameterError(f"{type(mask).__name__} is no mask; a transformer takes one, such as sf.Mdav(k=5)")
        if not mask.keeps_rows:
            raise Unsupported(f"{type(mask).__name__} does not give a row for each row, which a transformer does; use sf.mask")
        if not isinstance(self.random_state, int | str | np.integer | None):
            raise ParameterError("random_state is a number, a text or None")
        return mask

    def _changed(self, table: pa.Table) -> pa.Table:
        mask = self._method()
        if mask.columns is None:
            mask = replace(mask, columns=tuple(name for name in table.column_names if name not in (mask.strata or ())))
        seed = int(self.random_state) if isinstance(self.random_state, np.integer) else self.random_state
        masked = mask.apply(table, seed=seed).result
        if masked.rows is None:
            raise Unsupported(f"{type(mask).__name__} did not say which row became which; use sf.mask")
        rows: pa.Table = masked.table.take(pa.array(np.argsort(masked.rows, kind="stable")))
        return rows

    def _array(self, table: pa.Table) -> Any:
        return np.column_stack([np.asarray(column.to_numpy(), dtype=np.float64) for column in table.columns])


class PseudonymTransformer(_ChangedColumns):
    """Pseudonyms as a transformer: the values of `columns` (all, if none are named) become keyed names, equal for equal values.

    `key` is an owner's key or its file, by default the owner's own. The scope of a column is its name, as in `protect`, unless
    `scope` names one for all. Replacing identifiers protects nobody by itself.
    """

    _dtype = None

    def __init__(
        self,
        columns: Iterable[str] | None = None,
        *,
        key: OwnerKey | Path | str | None = None,
        scope: str | None = None,
    ) -> None:
        self.columns = columns
        self.key = key
        self.scope = scope

    def _method(self) -> OwnerKey:
        return owner_key_of(self.key, SystemRandomness())

    def _changed(self, table: pa.Table) -> pa.Table:
        key = self._method()
        names = list(table.column_names if self.columns is None else self.columns)
        missing = [f"column '{name}' is not in the data" for name in names if name not in table.column_names]
        all_at_once(MissingColumn, "PseudonymTransformer", missing)
        for name in names:
            replaced = Pseudonyms(key, scope=self.scope or name).apply(table.column(name))
            table = table.set_column(table.column_names.index(name), name, replaced)
        return table

    def _array(self, table: pa.Table) -> Any:
        return np.column_stack([np.asarray(column.to_pylist(), dtype=object) for column in table.columns])

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _like(frame: object, table: pa.Table) -> object:
    """The table in the kind in which it was given, with the mark where that kind has a place for it."""
    marked = table.replace_schema_metadata({**(table.schema.metadata or {}), MARK: NO_RELEASE})
    library = type(frame).__module__.partition(".")[0]
    if library == "pandas":
        from sfumato.data.pandas_frames import pandas_frame

        changed = pandas_frame(table)
        changed.index, changed.columns = frame.index, frame.columns  # type: ignore[attr-defined]
        changed.attrs[MARK] = NO_RELEASE
        return changed
    if library == "polars":
        from importlib import import_module

        return import_module("polars").from_arrow(table)
    return marked
