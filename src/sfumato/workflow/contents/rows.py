"""Rows about people, protected by a recoding or a mask: what is promised about their classes is measured on the written file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.certificate import Certificate, Claim, measured_numbers, plain
from sfumato.core.errors import InputError
from sfumato.core.guarantees.base import ClassGuarantee, Guarantee
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.view import Score, View
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.schema import Schema
from sfumato.data.texts.values import texts
from sfumato.report.content import ColumnDecision, plain_details
from sfumato.workflow.contents.base import Content, Files, FolderAtHand, Format, Page, Saved, entered, without_hierarchies_in
from sfumato.workflow.contents.who_is_who import PEOPLE, WhoIsWho
from sfumato.workflow.earlier.comparing import Together
from sfumato.workflow.publishing.claims import References, UnitCounts, claims_of
from sfumato.workflow.publishing.columns import with_hierarchies
from sfumato.workflow.publishing.released_form import rows_digest
from sfumato.workflow.publishing.saving import (
    describe_bytes,
    describe_file,
    pretty,
    read_back,
    read_back_bytes,
    recipe_of,
    refuse_other_bytes,
    source_rows_file,
    with_whole_paths,
    write_and_describe,
)
from sfumato.workflow.verifying.folder_rows import (
    DATA_FILES,
    PARQUET,
    check_bytes,
    check_shape,
    read_rows,
    refuse_several_data_files,
)
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.progress import Progress
    from sfumato.core.view import AnyAttack, AnyMeasure
    from sfumato.data.masked import Masked
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.publishing.scoring import Checked, Checks
    from sfumato.workflow.release import Release

SCHEMA = "schema.toml"
#: How an entry of the ledger names the digest of the rows; entries of earlier versions have none.
ROWS_DIGEST = "rows_sha256"
#: In the owner's folder of a masked table: which record of the source (counted from 0) stands behind each released row.
SOURCE_ROWS = "rows.parquet"


@dataclass(frozen=True, eq=False)
class Rows(Content):
    """A table about people.

    `public` describes what is published, `owners` the same columns with their hierarchies, which some distances need. `units`
    holds what was counted in different units before their column was dropped. `masked` is the table beside its original, where
    values were changed; `rows_behind` tells the record behind each row, as the mask read them; rows that were `drawn` at
    random are a release of their own, even if chance made them the same.
    `exact` are the scores that a search states of its recoding, its loss first.
    """

    table: pa.Table = field(repr=False)
    public: Schema = field(repr=False)
    owners: Schema = field(repr=False)
    references: References = field(repr=False)
    units: UnitCounts | None = field(default=None, repr=False)
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    ranges: Mapping[str, Mapping[str, ShownValue]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    records: int = 0
    masked: Masked | None = field(default=None, repr=False)
    rows_behind: NDArray[np.int64] | None = field(default=None, repr=False)
    in_source_order: bool = False
    drawn: bool = False
    exact: tuple[Score, ...] = ()
    loss_per_attribute: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    known_cells: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    stored: bytes = field(default=b"", repr=False)  # the file that was verified

    named_in_certificates: ClassVar[bool] = False
    has_drafts: ClassVar[bool] = True

    @property
    def data(self) -> pa.Table:
        """The rows."""
        return self.table

    @property
    def published_types(self) -> pa.Schema:
        """The columns that are published, with their types."""
        return self.table.schema

    @property
    def schema(self) -> Schema:
        """Roles and types of what is published."""
        return self.public

    @property
    def owner_schema(self) -> Schema:
        """The same with the hierarchies, so that distances over them, and people behind classes, can be measured again."""
        return with_hierarchies(self.public, self.owners)

    @property
    def released(self) -> ReleasedTable:
        """The rows with what their texts stand for."""
        return ReleasedTable(self.table, self.owners, self.hierarchies, self.records, self.ranges, self.known_cells)

    @property
    def source_rows(self) -> NDArray[np.int64] | None:
        """The record behind each row, where somebody can read the original in that order again."""
        return self.rows_behind if self.in_source_order else None

    @property
    def who_is_who(self) -> WhoIsWho | None:
        """The people behind the rows of a masked table, where a column of the source identifies them."""
        original = self.references.original
        if self.masked is None or self.rows_behind is None or original is None:
            return None
        return WhoIsWho.of(original, self.rows_behind)

    @property
    def references_for_claims(self) -> dict[str, Any]:  # arguments of `verify`
        """The tables that claims compare with, by their names in `verify`."""
        return {"original": self.references.original, "population": self.references.population}

    def written(self) -> tuple[Self, Files]:
        """The rows as they are read back from Parquet."""
        from sfumato.data.writers import parquet_bytes

        stored = parquet_bytes(self.table)
        table = read_back_bytes(stored, self.public, self.table)
        files = {PARQUET: {**describe_bytes(stored), "rows": int(table.num_rows)}}
        return dataclasses.replace(self, table=table, stored=stored), files

    def claims(self, guarantees: Sequence[Guarantee]) -> tuple[Claim, ...]:
        """Measured by the plain verifier of classes."""
        return claims_of(self.table, self.owners, _of_classes(guarantees), self.references, units=self.units)

    def view(self, facts: Plain, name: str = "release") -> View[ReleasedTable, Schema]:
        """The rows with what their texts stand for, sensitive values by the hierarchies that are published with them."""
        from sfumato.data.hierarchies import hierarchy_builders

        trees = dict(self.hierarchies)
        for column in set(self.owners.sensitive) - set(trees):
            described = self.owners.columns[column]
            if described.hierarchy is not None and (described.hierarchy.file or described.hierarchy.tree):
                spec = described.hierarchy.model_copy(update={"missing": "root"})
                values = texts(self.table.column(column).unique())
                read_as = described.model_copy(update={"hierarchy": spec})
                trees[column] = hierarchy_builders.build(column, read_as, values, None, self.owners.folder)
        return View(dataclasses.replace(self.released, hierarchies=trees), self.public, facts, name)

    def checked(self, checks: Checks, facts: Plain, progress: Progress) -> Checked:
        """Measured against the original, record by record where a mask changed values."""
        from sfumato.workflow.publishing.scoring import run_checks

        released, masked = self.released, self.masked

        def seen_by(measure: AnyMeasure) -> ReleasedTable | Masked:
            return masked if measure.masked and masked is not None else released

        original = self.references.original
        held = self._held(checks.attacks)
        truthful = masked is None or masked.truthful
        view = partial(self.view, facts)
        return run_checks(checks, original, seen_by, view, progress, exact=self.exact, truthful=truthful, held=held)

    def _held(self, attacks: Iterable[AnyAttack]) -> dict[str, object]:
        """What those have who look people up in a masked release: the whole original, the worst case."""
        original, needs = self.references.original, {name for attack in attacks for name in attack.needs}
        if self.masked is None or original is None:
            return {}
        held: dict[str, object] = {"register": original.table()} if "register" in needs else {}
        if "truth" in needs and self.rows_behind is not None:
            held["truth"] = truth_of(self.rows_behind, len(original))
        return held

    def entry(self, facts: Plain, files: Files) -> PlainDict:
        """Promises, measured numbers, and the digests of the published file and of its rows."""
        return {
            "sha256": files[PARQUET]["sha256"],
            "rows": files[PARQUET]["rows"],
            ROWS_DIGEST: rows_digest(self.table),
            "claims": measured_numbers((claim["guarantee"], claim["measured"]) for claim in facts["claims"]),
            "promised": [claim["promised"] for claim in facts["claims"]],
            "method": facts["method"],
            "fingerprint": facts["fingerprint"],
            "schema": facts["schema"],
            **({} if facts["private"] else {"seeded": True}),  # its fingerprint has a key of its own
        }

    def enter(self, ledger: Ledger, facts: Plain, files: Files) -> tuple[Entry, Together]:
        """The entry; what somebody learns who holds this release and earlier ones, and what the owner counts in the original."""
        from sfumato.workflow.earlier.comparing import Newest, compared_both_ways
        from sfumato.workflow.earlier.readings import ReleaseReading, keep_reading, keep_rows, store_of

        reading = ReleaseReading.of(self, facts["transparency"], store_of(ledger))
        kept, digest = reading.to_json(), str(files[PARQUET]["sha256"])  # what can fail fails before anything is entered
        view, payload = self.view(facts, "this release"), self.entry(facts, files)
        with keep_rows(ledger, self.stored, digest):
            entry = entered(ledger, self.public.dataset, payload, drawn=self.drawn and facts["private"])
        keep_reading(ledger, entry.hash, kept)
        new = Newest(view, payload, digest, reading, facts["fingerprint"], entry.hash)
        return entry, compared_both_ways(ledger, new, self.references.original)

    def beside_earlier(self, ledger: Ledger, facts: Plain, files: Files) -> Together:
        """The same comparison for a draft: nothing is entered and nothing kept."""
        from sfumato.workflow.earlier.comparing import Newest, compared_both_ways
        from sfumato.workflow.earlier.readings import ReleaseReading

        reading = ReleaseReading.of(self, facts["transparency"], None)
        digest, payload = str(files[PARQUET]["sha256"]), self.entry(facts, files)
        new = Newest(self.view(facts, "this draft"), payload, digest, reading, facts["fingerprint"])
        return compared_both_ways(ledger, new, self.references.original)

    def save(self, folder: Path, format: Format, release: Release[Content]) -> Saved:
        """The rows, their schema, and the hierarchies that were declared."""
        from sfumato.data.writers import spreadsheet_notices
        from sfumato.workflow.publishing.appearing import write_bytes
        from sfumato.workflow.publishing.columns import schema_with_hierarchies

        place = folder / f"data.{format}"
        files: dict[str, Any] = {place.name: write_and_describe(self.table, place)}
        table = read_back(place, self.public, self.table)
        guarantees = _of_classes(release.guarantees)
        claims = dataclasses.replace(self, table=table).claims(guarantees)
        schema = schema_with_hierarchies(
            self.public, self.owners, table, guarantees, self.hierarchies, self.references, folder, self.ranges
        )
        refuse_other_bytes(place, table, ordered=True)
        write_bytes(folder / SCHEMA, schema.to_toml().encode())
        for path in sorted(folder.iterdir()):
            files.setdefault(path.name, describe_file(path))
        return Saved(files, claims, schema, () if format == "parquet" else spreadsheet_notices(self.table))

    def page_example(self, release: Release[Content]) -> Plain:
        """One invented row, drawn from what the owner declared about the original's columns."""
        from sfumato.workflow.publishing.about_columns import example_row

        original, stated = self.references.original, release.published
        if original is None:
            return {}
        return example_row(original.schema, stated.method, stated.transparency, self.table, self.hierarchies)

    def page_decisions(self, release: Release[Content]) -> tuple[ColumnDecision, ...]:
        """Roles, hierarchies and units of the original's columns, and on whose word they rest."""
        from sfumato.workflow.publishing.about_columns import decisions_of

        return () if self.references.original is None else decisions_of(self.references.original.schema)

    def page_scores(self, release: Release[Content]) -> tuple[Score, ...]:
        """Those that follow from the published rows."""
        from sfumato.workflow.publishing.scoring import computed_again

        published = ReleasedTable(self.table, self.public, records=int(self.table.num_rows))
        return tuple(score for score in release.owner.scores if computed_again(score, published))

    def owner_files(self, release: Release[Content]) -> dict[str, bytes]:
        """Scores, how the search went, the whole schema, the recipe and, of a masked table, who is who."""

        scores = [dataclasses.asdict(dataclasses.replace(score, parts=dict(score.parts))) for score in release.owner.scores]
        source = self.owners if self.references.original is None else self.references.original.schema
        files = {
            "scores.json": pretty({"scores": scores, "loss_per_attribute": dict(self.loss_per_attribute)}),
            "details.json": pretty(plain_details(release.details)),
            SCHEMA: with_whole_paths(source).to_toml().encode(),
            "recipe.toml": recipe_of(release),
        }
        files |= {} if self.source_rows is None else {SOURCE_ROWS: source_rows_file(self.source_rows)}
        people = self.who_is_who
        return files if people is None else {**files, PEOPLE: people.to_bytes()}

    def owner_figures(self, release: Release[Content]) -> dict[str, str]:
        """Loss per attribute, the recodings that were looked at, distributions before and after."""
        from sfumato.workflow.publishing.cards import owner_figures

        return owner_figures(self, release.details)

    @classmethod
    def files(cls, certificate: Certificate, schema: Schema) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """A data file, the schema, and the hierarchies that it names."""
        from sfumato.workflow.verifying.folder_parts import refuse_other_trees

        trees = {column.hierarchy.file for column in schema.columns.values() if column.hierarchy and column.hierarchy.file}
        refuse_other_trees(trees)
        refuse_several_data_files(certificate)
        return {*DATA_FILES, SCHEMA, *trees}, {SCHEMA, *trees}

    @classmethod
    def refuse_other_facts(cls, certificate: Certificate, schema: Schema) -> None:
        """Checked against the words that searches and masks have."""
        from sfumato.workflow.verifying.stated.transparency import refuse_other_facts

        refuse_other_facts(certificate, schema)
        cls.refuse_other_details(certificate)

    @classmethod
    def read(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> tuple[pa.Table, list[Finding]]:
        """The rows; no name among their columns, nothing but rows in their file, and the schema beside them."""
        from sfumato.workflow.verifying import folder_parts as parts
        from sfumato.workflow.verifying.stated import transparency

        table = read_rows(certificate, schema, folder)
        shape = check_shape(table)
        parts.refuse_names(certificate, schema, table)
        parts.refuse_other_sets(schema, table)
        findings = [shape, check_bytes(certificate, table, folder, ordered=True)]
        transparency.refuse_disproved_mask(certificate, schema, table)
        findings += transparency.check_missing_shown(certificate, transparency.with_missing(table))
        findings += parts.check_scores(certificate, ReleasedTable(table, schema, records=int(table.num_rows)))
        findings.append(parts.check_schema_file(schema, table.column_names, folder))
        parts.refuse_other_hierarchies(schema, folder)
        described = schema.replace(folder=str(folder))
        transparency.refuse_levels_not_shown(certificate, described, table)
        return table, [*findings, *transparency.check_texts(certificate, described, table)]

    @classmethod
    def opened(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> pa.Table:
        """The rows, whatever else is said about them."""
        return read_rows(certificate, schema, folder)

    @classmethod
    def check_claim(
        cls, claim: Claim, certificate: Certificate, schema: Schema, data: pa.Table, references: References
    ) -> list[Finding]:
        """Stated again from its guarantee, and measured again."""
        from sfumato.workflow.verifying.claims import check_class_claim

        return check_class_claim(claim, certificate, schema, data, references)

    @classmethod
    def entry_facts(cls, certificate: Certificate) -> Mapping[str, Sequence[object]]:
        """Promises and numbers as now and as earlier versions kept them."""
        facts = certificate.to_mapping()
        data: dict[str, Any] = next((facts["files"][name] for name in DATA_FILES if name in facts["files"]), {})
        stated = {
            "rows": [data.get("rows")],
            # earlier versions kept one number for each kind of guarantee
            "claims": [plain(certificate.measured), {claim["guarantee"]: claim["measured"] for claim in facts["claims"]}],
            "promised": [[claim["promised"] for claim in facts["claims"]]],
            "method": [facts["method"]],
            "fingerprint": [facts["fingerprint"]],
            "schema": [without_hierarchies_in(facts["schema"])],
            "seeded": [None] if certificate.private else [None, True],
        }
        return stated | ({"sha256": [data.get("sha256")]} if PARQUET in facts["files"] else {})

    @classmethod
    def check_making(
        cls, certificate: Certificate, data: object, folder: Path, ledger: Ledger | str | Path | None
    ) -> Finding | None:
        """Whether the method that made rows is known at all."""
        from sfumato.workflow.verifying.stated.results import check_stated_rows

        return check_stated_rows(certificate)

    @classmethod
    def page(cls, certificate: Certificate, data: pa.Table) -> Page:
        """Classes, and the risk of somebody who is known to be among the rows."""
        from sfumato.workflow.publishing.cards import class_page

        return class_page(certificate, data)


def truth_of(rows: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    """For each record of the source the row of the release that stands for it, -1 for none."""
    if np.unique(rows).size != rows.size:
        raise InputError("several rows of the release stand for one record (resampled records), so no row alone is the right one")
    truth = np.full(people, -1, dtype=np.int64)
    truth[rows] = np.arange(rows.size)
    return truth


def _of_classes(guarantees: Sequence[Guarantee]) -> list[ClassGuarantee]:
    return [each for each in guarantees if isinstance(each, ClassGuarantee)]
