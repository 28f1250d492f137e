"""How rows are said to have been made: a method that this version knows has its own parameters, and tells what it can tell.

What a certificate says about its method stands on the public page. A name that is not known here may be that of a newer or of
somebody's own method: it is shown, and the verdict says that nobody could check it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from sfumato.core import registry
from sfumato.core.certificate import Certificate, plain
from sfumato.core.declared import parameters
from sfumato.core.errors import SfumatoError, Unsupported, VerificationFailed
from sfumato.core.plain_data import Plain
from sfumato.workflow import named

if TYPE_CHECKING:
    from sfumato.data.schema import Schema
    from sfumato.masking.shown_rows import ShownRows
    from sfumato.masking.transparency import VisibleTable

_NOT_ITS_OWN = "the certificate says of its method what that method does not have"
#: What a method of a stranger's parameters may meet.
_ODD = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)


def is_known(method: Plain) -> bool:
    """Whether there is a search or mask of that name."""
    return registry.has("method", method.get("name"))


def refuse_other_parameters(method: object) -> None:
    """A search or mask of a known name, made again, has the parameters that are stated; earlier versions may state fewer."""
    if not isinstance(method, Mapping):
        raise VerificationFailed(_NOT_ITS_OWN)
    if not is_known(method):
        return
    try:
        stated = plain(registry.in_names_of_now("method", method))
        rebuilt = _rebuilt(method)
        described = plain(
            rebuilt.described() if registry.has("mask", method.get("name")) else {"name": method["name"], **parameters(rebuilt)}
        )
    except (SfumatoError, *_ODD):
        raise VerificationFailed(_NOT_ITS_OWN) from None
    if any(described.get(name) != value for name, value in stated.items()):
        raise VerificationFailed(_NOT_ITS_OWN)


def refuse_other_words(facts: Plain, visible: VisibleTable) -> None:
    """What a mask publishes about itself, `method` and `masked_columns` among it: what that mask tells with its parameters."""
    from sfumato.masking.transparency import can_be_published_by

    method = facts.get("method")
    refuse_other_parameters(method)
    try:
        sound = can_be_published_by(_rebuilt(cast("Mapping[str, Any]", method)), facts, visible)
    except (SfumatoError, *_ODD):
        sound = False
    if not sound:
        raise VerificationFailed("the certificate says of its mask what no mask says")


def refuse_disproved(method: Plain, shown: ShownRows) -> None:
    """Rows that show that a mask did not have the parameters that are stated; the mask itself says what its rows show. What it
    cannot compare disproves nothing, but for numbers that no mask reads: infinite ones, and whole ones that are not exact."""
    try:
        disproved = _rebuilt(method).disproved_by(shown)
    except Unsupported:
        disproved = True
    except (SfumatoError, *_ODD):
        disproved = False
    if disproved:
        raise VerificationFailed("the rows show that the mask did not have the parameters that the certificate states")


def refuse_missing_claims(certificate: Certificate, schema: Schema) -> None:
    """What a mask with these parameters keeps by construction is claimed: its parameters promise no more than the claims."""
    import pyarrow as pa

    from sfumato.masking.columns import in_memory

    columns = pa.table({name: pa.array([], pa.string()) for name in schema.columns})
    try:
        meant = _rebuilt(certificate.method).claims(in_memory(columns, schema))
    except (SfumatoError, *_ODD):
        raise VerificationFailed(_NOT_ITS_OWN) from None
    claimed = [(claim.guarantee, plain(dict(claim.parameters))) for claim in certificate.claims]
    if any((each.key, plain(parameters(each))) not in claimed for each in meant):
        raise VerificationFailed("the mask keeps by its parameters what the certificate does not claim")


def _rebuilt(method: Mapping[str, Any]) -> Any:
    stated = registry.in_names_of_now("method", method)
    try:
        return named.method(stated)
    except SfumatoError:  # a certificate writes infinite numbers as words
        return named.method({name: value if name == "name" else _infinite(value) for name, value in stated.items()})


def _infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _infinite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_infinite(each) for each in value]
    return {"infinite": math.inf, "-infinite": -math.inf}.get(value, value) if isinstance(value, str) else value
