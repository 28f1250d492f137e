"""A recipe: one TOML file that names data, schema, guarantees, method, checks and output.

The library, the command line and every later face run the same object. Paths are relative to the recipe's
folder; all faults are reported at once; names are looked up in the public table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import ConfigDict, Field, ValidationError, field_validator

from sfumato.core import registry
from sfumato.core.errors import RecipeError, SfumatoError, all_at_once, forgetting, notify
from sfumato.core.owner_files import load_toml, readable
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.core.progress import Progress, ProgressLike, shown, silent
from sfumato.data.frozen import Frozen, ReadingField
from sfumato.data.schema import Schema
from sfumato.data.texts.reading import PLAIN, Reading

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.core.guarantees.base import ClassGuarantee
    from sfumato.core.view import AnyAttack
    from sfumato.data.microdata import Microdata
    from sfumato.masking.base import Mask
    from sfumato.workflow.contents.rows import Rows
    from sfumato.workflow.contents.stored_rows import StoredRows
    from sfumato.workflow.release import Release

LEDGER = "sfumato-ledger.db"
#: Keys that say where this release went, or that it was a draft: a recipe that is kept with it makes a release elsewhere.
_OF_THIS_RELEASE = ("draft", "output", "overwrite", "write", "destination", "destination_table", "memory")


class RecipeChecks(Frozen):
    """What is measured besides the guarantees: attacks, utility and risk measures, each by name or by a table
    of name and parameters; the usual ones of the method where they are left out.
    """

    attacks: tuple[str | dict[str, Any], ...] = ()
    utility: tuple[str | dict[str, Any], ...] | None = None
    risk: tuple[str | dict[str, Any], ...] | None = None


def _without_null(name: Any) -> Any:
    """The name of a file, which no system writes with a null character."""
    if isinstance(name, str) and "\0" in name:
        raise ValueError("must be a name that a file can have, without a null character")
    return name


class Write(Frozen):
    """The database that the rows go to as well: a DuckDB file or a PostgreSQL URL, and the table there."""

    to: str = Field(min_length=1, repr=False)  # it may hold a password
    table: str = Field(default="release", min_length=1)
    overwrite: bool = False

    _no_null = field_validator("to")(_without_null)


class Recipe(Frozen):
    """Everything that is needed to make a release again.

    `ledger = false` leaves the release out of any ledger; otherwise it is entered in the file named (by
    default one beside the recipe) or the database behind a URL. `seed` makes the run repeatable and the
    release a demonstration. `sign` names the file of a signing key, `key` that of the owner's key for
    fingerprints and pseudonyms. `least_level` and `greatest_level` limit how far columns are generalised, over
    what the schema says. `population_public` declares that everybody can have the population. `write` puts
    the rows into a database too, `answers` answers the questions of the checklist that no program can. `destination` lets the
    engine that holds the table write the rows itself, into a folder or into the table `destination_table` of a database, with
    no row in this process; `memory` is what the cells of the table may take here. `engine` says where a file is read,
    and `read` how, over what the schema says.
    `sample` protects so many of the records in this process. A `draft` is made to be looked at, and entered nowhere.
    """

    model_config = ConfigDict(populate_by_name=True)

    data: str = Field(min_length=1)
    schema_file: str = Field(alias="schema", min_length=1)
    guarantee: tuple[dict[str, Any], ...] = ()
    method: dict[str, Any] | None = None
    checks: RecipeChecks = RecipeChecks()
    read: ReadingField = PLAIN
    table: str | None = None
    least_level: dict[str, int] = Field(default_factory=dict)
    greatest_level: dict[str, int] = Field(default_factory=dict)
    population: str | None = None
    population_public: bool = False
    output: str | None = None
    write: Write | None = None
    destination: str | None = None
    destination_table: str | None = None
    memory: str | None = None
    sample: int | None = Field(default=None, ge=1)
    engine: Literal["memory", "duckdb", "postgres", "spark"] | None = None
    format: Literal["parquet", "csv"] = "parquet"
    overwrite: bool = False
    ledger: str | bool = LEDGER
    draft: bool = False
    seed: int | str | None = None
    sign: str | None = None
    key: str | None = None
    answers: dict[str, Any] = Field(default_factory=dict)
    folder: str | None = Field(default=None, exclude=True)

    _no_null = field_validator("data", "schema_file", "population", "output", "destination", "ledger", "sign", "key")(
        _without_null
    )

    @classmethod
    @forgetting()
    def load(cls, path: str | Path, *, notice: Callable[[str], object] = notify) -> Recipe:
        """Read a recipe from a TOML file; `notice` hears of parameters that had another name when it was written."""
        file = Path(path)
        content = load_toml(file, RecipeError, "recipe", "docs/recipes.md shows one to start from.")
        method = content.get("method")
        if isinstance(method, Mapping) and (restated := registry.in_names_of_now("method", method)) != method:
            content = {**content, "method": restated}
            for hint in _fault(partial(registry.make, "method", method), str(file)):
                notice(hint)
        return cls.parse(content, folder=file.resolve().parent, name=str(file))

    @classmethod
    @forgetting()
    def parse(cls, content: Plain, *, folder: Path | None = None, name: str = "recipe") -> Recipe:
        """Validate a mapping: its form, then every name and parameter in it; all faults at once."""
        try:
            recipe = cls.model_validate({**content, "folder": str(folder) if folder else None})
        except ValidationError as error:
            keys = {field.alias or key for key, field in cls.model_fields.items()} - {"folder"}
            below = {*RecipeChecks.model_fields, *Write.model_fields, *Reading.names()}
            faults = readable(error.errors(), "recipe", {*keys, *below}, keys, dict.fromkeys(Reading.names(), "read"))
            all_at_once(
                RecipeError, name, [*faults, *_promises_nothing(content), *_faults_of_schema(content.get("schema"), folder)]
            )
            raise
        recipe._check_names(name)
        return recipe

    def guarantees(self) -> tuple[ClassGuarantee, ...]:
        """The guarantees as values."""
        from sfumato.workflow import named

        return named.guarantees(self.guarantee, "recipe")

    def search(self) -> Search | Mask | None:
        """The method as a value; None stands for the default."""
        from sfumato.workflow import named

        return None if self.method is None else named.method(self.method)

    def attacks(self) -> tuple[AnyAttack, ...]:
        """The attacks as values."""

        return tuple(registry.make("attack", entry) for entry in self.checks.attacks)

    def people(self) -> Microdata:
        """The table that it names, read as it says."""
        from sfumato.engines.sources import read

        how = self.read.to_mapping()
        return read(self.place(self.data), self.place(self.schema_file), table=self.table, engine=self._engine(), **how)

    def run(self, progress: ProgressLike = silent, *, strict: bool = False) -> Release[Rows | StoredRows]:
        """Make the release and, where the recipe names an output, save it there; `progress=True` shows a bar.
        `strict` refuses it, before anything is written or entered, unless its verdict will be `kept`."""
        with shown(progress) as receiver:
            return self._run(receiver, strict)

    def _run(self, progress: Progress, strict: bool) -> Release[Rows | StoredRows]:
        from sfumato.engines.write import check_destination
        from sfumato.workflow.protect import protect
        from sfumato.workflow.publishing.appearing import check_place
        from sfumato.workflow.publishing.saving import signing_key

        self._refuse_what_does_not_fit_a_destination()
        folder = self.destination_folder()
        output = None if self.output is None or folder is not None else Path(self.place(self.output))
        # places are checked before the long work, and again when it is saved
        if output is not None:
            check_place(output, overwrite=self.overwrite)
        if self.write is not None:
            check_destination(self.place(self.write.to), table_name=self.write.table, overwrite=self.write.overwrite)
        sign = None if self.sign is None else Path(self.place(self.sign))
        signing_key(sign)
        people = self.people()
        stored: dict[str, Any] = {}
        if self.destination is not None:
            stored = {"destination": self.place(self.destination), "table_name": self.destination_table, "memory": self.memory}
            stored |= {"overwrite": self.overwrite, "sign": sign if folder is not None else None}
        release = protect(
            people.with_schema(people.schema.with_levels(self.least_level, self.greatest_level)),
            self.guarantees(),
            self.search(),
            population=None if self.population is None else self.place(self.population),
            population_public=self.population_public,
            ledger=self.ledger_place(),
            utility=self.checks.utility,
            risk=self.checks.risk,
            attacks=self.attacks(),
            answers=self.answers,
            seed=self.seed,
            key=None if self.key is None else Path(self.place(self.key)),
            recipe=self.kept(),
            sample=self.sample,
            draft=self.draft,
            strict=strict,
            progress=progress,
            **stored,
        )
        if output is not None:
            progress("saving", 0, 1)
            release.save(output, format=self.format, overwrite=self.overwrite, sign=sign)
            progress("saving", 1, 1)
        if self.write is not None:  # after the certificate: rows in a database say nothing about themselves
            progress("writing to the database", 0, 1)
            release.write(self.place(self.write.to), table_name=self.write.table, overwrite=self.write.overwrite)
            progress("writing to the database", 1, 1)
        return release

    def _refuse_what_does_not_fit_a_destination(self) -> None:
        """Keys that contradict each other about where rows go, all at once."""
        from sfumato.workflow.publishing.saving import DRAFT_IN_A_DATABASE

        if self.destination is None:
            spare = [name for name in ("destination_table", "memory") if getattr(self, name) is not None]
            faults = [f"{name} is about a destination: name one, or leave it out" for name in spare]
        else:
            faults = ["write puts rows of this process into a database; with a destination the engine writes them: leave one out"]
            faults = faults if self.write is not None else []
            if self.destination_folder() is not None and self.output is not None:
                faults.append("destination is the folder of the whole release: leave output (-o) out")
            if self.format != "parquet":
                faults.append("with a destination rows are written as Parquet, or into a table: leave format out")
        if self.draft and self.write is not None:
            faults.append(f"write: {DRAFT_IN_A_DATABASE}")
        all_at_once(RecipeError, "where rows go", faults)

    def destination_folder(self) -> Path | None:
        """The folder in which the engine writes the whole release; None for a table of a database, or without a destination."""
        if self.destination is None:
            return None
        from sfumato.engines.staging.destinations import ParquetFolder, destination_of

        place = destination_of(self.place(self.destination), self.destination_table)
        return place.path if isinstance(place, ParquetFolder) else None

    def _engine(self) -> Literal["memory", "duckdb", "postgres", "spark"] | None:
        """Where the table is read: rows of a file stay in it where an engine writes the release."""
        from sfumato.engines.sources import LAZY_FILES

        if self.engine is None and self.destination is not None and Path(self.data).suffix.lower() in LAZY_FILES:
            return "duckdb"
        return self.engine

    def with_changes(self, changes: Plain) -> Recipe:
        """The same recipe with some keys changed, checked again as a whole."""
        content = self.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
        return self.parse({**content, **changes}, folder=None if self.folder is None else Path(self.folder))

    def ledger_place(self) -> str | None:
        """The ledger's file or URL; None when the recipe says `ledger = false`."""
        if isinstance(self.ledger, bool):
            return self.place(LEDGER) if self.ledger else None
        return self.place(self.ledger)

    def place(self, name: str) -> str:
        """A path relative to the recipe's folder; URLs and absolute paths stay as they are."""
        if "://" in name or name.startswith("spark:") or self.folder is None or Path(name).is_absolute():
            return name
        return str(Path(self.folder) / name)

    def kept(self) -> PlainDict:
        """The recipe as it is kept with the owner's files, where it runs as it is: beside the schema, other files by their whole
        path, and without the places that this release went to."""
        listed = {name: value for name, value in self.to_mapping().items() if name not in _OF_THIS_RELEASE}
        ledger = self.ledger_place()
        places: dict[str, str] = {name: listed[name] for name in ("data", "population", "sign", "key") if name in listed}
        places |= {} if ledger is None else {"ledger": without_secrets(ledger)}
        whole = {name: each if "://" in each else str(Path(self.place(each)).absolute()) for name, each in places.items()}
        return {**listed, **whole, "schema": "schema.toml"}

    def to_mapping(self) -> PlainDict:
        """The recipe as plain data, passwords in URLs left out."""
        listed = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
        for name in ("data", "population", "ledger", "destination"):
            if isinstance(listed.get(name), str):
                listed[name] = without_secrets(listed[name])
        listed.setdefault("ledger", self.ledger)  # said even where it is the default: a default may change
        if self.write is not None:
            listed["write"]["to"] = without_secrets(self.write.to)
        return listed

    def __repr_args__(self) -> list[tuple[str | None, object]]:
        return list(self.to_mapping().items())  # without passwords

    def _check_names(self, heading: str) -> None:
        from sfumato.report.checklist import answer_faults
        from sfumato.workflow import named

        wanted: list[tuple[str, Callable[[], object]]] = [
            (f"guarantee {position}", partial(named.guarantee, entry)) for position, entry in enumerate(self.guarantee, 1)
        ]
        wanted.append(("method", self.search))
        wanted += [("checks.attacks", partial(registry.make, "attack", entry)) for entry in self.checks.attacks]
        for room, asked in (("checks.utility", self.checks.utility), ("checks.risk", self.checks.risk)):
            wanted += [(room, partial(registry.make, "measure", entry)) for entry in asked or ()]
        faults = [fault for where, make in wanted for fault in _fault(make, where)]
        faults += [f"answers: {fault}" for fault in answer_faults(self.answers)]
        faults += _promises_nothing({"guarantee": self.guarantee, "method": self.method})
        faults += _faults_of_schema(self.schema_file, None if self.folder is None else Path(self.folder))
        all_at_once(RecipeError, heading, faults)


def without_secrets(name: str) -> str:
    """A URL without its password and parameters; any other text as it is."""
    if "://" not in name:
        return name
    try:
        parts = urlsplit(name)
        host = parts.hostname or ""
        if parts.port:
            host += f":{parts.port}"
    except ValueError:
        return f"{name.split('://')[0]}://…"
    if "@" in parts.path or "@" in host:  # a malformed URL: a piece of the password may be there
        return f"{parts.scheme}://…"
    user = f"{parts.username}@" if parts.username else ""
    return urlunsplit((parts.scheme, user + host, parts.path, "", ""))


def _promises_nothing(content: Mapping[str, Any]) -> list[str]:
    method = content.get("method")
    if content.get("guarantee") or (isinstance(method, Mapping) and registry.has("mask", method.get("name"))):
        return []
    return ["guarantee: name at least one, for instance KAnonymity with k = 5; only masks go without"]


def _faults_of_schema(name: object, folder: Path | None) -> list[str]:
    """What is wrong with the schema that a recipe names, said together with what is wrong with the recipe; a file that is not
    there yet is refused when it is needed."""
    if not isinstance(name, str) or not name or "\0" in name:
        return []
    place = Path(folder or ".") / name
    try:
        if place.is_file():
            Schema.load(place)
    except SfumatoError as error:
        return list(error.faults) or [str(error)]
    except OSError:  # a name that no file can have
        return []
    return []


def _fault(make: Callable[[], object], where: str) -> list[str]:
    try:
        make()
    except SfumatoError as error:
        return [f"{where}: {error}"]
    return []
