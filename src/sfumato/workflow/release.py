"""A release: content with its certificate and its scores; immutable, made by `publish` alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from sfumato.core.certificate import NOT_ENTERED, Certificate
from sfumato.core.declared import require
from sfumato.core.errors import MissingMeasure, Unsupported, as_name
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.view import AttackResult, Score, View
from sfumato.data.schema import Schema
from sfumato.report.markup import shorten
from sfumato.report.wording import counted
from sfumato.workflow.contents.base import Content, Format

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.engines.sources import TableLike
    from sfumato.ledger.ledger import Ledger
    from sfumato.report.content import Answer
    from sfumato.workflow.verifying.verification import Verification


Audience = Literal["public", "owner"]
C = TypeVar("C", bound=Content, covariant=True)
_NOT_ASKED = "It was not asked for in utility= or risk=."


class Scores(dict[str, float]):
    """Each measure with its number; `unmeasured` says of some why they have none.

    >>> Scores({"loss": 0.2})["auc"]
    Traceback (most recent call last):
    sfumato.core.errors.MissingMeasure: this release has no score 'auc', only loss. It was not asked for in utility= or risk=.
    """

    unmeasured: Sequence[str] = ()

    def __missing__(self, name: str) -> float:
        why = [f"{reason}." for reason in self.unmeasured if reason.startswith(f"{name} ")]
        has = f"only {', '.join(self)}" if self else "nor any other"
        raise MissingMeasure(f"this release has no score {as_name(name)}, {has}. {(*why, _NOT_ASKED)[0]}")


@dataclass(frozen=True, eq=False)
class OwnerSide:
    """What only the owner may see of a release: what was computed from the original, and what the owner said."""

    scores: tuple[Score, ...] = field(default=(), repr=False)
    risks: tuple[str, ...] = ()  # which of the scores measure risk and not usefulness
    attacks: tuple[AttackResult, ...] = field(default=(), repr=False)
    computed: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    recipe: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    answers: Mapping[str, Answer] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    warned: tuple[str, ...] = ()  # what weakens the release and nobody else can know


@dataclass(frozen=True, eq=False)
class Release(Generic[C]):
    """Content that was written, read back, verified and certified.

    `data` is the content as its users have it: an Arrow table or, of a private method, plain data. `schema` describes its
    columns. `scores` maps each measure to its number (`loss` is there for every recoded table); `details` says how the work went
    (`levels`, `suppressed`, `classes`, …). `scores` and `details` of a protected table are the owner's: `save` keeps them out of
    the public folder where they were computed from the original.
    """

    content: C = field(repr=False)
    published: Certificate = field(repr=False)
    guarantees: tuple[Guarantee, ...]
    scores: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    owner: OwnerSide = field(default_factory=OwnerSide, repr=False)
    _saved: list[Certificate] = field(default_factory=list, init=False, repr=False)

    def __repr__(self) -> str:
        stated = self.certificate
        shape = counted(len(self), "row") if hasattr(self.data, "num_rows") else "plain data"
        promises = [f"{name} = {value:.6g}" for name, value in stated.measured.items() if value is not None]
        promises = promises or [claim.promised for claim in stated.claims] or [str(stated.method.get("name"))]
        seeded = f"{'' if stated.private else ', a demonstration'}{', a draft' if stated.draft else ''}"
        return f"Release('{shorten(stated.dataset, 60)}', {shape}, {shorten(', '.join(promises), 300)}{seeded})"

    def _repr_html_(self) -> str:
        from sfumato.report.panels import release_panel

        return release_panel(self)

    def __getstate__(self) -> dict[str, object]:
        """All that `save` needs, the original among it: a pickle of a release is the owner's."""
        tables = self.content.references_for_claims.values()
        if hasattr(self.data, "groups") or any(each is not None and each.relation.engine != "memory" for each in tables):
            raise Unsupported("the table of this release is in an engine, which no pickle can hold. Use release.save() instead")
        return dict(vars(self))

    def __copy__(self) -> Release[C]:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: object) -> Release[C]:
        return self

    def __len__(self) -> int:
        return int(getattr(self.data, "num_rows", 0))

    def __bool__(self) -> bool:
        return True

    @property
    def certificate(self) -> Certificate:
        """What is claimed and was measured; its `files` are those of the folder that was saved last."""
        return self._saved[-1] if self._saved else self.published

    @property
    def data(self) -> Any:  # what it is depends on the kind of content
        """The content as its users have it."""
        return self.content.data

    @property
    def schema(self) -> Schema:
        """The columns, as the owner of the release has them described."""
        return self.content.owner_schema

    @property
    def entered(self) -> bool:
        """True when a ledger has an entry of the release, or of what was charged for it."""
        return self.published.ledger != NOT_ENTERED

    def to_pandas(self, *, intervals: bool = False) -> Any:  # a pandas DataFrame, which is not a dependency
        """The released rows as a pandas DataFrame: a column that shows numbers alone has numbers, any other one texts.
        Whole numbers that were taken for codes, because nobody declared them, are numbers again.

        `intervals` turns texts such as `[30, 40)` into `pandas.Interval`, closed on the sides that the texts mean.
        """
        from sfumato.data.pandas_frames import pandas_frame

        self._refuse_unless_table()
        owners = getattr(self.content, "owners", None)  # of rows about people
        learnt = [] if owners is None else [n for n, c in owners.columns.items() if c.type == "category" and c.source == "data"]
        codes = [name for name in learnt if name in self.data.column_names]
        return pandas_frame(self.data, intervals=intervals, codes=codes)

    def to_polars(self) -> Any:  # a polars DataFrame, which is not a dependency
        """The released rows as a polars DataFrame."""
        from sfumato.core.extras import require_extra

        self._refuse_unless_table()
        require_extra("polars", "polars", "to_polars()")
        import polars

        return polars.from_arrow(self.data)

    def head(self, n: int = 5) -> pa.Table:
        """The first `n` released rows, as they are published: an Arrow table."""
        self._refuse_unless_table()
        require(type(n) is int and n >= 0, "head: n is a whole number of at least 0")
        rows: pa.Table = self.data.slice(0, min(n, self.data.num_rows))
        return rows

    def _refuse_unless_table(self) -> None:
        from sfumato.workflow.publishing.saving import refuse_without_rows

        refuse_without_rows(self)
        if not hasattr(self.data, "slice"):
            raise Unsupported("this release is no table and has no rows; release.data holds what is published")

    def view(self, name: str = "release", *, register: TableLike = None) -> View[Any, Schema]:  # of any content
        """What an outsider of its folder has: the content, the roles of its columns, the published hierarchies and the
        certificate. Hierarchies that are described by parameters, such as levels of dates, are read over the people of the
        `register` that the outsider has."""
        from sfumato.core.files import temporary_folder
        from sfumato.workflow.attacking.releases import seen
        from sfumato.workflow.publishing.saving import public_schema
        from sfumato.workflow.verifying.certificate_form import read_schema
        from sfumato.workflow.verifying.verify import OpenRelease, open_release

        if self.content.home is not None:
            with open_release(self.content.home) as opened:
                return seen(opened, name, register)
        with temporary_folder("release") as place:
            saved = self.content.save(Path(place), "parquet", self)
            stated = replace(self.certificate, claims=saved.claims, schema=public_schema(saved.schema), files=saved.files)
            stated = Certificate.from_mapping(json.loads(stated.canonical()))  # as whoever reads its file has it
            return seen(OpenRelease(self.data, read_schema(stated).replace(folder=place), stated), name, register)

    def card(self, audience: Audience = "public") -> str:
        """The release on one HTML page, for everybody or for its owner."""
        from sfumato.workflow.publishing.cards import card_of

        return card_of(self, audience)

    def save(
        self, folder: str | Path, format: Format = "parquet", *, overwrite: bool = False, sign: Path | str | None = None
    ) -> Path:
        """Write `public/` (to give away) and `owner/` (to keep) into a new folder, which appears whole or not at all.

        A table is read back and verified again in the format it is written in; plain data are written as JSON. `sign` names the
        file of a signing key; then `public/signature.json` holds the owner's signature over the certificate.
        """
        from sfumato.workflow.publishing.saving import propose_signing, save_release

        key = None if sign is None else Path(sign)
        if not self.published.draft:
            propose_signing(key)
        self.note_saved(save_release(self, Path(folder), format, overwrite=overwrite, sign=key))
        return Path(folder)

    def note_saved(self, certificate: Certificate) -> None:
        """Remember the certificate of a folder that was saved."""
        self._saved.append(certificate)

    def verify(self, *, ledger: Ledger | str | Path | None = None, allow_demonstration: bool = False) -> Verification:
        """What a stranger's `verify` finds in the folder of this release, given the tables that its claims compare with."""
        from sfumato.core.files import temporary_folder
        from sfumato.workflow.publishing.saving import save_release
        from sfumato.workflow.verifying.verify import verify

        options: dict[str, Any] = {"ledger": ledger, "allow_demonstration": allow_demonstration}
        options |= self.content.references_for_claims | self.content.rows_elsewhere
        if self.content.home is not None:
            return verify(self.content.home, **options)
        with temporary_folder("release") as place:
            folder = Path(place) / "release"
            save_release(self, folder, "parquet", overwrite=False, sign=None)
            return verify(folder, **options)

    def attack(self, **options: Any) -> list[AttackResult]:  # those of `sf.attack`
        """Run the attacks that fit this release and what the attacker has; `options` are those of `sf.attack`."""
        from sfumato.workflow.attacking.releases import attack

        return attack(self, **options)

    def write(self, destination: str | Path, *, table_name: str | None = None, overwrite: bool = False) -> None:
        """Write the rows alone into a DuckDB file or, given a URL, a PostgreSQL database.

        The certificate stays where `save` put it. The rows are read back before anybody else can see them; they
        stay only if they are exactly those that it is about, otherwise the database is left as it was.
        """
        from sfumato.workflow.publishing.saving import write_rows

        write_rows(self, destination, table_name, overwrite=overwrite)
