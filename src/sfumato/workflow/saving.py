"""Saving a release: `public/` to give away, `owner/` to keep, in a folder that appears whole or not at all.

The data file is written in the format asked for, read back and verified before anything else is written.
What was computed from the original goes to `owner/` only.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import Certificate, plain
from sfumato.core.errors import ParameterError, VerificationFailed
from sfumato.workflow.appearing import appearing_folder, make_folder, write_bytes
from sfumato.workflow.claims import claims_of
from sfumato.workflow.columns import without_hierarchies
from sfumato.workflow.public_hierarchies import schema_with_hierarchies
from sfumato.workflow.publish import describe_file, public_schema, read_back, write_and_describe
from sfumato.workflow.signing import propose_signing, sign_certificate

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from sfumato.wire.signatures import SigningKey, VerifyingKey
    from sfumato.workflow.release import Format, Release


#: In `owner/`, of a masked table: which record of the source (counted from 0) stands behind each released row.
ROWS = "rows.parquet"


def save_release(release: Release, folder: Path, format: Format, *, overwrite: bool, sign: Path | None) -> Path:
    """Write the folder; returns its path."""
    if format not in ("parquet", "csv"):
        raise ParameterError("a release is saved as 'parquet' or 'csv'")
    key = signing_key(sign)
    with appearing_folder(folder, overwrite=overwrite) as hidden:
        public, owner = hidden / "public", hidden / "owner"
        make_folder(public, 0o755)
        certificate = _write_public(release, public, format, key)
        make_folder(owner, 0o700)
        _write_owner(release, owner, certificate, key)
    propose_signing(key)
    return folder


def write_rows(release: Release, destination: str | Path, table_name: str | None, *, overwrite: bool) -> None:
    """Write the rows into a database, where they stay only if they are read back as they were verified."""
    from sfumato.engines.write import write_table
    from sfumato.workflow.canonical import canonical

    def confirm(back: pa.Table) -> None:
        if back.column_names != release.data.column_names or not canonical(back).equals(canonical(release.data)):
            raise VerificationFailed(
                "the database does not give back the rows of the release: it changed values or types. "
                "Nothing was written there; use a file instead."
            )

    write_table(release.data, destination, table_name=table_name, overwrite=overwrite, confirm=confirm)


def _write_public(release: Release, public: Path, format: Format, key: SigningKey | None) -> Certificate:
    from sfumato.data.writers import spreadsheet_notices
    from sfumato.workflow.cards import with_card
    from sfumato.workflow.public_card import CARD, public_card
    from sfumato.workflow.published_bytes import refuse_other_bytes

    name = f"data.{format}"
    files: dict[str, Any] = {name: write_and_describe(release.data, public / name)}
    owner = release.owner
    told = without_hierarchies(release.schema)
    table = read_back(public / name, told, release.data)
    claims = claims_of(table, owner.schema, release.guarantees, owner.references, units=owner.units)
    schema = schema_with_hierarchies(told, owner.schema, table, release.guarantees, owner.hierarchies, owner.references, public)
    notices = [] if format == "parquet" else spreadsheet_notices(release.data)
    refuse_other_bytes(public / name, table, ordered=True)
    write_bytes(public / "schema.toml", schema.to_toml().encode())
    for path in sorted(public.iterdir()):
        files.setdefault(path.name, describe_file(path))
    certificate = dataclasses.replace(
        with_card(release, release.certificate),
        claims=claims,
        schema=public_schema(schema),
        files=files,
        notices=(*release.certificate.notices, *notices),
    )
    write_bytes(public / CARD, public_card(certificate, table, signed_by(key)).encode())
    final = dataclasses.replace(certificate, files={**files, CARD: describe_file(public / CARD)})
    write_certificate(final, public, key)
    return final


def write_certificate(certificate: Certificate, public: Path, key: SigningKey | None) -> None:
    """The certificate and, with a key, the owner's signature over it."""
    stated = certificate.to_mapping()
    write_bytes(public / "certificate.json", pretty(stated))
    if key is not None:
        write_bytes(public / "signature.json", pretty(sign_certificate(stated, key)))


def _write_owner(release: Release, owner: Path, certificate: Certificate, key: SigningKey | None) -> None:
    from sfumato.workflow.cards import card_of, plain_details

    scores = [
        {**dataclasses.asdict(dataclasses.replace(score, parts={})), "parts": dict(score.parts)} for score in release.owner.scores
    ]
    page = card_of(release, "owner", certificate=certificate, signature=signed_by(key))
    written = {
        "card.html": page.encode(),
        "scores.json": pretty({"scores": scores, "loss_per_attribute": dict(release.owner.loss_per_attribute)}),
        "details.json": pretty(plain_details(release.details)),
        "schema.toml": release.owner.schema.to_toml().encode(),
        "recipe.toml": _recipe(release),
    }
    if release.owner.rows is not None:
        written[ROWS] = _rows_file(release.owner.rows)
    for name, content in written.items():
        write_bytes(owner / name, content, mode=0o600)


def _rows_file(rows: NDArray[np.int64]) -> bytes:
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({"source_row": rows}), buffer)
    return buffer.getvalue()


def _recipe(release: Release) -> bytes:
    """What is needed to make the release again: the recipe it came from, or guarantees and method."""
    import tomlkit

    from sfumato.core.params import parameters

    listed = dict(release.owner.recipe)
    if not listed:
        listed = {
            "guarantee": [{"name": each.name, **parameters(each)} for each in release.guarantees],
            "method": dict(release.certificate.method),
        }
        if release.owner.answers:
            listed["answers"] = {name: dataclasses.asdict(answer) for name, answer in release.owner.answers.items()}
    return tomlkit.dumps(_without_none(listed)).encode()


def signing_key(path: Path | None) -> SigningKey | None:
    """The key in a file, if one is named."""
    if path is None:
        return None
    from sfumato.wire.signatures import SigningKey

    return SigningKey.load(path)


def signed_by(key: SigningKey | None) -> str:
    """Who signs, in words; empty without a key."""
    return "" if key is None else signer_in_words(key.public)


def signer_in_words(key: VerifyingKey) -> str:
    """How a card names whoever signed."""
    return f"signed by the key {key.identity}"


def pretty(value: Any) -> bytes:
    """JSON for a person to read; infinite numbers are words."""
    return (json.dumps(plain(value), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_none(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(entry) for entry in value if entry is not None]
    return value
