"""Saving a release: `public/` to give away, `owner/` to keep, in a folder that appears whole or not at all.

The content is written in the format asked for, read back and verified before anything else is written: its form, its digests, and
as many rows as were written. What was computed from the original goes to `owner/` only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import platform
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, plain
from sfumato.core.declared import parameters, require
from sfumato.core.errors import ParameterError, Unsupported, VerificationFailed, notify
from sfumato.core.plain_data import PlainDict
from sfumato.data.schema import Schema
from sfumato.workflow.contents.base import FORMATS, Content, Format
from sfumato.workflow.publishing.appearing import appearing_folder, check_place, make_folder, write_bytes
from sfumato.workflow.publishing.cards import CARD, card_of, public_card, stated_card
from sfumato.workflow.publishing.signing import sign_certificate, signer_in_words

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.data.microdata import Microdata
    from sfumato.engines.staging.destinations import Destination
    from sfumato.wire.signatures import SigningKey
    from sfumato.workflow.contents.base import Content
    from sfumato.workflow.release import Release

PROPOSAL = (
    "the release is not signed, so nobody can tell who made it. Make a key once with `sfumato key new signing.key`, "
    'then save with sign="signing.key".'
)

#: Why rows of a draft go into a folder alone.
DRAFT_IN_A_DATABASE = (
    "a draft is not put into a database, where its rows would look like a release: nothing in a table says that it is a draft. "
    "Save it as a folder, or leave draft out"
)


def save_release(release: Release[Content], folder: Path, format: Format, *, overwrite: bool, sign: Path | None) -> Certificate:
    """Write the folder; returns the certificate in it."""
    if format not in FORMATS:
        raise ParameterError("a release is saved as 'parquet' or 'csv'")
    key = signing_key(sign)
    with appearing_folder(folder, overwrite=overwrite) as hidden:
        make_folder(hidden / "public", 0o755)
        return fill_folder(release, hidden, format, key)


def fill_folder(release: Release[Content], folder: Path, format: Format, key: SigningKey | None) -> Certificate:
    """Write `public/`, which is there already, and `owner/` into a folder that nobody sees yet; returns the certificate."""
    signature = signed_by(key)
    public, owner = folder / "public", folder / "owner"
    saved = release.content.save(public, format, release)
    notify(saved.notices)
    certificate = dataclasses.replace(
        release.published,
        claims=saved.claims,
        schema=public_schema(saved.schema),
        files=saved.files,
        notices=(*release.published.notices, *saved.notices),
        card=stated_card(release),
    )
    write_bytes(public / CARD, public_card(certificate, release.data, signature).encode())
    certificate = dataclasses.replace(certificate, files={**saved.files, CARD: describe_file(public / CARD)})
    _write_certificate(certificate, public, key)
    make_folder(owner, 0o700)
    page = card_of(release, "owner", certificate=certificate, signature=signature)
    for name, content in {"card.html": page.encode(), **release.content.owner_files(release)}.items():
        write_bytes(owner / name, content, mode=0o600)
    return certificate


def write_rows(release: Release[Content], destination: str | Path, table_name: str | None, *, overwrite: bool) -> None:
    """Write the rows into a database, where they stay only if they are read back as they were verified."""
    from sfumato.engines.write import write_table
    from sfumato.workflow.publishing.released_form import released_form

    if not hasattr(release.data, "num_rows"):
        raise Unsupported("this release is plain data and has no rows to write; save it as files instead")
    refuse_without_rows(release)
    if release.published.draft:
        raise Unsupported(DRAFT_IN_A_DATABASE)

    def confirm(back: pa.Table) -> None:
        if back.column_names != release.data.column_names or not released_form(back).equals(released_form(release.data)):
            raise VerificationFailed(
                "the database does not give back the rows of the release: it changed values or types. "
                "Nothing was written there; use a file instead."
            )

    write_table(release.data, destination, table_name=table_name, overwrite=overwrite, confirm=confirm)


def refuse_without_rows(release: Release[Content]) -> None:
    """Raise where the rows of a release are not in this process."""
    if hasattr(release.data, "groups"):
        raise Unsupported("the rows of this release stayed in their engine and are where destination= put them; read them there")


def asked_destination(
    destination: str | Path | None,
    table_name: str | None,
    source: Microdata,
    *,
    overwrite: bool,
    sign: Path | str | None,
    memory: int | str | None,
    draft: bool,
) -> Destination | None:
    """Where the engine writes the rows, checked before the long work; None where they come into this process."""
    if destination is None:
        spare = {"table_name": table_name, "overwrite": overwrite, "sign": sign, "memory": memory}
        named = [name for name, value in spare.items() if value]
        require(not named, f"{', '.join(named)} is about a destination: pass destination= as well, or save the release")
        return None
    from sfumato.engines.staging.destinations import ParquetFolder, check_destination, destination_of
    from sfumato.workflow.publishing.forecast import memory_of

    memory_of(memory)
    signing_key(None if sign is None else Path(sign))
    place = destination_of(destination, table_name, overwrite=overwrite)
    require(not draft or isinstance(place, ParquetFolder), DRAFT_IN_A_DATABASE)
    if isinstance(place, ParquetFolder):
        require(
            not set("*?[]{}") & set(str(place.path)),
            "a folder whose name has *, ?, [ or { cannot be read back by its files; choose another destination",
        )
        check_place(Path(os.path.abspath(place.path)), overwrite=overwrite)
    else:
        check_destination(place, source.relation)
    return place


def _write_certificate(certificate: Certificate, public: Path, key: SigningKey | None) -> None:
    """The certificate and, with a key, the owner's signature over it."""
    stated = certificate.to_mapping()
    write_bytes(public / "certificate.json", pretty(stated))
    if key is not None:
        write_bytes(public / "signature.json", pretty(sign_certificate(stated, key)))


def signing_key(path: Path | None) -> SigningKey | None:
    """The key in a file, if one is named."""
    if path is None:
        return None
    from sfumato.wire.signatures import SigningKey

    return SigningKey.load(path)


def signed_by(key: SigningKey | None) -> str:
    """Who signs, in words; empty without a key."""
    return "" if key is None else signer_in_words(key.public)


def propose_signing(key: object) -> None:
    """Say, where a release is saved without a key, how to make one."""
    if key is None:
        notify(PROPOSAL)


def describe_file(path: Path) -> PlainDict:
    """Length and digest of a file."""
    digest = hashlib.sha256()
    length = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            length += len(block)
    return {"sha256": digest.hexdigest(), "bytes": length}


def describe_bytes(content: bytes) -> PlainDict:
    """Length and digest of a file that is not on the disk."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def versions() -> dict[str, str]:
    """What a release is made with."""
    from importlib.metadata import version

    import numpy
    import pyarrow

    import sfumato

    return {
        "sfumato": sfumato.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pyarrow": pyarrow.__version__,
        "matplotlib": version("matplotlib"),
    }


def public_schema(schema: Schema) -> PlainDict:
    """The schema of a release as plain data; how its original was read is its owner's matter."""
    return schema.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude={"read", "roles"})


def pretty(value: Any) -> bytes:  # plain data of any shape
    """JSON for a person to read; infinite numbers are words."""
    try:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return (text + "\n").encode()


def write_and_describe(table: pa.Table, path: Path) -> PlainDict:
    """Write the file and say how long it is and what its digest is."""
    from sfumato.data.writers import write_file

    write_file(table, path)
    return {**describe_file(path), "rows": int(table.num_rows)}


def read_back(path: Path, schema: Schema, written: pa.Table) -> pa.Table:
    """The rows of the written file; they must be as many, and have the columns, that were written."""
    from sfumato.data.readers.files import read_file

    if path.suffix == ".parquet" and _gives_back(path, schema, written):
        return written
    separator, encoding = (",", "utf-8") if path.suffix == ".csv" else (None, None)
    return as_written(read_file(path, schema, separator=separator, encoding=encoding).table, written)


def read_back_bytes(content: bytes, schema: Schema, written: pa.Table) -> pa.Table:
    """The same for what would be a Parquet file."""
    from sfumato.data.readers.files import read_parquet_bytes

    if _gives_back(content, schema, written):
        return written
    return as_written(read_parquet_bytes(content, schema).table, written)


def _gives_back(source: Path | bytes, schema: Schema, written: pa.Table) -> bool:
    """Whether what is read from Parquet is what was written in every respect, so that the table need not be there twice."""
    from sfumato.data.readers.files import parquet_columns, parquet_names

    if parquet_names(source) != written.column_names:
        return False
    columns = parquet_columns(source, schema)
    return all(column.equals(written.select([name])) for name, column in zip(written.column_names, columns, strict=True))


def as_written(table: pa.Table, written: pa.Table) -> pa.Table:
    """The rows that were read; they must be as many, and have the columns, that were written. Where they are the same in every
    respect, the table that was written stands for them, so that one of the two can go."""
    if table.num_rows != written.num_rows or table.column_names != written.column_names:
        raise VerificationFailed(
            f"the written file has {table.num_rows:,} rows and {table.num_columns} columns, "
            f"but {written.num_rows:,} rows and {written.num_columns} columns were written; nothing was released"
        )
    return written if table.equals(written, check_metadata=True) else table


def refuse_other_bytes(path: Path, table: pa.Table, *, ordered: bool) -> None:
    """For whoever saves a text file: what was read back from it must be written alike, or nobody could verify it."""
    if path.suffix != ".csv":
        return
    from sfumato.workflow.verifying.published_bytes import compare_bytes

    try:
        compare_bytes(path, table, ordered=ordered, made_with="")
    except VerificationFailed:
        raise VerificationFailed(
            "a CSV file does not give back every value of these rows as it was written, for instance times of another "
            "zone than UTC; nothing was released. Save them as Parquet."
        ) from None


def plain_data(value: object) -> Any:  # as JSON has it, in the shape of what is written
    """Facts as JSON can hold them: tables by column, arrays as lists, exact fractions as text."""
    if isinstance(value, Mapping):
        return {str(key): plain_data(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_data(entry) for entry in value]
    if isinstance(value, Fraction):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain_data(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    if hasattr(value, "to_pydict"):
        return plain_data(value.to_pydict())
    if hasattr(value, "tolist"):
        return plain_data(value.tolist())
    return plain(value) if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def source_rows_file(rows: NDArray[np.int64]) -> bytes:
    """The file that says which record of the source stands behind each row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"source_row": rows}), buffer)
    return buffer.getvalue()


def with_whole_paths(schema: Schema) -> Schema:
    """The schema with the whole paths of its hierarchy files."""
    columns = {}
    for name, column in schema.columns.items():
        if column.hierarchy is not None and column.hierarchy.file is not None:
            place = str((Path(schema.folder or ".") / column.hierarchy.file).absolute())
            column = column.model_copy(update={"hierarchy": column.hierarchy.model_copy(update={"file": place})})
        columns[name] = column
    return schema.replace(columns=columns)


def recipe_of(release: Release[Content]) -> bytes:
    """What is needed to make the release again: the recipe it came from, or guarantees and method."""
    import tomlkit

    listed = dict(release.owner.recipe)
    if not listed:
        listed = {
            "guarantee": [{"name": each.name, **parameters(each)} for each in release.guarantees],
            "method": dict(release.published.method),
        }
        if release.owner.answers:
            listed["answers"] = {name: dataclasses.asdict(answer) for name, answer in release.owner.answers.items()}
    return tomlkit.dumps(_without_none(listed)).encode()


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_none(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(entry) for entry in value if entry is not None]
    return value
