"""What a stranger says of rows that are in several files or in a table, and the table asked for them.

`stored.json` lists the files with the root of a hash tree over them, or states the digest of a table's content. Of a table,
types, digest, pseudonyms and groups are asked of the engine that holds it, about one state of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.certificate import Certificate
from sfumato.core.errors import VerificationFailed
from sfumato.core.plain_data import PlainDict
from sfumato.data.microdata import Microdata
from sfumato.data.relation import Relation
from sfumato.data.schema import Schema
from sfumato.workflow.publishing.grouped_rows import GroupedRows
from sfumato.workflow.publishing.saving import pretty
from sfumato.workflow.verifying.stored.parts import merkle_root, read_manifest
from sfumato.workflow.verifying.untrusted import quoted
from sfumato.workflow.verifying.verification import Finding

if TYPE_CHECKING:
    import pyarrow as pa

STORED = "stored.json"
FORMAT = "sfumato-stored-rows-1"


def read_description(path: Path, certificate: Certificate) -> PlainDict:
    """What `stored.json` says of the rows, in the one form that releases write it; its digest was compared before."""
    from sfumato.workflow.verifying.untrusted import parse_json

    raw = path.read_bytes()
    stated = parse_json(raw, STORED)
    sound = isinstance(stated, dict) and stated.get("format") == FORMAT and pretty(stated) == raw
    if not sound or type(stated.get("rows")) is not int or stated["rows"] != certificate.files[STORED].get("rows"):
        raise VerificationFailed(f"{STORED} is not written as releases write it, or counts other rows than the certificate")
    if set(stated) == {"format", "rows", "content"} and isinstance(stated["content"], str):
        return {"rows": stated["rows"], "content": stated["content"]}
    if set(stated) != {"format", "rows", "files", "root"}:
        raise VerificationFailed(f"{STORED} says something else of the rows than releases say")
    files = read_manifest(stated["files"])
    if sum(each.rows for each in files) != stated["rows"] or merkle_root(files) != stated["root"]:
        raise VerificationFailed(f"{STORED} contradicts itself: its rows, or the root over its files, are others")
    return {"rows": stated["rows"], "files": files}


def asked_table(
    manifest: PlainDict,
    schema: Schema,
    grouped: tuple[str, ...],
    names: Sequence[str],
    rows: Microdata,
    each: Callable[[pa.Table], None] | None = None,
) -> tuple[GroupedRows, list[Finding]]:
    """The table where the rows are, asked by the engine that holds it; `each` looks at its rows, a batch at a time."""
    import pyarrow as pa

    from sfumato.engines.digests.row_digest import row_sums
    from sfumato.workflow.publishing.columns import type_name
    from sfumato.workflow.publishing.regrouping import refuse_names_in, regrouped, tied_names

    relation = rows.relation
    types = {each.name: type_name(each.type) for each in relation.schema()}
    if types != {name: column.type for name, column in schema.columns.items()}:
        raise VerificationFailed("the table does not have the columns that the certificate describes, or other types of values")
    what = _refuse_other_object(relation)
    for name in names:
        refuse_names_in(relation, name)
    sums = row_sums(relation, list(schema.columns))
    if sums.rows != manifest["rows"] or sums.content_digest() != manifest["content"]:
        raise VerificationFailed("the table does not hold the rows that were certified: their digest differs")
    tied = {name: tied_names(relation, name, schema.quasi if grouped else ()) for name in names}
    if each is not None:
        for batch in relation.batches(list(schema.columns)):
            each(pa.Table.from_batches([batch]))
    text = f"{sums.rows:,} rows in {what}: their digest is the one that was certified. A table has no order; none was checked"
    caveat = (
        "an order-free digest finds every accidental change; it does not bind its maker, who could find other rows with the same "
        "digest"
    )
    unit = schema.unit if schema.unit in schema.columns else None
    order = tuple(name for name in relation.schema().names if name in schema.columns)
    if not grouped:
        return GroupedRows.without_groups(sums.rows, order, tied), [Finding("data", True, text, caveat=caveat)]
    groups = regrouped(relation, grouped, schema.quasi, unit)
    return GroupedRows(groups, order, tied), [Finding("data", True, text, caveat=caveat)]


def _refuse_other_object(relation: Relation) -> str:
    """What holds the rows, in words; raises where its engine says that it is no table, or has types that know more than rows."""
    from sfumato.engines.stored_objects import stored_object

    holder = stored_object(relation)
    if holder is None:
        return "what its engine calls a table (whether it is one was not checked)"
    if not holder.is_table:
        raise VerificationFailed("the rows are in no table: what a view shows is decided when somebody looks")
    if holder.other_types:
        names = ", ".join(map(quoted, holder.other_types[:5]))
        raise VerificationFailed(
            f"the table has columns of types that no release has ({names}): an ENUM, for one, can name values that no row shows"
        )
    return "a table"


def pseudonyms_of(certificate: Certificate, schema: Schema) -> tuple[str, ...]:
    from sfumato.workflow.verifying.stated.transparency import names_in

    return tuple(name for name in names_in(certificate.transparency, "pseudonymised_columns") if name in schema.columns)


def promised_columns(certificate: Certificate) -> list[str]:
    """Sensitive columns that claims are about, as their parameters name them."""
    named = (claim.parameters.get("attribute") for claim in certificate.claims)
    columns = certificate.schema.get("columns", {})
    return [name for name in named if isinstance(name, str) and name in columns]
