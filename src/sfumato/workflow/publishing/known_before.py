"""What weakens a release and is known before the long work: roles that nobody confirmed, promises that are missing or empty."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.core.errors import notify
from sfumato.core.guarantees.base import ClassGuarantee
from sfumato.data.schema import Schema
from sfumato.report.headline import ROLES_UNREAD, Headline, refuse_all_but_kept, unpromised_in_words


def warn_before(schema: Schema, guarantees: Iterable[ClassGuarantee], *, strict: bool) -> None:
    """Warn of roles that nobody confirmed; where somebody is strict, refuse what is known to be warned about later."""
    if strict:
        refuse_all_but_kept(Headline.of("kept", "", [*unread(schema), *unpromised(schema, guarantees)]))
    notify(unread(schema))


def unread(schema: Schema) -> list[str]:
    """A warning where `inspect` proposed the roles and nobody confirmed them."""
    return [ROLES_UNREAD] if schema.roles == "proposed" else []


def unpromised(schema: Schema, guarantees: Iterable[ClassGuarantee]) -> list[str]:
    """A warning about the sensitive columns that none of these guarantees is about, and one for each that says nothing."""
    stated = list(guarantees)
    promised = {each.about for each in stated}
    empty = [f"{each.key} promises nothing: every table keeps it" for each in stated if each.says_nothing]
    return [*empty, *unpromised_in_words([name for name in schema.sensitive if name not in promised])]
