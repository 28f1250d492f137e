"""What an algorithm of this room returns: a result, the loss it claims, and what a certificate will need."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from sfumato.core.guarantees.loss import LossGuarantee
from sfumato.core.outcome import Outcome
from sfumato.core.randomness import Randomness

R = TypeVar("R")


def private_outcome(
    result: R,
    guarantee: LossGuarantee,
    method: Mapping[str, object],
    *,
    argument: str,
    randomness: Randomness,
    dataset: str | None = None,
    ledger_entry: str | None = None,
    owner: Mapping[str, object] | None = None,
    **details: object,
) -> Outcome[R]:
    """An outcome whose evidence is the process: the argument why it holds, the source of noise, the ledger's entry.

    `owner` holds what was computed from the data without noise (a quality report): it never leaves with the release.
    """
    facts = {
        "argument": argument,
        "randomness": randomness.description,
        "private": randomness.private,
        "dataset": dataset,
        "ledger_entry": ledger_entry,
        "owner": dict(owner or {}),
        **details,
    }
    return Outcome(result, (guarantee,), method, MappingProxyType(facts))
