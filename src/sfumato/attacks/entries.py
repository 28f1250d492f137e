"""What somebody knows, as a file tells it: entries by name, read into values. None of them is repeated in a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.core.errors import InputError, ParameterError, all_at_once
from sfumato.core.params import require
from sfumato.core.texts import text_of

#: Quasi-identifiers of one person, in their text form.
Target = Mapping[str, str | None]


def only(entries: Mapping[str, Any], *names: str) -> None:
    """Refuse entries that go by other names."""
    unknown = [name[:60] for name in entries if name not in names][:10]
    all_at_once(ParameterError, "knowledge", [f"'{name}' is not among {', '.join(names)}" for name in unknown])


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """An object of JSON."""
    if not isinstance(value, dict):
        raise InputError(f"{what} must be an object")
    return value


def mapped(entries: Mapping[str, Any], name: str, form: str) -> Mapping[str, Any]:
    """The entry of that name, an object of the `form` that the message says; empty where there is none."""
    value = entries.get(name, {})
    if not isinstance(value, dict):
        raise ParameterError(f"knowledge: {name} must be an object from {form}")
    require(all(writable(key) for key in value), f"knowledge: {name} names something in characters that do not exist")
    return value


def target_in(entries: Mapping[str, Any]) -> Target:
    """Who is attacked: raw quasi-identifiers as texts; empty where nobody is named."""
    target = mapped(entries, "target", "quasi-identifiers to values")
    return {name: text(value, "target") for name, value in target.items()}


def text(value: object, what: str) -> str | None:
    """One value in its text form."""
    single = value is None or isinstance(value, (str, int, float))
    require(single and writable(str(value)), f"knowledge: {what} holds single values: texts or numbers")
    return text_of(value)


def writable(name: str) -> bool:
    """JSON can spell halves of characters, which no table holds and no file is called."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
