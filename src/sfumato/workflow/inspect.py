"""Inspect a source before anything is protected: profile it and, on request, write a schema to start from."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InputError, SourceError, forgetting
from sfumato.data.microdata import Microdata
from sfumato.data.profile import Profile, profile_table
from sfumato.data.values import texts

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
    **options: Any,  # those of `read`
) -> Profile:
    """Profile a file, a DataFrame or a database table.

    With `schema_out` a starting schema is written there; an existing file is kept unless `overwrite` is
    given. `dataset` is the id that releases belong to, by default the source's name. What the profile says is
    the owner's: it describes the original data.
    """
    from sfumato.engines.sources import read

    target = Path(schema_out) if schema_out is not None else None
    if target is not None and target.exists() and not overwrite:
        raise InputError(f"'{target}' exists already. Edit it, name another file, or ask for it to be overwritten.")
    data = read(source, table=table, **options)
    refuse_record_for_names(data)
    profile = profile_table(data)
    if target is not None:
        write_schema(profile, target, dataset or dataset_id(source, table))
    return profile


def suggested(source: TableLike, table: str | None = None) -> Microdata:
    """The table with the roles that its profile suggests, for a first look; its owner should check them."""
    from sfumato.data.suggested_schema import starting_schema
    from sfumato.engines.sources import read

    data = read(source, table=table)
    refuse_record_for_names(data)
    return read(source, starting_schema(profile_table(data), dataset_id(source, table)), table=table)


def refuse_record_for_names(data: Microdata) -> None:
    """A text file whose first line seems to be a record: its values would stand in schemas, cards and releases as names."""
    from sfumato.data.read_result import NAMED_BY_A_RECORD, are_numbers

    names = data.column_names if data.inferred else []
    if 2 * sum(are_numbers([name]) or _is_value(data, name) for name in names) > len(names):
        raise SourceError(
            f"{data.description}: {NAMED_BY_A_RECORD}. Write the names of the columns above it. If it does hold the names, call "
            "columns so that they differ from values, or describe them in a schema of your own"
        )


def _is_value(data: Microdata, name: str) -> bool:
    """Whether the name of a column also occurs in it."""
    return any(name in set(texts(batch.column(0).unique())) for batch in data.relation.batches([name]))


def write_schema(profile: Profile, target: Path, dataset: str) -> None:
    """Write the starting schema, all of it or nothing, for its owner alone: domains and bounds are values of the data."""
    from sfumato.data.suggested_schema import proposal_reasons, starting_schema
    from sfumato.data.writers import atomic_path

    text = _HEADING + _about_the_unit(profile) + starting_schema(profile, dataset).to_toml(proposal_reasons(profile))
    with atomic_path(target, mode=0o600) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _about_the_unit(profile: Profile) -> str:
    """Whom private questions protect, as a comment: names of columns and counts, no values."""
    name = "none named" if profile.unit is None else f"'{profile.unit}'"
    words = f"Unit (whom an answer protects): {name}; {profile.unit_reason}."
    words = "".join(character if character.isprintable() else " " for character in words)  # a column's name may be odd
    return "".join(f"# {line}\n" for line in textwrap.wrap(" ".join(words.split()), 106)) + "\n"


def dataset_id(source: TableLike, table: str | None = None) -> str:
    """A dataset id from the name of the source: `data/Adult 2024.csv` becomes `adult-2024`; never a part of a
    database URL."""
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
# Types, bounds and domains were learnt from the data (source = "data"). Where you know better, write what may
# occur and set source = "declared"; private questions (sfumato query, publish) refuse a column until you did.

"""
