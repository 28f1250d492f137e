"""A method and its parameters in words: a parameter that nobody explains is not shown.

Meanings stand beside the parameters that they are about (`core.declared`); what a session or an algorithm tells besides has its
meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.core.certificate import Certificate
from sfumato.core.declared import declarations
from sfumato.core.exact import shown
from sfumato.core.registry import find, has, in_names_of_now
from sfumato.report.content import HEADLINES
from sfumato.report.wording import number

_FRACTION = re.compile(r"-?[0-9]{1,300}/[0-9]{1,300}")
_DECIMAL = re.compile(r"-?[0-9]{1,40}\.[0-9]{7,300}")
#: A value that is longer is one for programs.
_LONGEST = 400

#: What is told about a result besides the parameters of its method.
MEANINGS = {
    "query": "the question as it was asked",
    "bounds": "how many rows and groups of one unit count at the most",
    "contribution": "what of one unit counts",
    "deviation": "standard deviation of the noise on each number",
    "rank_deviation": "standard deviation of the noise on the rank of a quantile",
    "threshold": "the least noisy count that is shown",
    "neighbours": "which pairs of databases the loss compares",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter with its value and its meaning, as a reader has them."""

    name: str
    value: str
    meaning: str


@dataclass(frozen=True)
class MethodWords:
    """What a method does, its parameters, and whether some were `left` out because nobody explains them."""

    meaning: str
    parameters: tuple[Parameter, ...]
    left: bool


def method_in_words(certificate: Certificate, details: Mapping[str, Any]) -> MethodWords:
    """The method of a certificate, and what its page tells besides (`details`)."""
    name = certificate.method.get("name")
    kind = next((kind for kind in ("search", "mask", "algorithm") if has(kind, name)), None)
    known = None if kind is None else find(kind, str(name))
    meanings = {**MEANINGS, **({} if known is None else {each.name: each.meaning for each in declarations(known)})}
    stated = certificate.method if kind is None else in_names_of_now(kind, certificate.method)
    told = {key: value for key, value in {**stated, **details, **stated}.items() if key != "name" and key not in HEADLINES}
    shown_ones = [
        Parameter(key, in_words(value), meanings[key]) for key, value in told.items() if meanings.get(key) and _is_readable(value)
    ]
    return MethodWords(_first_paragraph(known), tuple(shown_ones), bool(certificate.transparency) or len(shown_ones) < len(told))


def in_words(value: object) -> str:
    """A value of a parameter: numbers in a few digits, whatever number of digits the certificate states."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, (list, tuple)):
        return ", ".join(in_words(entry) for entry in value) or "none"
    if isinstance(value, Mapping) and not value:
        return "none"
    if isinstance(value, Mapping):
        named = f"{value['name']}: " if "name" in value else ""
        return named + ", ".join(f"{name} {in_words(entry)}" for name, entry in value.items() if name != "name")
    return _shorter(str(value))


def _shorter(text: str) -> str:
    """An exact number in a few digits; any other text as it is."""
    if not (_FRACTION.fullmatch(text) or _DECIMAL.fullmatch(text)):
        return text
    try:
        exact = Fraction(text)
        written = shown(exact)
        return written if "/" not in written and len(written) <= 8 else f"about {float(exact):.4g}"
    except (ZeroDivisionError, OverflowError, ValueError):
        return text


def _is_readable(value: object) -> bool:
    return len(str(value)) <= _LONGEST


def _first_paragraph(known: type[Any] | None) -> str:
    first = (known.__doc__ or "").strip().split("\n\n")[0] if known is not None else ""
    return " ".join(first.replace("`", "").split())
