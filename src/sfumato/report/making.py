"""How a release was made, in words: what was done to each column, and the method with its parameters.

The words follow from what the certificate tells and is held to. A parameter that nobody explains is not shown: meanings stand
beside the parameters (`core.declared`), those of what a session or an algorithm tells besides stand here. The invented row is the
publisher's: it was drawn from what the owner declared, and from no record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.certificate import Certificate
from sfumato.core.declared import declarations
from sfumato.core.exact import shown
from sfumato.core.plain_data import Plain
from sfumato.core.registry import find, has, in_names_of_now
from sfumato.report.content import HEADLINES
from sfumato.report.lead import columns_of
from sfumato.report.wording import number

AS_IT_IS = "published as it is"
LEFT_OUT = "left out"
PSEUDONYM = "replaced by a pseudonym, the same one for the same value"
CHOSEN = "published as it is; only some of the records are published"
#: How a certificate names ranges that a search made of the data.
RANGES = "ranges of the data"

#: How the values of a column are made less precise, by the kind of its hierarchy.
_GROUPS = {
    "file": "replaced by groups of values",
    "tree": "replaced by groups of values",
    "intervals": "replaced by intervals",
    "cuts": "replaced by intervals",
    "mask": "characters replaced by *",
    "dates": "replaced by longer periods",
    "frequency": "replaced by groups of values that are about as frequent",
    "flat": "replaced by *",
    RANGES: "replaced by ranges that were made of the data",
}
_ROLES = {
    "quasi": "may be known to others",
    "sensitive": "sensitive",
    "plain": "not protected",
    "weight": "survey weight",
    "unit": "names the unit",
    "identifier": "names people",
}


@dataclass(frozen=True)
class ColumnChange:
    """One column: its part in words, what was done, and its invented value before and after."""

    name: str
    role: str
    done: str
    before: str | None = None
    after: str | None = None


def column_changes(certificate: Certificate) -> list[ColumnChange]:
    """Every column of the original that the certificate names: the published ones, then those that were left out."""
    example = certificate.card.get("example", {})
    facts = certificate.transparency
    removed = _names(facts.get("removed_columns"))
    changes = [
        ColumnChange(
            name, _ROLES.get(str(entry.get("role", "plain")), ""), _done(certificate, name, entry), *_pair(example, name)
        )
        for name, entry in columns_of(certificate).items()
    ]
    return [*changes, *(ColumnChange(name, "", LEFT_OUT, *_pair(example, name)) for name in removed)]


def has_example(changes: Sequence[ColumnChange]) -> bool:
    """Whether some column has an invented value."""
    return any(change.before is not None for change in changes)


def _done(certificate: Certificate, name: str, entry: Plain) -> str:
    facts, method = certificate.transparency, certificate.method.get("name")
    if name in _names(facts.get("pseudonymised_columns")):
        return PSEUDONYM
    if has("mask", method):
        mask = find("mask", str(method))
        if mask.selects:
            return CHOSEN
        return f"changed by {method}" if name in _names(facts.get("masked_columns")) else AS_IT_IS
    kinds, levels = facts.get("hierarchies"), facts.get("levels")
    kind = kinds.get(name) if isinstance(kinds, Mapping) else None
    level = levels.get(name) if isinstance(levels, Mapping) else None
    if entry.get("role") != "quasi" or (kind is None and level is None) or level == 0:
        return AS_IT_IS
    done = _GROUPS.get(str(kind), "generalised")
    if level is not None:
        return done if kind == "flat" else f"{done}, by {level} step{'s' * (level != 1)} in every record"
    return f"{done} where the promises need it, not in all records alike"


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, (list, tuple)) else []


def _pair(example: object, name: str) -> tuple[str | None, str | None]:
    pair = example.get(name) if isinstance(example, Mapping) else None
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        return None, None
    before, after = pair
    return (None if before is None else str(before)), (None if after is None else str(after))


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


def method_in_words(certificate: Certificate, details: Plain) -> MethodWords:
    """The method of a certificate, and what its page tells besides (`details`)."""
    name = certificate.method.get("name")
    kind = next((kind for kind in ("search", "mask", "algorithm") if has(kind, name)), None)
    method = None if kind is None else find(kind, str(name))
    meanings = {**MEANINGS, **({} if method is None else {each.name: each.meaning for each in declarations(method)})}
    stated = certificate.method if kind is None else in_names_of_now(kind, certificate.method)
    others = {key: value for key, value in {**stated, **details, **stated}.items() if key != "name" and key not in HEADLINES}
    shown_ones = [
        Parameter(key, in_words(value), meanings[key])
        for key, value in others.items()
        if meanings.get(key) and _is_readable(value)
    ]
    if search := certificate.transparency.get("search_kept"):
        shown_ones.append(Parameter("search_kept", in_words(search), "which of several searches made this table, and how"))
    return MethodWords(
        _first_paragraph(method), tuple(shown_ones), bool(certificate.transparency) or len(shown_ones) < len(others)
    )


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


def _first_paragraph(method: type[object] | None) -> str:
    first = (method.__doc__ or "").strip().split("\n\n")[0] if method is not None else ""
    return " ".join(first.replace("`", "").split())
