"""A release: the protected table, its certificate and its scores; immutable, made by `publish` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from sfumato.core.certificate import Certificate
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.core.view import AttackResult, Score, View
from sfumato.data.schema import Schema
from sfumato.report.wording import counted
from sfumato.workflow.claims import References, UnitCounts
from sfumato.workflow.columns import without_hierarchies

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.data.hierarchy import Hierarchy
    from sfumato.data.released import ReleasedTable
    from sfumato.report.content import Answer

#: What a certificate says instead of an entry's hash when there was no ledger.
NOT_ENTERED = "not entered"

Format = Literal["parquet", "csv"]
Audience = Literal["public", "owner"]


@dataclass(frozen=True, eq=False)
class OwnerSide:
    """What only the owner may see of a release: its originals, and what was computed from them."""

    references: References = field(default_factory=References, repr=False)
    released: ReleasedTable | None = field(default=None, repr=False)
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    scores: tuple[Score, ...] = field(default=(), repr=False)
    attacks: tuple[AttackResult, ...] = field(default=(), repr=False)
    loss_per_attribute: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    schema: Schema = field(default_factory=Schema, repr=False)
    recipe: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    answers: Mapping[str, Answer] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    units: UnitCounts | None = field(default=None, repr=False)
    risks: tuple[str, ...] = ()  # which of the scores measure risk and not usefulness
    rows: NDArray[np.int64] | None = field(default=None, repr=False)  # of a masked table: the source row behind each row


@dataclass(frozen=True, eq=False)
class Release:
    """A table that was written, read back, verified and certified.

    `data` is an Arrow table; `schema` describes its columns, with the hierarchies of the sensitive ones, so
    that distances over them can be measured again; `scores` maps each measure to its number (`loss` is always there); `details`
    says how the search went (`levels`, `suppressed`, `classes`, …). `scores` and `details` are the owner's:
    `save` keeps them out of the public folder where they were computed from the original.
    """

    data: pa.Table = field(repr=False)
    schema: Schema = field(repr=False)
    certificate: Certificate = field(repr=False)
    guarantees: tuple[ClassGuarantee, ...]
    scores: Mapping[str, float] = field(repr=False)
    details: Mapping[str, Any] = field(repr=False)
    owner: OwnerSide = field(default_factory=OwnerSide, repr=False)

    def __repr__(self) -> str:
        found = ", ".join(f"{name} = {value:.6g}" for name, value in self.certificate.measured.items() if value is not None)
        return f"Release('{self.certificate.dataset}', {counted(self.data.num_rows, 'row')}, {found})"

    def __len__(self) -> int:
        return int(self.data.num_rows)

    @property
    def entered(self) -> bool:
        """True when the release is in a ledger."""
        return self.certificate.ledger != NOT_ENTERED

    def to_pandas(self) -> Any:
        """The released rows as a pandas DataFrame."""
        return self.data.to_pandas()

    def to_polars(self) -> Any:
        """The released rows as a polars DataFrame."""
        import polars

        return polars.from_arrow(self.data)

    def view(self, name: str = "release") -> View[pa.Table, Schema]:
        """What an outsider has: the rows, the roles of their columns and the certificate."""
        return View(self.data, without_hierarchies(self.schema), self.certificate.to_mapping(), name)

    def card(self, audience: Audience = "public") -> str:
        """The release on one HTML page, for everybody or for its owner."""
        from sfumato.workflow.cards import card_of

        return card_of(self, audience)

    def save(
        self,
        folder: str | Path,
        format: Format = "parquet",
        *,
        overwrite: bool = False,
        sign: Path | str | None = None,
    ) -> Path:
        """Write `public/` (to give away) and `owner/` (to keep) into a new folder, which appears whole or not
        at all.

        The data file is read back and verified again in the format it is written in. `sign` names the file
        of a signing key; then `public/signature.json` holds the owner's signature over the certificate.
        """
        from sfumato.workflow.saving import save_release

        return save_release(self, Path(folder), format, overwrite=overwrite, sign=None if sign is None else Path(sign))

    def write(self, destination: str | Path, *, table_name: str | None = None, overwrite: bool = False) -> None:
        """Write the rows alone into a DuckDB file or, given a URL, a PostgreSQL database.

        The certificate stays where `save` put it. The rows are read back before anybody else can see them; they
        stay only if they are exactly those that it is about, otherwise the database is left as it was.
        """
        from sfumato.workflow.saving import write_rows

        write_rows(self, destination, table_name, overwrite=overwrite)
