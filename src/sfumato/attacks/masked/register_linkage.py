"""Linkage with a register by distance: everybody in it is taken for the nearest record of the masked release.

The adversary needs no knowledge of the method, only of true values. Pagliuca, Seri, "Some results of individual ranking method on
the system of enterprise accounts annual survey", Esprit SDC project 1999.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.attacks.masked.register_records import (
    RegisterAttack,
    RegisterColumns,
    masked_and_known,
    result_of,
    sides_of,
    written_alike,
)
from sfumato.attacks.tables.linkage import Register
from sfumato.core.errors import Unsupported
from sfumato.core.view import AttackResult, Detail
from sfumato.data.masked import TableView
from sfumato.kernels.linkage.likely_records import nearest_own
from sfumato.kernels.linkage.points import PointTree
from sfumato.measures.risk.linkage.sides import Picked, Sides
from sfumato.measures.risk.linkage.spaces import Distance, LinkageDistance, space_of


@dataclass(frozen=True)
class RegisterLinkage(RegisterAttack):
    """The adversary takes the nearest released record for each person of a register.

    `distance` is "euclidean" (standardised), "mahalanobis", "gower", or "auto" (Gower as soon as there are categories); `columns`
    are compared (default: of those the register knows, the masked ones and the quasi-identifiers that were left as they
    were). `knowledge`: `Register(table, truth=…)`; it may hold
    some of the columns and some of the people. Success: the share of its people whose record is picked, at random among
    equally near ones (any of them, where somebody has several records); blind guessing picks any record.

    >>> import numpy as np, sfumato as sf
    >>> people = sf.read(sf.data.sample_table(200), schema=sf.data.sample_schema())
    >>> masked = sf.AdditiveNoise(0.01, columns=("age", "income")).apply(people, seed=1).result
    >>> register = sf.attacks.Register(people.table(), truth=np.arange(200))
    >>> found = RegisterLinkage().run(sf.core.view.View(masked, people.schema), register)
    >>> found.success > found.baseline
    True
    """

    distance: LinkageDistance = "auto"
    columns: RegisterColumns = None

    def run(self, view: TableView, knowledge: Register | pa.Table | None = None) -> AttackResult:
        """Look for the nearest record of everybody."""
        sides = sides_of(view, knowledge, "RegisterLinkage")
        columns = masked_and_known(sides, view, self.columns, "RegisterLinkage")
        try:
            picked = nearest_records(sides, columns, self.distance)
        except Unsupported:  # numbers that became words, say: the other columns are left
            columns = tuple(name for name in columns if self.columns is None and written_alike(sides, name))
            if not columns:
                raise
            picked = nearest_records(sides, columns, self.distance)
        how = f"taking the nearest of {sides.released.num_rows:,} records by {_attributes(len(columns))}"
        nearest = int(np.count_nonzero(picked.own_found))
        details: dict[str, Detail] = {
            "own_record_nearest": nearest,
            "own_record_alone_nearest": int(np.count_nonzero(picked.own_found & (picked.candidates == 1))),
            "shared_attributes": len(columns),
        }
        return result_of("RegisterLinkage", sides, picked, how, details)


def nearest_records(sides: Sides, columns: tuple[str, ...], distance: Distance) -> Picked:
    """Everybody's nearest record; the scale is that of the release, which the adversary holds whole."""
    people, released = sides.records(columns)
    space = space_of(released, people, distance)
    shown, held = space.original, space.released
    credit, tied = nearest_own(PointTree(shown, space.metric), shown, held, sides.owners, sides.mine)
    return Picked(credit, tied, credit > 0)


def _attributes(count: int) -> str:
    return f"{count} shared attribute{'s' * (count != 1)}"
