"""Parameters of methods and guarantees as plain mappings, so that TOML, JSON and Python describe the same object.

A method is a frozen dataclass whose constructor only stores and validates; `parameters` lists what it stores,
`build` makes it from a mapping and reports every unknown or missing name at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from numbers import Real
from typing import TypeVar, get_args, get_type_hints

from sfumato.core.declared import name_of_now
from sfumato.core.errors import InputError, ParameterError, all_at_once, as_name, forgetting
from sfumato.core.texts import closest

T = TypeVar("T")
_LARGEST = 10**300


def parameters(value: object) -> dict[str, object]:
    """The stored parameters of a dataclass instance, tuples as lists, without those left at None."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise ParameterError(f"{type(value).__name__} has no parameters: it is not a dataclass instance")
    listed = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    return {name: _plain(entry) for name, entry in listed.items() if entry is not None}


@forgetting()
def build(cls: type[T], values: Mapping[str, object]) -> T:
    """Make a dataclass instance from a mapping; every unknown and missing parameter is reported at once."""
    if not dataclasses.is_dataclass(cls):
        raise ParameterError(f"{cls.__name__} takes no parameters from a mapping")
    fields = {field.name: field for field in dataclasses.fields(cls) if field.init}
    former: Mapping[str, str] = getattr(cls, "former_names", {})
    faults = [name_of_now(cls, name) for name in values if name in former]
    for name in values:
        if name not in fields and name not in former:
            near = closest(name, fields)
            hint = f"; did you mean '{near}'?" if near is not None else f"; it has {', '.join(fields) or 'none'}"
            faults.append(f"unknown parameter {as_name(name)}{hint}")
    stated = {former.get(name, name) for name in values}
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in stated:
            faults.append(f"parameter '{name}' is missing")
    faults += [f"parameter '{name}' is too large a number" for name, value in values.items() if _beyond(value)]
    all_at_once(ParameterError, cls.__name__, faults)
    arguments = {name: _argument(cls, name, value) for name, value in values.items()}
    try:
        return cls(**arguments)
    except InputError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ParameterError(f"{cls.__name__}: {error}") from None


def _beyond(value: object) -> bool:
    """A whole number that no floating-point number comes near: computing with it would fail somewhere inside a method."""
    if isinstance(value, (list, tuple)):
        return any(_beyond(entry) for entry in value)
    return isinstance(value, int) and abs(value) > _LARGEST


def _argument(cls: type, name: str, value: object) -> object:
    """A list becomes a tuple, and a mapping the dataclass that the field holds (`knowledge = {items = 2}`)."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, Mapping):
        return value
    try:
        hint = get_type_hints(cls).get(name)
    except NameError:  # a type that is imported for type checkers alone is none that a mapping describes
        return value
    held = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and dataclasses.is_dataclass(kind)]
    if len(held) != 1:
        return value
    stated = value.get("name", held[0].__name__)
    if stated != held[0].__name__:
        raise ParameterError(f"{cls.__name__}: parameter '{name}' holds a {held[0].__name__}, not a {str(stated)[:60]}")
    return build(held[0], {key: entry for key, entry in value.items() if key != "name"})


def require(condition: bool, message: str) -> None:
    """Raise `ParameterError` with the message unless the condition holds."""
    if not condition:
        raise ParameterError(message)


def require_confidence(value: object) -> None:
    """Raise `ParameterError` unless it is a number between 0 and 1, ends excluded."""
    require(not isinstance(value, bool) and isinstance(value, Real) and 0 < float(value) < 1, "confidence lies between 0 and 1")


def _plain(value: object) -> object:
    if isinstance(value, (list, tuple, frozenset, set)):
        return [_plain(entry) for entry in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"name": type(value).__name__, **parameters(value)}
    if isinstance(value, Fraction):
        return str(value)
    return value
