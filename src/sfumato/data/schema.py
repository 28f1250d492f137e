"""The schema of a dataset: what each column is, what may be in it, and which part it plays.

Written in TOML or Python, frozen, unknown keys refused, all faults reported at once, no data value echoed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, PrivateAttr, ValidationError, field_validator, model_validator

from sfumato.core.errors import MissingColumn, SchemaError, all_at_once, forgetting
from sfumato.core.markup import shorten
from sfumato.core.owner_files import load_toml, readable
from sfumato.core.texts import text_list
from sfumato.data.frozen import Frozen as Frozen
from sfumato.data.frozen import ReadingField
from sfumato.data.publication import NOTHING_SAID, Publication
from sfumato.data.texts.reading import PLAIN, Reading

Role = Literal["identifier", "quasi", "sensitive", "plain", "weight", "unit"]
Type = Literal["string", "integer", "number", "boolean", "date", "datetime"]
#: What a schema may declare: the types in which values are held, and codes of categories, which are held as texts.
DeclaredType = Literal["string", "integer", "number", "boolean", "date", "datetime", "category"]
Source = Literal["declared", "data"]


_WIDEST = 1e300


#: The most codes for no value that a column has, those of the whole table included.
MOST_CODES = 10_000
#: The ways to describe a hierarchy, by the fields of a description.
HIERARCHY_KINDS = ("file", "tree", "intervals", "cuts", "mask", "dates", "frequency", "flat")


class HierarchySpec(Frozen):
    """How a column generalises. Exactly one of the first eight is given.

    `file`: CSV, one leaf per row, one level per column. `tree`: nested tables, leaves as lists. `intervals`: nested
    widths, half-open, counted from `origin`. `cuts`: where half-open intervals meet; each further level drops every second cut,
    and the outermost intervals have no end. `mask`: replace characters from the `right` or `left`, one per level.
    `dates`: units from fine to coarse. `frequency`: group sizes, most frequent values first. `flat`: the value or
    `*`. With `ranges` the default search may show ranges of an ordered column that are no nodes of the hierarchy.
    """

    file: str | None = None
    tree: dict[str, Any] | None = None
    intervals: tuple[float, ...] | None = None
    cuts: tuple[float, ...] | None = None
    mask: Literal["right", "left"] | None = None
    dates: tuple[Literal["week", "month", "quarter", "year", "decade", "century"], ...] | None = None
    frequency: tuple[int, ...] | None = None
    flat: bool | None = None
    separator: str | None = None  # of `file`; `;` or `,` is detected
    origin: float = Field(default=0.0, allow_inf_nan=False)  # of `intervals`
    width: int | None = Field(default=None, ge=0, le=10_000)  # of `mask`: pad to this many characters
    alphabet: int | None = Field(
        default=None, ge=0, le=2_000_000
    )  # of `mask`: size of the full domain per masked character (10 for digits)
    ranges: bool = False  # of an ordered column: the default search may show narrower ranges of its own
    missing: Literal["refuse", "root"] = "refuse"  # values not in the hierarchy: an error, or a leaf right below the root
    leaves: Literal["declared", "data"] = "declared"  # of `file`: declared, or the values that occur
    _verbatim: bool = PrivateAttr(default=False)

    @property
    def verbatim(self) -> bool:
        """Whether blanks around the labels of `file` belong to them: in a file of a release, which nobody writes by hand."""
        return self._verbatim

    @property
    def kind(self) -> str:
        """Which of the kinds it is."""
        return next(kind for kind in HIERARCHY_KINDS if getattr(self, kind) not in (None, False))

    @property
    def has_numbers(self) -> bool:
        """Whether numbers describe it: whoever proposes them from the data has learnt something from every record."""
        return self.kind in ("intervals", "cuts") or self.width is not None

    @property
    def made_of_values(self) -> bool:
        """Whether the tree itself depends on which values occur, and how often, whoever wrote its description."""
        return self.kind == "frequency" or (self.kind == "mask" and self.width is None) or self.leaves == "data"

    @property
    def cut_levels(self) -> tuple[tuple[float, ...], ...]:
        """The cuts of each level, from fine to coarse."""
        levels, cuts = [], self.cuts or ()
        while cuts:
            levels.append(cuts)
            cuts = cuts[1::2]
        return tuple(levels)

    def of_a_release(self) -> HierarchySpec:
        """The same description of a file that a release published."""
        same = self.model_copy()
        same._verbatim = True
        return same

    @model_validator(mode="after")
    def _one_kind(self) -> HierarchySpec:
        if sum(getattr(self, kind) not in (None, False) for kind in HIERARCHY_KINDS) != 1:
            raise ValueError(f"a hierarchy is exactly one of {', '.join(HIERARCHY_KINDS[:-1])} or flat = true")
        for widths, what in ((self.intervals, "intervals"), (self.frequency, "frequency")):
            sound = widths and all(0 < width <= _WIDEST for width in widths) and list(widths) == sorted(set(widths))
            if widths is not None and not sound:
                raise ValueError(f"{what} must be a list of growing positive numbers, none above {_WIDEST:.0e}")
        if self.leaves == "data" and self.file is None:
            raise ValueError('leaves = "data" is for a hierarchy in a file, whose values were listed from the data')
        if self.cuts is not None and not (
            self.cuts and all(abs(cut) <= _WIDEST for cut in self.cuts) and list(self.cuts) == sorted(set(self.cuts))
        ):
            raise ValueError(f"cuts must be a list of growing numbers, none beyond {_WIDEST:.0e}")
        for widths in (self.intervals, self.frequency):
            if widths and any(abs(b / a - round(b / a)) > 1e-9 for a, b in zip(widths, widths[1:], strict=False)):
                raise ValueError("each width must be a multiple of the one before, so that the groups nest")
        return self


class Column(Frozen):
    """One column: its `role`, `type`, what it may contain and how it generalises.

    `type = "category"` says that whole numbers are codes: they are kept as they are written and nobody computes with them.
    `source` says where type, bounds, domain and order come from: `declared` by the owner or learnt from the `data`. `importance`
    weighs the column in the loss. `missing` lists codes that mean "no value". `order` lists the values of an
    ordered category. `items` is the separator of a set-valued column, for instance `|`; its hierarchy is then one
    of single items. A quasi-identifier is generalised at least to `least_level` of its hierarchy and at most to
    `greatest_level`, in every search.
    `one_per_unit` declares that a unit has the same value in all its rows of this table (a year of birth):
    questions then take one value for all of a unit's rows, so that conditions on the column separate units.
    """

    role: Role = "plain"
    type: DeclaredType | None = None
    bounds: tuple[float, float] | None = None
    domain: tuple[str, ...] | None = None
    order: tuple[str, ...] | None = None
    source: Source = "declared"
    hierarchy: HierarchySpec | None = None
    importance: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    missing: tuple[str, ...] = ()
    label: str | None = None
    labels: dict[str, str] | None = None  # value labels of statistical packages
    pseudonym: bool = False  # of an identifier: replace by a keyed pseudonym instead of dropping it
    items: str | None = Field(default=None, min_length=1, max_length=3)
    least_level: int = Field(default=0, ge=0, le=10_000)
    greatest_level: int | None = Field(default=None, ge=0, le=10_000)
    one_per_unit: bool = False  # every unit has one value here; questions fix it where its rows differ

    @property
    def stored_type(self) -> Type | None:
        """The type in which the values are held: codes of categories are texts."""
        return "string" if self.type == "category" else self.type

    @property
    def declared_order(self) -> tuple[str, ...] | None:
        """The order, unless it was learnt from the data and is that of the numbers: its values are values of records."""
        return None if self.source == "data" and _in_order_of_numbers(self.order) else self.order

    @model_validator(mode="before")
    @classmethod
    def _file_name_as_hierarchy(cls, entry: Any) -> Any:
        if isinstance(entry, Mapping) and isinstance(entry.get("hierarchy"), str):
            return {**entry, "hierarchy": {"file": entry["hierarchy"]}}
        return entry

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Role, type and how it generalises: bounds, domain and order may be values of records."""
        yield from (("role", self.role), *([("type", self.type)] if self.type is not None else []))
        if self.hierarchy is not None:
            yield "hierarchy", self.hierarchy.kind

    @field_validator("missing", mode="before")
    @classmethod
    def _codes_as_texts(cls, codes: Any) -> Any:
        """A whole number is a code too."""
        if not isinstance(codes, (list, tuple)):
            return codes
        return [str(code) if isinstance(code, int) and not isinstance(code, bool) else code for code in codes]

    @model_validator(mode="after")
    def _consistent(self) -> Column:
        if self.bounds is not None and not self.bounds[0] <= self.bounds[1]:  # so that "not a number" is refused too
            raise ValueError("the lower bound is above the upper bound")
        if self.pseudonym and self.role not in ("identifier", "unit"):
            raise ValueError("pseudonym = true is for identifiers and units")
        if self.bounds is not None and self.type in ("string", "boolean", "category"):
            raise ValueError("bounds are for numbers; use domain for values")
        if len(self.missing) > MOST_CODES:
            raise ValueError(f"more than {MOST_CODES:,} codes for no value")
        if self.items is not None:
            self._check_items()
        if fault := self.level_fault():
            raise ValueError(fault)
        return self

    def level_fault(self) -> str | None:
        """What is wrong with the limits of levels, if something is."""
        if not self.least_level and self.greatest_level is None:
            return None
        if self.role != "quasi":
            return 'least_level and greatest_level are for columns that are generalised, with role = "quasi"'
        if self.items is not None:
            return "least_level and greatest_level are for single values; the items of sets are mended one by one"
        if self.greatest_level is not None and self.greatest_level < self.least_level:
            return f"greatest_level = {self.greatest_level} is below least_level = {self.least_level}"
        return None

    def _check_items(self) -> None:
        if self.role not in ("quasi", "sensitive", "plain") or self.type != "string":
            raise ValueError('items are for columns of type "string" with the role quasi, sensitive or plain')
        if self.items != (self.items or "").strip():
            raise ValueError("the separator of items cannot begin or end with white space")
        if self.order is not None or self.domain is not None:
            raise ValueError("order and domain describe single values; list the items of sets in a hierarchy")
        if self.hierarchy is not None and self.hierarchy.kind == "frequency":
            raise ValueError("items cannot be grouped by frequency; give a file, a tree or a mask of single items")


#: Keys of the reading and of the publication that no column has too.
_SECTIONS = {
    name: section
    for section, names in (("read", Reading.names()), ("publication", Publication.model_fields))
    for name in names
    if name not in (*Column.model_fields, *HierarchySpec.model_fields)
}


class Schema(Frozen):
    """The columns of a dataset, by name, and the dataset id that releases and budgets belong to.

    `unlisted` says what `protect` does with columns of the data that are not described here: `refuse` (the default,
    because an undescribed column may identify people), `drop`, or publish as `plain`. `unit="record"` is the owner's word
    that no person has more than one row; where people may have several, a column with the role `unit` names them. `ledger` is
    the id of the ledger that keeps the dataset's account, as `sfumato ledger grant` tells it: a session that charges another
    one warns. `read` says how the texts of the table are to be read, in whatever file or frame they are. `publication` is what
    the card of every release says about who publishes it and for what.
    `roles="proposed"` says that `inspect` wrote the roles and nobody has confirmed them, which every release is warned about.

    >>> Schema(dataset="staff", unit="record", columns={"name": Column(role="identifier")}).each_record_is_a_unit
    True
    """

    dataset: str = Field(default="unnamed", min_length=1, max_length=200)
    declared_unit: Literal["record"] | None = Field(default=None, alias="unit")
    columns: dict[str, Column] = Field(default_factory=dict)
    ledger: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    read: ReadingField = PLAIN
    publication: Publication = NOTHING_SAID
    unlisted: Literal["refuse", "drop", "plain"] = "refuse"
    roles: Literal["proposed", "confirmed"] = "confirmed"
    folder: str | None = Field(default=None, exclude=True)  # where hierarchy files are looked up

    def __repr__(self) -> str:
        roles = [f"{len(names)} {role}" for role in get_args(Role) if (names := self.with_role(role))]
        return f"Schema('{shorten(self.dataset, 60)}', {len(self.columns)} columns: {', '.join(roles) or 'none'})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from sfumato.core.markup import table
        from sfumato.core.panel import panel

        unit = "each record" if self.each_record_is_a_unit else self.unit or "not declared"
        rows = [
            (shorten(name, 80), column.role, column.type or "", "" if column.hierarchy is None else column.hierarchy.kind)
            for name, column in self.columns.items()
        ]
        facts = [("dataset", shorten(self.dataset, 200)), ("unit", shorten(unit, 80))]
        return panel("Schema", facts, table("Columns", ("column", "role", "type", "hierarchy"), rows))

    @field_validator("declared_unit", mode="before")
    @classmethod
    def _record_or_nothing(cls, unit: Any) -> Any:
        if unit not in (None, "record"):
            raise ValueError('only "record" stands here; the column that names the unit is declared by role = "unit"')
        return unit

    @classmethod
    @forgetting()
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file; hierarchy files are looked up beside it."""
        file = Path(path)
        content = load_toml(file, SchemaError, "schema", "`sfumato inspect DATA` writes one to start from.")
        return cls.parse(content, folder=file.resolve().parent, name=str(file))

    @classmethod
    @forgetting()
    def parse(cls, content: Mapping[str, object], *, folder: Path | None = None, name: str = "schema") -> Schema:
        """Validate a mapping; all faults are reported at once, with their path, without their values."""
        try:
            return cls.model_validate({**content, "folder": str(folder) if folder else None})
        except ValidationError as error:
            fields = {field.alias or name for name, field in cls.model_fields.items()}
            keys = {*fields, *Column.model_fields, *HierarchySpec.model_fields, *Reading.names(), *Publication.model_fields}
            keys -= {"folder"}
            all_at_once(SchemaError, name, readable(error.errors(), "schema", keys, fields - {"columns"}, _SECTIONS))
            raise

    @classmethod
    def of(
        cls,
        dataset: str = "unnamed",
        *,
        quasi: Iterable[str] = (),
        sensitive: Iterable[str] = (),
        identifier: Iterable[str] = (),
        plain: Iterable[str] = (),
        unlisted: Literal["refuse", "drop", "plain"] = "refuse",
        unit: Literal["record"] | None = None,
    ) -> Schema:
        """A schema from lists of names, every hierarchy flat (the value or `*`)."""
        groups: dict[Role, Iterable[str]] = {"quasi": quasi, "sensitive": sensitive, "identifier": identifier, "plain": plain}
        columns = {name: Column(role=role) for role, names in groups.items() for name in names}
        return cls(dataset=dataset, columns=columns, unlisted=unlisted, unit=unit)

    def with_role(self, role: Role) -> tuple[str, ...]:
        """The names of the columns that play this role, in schema order."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return self.with_role("quasi")

    @property
    def set_valued(self) -> tuple[str, ...]:
        """The quasi-identifiers whose values are sets of items."""
        return tuple(name for name in self.quasi if self.columns[name].items is not None)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive attributes."""
        return self.with_role("sensitive")

    @property
    def unit(self) -> str | None:
        """The column that names the person behind a record, if there is one."""
        units = self.with_role("unit")
        return units[0] if units else None

    @property
    def each_record_is_a_unit(self) -> bool:
        """True where the owner declared it: `unit = "record"`."""
        return self.declared_unit is not None

    @property
    def weight(self) -> str | None:
        """The survey weight, if there is one."""
        weights = self.with_role("weight")
        return weights[0] if weights else None

    @model_validator(mode="after")
    def _one_unit_one_weight(self) -> Schema:
        for role in ("unit", "weight"):
            if sum(column.role == role for column in self.columns.values()) > 1:
                raise ValueError(f"at most one column may have the role '{role}'")
        if self.declared_unit is not None and self.unit is not None:
            raise ValueError(
                f"unit = \"record\" says that no person has several rows, and column '{self.unit}' has the role unit, which says "
                "that they may. Keep one of the two"
            )
        return self

    def require_columns(self, present: Iterable[str], where: str = "the data") -> None:
        """All described columns must be present; every missing one is named, with the nearest name there is."""
        import difflib

        names = list(present)
        faults = []
        for name in self.columns:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
                hint = f" (nearest: '{near[0]}')" if near else ""
                faults.append(f"column '{name}' is in the schema but not in {where}{hint}")
        all_at_once(MissingColumn, f"schema '{self.dataset}'", faults)

    def with_levels(self, least: Mapping[str, int] | None = None, greatest: Mapping[str, int] | None = None) -> Schema:
        """A copy with the least and the greatest hierarchy level of some columns; all faults at once.

        >>> ages = Schema(columns={"age": Column(role="quasi", hierarchy=HierarchySpec(intervals=(5, 10)))})
        >>> ages.with_levels(least={"age": 1}).columns["age"].least_level
        1
        """
        from sfumato.data.hierarchies.level_limits import limited_columns

        return self.replace(columns=limited_columns(self, least or {}, greatest or {}))

    @property
    def limits_levels(self) -> bool:
        """Whether a column has a least or a greatest level."""
        return any(column.least_level or column.greatest_level is not None for column in self.columns.values())

    def read_as(self, reading: Reading) -> Schema:
        """A copy for a table that is read so: the codes that mean "no value" everywhere are codes of each column."""
        columns = self.columns
        if reading.missing:
            codes = {name: tuple(dict.fromkeys([*column.missing, *reading.missing])) for name, column in columns.items()}
            if many := [name for name, listed in codes.items() if len(listed) > MOST_CODES]:
                raise SchemaError(f"more than {MOST_CODES:,} codes for no value: {', '.join(many)}")
            columns = {name: column.model_copy(update={"missing": codes[name]}) for name, column in columns.items()}
        return self.replace(columns=columns, read=reading)

    def replace(self, **changes: object) -> Schema:
        """A copy with some fields changed."""
        if "unit" in changes:
            changes["declared_unit"] = changes.pop("unit")
        return self.model_copy(update=changes)

    def to_toml(self, reasons: Mapping[str, str] | None = None) -> str:
        """The schema as a TOML file, ready to edit; `reasons`, by column, stand as comments beside their names."""
        import tomlkit

        document = tomlkit.document()
        document["dataset"] = self.dataset
        if self.declared_unit is not None:
            document["unit"] = self.declared_unit
        if self.roles == "proposed":
            document["roles"] = self.roles
        if self.ledger is not None:
            document["ledger"] = self.ledger
        if self.unlisted != "refuse":
            document["unlisted"] = self.unlisted
        if self.read is not PLAIN and (reading := self.read.to_mapping()):
            stated = tomlkit.table()
            for key, value in reading.items():
                stated[key] = text_list(value) if key == "missing" else value
            document["read"] = stated
        if publication := self.publication.model_dump(exclude_none=True):
            document["publication"] = publication
        columns = tomlkit.table(is_super_table=True)
        for name, column in self.columns.items():
            entry = tomlkit.table()
            if reasons is not None and name in reasons:
                entry.comment("".join(letter if letter.isprintable() else " " for letter in reasons[name]))
            for key, value in column.model_dump(exclude_defaults=True, exclude_none=True).items():
                if key == "hierarchy":
                    inline = tomlkit.inline_table()
                    inline.update(_listed(value))
                    entry[key] = inline
                elif key in ("domain", "order", "missing"):
                    entry[key] = text_list(value)
                elif key != "role":
                    entry[key] = _listed(value)
            entry["role"] = column.role
            columns[name] = entry
        document["columns"] = columns
        return tomlkit.dumps(document)


def _in_order_of_numbers(order: Sequence[str] | None) -> bool:
    """Whether the values are whole numbers that grow, so that nobody has to be told their order."""
    if order is None or not all(value.removeprefix("-").isdecimal() for value in order):
        return False
    numbers = [int(value) for value in order]
    return numbers == sorted(set(numbers))


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, (tuple, list)):
        return [_listed(entry) for entry in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value
