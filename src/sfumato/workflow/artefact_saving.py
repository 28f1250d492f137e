"""Saving a private artefact: `public/` to give away, `owner/` to keep, and the card of both.

The same folder as that of a protected table, so that one `verify` reads both. The result is a data file or
`result.json`, read back before anything else is written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.certificate import plain
from sfumato.core.errors import ParameterError, VerificationFailed
from sfumato.data.schema import Schema
from sfumato.workflow.appearing import appearing_folder, make_folder, write_bytes
from sfumato.workflow.artefact import Artefact, as_json, is_table
from sfumato.workflow.folder_parts import RESULT
from sfumato.workflow.public_card import CARD, public_card, stated_card
from sfumato.workflow.publish import describe_file, read_back, write_and_describe
from sfumato.workflow.saving import pretty, signed_by, signing_key, write_certificate
from sfumato.workflow.signing import propose_signing
from sfumato.workflow.untrusted import is_plain_name

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.certificate import Certificate
    from sfumato.workflow.release import Audience, Format


def save_artefact(artefact: Artefact, folder: Path, format: Format, *, overwrite: bool, sign: Path | None) -> Path:
    """Write the folder; returns its path."""
    if format not in ("parquet", "csv"):
        raise ParameterError("a table is saved as 'parquet' or 'csv'")
    key = signing_key(sign)
    with appearing_folder(folder, overwrite=overwrite) as hidden:
        public, owner = hidden / "public", hidden / "owner"
        make_folder(public, 0o755)
        files, notices = _write_result(artefact, public, format)
        files |= _write_tables(artefact, public, format)
        told = artefact.certificate
        certificate = dataclasses.replace(told, files=files, notices=(*told.notices, *notices))
        page = card_of(artefact, "public", certificate=certificate, signature=signed_by(key))
        write_bytes(public / CARD, page.encode())
        final = dataclasses.replace(certificate, card=_stated(artefact), files={**files, CARD: describe_file(public / CARD)})
        write_certificate(final, public, key)
        make_folder(owner, 0o700)
        own = card_of(artefact, "owner", certificate=final, signature=signed_by(key))
        written = {
            "card.html": own.encode(),
            "quality.json": pretty(_plain(artefact.owner)),
            "details.json": pretty({"method": _plain(told.method), "details": _plain(artefact.details)}),
        }
        quality = artefact.owner.get("quality")
        if isinstance(quality, Mapping) and {"columns", "distance"} <= set(quality):
            from sfumato.report.figures.synthetic_quality import synthetic_quality

            written["quality.svg"] = synthetic_quality(quality).encode()
        for name, content in written.items():
            write_bytes(owner / name, content, mode=0o600)
    propose_signing(key)
    return folder


def card_of(artefact: Artefact, audience: Audience, *, certificate: Certificate | None = None, signature: str = "") -> str:
    """The card as one HTML page; `certificate` replaces the artefact's own where files were added to it."""
    from sfumato.report.card import release_card
    from sfumato.report.content import CardContent
    from sfumato.workflow.cards import plain_details

    stated = dataclasses.replace(certificate or artefact.certificate, card=_stated(artefact))
    rows = artefact.data if is_table(artefact.data) else None
    if audience == "public":
        return public_card(stated, rows, signature)
    content = CardContent(
        certificate=stated,
        title=stated.dataset,
        details={**({} if rows is None else {"published rows": int(rows.num_rows)}), **stated.card["details"]},
        owner_details=plain_details(_plain(artefact.owner)),
        signature=signature or "not signed",
        signed=bool(signature),
    )
    return release_card(content, audience=audience)


def _stated(artefact: Artefact) -> dict[str, Any]:
    """What the public page shows besides the certificate: how the result was made, as far as everybody may know."""
    from sfumato.workflow.told_details import details_of

    return stated_card(details=plain(details_of(artefact.certificate.method, _plain(artefact.details))))


def _write_result(artefact: Artefact, public: Path, format: Format) -> tuple[dict[str, Any], list[str]]:
    if not is_table(artefact.data):
        content = as_json(artefact.data)
        write_bytes(public / RESULT, content)
        if json.loads((public / RESULT).read_bytes()) != json.loads(content):
            raise VerificationFailed("the written result is not the one that was made; nothing was released")
        return {RESULT: describe_file(public / RESULT)}, []
    from sfumato.data.writers import clean, spreadsheet_notices
    from sfumato.workflow.canonical import canonical
    from sfumato.workflow.published_bytes import refuse_other_bytes

    rows: pa.Table = clean(artefact.data)
    name = f"data.{format}"
    files = {name: write_and_describe(rows, public / name)}
    back = read_back(public / name, Schema.parse(artefact.certificate.schema), rows)
    if not canonical(back).equals(canonical(rows)):
        raise VerificationFailed(f"the rows read back from {format} are not those that were made; nothing was released")
    refuse_other_bytes(public / name, back, ordered=False)
    return files, [] if format == "parquet" else spreadsheet_notices(rows)


def _write_tables(artefact: Artefact, public: Path, format: Format) -> dict[str, Any]:
    """Tables that come with the result, such as the standard errors of an answer."""
    found = {}
    for name, value in artefact.details.items():
        file = f"{name}.{format}"
        if is_table(value) and is_plain_name(file) and not (public / file).exists():
            found[file] = write_and_describe(value, public / file)
    return found


def _plain(value: Any) -> Any:
    """The owner's facts as JSON can hold them: tables by column, arrays as lists, exact fractions as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Fraction):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    if hasattr(value, "to_pydict"):
        return _plain(value.to_pydict())
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return plain(value) if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__
