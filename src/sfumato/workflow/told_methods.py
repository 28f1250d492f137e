"""How rows are said to have been made: a method that this version knows has its own parameters, and tells what it can tell.

What a certificate says about its method stands on the public page. A name that is not known here may be that of a newer or of
somebody's own method: it is shown, and the verdict says that nobody could check it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sfumato.core import registry
from sfumato.core.certificate import plain
from sfumato.core.errors import SfumatoError, VerificationFailed
from sfumato.core.params import parameters
from sfumato.workflow import named

_NOT_ITS_OWN = "the certificate says of its method what that method does not have"
_BY_STRATUM = "by stratum"
#: What masks publish that is neither a number nor the name of a column nor one of their parameters.
_WORDS = frozenset(
    {
        *("infinite", "-infinite", _BY_STRATUM, "records", "units"),
        *("independent", "proportional", "multiplicative"),
        *("columns resampled", "ranks resampled", "records resampled", "Gaussian copula", "decision trees in sequence"),
        *("linear regression with intercept", "linear regressions in sequence, normal residuals"),
    }
)
#: What is told of a transition matrix; its categories are values of the column.
_CATEGORIES = frozenset({"labels", "outputs"})
_OF_A_LAW = _CATEGORIES | {"matrix", "epsilon", "source", "categories", "stay", "suppress"}
_LOOKED_AT_ELSEWHERE = frozenset({"method", "masked_columns", "steps", "notice", "transitions"})


def is_known(method: Mapping[str, Any]) -> bool:
    """Whether there is a search or mask of that name."""
    return registry.has("method", method.get("name"))


def refuse_other_parameters(method: Any) -> None:
    """A search or mask of a known name, made again, has the parameters that are stated; earlier versions may state fewer."""
    if not isinstance(method, Mapping):
        raise VerificationFailed(_NOT_ITS_OWN)
    if not is_known(method):
        return
    try:
        made = _made(method)
        described = plain(made.described() if named.is_mask(method) else {"name": method["name"], **parameters(made)})
    except (SfumatoError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError):
        raise VerificationFailed(_NOT_ITS_OWN) from None
    if any(described.get(name) != value for name, value in plain(dict(method)).items()):
        raise VerificationFailed(_NOT_ITS_OWN)


def refuse_other_words(told: Mapping[str, Any], own: frozenset[str], columns: Collection[str]) -> None:
    """What a mask publishes about itself, under the names in `own`: numbers, columns and the words of masks."""
    masked = told.get("masked_columns", [])
    refuse_other_parameters(told.get("method", {}))
    steps = told.get("steps", [])
    known = {*columns, *masked, *_WORDS, *_texts(told.get("method"))}
    sound = (
        all(_said_by(told[name], known) for name in set(told) & own - _LOOKED_AT_ELSEWHERE)
        and all(_is_notice(each, masked) for each in _each_stratum(told.get("notice")))
        and all(_is_law(each) for part in _each_stratum(told.get("transitions", {})) for each in _values(part))
        and isinstance(steps, list)
        and all(_is_step(step, told.get("method", {}), own, known) for step in steps)
    )
    if not sound:
        raise VerificationFailed("the certificate says of its mask what no mask says")
    for step in steps:
        refuse_other_words(step, own, columns)


def _made(method: Mapping[str, Any]) -> Any:
    try:
        return named.method(method)
    except SfumatoError:  # a certificate writes infinite numbers as words
        return named.method({name: value if name == "name" else _infinite(value) for name, value in method.items()})


def _infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _infinite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_infinite(each) for each in value]
    return {"infinite": math.inf, "-infinite": -math.inf}.get(value, value) if isinstance(value, str) else value


def _each_stratum(told: Any) -> list[Any]:
    parts = told[_BY_STRATUM] if isinstance(told, dict) and set(told) == {_BY_STRATUM} else [told]
    return parts if isinstance(parts, list) else [parts]


def _values(told: Any) -> list[Any]:
    """The entries of a mapping; of anything else itself, which is then no law."""
    return [] if told is None else list(told.values()) if isinstance(told, dict) else [told]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def _said_by(value: Any, words: set[str]) -> bool:
    return all(text in words for text in _texts(value))


def _is_step(step: Any, method: Mapping[str, Any], own: frozenset[str], columns: set[str]) -> bool:
    """What is told of one of several masks: one that the method names, and its columns."""
    masked = step.get("masked_columns") if isinstance(step, dict) else None
    return (
        isinstance(masked, list)
        and all(isinstance(name, str) and name in columns for name in masked)
        and set(step) <= own
        and step.get("method") in method.get("masks", [])
    )


def _is_law(law: Any) -> bool:
    return (
        isinstance(law, dict)
        and set(law) <= _OF_A_LAW
        and law.get("source", "data") in ("data", "declared")
        and all(_said_by(law[name], set(_WORDS)) for name in set(law) - _CATEGORIES - {"source"})
    )


def _is_notice(notice: Any, masked: list[str]) -> bool:
    from sfumato.masking.condensation import UNPROTECTED
    from sfumato.masking.transition_law import sentences

    if notice is None or notice == UNPROTECTED:
        return True
    known = [re.escape(each) for name in (*masked, " × ".join(masked)) for each in sentences(name)]
    one = f"(?:{'|'.join(known)})"
    return isinstance(notice, str) and re.fullmatch(f"{one}(?:; {one})*", notice) is not None
