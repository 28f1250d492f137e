"""Rows about people that an engine wrote and keeps: what is promised about their classes is measured on their groups.

The rows are in several Parquet files beside the certificate, or in a table of a database. This process knows them by their
groups (quasi-identifiers and promised values, with counts), which a query of its own read back from what was written. The
certificate covers `stored.json`: for files their names, lengths, rows, digests and the root of the tree over these; for a table
the digest of its content.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import pyarrow as pa

from sfumato.core.certificate import Certificate, Claim, measured_numbers, plain
from sfumato.core.errors import InputError, Unsupported
from sfumato.core.guarantees.base import ClassGuarantee, Guarantee
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.view import Score, View
from sfumato.data.hierarchies.hierarchy import Hierarchy
from sfumato.data.microdata import ReleasedTable, ShownValue
from sfumato.data.schema import Schema
from sfumato.engines.snapshots import one_state
from sfumato.engines.staging.destinations import DatabaseTable, Destination, ParquetFolder, SparkTable, Staged
from sfumato.report.content import ColumnDecision, plain_details
from sfumato.report.wording import counted
from sfumato.workflow.contents.base import Content, Files, FolderAtHand, Format, Page, Saved, entered, without_hierarchies_in
from sfumato.workflow.earlier.comparing import Together
from sfumato.workflow.publishing.claims import References, UnitCounts, claims_of
from sfumato.workflow.publishing.columns import with_hierarchies
from sfumato.workflow.publishing.grouped_rows import GroupedRows, Tied
from sfumato.workflow.publishing.saving import describe_bytes, describe_file, pretty, recipe_of, with_whole_paths
from sfumato.workflow.verifying.stored.description import (
    FORMAT,
    STORED,
    asked_table,
    promised_columns,
    pseudonyms_of,
    read_description,
)
from sfumato.workflow.verifying.stored.parts import FOLDER, MOST_FILES, StoredFile, grouped_parts, merkle_root
from sfumato.workflow.verifying.stored.shown_parts import PART_BY_PART, ShownParts, is_masked, refuse_too_many_masked
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    from sfumato.core.progress import Progress
    from sfumato.ledger.chain import Entry
    from sfumato.ledger.ledger import Ledger
    from sfumato.workflow.publishing.scoring import Checked, Checks
    from sfumato.workflow.release import Release

SCHEMA = "schema.toml"
#: The folder of the parts, inside the public one.
PARTS = FOLDER


@dataclass(frozen=True, eq=False)
class StoredRows(Content):
    """A table about people that stays where an engine wrote it.

    `public`, `owners`, `units`, `hierarchies`, `ranges`, `records`, `exact` and the rest are those of `Rows`. `written_to` holds
    what was written until it is published; afterwards it only says what was. `masked` says that a mask changed values, `truthful`
    that every cell shows what its record's value lies under, and `drawn` that chance decided what is shown.
    """

    stored: GroupedRows = field(repr=False)
    written_to: Staged = field(repr=False)
    destination: Destination
    published_types: pa.Schema = field(repr=False)
    public: Schema = field(repr=False)
    owners: Schema = field(repr=False)
    references: References = field(repr=False)
    units: UnitCounts | None = field(default=None, repr=False)
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    ranges: Mapping[str, Mapping[str, ShownValue]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    records: int = 0
    exact: tuple[Score, ...] = ()
    loss_per_attribute: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    known_cells: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    manifest: bytes = field(default=b"", repr=False)
    appears_in: Path | None = None
    masked: bool = False
    truthful: bool = True
    drawn: bool = False

    named_in_certificates: ClassVar[bool] = True
    has_parts: ClassVar[bool] = True
    has_drafts: ClassVar[bool] = True

    @property
    def data(self) -> GroupedRows:
        """What is known here of the rows."""
        return self.stored

    @property
    def schema(self) -> Schema:
        """Roles and types of what is published."""
        return self.public

    @property
    def owner_schema(self) -> Schema:
        """The same with the hierarchies, so that distances over them, and people behind classes, can be measured again."""
        return with_hierarchies(self.public, self.owners)

    @property
    def references_for_claims(self) -> dict[str, Any]:  # arguments of `verify`
        """The tables that claims compare with, by their names in `verify`."""
        return {"original": self.references.original, "population": self.references.population}

    @property
    def home(self) -> Path | None:
        """The folder that appeared with the rows."""
        return self.appears_in

    @property
    def rows_elsewhere(self) -> dict[str, object]:
        """The table of a database, or of the running Spark session."""
        place = self.destination
        if isinstance(place, SparkTable):
            from sfumato.engines.spark.relation import active_session

            session = active_session()
            return {} if session is None else {"data": session.table(place.name)}
        return {"data": place.address, "table": place.name} if isinstance(place, DatabaseTable) else {}

    def written(self) -> tuple[Self, Files]:
        """The rows are written by now; what describes them is put together."""
        manifest = pretty(self._described())
        files = {STORED: {**describe_bytes(manifest), "rows": self.stored.num_rows}}
        return dataclasses.replace(self, manifest=manifest), files

    def _described(self) -> PlainDict:
        """What `stored.json` says."""
        about: PlainDict = {"format": FORMAT, "rows": self.stored.num_rows}
        if not isinstance(self.destination, ParquetFolder):
            from sfumato.engines.digests.row_digest import row_sums

            return {**about, "content": row_sums(self.written_to.relation).content_digest()}
        files = [StoredFile(each.name, each.bytes, each.rows, each.sha256) for each in self.written_to.files]
        return {**about, "files": [dataclasses.asdict(each) for each in files], "root": merkle_root(files)}

    def claims(self, guarantees: Sequence[Guarantee]) -> tuple[Claim, ...]:
        """Measured by the plain verifier on the groups of what was written."""
        of_classes = [each for each in guarantees if isinstance(each, ClassGuarantee)]
        return claims_of(self.stored, self.owners, of_classes, self.references, units=self.units)

    def view(self, facts: Plain, name: str = "release") -> View[ReleasedTable, Schema]:
        """The columns that were grouped, each row with how many records it stands for."""
        groups, described = self.stored.groups, self._of_groups()
        rows = ReleasedTable(
            groups.table, described, self.hierarchies, self.records, self.ranges, self.known_cells, groups.counts
        )
        return View(rows, described, facts, name)

    def _of_groups(self) -> Schema:
        names = self.stored.groups.table.column_names
        return self.public.replace(columns={name: self.public.columns[name] for name in names})

    def checked(self, checks: Checks, facts: Plain, progress: Progress) -> Checked:
        """Scores of the classes alone; what needs records was refused before."""
        from sfumato.workflow.publishing.scoring import run_checks

        seen = self._with_every_tree(self.view(facts).result) if checks.measures else None
        return run_checks(
            checks,
            None,
            lambda measure: seen,
            lambda: self.view(facts),
            progress,
            exact=self.exact,
            truthful=self.truthful,
        )

    def _with_every_tree(self, released: ReleasedTable) -> ReleasedTable:
        """The groups with a tree for every quasi-identifier: of one that the adversary does not know the search makes none, and
        measures take it from the values of the original."""
        lacking = [name for name in released.schema.quasi if name not in released.hierarchies]
        trees = {name: self.references.tree(name, released.schema) for name in lacking}
        return dataclasses.replace(released, hierarchies={**released.hierarchies, **trees})

    def entry(self, facts: Plain, files: Files) -> PlainDict:
        """Promises, measured numbers, and the digest of what describes the rows."""
        return {
            "content": type(self).__name__,
            "sha256": files[STORED]["sha256"],
            "rows": files[STORED]["rows"],
            "claims": measured_numbers((claim["guarantee"], claim["measured"]) for claim in facts["claims"]),
            "promised": [claim["promised"] for claim in facts["claims"]],
            "method": facts["method"],
            "fingerprint": facts["fingerprint"],
            "schema": facts["schema"],
            **({} if facts["private"] else {"seeded": True}),
        }

    def enter(self, ledger: Ledger, facts: Plain, files: Files) -> tuple[Entry, Together]:
        """The entry, with the groups kept beside the ledger; what somebody learns who holds this release and earlier ones."""
        from sfumato.workflow.earlier.comparing import Newest, compared_both_ways
        from sfumato.workflow.earlier.readings import ReleaseReading, keep_reading, keep_rows, store_of
        from sfumato.workflow.earlier.stored_groups import to_bytes

        reading = ReleaseReading.of(self, facts["transparency"], store_of(ledger))
        kept, digest = reading.to_json(), str(files[STORED]["sha256"])  # what can fail fails before anything is entered
        view, payload = self.view(facts, "this release"), self.entry(facts, files)
        self.written_to.prepare()
        with keep_rows(ledger, to_bytes(view.result), digest):
            entry = entered(ledger, self.public.dataset, payload, drawn=self.drawn and facts["private"])
        keep_reading(ledger, entry.hash, kept)
        new = Newest(view, payload, digest, reading, facts["fingerprint"], entry.hash)
        return entry, compared_both_ways(ledger, new, self.references.original)

    def beside_earlier(self, ledger: Ledger, facts: Plain, files: Files) -> Together:
        """The same comparison for a draft: nothing is entered and nothing kept."""
        from sfumato.workflow.earlier.comparing import Newest, compared_both_ways
        from sfumato.workflow.earlier.readings import ReleaseReading

        reading = ReleaseReading.of(self, facts["transparency"], None)
        digest, payload = str(files[STORED]["sha256"]), self.entry(facts, files)
        new = Newest(self.view(facts, "this draft"), payload, digest, reading, facts["fingerprint"])
        return compared_both_ways(ledger, new, self.references.original)

    def save(self, folder: Path, format: Format, release: Release[Content]) -> Saved:
        """The parts in their place, what describes them, the schema, and the hierarchies that were declared."""
        from sfumato.workflow.publishing.appearing import write_bytes
        from sfumato.workflow.publishing.columns import schema_with_hierarchies

        if isinstance(self.destination, ParquetFolder):
            if self.destination.path != folder / PARTS:
                raise Unsupported(
                    "the rows of this release are where destination= put them, with all that belongs to them: copy that folder"
                )
            self.written_to.publish()
        guarantees = [each for each in release.guarantees if isinstance(each, ClassGuarantee)]
        schema = schema_with_hierarchies(
            self.public,
            self.owners,
            self.stored.groups.table,
            guarantees,
            self.hierarchies,
            self.references,
            folder,
            self.ranges,
        )
        write_bytes(folder / STORED, self.manifest)
        write_bytes(folder / SCHEMA, schema.to_toml().encode())
        files: dict[str, Any] = {STORED: {**describe_file(folder / STORED), "rows": self.stored.num_rows}}
        for path in sorted(folder.iterdir()):
            if path.is_file():
                files.setdefault(path.name, describe_file(path))
        return Saved(files, release.published.claims, schema, ())

    def page_example(self, release: Release[Content]) -> Plain:
        """One invented row, drawn from what the owner declared about the original's columns."""
        from sfumato.workflow.publishing.about_columns import example_row

        original, stated = self.references.original, release.published
        if original is None:
            return {}
        return example_row(original.schema, stated.method, stated.transparency, self.stored.groups.table, self.hierarchies)

    def page_decisions(self, release: Release[Content]) -> tuple[ColumnDecision, ...]:
        """Roles, hierarchies and units of the original's columns, and on whose word they rest."""
        from sfumato.workflow.publishing.about_columns import decisions_of

        return () if self.references.original is None else decisions_of(self.references.original.schema)

    def page_scores(self, release: Release[Content]) -> tuple[Score, ...]:
        """Those that follow from the groups of the published rows."""
        from sfumato.workflow.publishing.scoring import computed_again

        released = as_published(self.stored, self.public)
        return tuple(score for score in release.owner.scores if computed_again(score, released))

    def owner_files(self, release: Release[Content]) -> dict[str, bytes]:
        """Scores, how the search went, the whole schema and the recipe."""
        scores = [dataclasses.asdict(dataclasses.replace(score, parts=dict(score.parts))) for score in release.owner.scores]
        source = self.owners if self.references.original is None else self.references.original.schema
        return {
            "scores.json": pretty({"scores": scores, "loss_per_attribute": dict(self.loss_per_attribute)}),
            "details.json": pretty(plain_details(release.details)),
            SCHEMA: with_whole_paths(source).to_toml().encode(),
            "recipe.toml": recipe_of(release),
        }

    def owner_figures(self, release: Release[Content]) -> dict[str, str]:
        """Loss per attribute and the recodings that were looked at."""
        from sfumato.workflow.publishing.cards import figures_of_search

        return figures_of_search(self.loss_per_attribute, self.hierarchies, release.details)

    # In a stranger's folder

    @classmethod
    def files(cls, certificate: Certificate, schema: Schema) -> tuple[AbstractSet[str], AbstractSet[str]]:
        """What describes the rows, the schema, and the hierarchies that it names."""
        from sfumato.workflow.verifying.folder_parts import refuse_other_trees

        trees = {column.hierarchy.file for column in schema.columns.values() if column.hierarchy and column.hierarchy.file}
        refuse_other_trees(trees)
        return {STORED, SCHEMA, *trees}, {STORED, SCHEMA, *trees}

    @classmethod
    def refuse_other_facts(cls, certificate: Certificate, schema: Schema) -> None:
        """Checked against the words that searches and masks have."""
        from sfumato.workflow.verifying.stated.transparency import refuse_other_facts

        refuse_other_facts(certificate, schema)
        cls.refuse_other_details(certificate)

    @classmethod
    def read(
        cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand
    ) -> tuple[GroupedRows, list[Finding]]:
        """The rows by their groups, part by part or asked of the engine that holds them."""
        from sfumato.workflow.verifying import folder_parts as parts
        from sfumato.workflow.verifying.stated.transparency import check_missing_shown, check_texts, refuse_levels_not_shown

        seen = ShownParts(certificate, schema) if is_masked(certificate) else None
        stored, findings = cls._read(certificate, schema, folder, beside, each=None if seen is None else seen.add)
        findings += [] if seen is None else [PART_BY_PART, *check_missing_shown(certificate, seen.missing)]
        empty = pa.table({name: pa.array([], pa.string()) for name in stored.column_names})
        parts.refuse_names(certificate, schema, empty)
        findings.append(parts.check_schema_file(schema, list(stored.column_names), folder))
        parts.refuse_other_hierarchies(schema, folder)
        findings += parts.check_scores(certificate, as_published(stored, schema))
        described = schema.replace(folder=str(folder))
        refuse_levels_not_shown(certificate, described, stored.groups.table)
        return stored, [*findings, *check_texts(certificate, described, stored.groups.table)]

    @classmethod
    def _read(
        cls,
        certificate: Certificate,
        schema: Schema,
        folder: Path,
        beside: FolderAtHand,
        extra: Sequence[str] = (),
        each: Callable[[pa.Table], None] | None = None,
    ) -> tuple[GroupedRows, list[Finding]]:
        stated = read_description(folder / STORED, certificate)
        names = pseudonyms_of(certificate, schema)
        grouped = tuple(dict.fromkeys([*schema.quasi, *promised_columns(certificate), *extra]))
        grouped = () if is_masked(certificate) and not certificate.claims else grouped
        if "files" not in stated:
            beside.public.refuse(FOLDER)
            if beside.rows is None:
                raise InputError(
                    "the rows of this release are in a database. Name it and its table: data= and table= (--data and --table) to "
                    "verify them, data= and data_table= (--data and --data-table) to attack them"
                )
            with one_state(beside.rows) as rows:
                return asked_table(stated, schema, grouped, names, rows, each)
        if beside.rows is not None:
            raise InputError("the rows of this release are in its folder; leave data= (--data) out")
        order: dict[str, None] = {}

        def look(rows: pa.Table) -> None:
            order.update(dict.fromkeys(rows.column_names))
            if each is not None:
                each(rows)

        with beside.public.inside(FOLDER, MOST_FILES) as parts:
            read = grouped_parts(
                parts,
                stated["files"],
                schema,
                folder,
                columns=grouped,
                pseudonyms=names,
                each=look,
            )
        tied = {name: Tied(each.several_records, each.several_classes) for name, each in read.ties.items()}
        files = counted(len(stated["files"]), "file")
        text = f"{counted(stated['rows'], 'row')} in {files}: the digests of all, the order and the form are those certified"
        columns = tuple(order or schema.columns)
        if not grouped:
            return GroupedRows.without_groups(stated["rows"], columns, tied), [Finding("data", True, text)]
        return GroupedRows(read.groups, columns, tied), [Finding("data", True, text)]

    @classmethod
    def opened(cls, certificate: Certificate, schema: Schema, folder: Path, beside: FolderAtHand) -> GroupedRows | pa.Table:
        """The rows by their groups, with every sensitive column, whatever else is said about them; masked rows themselves, since
        whoever attacks a mask looks at records."""
        if is_masked(certificate):
            parts: list[pa.Table] = []
            refuse_too_many_masked(certificate, STORED)
            cls._read(certificate, schema, folder, beside, each=parts.append)
            return pa.concat_tables(parts).unify_dictionaries() if parts else pa.table({})
        return cls._read(certificate, schema, folder, beside, schema.sensitive)[0]

    @classmethod
    def check_claim(
        cls,
        claim: Claim,
        certificate: Certificate,
        schema: Schema,
        data: object,
        references: References,
    ) -> list[Finding]:
        """Stated again from its guarantee, and measured again on the groups."""
        from sfumato.workflow.verifying.claims import check_class_claim

        return check_class_claim(claim, certificate, schema, cast("GroupedRows", data), references)

    @classmethod
    def entry_facts(cls, certificate: Certificate) -> Mapping[str, Sequence[object]]:
        """Promises and numbers as the entry keeps them."""
        facts = certificate.to_mapping()
        return {
            "content": [cls.__name__],
            "sha256": [facts["files"][STORED]["sha256"]],
            "rows": [facts["files"][STORED].get("rows")],
            "claims": [plain(certificate.measured)],
            "promised": [[claim["promised"] for claim in facts["claims"]]],
            "method": [facts["method"]],
            "fingerprint": [facts["fingerprint"]],
            "schema": [without_hierarchies_in(facts["schema"])],
            "seeded": [None] if certificate.private else [True],
        }

    @classmethod
    def check_making(
        cls, certificate: Certificate, data: object, folder: Path, ledger: Ledger | str | Path | None
    ) -> Finding | None:
        """Whether the method that made rows is known at all."""
        from sfumato.workflow.verifying.stated.results import check_stated_rows

        return check_stated_rows(certificate)

    @classmethod
    def page(cls, certificate: Certificate, data: object) -> Page:
        """Classes, and the risk of somebody who is known to be among the rows."""
        from sfumato.workflow.publishing.cards import class_page

        return class_page(certificate, cast("GroupedRows", data))


def as_published(stored: GroupedRows, schema: Schema) -> ReleasedTable:
    """The grouped columns as measures of published rows see them."""
    table = stored.groups.table
    described = schema.replace(columns={name: schema.columns[name] for name in table.column_names})
    return ReleasedTable(table, described, records=stored.num_rows, counts=stored.groups.counts)
