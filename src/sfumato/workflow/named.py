"""Guarantees, methods, measures, attacks and private algorithms from their names, as recipes, certificates and the command
line write them.

Names are looked up in the public table alone; nothing is imported because a file says so.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import ParameterError, RecipeError, SfumatoError, all_at_once, as_name, forgetting
from sfumato.core.guarantees.base import ClassGuarantee, Knowledge
from sfumato.core.params import build
from sfumato.core.registry import from_mapping
from sfumato.core.view import Attack, Measure

if TYPE_CHECKING:
    from sfumato.dp.algorithms.base import Algorithm

_CALL = re.compile(r"\s*([A-Za-z]\w*)\s*\((.*)\)\s*", re.DOTALL)
#: Where methods that make a table to publish live.
_METHODS = ("sfumato.anonymity.search.", "sfumato.masking.")
#: Folders of `sfumato.dp` in which no algorithm lives: their modules are not loaded to look for one.
_NO_ALGORITHMS = ("mechanisms", "sensitivity", "accounting", "refute", "sql", "session", "outcomes")


def guarantee(given: Mapping[str, Any]) -> ClassGuarantee:
    """The guarantee that `{name = "KAnonymity", k = 5}` describes."""
    arguments = dict(given)
    known = arguments.get("knowledge")
    if isinstance(known, Mapping):
        fields = {name: value for name, value in known.items() if name != "name"}
        arguments["knowledge"] = build(Knowledge, fields)
    elif known is not None and not isinstance(known, Knowledge):
        raise ParameterError("knowledge is a table with the attributes an adversary knows")
    for name, value in arguments.items():
        if isinstance(value, float) and value != value:
            raise ParameterError(f"parameter '{name}' is not a number")
    made: ClassGuarantee = from_mapping(arguments, ClassGuarantee, "guarantee")
    return made


@forgetting()
def guarantees(given: Iterable[Mapping[str, Any]], heading: str) -> tuple[ClassGuarantee, ...]:
    """Several guarantees; all faults are reported at once."""
    made, faults = [], []
    for position, entry in enumerate(given, 1):
        try:
            made.append(guarantee(entry))
        except SfumatoError as error:
            faults.append(f"guarantee {position}: {error}")
    all_at_once(RecipeError, heading, faults)
    return tuple(made)


def method(given: Mapping[str, Any]) -> Any:
    """The search or mask that `{name = "Lattice", suppression = 0.05}` describes."""
    import sfumato

    name = given.get("name")
    known = [name for name, module in sfumato._TABLE.items() if module.startswith(_METHODS)]
    if not isinstance(name, str):
        raise RecipeError('a method needs a name, for instance name = "Lattice"')
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(sorted(known))}."
        raise RecipeError(f"unknown method {as_name(name)}. {hint}")
    return build(getattr(sfumato, name), {key: value for key, value in given.items() if key != "name"})


@forgetting()
def inline(text: str) -> dict[str, Any]:
    """`Mdav, k=5` or `Mdav(k=5)` as a mapping; the parameters are TOML."""
    called = _CALL.fullmatch(text)
    name, rest = called.groups() if called else text.partition(",")[::2]
    try:
        found = tomllib.loads(f"given = {{ {rest} }}")["given"]
    except (tomllib.TOMLDecodeError, RecursionError):
        raise ParameterError(
            f"cannot read {as_name(name.strip())}: write the name, then parameters as in TOML, "
            f"for instance 'Lattice, suppression=0.05' or 'Mdav(k=5)'{_parameters_of(name.strip())}"
        ) from None
    return {"name": name.strip(), **found}


def _parameters_of(name: str) -> str:
    """The names that parameters are written with, where the name is known."""
    import sfumato

    kind = getattr(sfumato, name) if name in sfumato.__all__ else None
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    listed = [field.name for field in sorted(fields, key=lambda field: field.kw_only is True) if field.init]
    return f". The parameters of {name} are called {', '.join(listed)}" if listed else ""


def is_mask(given: Mapping[str, Any] | None) -> bool:
    """Whether a method is a mask, which is published without a guarantee too."""
    import sfumato

    name = None if given is None else given.get("name")
    return isinstance(name, str) and sfumato._TABLE.get(name, "").startswith("sfumato.masking.")


def attack(given: str | Mapping[str, Any]) -> Attack:
    """The attack of that name, with its parameters where a mapping is given."""
    arguments = {"name": given} if isinstance(given, str) else dict(given)
    name = arguments.pop("name", None)
    known = attacks()
    if not isinstance(name, str) or name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(sorted(known))}."
        raise RecipeError(f"unknown attack {as_name(name)}. {hint}")
    made: Attack = build(known[name], arguments)
    return made


def attacks() -> dict[str, type[Attack]]:
    """All attacks by name."""
    import sfumato.attacks as room

    found = {name: getattr(room, name) for name in room.__all__}
    return {name: kind for name, kind in found.items() if isinstance(kind, type) and issubclass(kind, Attack)}


def measure(given: str | Mapping[str, Any] | Measure) -> Measure:
    """The measure of utility or risk that a key or `{name = "machine_learning", target = "salary"}` describes; a
    measure is taken as it is.
    """
    from sfumato.measures import by_key

    if isinstance(given, Measure):
        return given
    if not isinstance(given, (str, Mapping)):
        raise ParameterError(f"{type(given).__name__} is not a measure. Pass keys, tables with a name, or measures.")
    arguments = {"name": given} if isinstance(given, str) else dict(given)
    key = arguments.pop("name", None)
    if not isinstance(key, str):
        raise RecipeError('a measure needs a name, for instance name = "query_error"')
    made: Measure = build(by_key(key), arguments)
    return made


def algorithm(given: Mapping[str, Any]) -> Algorithm:
    """The private algorithm that `{name = "PrivateHistogram", columns = ["age"], epsilon = 1}` describes."""
    arguments = dict(given)
    made: Algorithm = build(algorithm_class(arguments.pop("name", None)), arguments)
    return made


def algorithm_class(name: object) -> type[Algorithm]:
    """The private algorithm of that name."""
    known = algorithms()
    if not isinstance(name, str) or name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(sorted(known))}."
        raise RecipeError(f"unknown algorithm {as_name(name)}. {hint}")
    return known[name]


def algorithms() -> dict[str, type[Algorithm]]:
    """All private algorithms by name: the classes of `sfumato.dp` that turn a table into one artefact."""
    import sfumato.dp as room
    from sfumato.dp.algorithms.base import Algorithm

    elsewhere = tuple(f"sfumato.dp.{folder}" for folder in _NO_ALGORITHMS)
    found: dict[str, type[Algorithm]] = {}
    for name, module in room._TABLE.items():
        if name[0].isupper() and not module.startswith(elsewhere):
            kind: Any = getattr(room, name)
            if isinstance(kind, type) and issubclass(kind, Algorithm) and hasattr(kind, "__dataclass_fields__"):
                found[name] = kind
    return found


def described(kind: type[Any]) -> dict[str, Any]:
    """What an algorithm does, in a line, and its parameters with their defaults."""
    what = (kind.__doc__ or "").strip().split("\n")[0]
    listed = []
    for each in dataclasses.fields(kind):
        if not each.init:
            continue
        told = f"{each.name}: {each.type}"
        if each.default is not dataclasses.MISSING:
            told += f" = {each.default!r}"
        elif each.default_factory is not dataclasses.MISSING:
            told += f" = {each.default_factory()!r}"
        listed.append(told)
    return {"what": what, "parameters": listed}
