"""Parameters: declared once, with range and meaning, and exchanged as plain mappings.

A frozen dataclass that derives from `Declared` is checked when it is made: every value is settled by the range of its field,
`coherent` says what does not fit together, and all faults are reported at once. `declarations` lists the parameters of a class
with their ranges in words, for help, documentation and forms. `parameters` lists what an instance stores, and `build` makes one
from a mapping, so that TOML, JSON and Python describe the same object.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction
from functools import cache, wraps
from numbers import Real
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sfumato.core.errors import InputError, ParameterError, all_at_once, as_name, forgetting
from sfumato.core.ranges import Flag, OneOf, Range, Refused
from sfumato.core.texts import closest

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Declaration:
    """One parameter of a class: its range (None where any value of its type will do), its meaning, whether it may be left at
    None, and its default (`dataclasses.MISSING` where it has to be given)."""

    name: str
    range: Range | None
    meaning: str
    optional: bool
    default: Any

    @property
    def required(self) -> bool:
        """Whether a value has to be given."""
        return self.default is dataclasses.MISSING

    @property
    def words(self) -> str:
        """What the value must be."""
        words = self.range.words if self.range is not None else ""
        return f"{words}, or left out" if words and self.optional else words


class Declared:
    """The root of classes with declared parameters; derive a frozen dataclass from it and annotate its fields."""

    #: Names that parameters had in earlier versions, each with the name of now (`formerly`).
    former_names: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __post_init__(self) -> None:
        faults = []
        for each in declarations(type(self)):
            value = getattr(self, each.name)
            if each.range is None or (each.optional and value is None):
                continue
            try:
                stored = each.range.settled(value)
            except Refused as refusal:
                faults.append(f"{each.name} {refusal}")
            else:
                if stored is not value:
                    object.__setattr__(self, each.name, stored)
        if not faults:
            faults.extend(self.coherent())
        all_at_once(ParameterError, type(self).__name__, faults)

    def __setstate__(self, state: dict[str, object]) -> None:
        """What was copied or sent here is checked like what is made here."""
        vars(self).update(state)
        self.__post_init__()

    def coherent(self) -> Iterable[str]:
        """What is wrong with parameters that are right one by one; a subclass that has such rules states them here."""
        return ()


def formerly(**names: str) -> Callable[[type[T]], type[T]]:
    """Say which names parameters had before, as in `@formerly(ratio="k")`. What was stored under them is still read
    (`registry.in_names_of_now`); a call that uses one is refused with the name of now.
    """

    def renamed(cls: type[T]) -> type[T]:
        kind: Any = cls  # a dataclass, whose constructor is wrapped
        construct = kind.__init__

        @wraps(construct)
        def __init__(self: T, *values: object, **named: object) -> None:
            all_at_once(ParameterError, cls.__name__, (name_of_now(cls, name) for name in named if name in kind.former_names))
            construct(self, *values, **named)

        kind.__init__, kind.former_names = __init__, MappingProxyType({former: now for now, former in names.items()})
        return cls

    return renamed


def name_of_now(cls: type[object], former: str) -> str:
    """A hint for whoever uses a name that a parameter had before."""
    names: Mapping[str, str] = getattr(cls, "former_names", {})
    meaning = next(each.meaning for each in declarations(cls) if each.name == names[former])
    return f"parameter '{former}' has another name; {cls.__name__} calls this {names[former]}: {meaning}"


def declarations(cls: type[object]) -> tuple[Declaration, ...]:
    """The parameters of a dataclass, in order."""
    kind: Any = cls  # a class can be hashed, which its type does not say
    return _declarations(kind)


@cache
def _declarations(cls: Hashable) -> tuple[Declaration, ...]:
    kind: Any = cls
    return tuple(_declaration(kind, field) for field in dataclasses.fields(kind) if field.init)


def _declaration(cls: type[object], field: dataclasses.Field[object]) -> Declaration:
    hint = _hint(cls, field)
    ranges, meaning, optional = _read(hint)
    default = field.default if field.default is not dataclasses.MISSING else field.default_factory
    if field.default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    return Declaration(field.name, ranges, meaning, optional or default is None, default)


def _hint(cls: type[object], field: dataclasses.Field[object]) -> object:
    """The type of a field. One that cannot be read is an error: its range would be lost in silence."""
    if not isinstance(field.type, str):
        return field.type
    owner = next(base for base in cls.__mro__ if field.name in base.__dict__.get("__annotations__", {}))
    try:
        return eval(field.type, dict(vars(sys.modules[owner.__module__])))  # noqa: S307 (our own annotation, not a user's text)
    except Exception as error:
        raise TypeError(
            f"the annotation of {owner.__name__}.{field.name} cannot be read at run time ({type(error).__name__}: {error}); "
            "import what it names outside of TYPE_CHECKING"
        ) from None


def _read(hint: object) -> tuple[Range | None, str, bool]:
    """Range, meaning and whether None is allowed, of an annotation."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        ranges, meaning, optional = _read(inner)
        stated = next((note for note in notes if isinstance(note, Range)), ranges)
        return stated, next((note for note in reversed(notes) if isinstance(note, str)), meaning), optional
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not NoneType]
        ranges, meaning, _ = _read(parts[0]) if len(parts) == 1 else (None, "", False)
        return ranges, meaning, len(parts) < len(get_args(hint))
    if get_origin(hint) is Literal:
        return OneOf(get_args(hint)), "", False
    return (Flag() if hint is bool else None), "", False


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
