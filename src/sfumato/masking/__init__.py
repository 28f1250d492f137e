"""Masks: a table about people, changed record by record until it is hard to find anybody in it.

Noise, microaggregation, swapping, PRAM, coding, synthetic records. Every mask is a frozen value with one verb, `apply`. Masks
are listed with the names of the whole package (`sf.Mdav`); `sf.masking.Mdav` is the same one.
"""

from __future__ import annotations

from sfumato.core.lazy import Kind, face, listed_above, names_in_stub

NAMES = names_in_stub(__file__)
KINDS = {"mask": Kind("sfumato.masking.base:Mask", ("sfumato.masking",))}
__all__, __getattr__, __dir__ = face(__name__, {**NAMES, **listed_above(__name__)})
