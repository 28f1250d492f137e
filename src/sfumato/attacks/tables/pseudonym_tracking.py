"""Following pseudonyms: a consistent name in place of a person ties all of the person's records together.

One record that is known from elsewhere gives the pseudonym, and the pseudonym gives the rest; nobody's
identity is needed to follow, profile or address somebody. Barbaro, Zeller, "A face is exposed for AOL
searcher no. 4417749", The New York Times, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from sfumato.attacks.adversary import TableAttack, is_table
from sfumato.attacks.tables.classes import encoded, grouped, released_table, require_columns
from sfumato.core.errors import Unsupported
from sfumato.core.ranges import ColumnName, Each, Text
from sfumato.core.texts import percent
from sfumato.core.view import AttackResult, Criterion, View
from sfumato.data.masked import TableView
from sfumato.measures.risk.success import share, wilson


@dataclass(frozen=True)
class PseudonymTracking(TableAttack[None]):
    """The adversary knows one random record of a target, as far as the columns `observed` show it.

    `pseudonym` names the column of pseudonyms (by default the schema's unit, or a pseudonymised identifier);
    `observed` defaults to the quasi-identifiers. Success: the share of people whose pseudonym is found,
    picking at random among the pseudonyms with such a record. Blind guessing picks any pseudonym.
    """

    pseudonym: Annotated[ColumnName | None, "the column of pseudonyms"] = None
    observed: Annotated[
        tuple[str, ...] | None,
        Each(Text("the name of a column")),
        "the columns that show the record; the quasi-identifiers where left out",
    ] = None

    criterion: ClassVar[Criterion | None] = "linkability"
    unasked: ClassVar[bool] = False  # it supposes that a record of everybody is known

    def fits(self, view: View[object, object]) -> bool:
        """Pseudonyms are shown, and the columns of the record that is known."""
        if not is_table(view):
            return False
        column = self.pseudonym or _pseudonym_of(view)
        present = released_table(view).table.column_names
        return column is not None and all(name in present for name in (column, *(self.observed or ())))

    def run(self, view: TableView, knowledge: None = None) -> AttackResult:
        """Attack the released table; needs no further knowledge."""
        table = released_table(view).table
        column = self.pseudonym or _pseudonym_of(view)
        if column is None:
            raise Unsupported("this release has no pseudonyms to follow; name their column with pseudonym=")
        observed = tuple(n for n in view.schema.quasi if n in table.column_names) if self.observed is None else self.observed
        require_columns(table, (column, *observed), view.name)
        people = encoded(table, column)
        count = len(people.values)
        observations, first = grouped([encoded(table, name).codes for name in observed], table.num_rows)
        pairs = np.unique(observations * max(count, 1) + people.codes)
        sharing = np.bincount(pairs // max(count, 1), minlength=first.size)
        records = np.bincount(people.codes, minlength=count)
        chance = np.bincount(people.codes, weights=1 / sharing[observations] if observations.size else None, minlength=count)
        expected = float((chance / np.maximum(records, 1)).sum())
        exposed = int(np.unique(people.codes[sharing[observations] == 1]).size) if observations.size else 0
        blind = share(1, count)
        return AttackResult(
            attack="PseudonymTracking",
            success=share(expected, count),
            baseline=blind,
            interval=wilson(expected, count),
            targets=count,
            finding=(
                f"One known record finds the pseudonym of {percent(share(expected, count))} of {count:,} "
                f"people (blind "
                f"guessing: {percent(blind)}) and with it {share(table.num_rows, count):.3g} records on "
                f"average; "
                f"{exposed:,} people have a record that nobody else has."
            ),
            details={
                "people": count,
                "expected_correct": expected,
                "with_a_unique_record": exposed,
                "records_per_person": share(table.num_rows, count),
            },
        )


def _pseudonym_of(view: TableView) -> str | None:
    schema = view.schema
    present = released_table(view).table.column_names
    if schema.unit in present:
        return schema.unit
    return next((name for name, column in schema.columns.items() if column.pseudonym and name in present), None)
