"""A protected aggregate table as a release: its cells, its codes and sums, and witnesses that its blanks are open.

`table.csv` has one line per cell with a flag where it is blank, `table.html` is the same to read, `structure.json` says what
adds up to what, `witnesses.json` fills the blanks in ways that agree with everything. No file was
computed from the true value of a blank.
"""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from sfumato.core.certificate import Certificate, Claim
from sfumato.core.declared import parameters
from sfumato.core.errors import InputError, SfumatoError, VerificationFailed
from sfumato.core.guarantees.base import Guarantee
from sfumato.core.randomness import DESCRIPTIONS, default
from sfumato.data.schema import Schema
from sfumato.measures.open_blanks import additive, all_multiples, open_blanks, places_of
from sfumato.tables.promises import BlanksStayOpen, MultiplesOf
from sfumato.tables.published import BLANK, PublishedTable, grid_of
from sfumato.workflow.contents.base import Content, Files, FolderAtHand, Format, Page, Promise, Saved, Submission
from sfumato.workflow.publishing.appearing import write_bytes
from sfumato.workflow.publishing.saving import describe_bytes, pretty
from sfumato.workflow.verifying import untrusted
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    from sfumato.core.outcome import Outcome
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.publishing.claims import References
    from sfumato.workflow.release import Release

TABLE, PAGE, STRUCTURE, WITNESSES = "table.csv", "table.html", "structure.json", "witnesses.json"
FILES = frozenset({TABLE, PAGE, STRUCTURE, WITNESSES})
_STYLE = (
    "body{font:16px/1.4 system-ui,sans-serif;margin:2em}table{border-collapse:collapse}"
    "th,td{border:1px solid #999;padding:.2em .6em;text-align:right}th{text-align:left}.blank{background:#ddd;text-align:center}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True, eq=False)
class Cube(Content):
    """A protected table."""

    table: PublishedTable = field(repr=False)

    says_scored: ClassVar[bool] = False

    @classmethod
    def submitted(
        cls, outcome: Outcome[object], *, dataset: str | None, ledger: Ledger | None, ledger_entry: str | None
    ) -> Submission[Self] | None:
        """What the room of tables returned."""
        table = outcome.result
        if not isinstance(table, PublishedTable):
            return None
        details = dict(outcome.details)
        randomness = details.pop("randomness", default().description)
        return Submission(
            cls(table),
            tuple(Promise(each) for each in outcome.claimed),
            outcome.method,
            randomness,
            DESCRIPTIONS.get(randomness, False),
            computed=details.pop("owner", {}),
            details=details,
        )

    @property
    def data(self) -> PublishedTable:
        """The table."""
        return self.table

    @property
    def schema(self) -> Schema:
        """The data set; codes and sums are in a file of their own."""
        return Schema(dataset=self.table.dataset)

    def written(self) -> tuple[Self, Files]:
        """The table as it is read back from its files."""
        files = files_of(self.table)
        return type(self)(table_of(files)), {name: describe_bytes(content) for name, content in files.items()}

    def claims(self, guarantees: Sequence[Guarantee]) -> tuple[Claim, ...]:
        """Measured by the plain verifier."""
        claims = tuple(_claim(each, self.table) for each in guarantees)
        broken = [claim.promised for claim in claims if not claim.holds]
        if broken:
            raise VerificationFailed(f"the table does not keep its promise: {broken[0]}. Nothing was published.")
        return claims

    def save(self, folder: Path, format: Format, release: Release[Content]) -> Saved:
        """Write the files, read them back and measure them."""
        stored = {}
        for name, content in files_of(self.table).items():
            write_bytes(folder / name, content)
            stored[name] = (folder / name).read_bytes()
        again = type(self)(table_of(stored))
        described = {name: describe_bytes(content) for name, content in stored.items()}
        return Saved(described, again.claims(release.guarantees), self.schema)

    def owner_files(self, release: Release[Content]) -> dict[str, bytes]:
        """True values, statuses and the audit: the owner's."""
        return {name: str(text).encode() for name, text in release.owner.computed.items()}

    @classmethod
    def files(cls, certificate: Certificate, schema: Schema) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """All of them, always."""
        return FILES, FILES

    @classmethod
    def read(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> tuple[object, list[Finding]]:
        """The table; written again it must give the same files."""
        stored = {name: (folder / name).read_bytes() for name in sorted(FILES)}
        try:
            table = table_of(stored)
            again = files_of(table)
        except VerificationFailed:
            raise
        except (SfumatoError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            raise VerificationFailed("the files of the table are not written as releases write them") from None
        if table.dataset != schema.dataset or again != stored:
            raise VerificationFailed("the files of the table are not those that its values, codes and sums give")
        blanks = int(table.blank.sum())
        return table, [Finding("data", True, f"a table of {table.grid.size:,} cells, {blanks:,} of them blank")]

    @classmethod
    def check_claim(
        cls, claim: Claim, certificate: Certificate, schema: Schema, data: object, references: References
    ) -> list[Finding]:
        """State the claim again and measure it on the table."""
        kinds = {each.__name__: each for each in (BlanksStayOpen, MultiplesOf)}
        if claim.guarantee not in kinds or not isinstance(data, PublishedTable):
            return [Finding(claim.guarantee[:80], False, "no table makes such a claim")]
        again = _claim(kinds[claim.guarantee](**claim.parameters), data)
        kept = again.holds and claim.holds and (again.promised, again.measured) == (claim.promised, claim.measured)
        return [Finding(claim.guarantee, kept, f"{again.promised}; measured {again.measured:g}")]

    @classmethod
    def page(cls, certificate: Certificate, data: object) -> Page:
        """The card says how many cells there are."""
        if not isinstance(data, PublishedTable):
            return Page({})
        return Page({"cells": int(data.grid.size), "blank cells": int(data.blank.sum())})

    @classmethod
    def refuse_other_details(cls, certificate: Certificate) -> None:
        """The page shows the number of cells and of blanks."""
        if set(certificate.card.get("details", {})) - {"cells", "blank cells"}:
            super().refuse_other_details(certificate)


def files_of(table: PublishedTable) -> dict[str, bytes]:
    """The public files of a table, always the same bytes."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(table.columns)
    lines.writerows(table.rows())
    title = html.escape(f"{table.value or 'Records'} by {', '.join(each.name for each in table.dimensions)}")
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{_POLICY}"><title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>\n'
        f"{table.to_html()}<p>{BLANK}: not shown.</p></body></html>\n"
    )
    return {
        TABLE: out.getvalue().encode(),
        PAGE: page.encode(),
        STRUCTURE: pretty(table.structure()),
        WITNESSES: pretty({"fill": [list(each) for each in table.witnesses]}),
    }


def table_of(files: Mapping[str, bytes]) -> PublishedTable:
    """The table that such files hold."""
    structure = untrusted.parse_json(files[STRUCTURE], "the structure of the table")
    fill = untrusted.parse_json(files[WITNESSES], "the witnesses")
    if not isinstance(structure, Mapping) or not isinstance(fill, Mapping):
        raise VerificationFailed("the structure of the table is not written as releases write it")
    decimals = structure["decimals"]
    if type(decimals) is not int or not 0 <= decimals <= 9:
        raise VerificationFailed("a table shows 0 to 9 digits after the point")
    grid = grid_of(structure)
    rows = list(csv.reader(io.StringIO(files[TABLE].decode(), newline="")))[1:]
    if len(rows) != grid.size:
        raise VerificationFailed("the table does not have one line for each of its cells")
    units = np.array([0 if row[-1] == BLANK else int(row[-2].replace(".", "", 1)) for row in rows], dtype=np.int64)
    blank = np.array([row[-1] == BLANK for row in rows], dtype=np.bool_)
    witnesses = tuple(tuple(each) for each in fill["fill"])
    value, dataset = structure["value"], structure["dataset"]
    return PublishedTable(grid, value, decimals, units, blank, dataset, {}, structure["additive"] is True, witnesses)


def _claim(guarantee: Guarantee, table: PublishedTable) -> Claim:
    structure = table.structure()
    coordinates = [tuple(each) for each in table.grid.coordinates.tolist()]
    if places_of(structure) != coordinates:
        raise InputError("the cells of the table are not those of its codes")
    shown = {place: int(unit) for place, unit, blank in zip(coordinates, table.units, table.blank, strict=True) if not blank}
    if isinstance(guarantee, MultiplesOf):
        measured: float = all_multiples(shown, guarantee.base)
        holds = measured == 1.0 and (not table.additive or additive(structure, shown))
    else:
        blanks, still_open = open_blanks(structure, shown, table.witnesses)
        measured, holds = float(still_open), blanks == still_open
    return Claim(
        guarantee.key,
        parameters(guarantee),
        guarantee.claim(),
        measured,
        holds,
        "output",
        guarantee.protects,
        adversary=guarantee.adversary,
        unit="contributor",
    )
