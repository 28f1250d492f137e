"""Saving a release: `public/` to give away, `owner/` to keep, in a folder that appears whole or not at all.

The content is written in the format asked for, read back and verified before anything else is written. What was computed from the
original goes to `owner/` only.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.certificate import Certificate
from sfumato.core.errors import ParameterError, Unsupported, VerificationFailed, notify
from sfumato.core.params import require
from sfumato.workflow.contents.base import FORMATS, Content, Format
from sfumato.workflow.publishing.appearing import appearing_folder, check_place, make_folder, write_bytes
from sfumato.workflow.publishing.cards import CARD, card_of, public_card, stated_card
from sfumato.workflow.publishing.signing import sign_certificate, signer_in_words
from sfumato.workflow.publishing.written_files import describe_file, pretty, public_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.data.microdata import Microdata
    from sfumato.engines.staging.destinations import Destination
    from sfumato.wire.signatures import SigningKey
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
