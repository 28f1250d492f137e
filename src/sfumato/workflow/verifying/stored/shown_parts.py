"""Rows of a masked release, looked at a part at a time: where values are missing, and whether the mask is disproved.

A part disproves less than all rows: where a mask says how often something is shown, or where a quantile lies, nothing is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sfumato.core import registry
from sfumato.core.certificate import Certificate
from sfumato.core.errors import InputError
from sfumato.data.schema import Schema
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

#: Masked rows that are read into this process at once, to be attacked.
MOST_MASKED_ROWS = 5_000_000


def is_masked(certificate: Certificate) -> bool:
    """Whether a mask made the rows."""
    return registry.has("mask", certificate.method.get("name"))


def refuse_too_many_masked(certificate: Certificate, described: str) -> None:
    """Refuse more masked rows than are read at once; `described` is the file that says how many there are."""
    if int(certificate.files[described].get("rows") or 0) > MOST_MASKED_ROWS:
        raise InputError(
            f"a masked release is attacked record by record, and this one has more than {MOST_MASKED_ROWS:,} rows; attack a "
            "release of a sample (sample=)"
        )


#: What no part shows by itself.
PART_BY_PART = Finding(
    "mask",
    None,
    "the rows were compared with what the mask can show, part by part; what follows from all of them together, such as how "
    "often something is shown or where a quantile lies, was not checked",
)


@dataclass
class ShownParts:
    """The parts of a masked table, each compared with the certificate as it comes."""

    certificate: Certificate = field(repr=False)
    schema: Schema = field(repr=False)
    _missing: set[str] = field(default_factory=set, repr=False)
    _order: dict[str, None] = field(default_factory=dict, repr=False)

    def add(self, rows: pa.Table) -> None:
        """Look at some of the rows; raises `VerificationFailed` where they disprove the mask."""
        from sfumato.workflow.verifying.stated.transparency import refuse_disproved_mask, with_missing

        self._order.update(dict.fromkeys(rows.column_names))
        self._missing.update(with_missing(rows))
        if rows.num_rows:
            refuse_disproved_mask(self.certificate, self.schema, rows, complete=False)

    @property
    def missing(self) -> tuple[str, ...]:
        """The columns in which values are missing, in their order."""
        return tuple(name for name in self._order if name in self._missing)
