"""What the public page of a private result says beside its method: what follows from the method's parameters, computed again.

Numbers that follow from the data are the owner's, or part of the result. An algorithm that this version does not know may show
words and numbers of its own, under names that are no parameter of it and no headline of the page.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from sfumato.core import registry
from sfumato.core.certificate import Certificate, plain
from sfumato.core.errors import SfumatoError, VerificationFailed
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.masking.transparency import alike
from sfumato.report.content import HEADLINES, plain_details
from sfumato.workflow.contents.base import OTHER_DETAILS

#: What a session calls itself where a question was answered; beside the question it says nothing.
_ANSWERS = "Session.sql"
_LONGEST_WORD = 200


def details_of(method: Plain, details: Plain) -> PlainDict:
    """What of an outcome's details the public page shows."""
    name = method.get("name")
    if name == _ANSWERS:
        return {}
    if registry.has("algorithm", name):
        return _computed(method)
    return {key: value for key, value in plain_details(details).items() if _is_free(key, method) and _is_plain(value)}


def refuse_other_details(certificate: Certificate) -> None:
    """Raise where the page of a certificate shows details that its method does not have."""
    details = certificate.card.get("details", {})
    recomputable = certificate.method.get("name") == _ANSWERS or registry.has("algorithm", certificate.method.get("name"))
    if recomputable:
        sound = not details or alike(details_of(certificate.method, {}), dict(details))
    else:
        sound = all(_is_free(key, certificate.method) and _is_plain(value) for key, value in details.items())
    if not sound:
        raise VerificationFailed(OTHER_DETAILS)


def _computed(method: Mapping[str, Any]) -> dict[str, Any]:
    """What follows from the parameters, as a page holds it; nothing where they are none."""
    own = {"name", *(field.name for field in dataclasses.fields(registry.find("algorithm", str(method["name"]))))}
    stated = registry.in_names_of_now("algorithm", method)
    try:
        algorithm = registry.make("algorithm", {key: value for key, value in stated.items() if key in own})
        return {key: plain(value) for key, value in algorithm.tells().items()}
    except (SfumatoError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):  # a stranger's parameters
        return {}


def _is_free(key: str, method: Mapping[str, Any]) -> bool:
    """Whether a name is neither a parameter nor one that the page itself uses."""
    return key not in method and key not in HEADLINES and key != "levels" and len(key) <= _LONGEST_WORD


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and not isinstance(each, Mapping) and _is_plain(each) for key, each in value.items())
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) <= _LONGEST_WORD)
