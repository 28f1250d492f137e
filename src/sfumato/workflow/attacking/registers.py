"""A register of people, read as the releases write: with their types and their codes for missing values.

An entry whose cell is such a code matches the classes that show the value as missing. Read as a value of its own, it would match
none, and the risk would look smaller than it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import InputError, ParameterError, SfumatoWarning, VerificationFailed, notify
from sfumato.core.plain_data import Plain
from sfumato.core.view import View
from sfumato.data.microdata import Microdata
from sfumato.data.schema import Column, Schema
from sfumato.data.texts.reading import PLAIN
from sfumato.workflow.attacking.truth import who_is_who
from sfumato.workflow.earlier.read_alike import read_described, written_columns
from sfumato.workflow.verifying.verify import certificate_of

if TYPE_CHECKING:
    from sfumato.engines.sources import TableLike
    from sfumato.workflow.attacking.releases import Attackable

_NOT_APPLIED = (
    "codes for missing values were not applied to the register, because a release does not say which there are; if it has some, "
    "name them in a schema: --schema FILE, or register=sf.read(REGISTER, FILE) in Python"
)


class CodesNotApplied(SfumatoWarning):
    """A register was read without codes for missing values, because a release does not name them."""


def read_register(
    register: TableLike,
    releases: Sequence[Attackable],
    *,
    aligned: bool,
    table: str | None = None,
    reading: Plain | None = None,
) -> Microdata:
    """The register with the types and missing codes of the releases, or of the first one's owner where it is the very table that
    was masked, or where the owner's folder knows who is who. What was read under a schema of its own stays as it is; `reading`
    says how its texts are read, over what the owner's schema says."""
    if table is not None and not isinstance(register, (str, Path)):
        raise ParameterError("table= names a table of a database; this register is a table itself, so leave table= out")
    if isinstance(register, Microdata):
        return register
    owners = _owners_schema(releases[0]) if aligned or who_is_who(releases[0]) is not None else None
    if owners is not None:
        how = owners.read if aligned else owners.read.of_another_table()
        return read_described(register, owners.columns, table, how.overridden(reading or {}))
    written = [written_columns(_certificate(release)) for release in releases]
    if isinstance(register, (str, Path)) and None in written:
        notify(_NOT_APPLIED, CodesNotApplied)
    described: dict[str, Column] = {}
    for columns in reversed(written):  # what the first says counts
        described |= columns or {}
    theirs = _owners_schema(releases[0])
    how = PLAIN if theirs is None else theirs.read.of_another_table()
    return read_described(register, described, table, how.overridden(reading or {}))


def _owners_schema(release: Any) -> Schema | None:
    """The table as the owner of the release described it; None where that is missing."""
    if isinstance(release, (str, Path)):
        path = Path(release) / "owner" / "schema.toml"
        return Schema.load(path) if path.is_file() else None
    owners = None if isinstance(release, View) else getattr(release.content, "owners", None)
    return owners if isinstance(owners, Schema) else None


def _certificate(release: Any) -> Mapping[str, Any]:
    if not isinstance(release, (str, Path)):
        view = release if isinstance(release, View) else release.view()
        return view.certificate
    try:
        return certificate_of(release).to_mapping()
    except VerificationFailed as error:
        raise InputError(f"'{release}' is not a release that can be attacked: {error}") from None
