"""Another table about the people of a release, read as the values behind the release were written.

A register of the attacker, the original or a population of whoever verifies: its types and codes for missing values must be those
of the release, or what is missing in one is a value in the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pyarrow as pa

from sfumato.core.errors import SfumatoError
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, Schema, Type
from sfumato.data.texts.reading import PLAIN, Reading
from sfumato.data.texts.values import texts
from sfumato.workflow.earlier.readings import as_values, digest_of_code, is_digest_of_code

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike


def read_described(
    source: TableLike, columns: Mapping[str, Column], table: str | None = None, reading: Reading = PLAIN
) -> Microdata:
    """A table (of a database, where it is named) with the types and missing codes of those of the columns that it has."""
    from sfumato.engines.sources import read

    source = source.read_all() if isinstance(source, pa.RecordBatchReader) else source  # it can be read once
    opened = read(source, table=table, **reading.to_mapping())
    present = {name: with_codes(columns[name], opened, name) for name in opened.column_names if name in columns}
    if all(not each.missing and each.type in (None, opened.schema.columns[name].type) for name, each in present.items()):
        return opened
    kept = {name: Column(type=each.type, missing=each.missing) for name, each in present.items()}
    described = Schema(dataset=opened.schema.dataset, columns=kept, read=reading)
    return read(source, described, table=table, engine=None if table is None else "memory")


def owners_reading(folder: Path) -> Reading:
    """How the original was read, where the owner's part of a release's folder says it."""
    path = folder / "owner" / "schema.toml"
    try:
        return Schema.load(path).read if path.is_file() else PLAIN
    except SfumatoError:  # whoever verifies need not own a schema that can be read
        return PLAIN


def with_codes(column: Column, opened: Microdata, name: str) -> Column:
    """The column with those codes for missing values that the table has, where only digests of codes are known."""
    digests = set(column.missing)
    if not digests or not all(map(is_digest_of_code, digests)):
        return column
    values = [text for text in texts(opened.table().column(name).combine_chunks().unique()) if text is not None]
    numeric = (column.type or opened.schema.columns[name].type) in ("integer", "number")
    forms = {form for text in values for form in (text, text.removesuffix(".0"), f"{text}.0")}  # as earlier versions told them
    codes = [form for form in sorted(forms | as_values(values) if numeric else forms) if digest_of_code(form) in digests]
    return column.model_copy(update={"missing": tuple(codes)})


def written_columns(certificate: Plain) -> dict[str, Column] | None:
    """How the values behind the columns of a release were written; None where its certificate does not say."""
    stated = certificate.get("transparency", {}).get("written_as")
    if not isinstance(stated, Mapping):
        return None
    columns = {}
    for name, each in stated.items():
        kind, codes = (each.get("type"), each.get("missing", [])) if isinstance(each, Mapping) else (None, [])
        if isinstance(codes, list) and all(isinstance(code, str) for code in codes):
            columns[name] = Column(type=kind if kind in get_args(Type) else None, missing=tuple(codes))
    return columns
