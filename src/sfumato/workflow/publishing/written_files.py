"""Files of a release, written and read back: their form, their digests, and rows that must be as many as were written."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import platform
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import plain
from sfumato.core.errors import VerificationFailed
from sfumato.core.params import parameters
from sfumato.core.plain_data import PlainDict
from sfumato.data.schema import Schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.workflow.contents.base import Content
    from sfumato.workflow.release import Release


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
