"""Inspect a source before anything is protected: profile it and, on request, write a schema to start from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InputError, SourceError, forgetting
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.profiling.profile import Profile, profile_table
from sfumato.data.profiling.suggested_reading import SuggestedReading
from sfumato.data.schema import Column, Role, Schema
from sfumato.data.texts.reading import PLAIN, stated_reading
from sfumato.data.texts.values import texts

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike


@forgetting()
def inspect(
    source: TableLike,
    *,
    schema_out: str | Path | None = None,
    table: str | None = None,
    dataset: str | None = None,
    overwrite: bool = False,
    quasi: Iterable[str] | None = None,
    **options: Any,  # those of `read`
) -> Profile:
    """Profile a file, a DataFrame, a database table, or microdata as they were read.

    How its texts are written (separator, decimal mark, dates, codes for no value) is found out, unless an option such as
    `decimal=","` says it; `profile.reading` has what speaks for it and against it. With `schema_out` a starting schema is
    written there; an existing file is kept unless `overwrite` is given. `quasi` names the columns to generalise, where their
    owner has decided; without it all that an outsider may know are. `dataset` is the id that releases belong to, by default the
    source's name. What the profile says is the owner's: it describes the original data.
    """
    target = Path(schema_out) if schema_out is not None else None
    if target is not None and target.exists() and not overwrite:
        raise InputError(f"'{target}' exists already. Edit it, name another file, or ask for it to be overwritten.")
    chosen = None if quasi is None else (quasi,) if isinstance(quasi, str) else tuple(quasi)
    data, reading = _look(source, table, options)
    refuse_record_for_names(data)
    profile = replace(profile_table(data), reading=reading)
    if target is not None:
        write_schema(profile, target, dataset or dataset_id(source, table), chosen)
    return profile


def suggested(source: TableLike, table: str | None = None, **reading: object) -> Microdata:
    """The table with the roles that its profile suggests, for a first look; its owner should check them."""
    from sfumato.data.profiling.suggested_schema import starting_schema
    from sfumato.engines.sources import read

    data, suggestion = _look(source, table, reading)
    refuse_record_for_names(data)
    profile = replace(profile_table(data), reading=suggestion)
    return read(source, starting_schema(profile, dataset_id(source, table)), table=table)


def with_roles(source: TableLike, roles_of: Callable[[Sequence[str]], Mapping[str, Role]]) -> Microdata:
    """The table with roles that its owner decided, by the names of its columns; types and hierarchies follow from its values."""
    from sfumato.data.profiling.suggested_schema import starting_schema
    from sfumato.engines.sources import read

    source = source.read_all() if hasattr(source, "read_all") else source  # it can be read once
    data, suggestion = _look(source, None, {})
    if data.relation.engine != "memory":
        raise InputError("rows that stay in their engine are described by a schema: pass schema= in place of lists of columns")
    refuse_record_for_names(data)
    roles = roles_of(data.column_names)
    profile = replace(profile_table(data), reading=suggestion)
    decided = tuple(replace(column, role=roles[column.name], reason="its owner decided so") for column in profile.columns)
    schema = starting_schema(replace(profile, columns=decided), dataset_id(source))
    return read(source, schema.replace(unit=None))  # whether a person has one row alone is the owner's to say


def _look(source: TableLike, table: str | None, options: Plain) -> tuple[Microdata, SuggestedReading]:
    """The table, its texts read as they seem to be written, and why; under a schema as that says, in an engine in plain forms."""
    from sfumato.data.profiling.suggested_reading import suggest_reading
    from sfumato.data.readers.files import form_reasons, is_text_file, one_record_a_line
    from sfumato.engines.sources import read, retyped

    if isinstance(source, Microdata):
        if table is not None or options:
            named = ", ".join(sorted([*options, *(["table"] if table is not None else [])]))
            raise InputError(f"the table was read before, and {named} would say how to read it. Say so in sf.read")
        return source, _as_declared(source)
    source = source.read_all() if hasattr(source, "read_all") else source  # it can be read once
    stated = stated_reading(options)
    if {"schema", "as_text"} & options.keys() or options.get("engine") not in (None, "memory"):
        data = read(source, table=table, **options)
        return data, _as_declared(data)
    if table is None and isinstance(source, (str, Path)) and is_text_file(source):
        texts = read(source, as_text=True, **options)
        first_line = 2 if one_record_a_line(source, len(texts)) else None
        suggestion = suggest_reading(texts.table(), stated, first_line=first_line)
        form = {name: getattr(texts.schema.read, name) for name in ("separator", "encoding")}
        reading = suggestion.reading.overridden(form)
        reasons = {**form_reasons(source, texts.schema.read, stated), **suggestion.reasons}
        columns = {name: Column(missing=codes) for name, codes in suggestion.codes.items()}
        return retyped(texts, Schema(columns=columns, read=reading)), replace(suggestion, reading=reading, reasons=reasons)
    opened = read(source, table=table, **options)
    suggestion = suggest_reading(opened.table(), stated) if opened.relation.engine == "memory" else SuggestedReading()
    columns = _typed_columns(opened, suggestion)
    if not columns and not suggestion.reading.missing:
        return opened, suggestion
    again = read(source, Schema(columns=columns, read=suggestion.reading), table=table, **options)
    return replace(again, inferred=again.inferred | columns.keys()), suggestion


def _as_declared(data: Microdata) -> SuggestedReading:
    return SuggestedReading(data.schema.read, dict.fromkeys(data.schema.read.to_mapping(), "as the schema says"))


def _typed_columns(opened: Microdata, suggestion: SuggestedReading) -> dict[str, Column]:
    """Columns of texts in a frame that are numbers or dates as they seem to be written, and those with codes of their own."""
    from sfumato.data.texts.column_types import readable_as
    from sfumato.data.texts.values import CodedText

    columns: dict[str, Column] = {}
    for name in opened.column_names if suggestion.reading != PLAIN or suggestion.codes else ():
        field = opened.relation.schema().field(name)
        codes = suggestion.codes.get(name, ())
        kind = None
        if str(field.type).startswith("dictionary"):
            text = CodedText.of(opened.table().column(name)).without({*suggestion.reading.missing, *codes, ""})
            kind = readable_as(text.values, suggestion.reading)
        if kind is not None or codes:
            columns[name] = Column(type=kind, missing=codes, source="data")
    return columns


def refuse_record_for_names(data: Microdata) -> None:
    """A text file whose first line seems to be a record: its values would stand in schemas, cards and releases as names."""
    from sfumato.data.readers.read_result import NAMED_BY_A_RECORD, are_numbers

    names = data.column_names if data.inferred else []
    if 2 * sum(are_numbers([name]) or _is_value(data, name) for name in names) > len(names):
        raise SourceError(
            f"{data.description}: {NAMED_BY_A_RECORD}. Write the names of the columns above it. If it does hold the names, call "
            "columns so that they differ from values, or describe them in a schema of your own"
        )


def _is_value(data: Microdata, name: str) -> bool:
    """Whether the name of a column also occurs in it."""
    return any(name in set(texts(batch.column(0).unique())) for batch in data.relation.batches([name]))


def write_schema(profile: Profile, target: Path, dataset: str, quasi: Sequence[str] | None = None) -> None:
    """Write the starting schema, all of it or nothing, for its owner alone: domains and bounds are values of the data."""
    from sfumato.data.profiling.suggested_schema import role_reasons, starting_schema
    from sfumato.data.schema_text import comment, schema_to_edit
    from sfumato.data.writers import atomic_path

    schema, reading = starting_schema(profile, dataset, quasi).replace(roles="proposed"), profile.reading
    body = schema_to_edit(schema, role_reasons(profile, quasi), reading.reasons, reading.questions)
    notes = [_about_the_unit(profile), *([] if quasi is not None else about_many(profile))]
    text = "\n".join([_HEADING, *(line for note in notes for line in (*comment(note), "#")), "", body])
    with atomic_path(target, mode=0o600) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _about_the_unit(profile: Profile) -> str:
    """Whom private questions protect, as a sentence: names of columns and counts, no values."""
    name = "none named" if profile.unit is None else f"'{profile.unit}'"
    return f"Unit (whom an answer protects): {name}; {profile.unit_reason}."


def about_many(profile: Profile, command: Sequence[str] = ()) -> list[str]:
    """What is said where so many columns may identify people that hardly anything is left of a table that generalises all, with
    the words to be typed: those of `command`, then the columns to keep."""
    from sfumato.data.profiling.singling import MANY, few_to_keep

    if len(profile.singling) <= MANY:
        return []
    few = few_to_keep(profile.singling)
    words = shlex.join([*command, *(word for name in few for word in ("--quasi", name))])
    return [
        f"{len(profile.singling)} columns are quasi-identifiers, more than {MANY}: generalised together they leave little of a "
        f"table. Decide which of them an outsider can know. To begin with, keep these {len(few)}, which outsiders most often "
        f"know or which single out most: {words}",
        "The other columns then become plain: published as they are, with a warning at each. That is your decision and no "
        "promise: whoever knows one of them can use it. Give those that must not be learnt about a person the role sensitive, "
        "and those that nobody needs the role identifier, which drops them.",
    ]


def dataset_id(source: TableLike, table: str | None = None) -> str:
    """A dataset id from the name of the source: `data/Adult 2024.csv` becomes `adult-2024`; never a part of a
    database URL."""
    if isinstance(source, Microdata):
        return source.schema.dataset
    if table is not None:
        name = table
    elif isinstance(source, Path) or (isinstance(source, str) and "://" not in source):
        name = Path(source).name.partition(".")[0]
    else:
        name = ""
    return re.sub(r"\W+", "-", name).strip("-_").lower() or "table"


_HEADING = """\
# A schema to start from, written by `sfumato inspect`. Please check every role:
#   identifier  names a person alone: dropped, or replaced by a pseudonym (pseudonym = true)
#   quasi       an outsider could know it: generalised until nobody stands out
#   sensitive   must not be learnt about a person        plain   published as it is
#   unit        names whom a row is about, where one person may have several rows
# [read] says how the texts of the table are written, for every command that gets this schema.
# Types, bounds and domains were learnt from the data (source = "data"). Where you know better, write what
# may occur and set source = "declared"; private questions (sfumato query, publish) refuse a column until
# you did.
#"""
