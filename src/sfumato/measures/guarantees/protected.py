"""Which values of a sensitive attribute are protected, and which classes contain one.

`None` protects every value, an empty tuple none. Wong, Li, Fu, Wang, "(α,k)-anonymity", KDD 2006.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import Unsupported
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.data.hierarchies import hierarchy_builders
from sfumato.measures.guarantees.classes import ValueCounts
from sfumato.measures.guarantees.examined import ExaminedTable


def protected_mask(values: Sequence[str | None], protected: tuple[str, ...] | None) -> NDArray[np.bool_]:
    """For each value whether it is protected."""
    if protected is None:
        return np.ones(len(values), dtype=np.bool_)
    chosen = set(protected)
    return np.array([value in chosen for value in values], dtype=np.bool_)


def concerned(histogram: ValueCounts, protected: tuple[str, ...] | None) -> NDArray[np.bool_]:
    """For each class whether it contains a protected value; the others are exempt."""
    if protected is None:
        return np.ones(histogram.sizes.size, dtype=np.bool_)
    mask = protected_mask(histogram.values, protected)
    return histogram.largest(mask[histogram.value].astype(np.int8)).astype(np.bool_)


def refuse_unknown_values(examined: ExaminedTable, guarantee: ClassGuarantee) -> None:
    """Refuse protected values that neither the table nor its original has, nor the column's domain or hierarchy lists: they would
    protect nobody, and every class would keep the promise."""
    protected, name = getattr(guarantee, "protected_values", None), guarantee.sensitive
    if not protected or name is None:
        return
    listed = {*examined.column(name).values, *_described_values(examined, name)}
    if examined.original is not None:
        listed.update(examined.reference(name, "input"))
    unknown = sorted(set(protected) - listed)
    if unknown:
        more = (
            "" if examined.original is not None else ", or pass original= (--original) if all records with them were suppressed"
        )
        where, many = ", ".join(map(repr, unknown[:5])), f"{len(unknown)} of the protected values of '{name}'"
        raise Unsupported(
            f"{guarantee.key}: {many} {'is' if len(unknown) == 1 else 'are'} neither in the table nor in the column's hierarchy "
            f"or domain, and would protect nobody: {where}. Check their spelling{more}."
        )


def _described_values(examined: ExaminedTable, name: str) -> tuple[str | None, ...]:
    """The values that the schema lists of a column, in its domain or in the tree that it declares."""
    column = examined.described(name)
    spec, listed = column.hierarchy, tuple(column.domain or ())
    if spec is None or (spec.file is None and spec.tree is None):
        return listed
    return (*listed, *hierarchy_builders.build(name, column, (), (), examined.schema.folder).leaves)
