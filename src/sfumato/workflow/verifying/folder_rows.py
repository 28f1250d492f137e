"""The rows of a stranger's folder: read within limits, as many as the certificate says, and nothing else in their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.certificate import Certificate
from sfumato.core.errors import VerificationFailed
from sfumato.data.schema import Schema
from sfumato.report.wording import counted
from sfumato.workflow.verifying.limited_reading import read_foreign
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET = "data.parquet"
DATA_FILES = (PARQUET, "data.csv")


def refuse_several_data_files(certificate: Certificate, *others: str) -> None:
    """One data file, or one of the `others` in its place."""
    if len(set(certificate.files) & {*DATA_FILES, *others}) != 1:
        raise VerificationFailed("a release has exactly one data file, data.parquet or data.csv, or a private result.json")


def read_rows(certificate: Certificate, schema: Schema, folder: Path) -> pa.Table:
    """The rows of the one data file."""
    names = [name for name in DATA_FILES if name in certificate.files]
    if len(names) != 1:
        raise VerificationFailed("a release has exactly one data file, data.parquet or data.csv")
    rows = certificate.files[names[0]].get("rows")
    table = read_foreign(folder / names[0], schema, rows)
    if sorted(table.column_names) != sorted(schema.columns):
        raise VerificationFailed("the data file does not have the columns that the certificate describes")
    if rows != table.num_rows:
        raise VerificationFailed("the data file does not have as many rows as the certificate says")
    return table


def check_shape(table: pa.Table) -> Finding:
    """How many rows and columns there are."""
    nobody = "" if table.num_rows else "; no rows: the promise is about nobody"
    return Finding("data", True, f"{counted(table.num_rows, 'row')}, {counted(table.num_columns, 'column')}{nobody}")


def check_bytes(
    certificate: Certificate, table: pa.Table, folder: Path, *, ordered: bool, beside: tuple[str, ...] = ()
) -> Finding:
    """The data file, and the tables beside it, hold their rows and nothing else."""
    from sfumato.workflow.verifying.published_bytes import SAME_BYTES, compare_bytes

    made_with = str(certificate.versions.get("pyarrow", ""))
    elsewhere = {}
    for name in sorted({*DATA_FILES, *beside} & set(certificate.files)):
        rows = table if name in DATA_FILES else read_beside(name, certificate, folder)
        compared = compare_bytes(folder / name, rows, ordered=ordered, made_with=made_with)
        if compared != SAME_BYTES:
            elsewhere[name] = compared
    if not elsewhere:
        return Finding("bytes", True, SAME_BYTES)
    caveat = f"{' and '.join(elsewhere)}: written by another version of pyarrow; the parts were compared, the bytes were not"
    return Finding("bytes", None, next(iter(elsewhere.values())), caveat=caveat)


def read_beside(name: str, certificate: Certificate, folder: Path) -> pa.Table:
    """A table of numbers beside an answer, which has the answer's columns."""
    columns = certificate.schema.get("columns", {})
    numbers = Schema.parse({"columns": {column: {"type": "number"} for column in columns}})
    rows = certificate.files[name].get("rows")
    table = read_foreign(folder / name, numbers, rows)
    if sorted(table.column_names) != sorted(columns) or table.num_rows != rows:
        raise VerificationFailed(f"{name} does not have the columns of the answer, or as many rows as the certificate says")
    return table
