"""Guarantees and methods from their names, as recipes, certificates and the command
line write them.

Names are looked up in the registry alone; nothing is imported because a file says so.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from sfumato.core import registry
from sfumato.core.declared import Declaration, build, declarations
from sfumato.core.errors import ParameterError, RecipeError, SfumatoError, all_at_once, as_name, forgetting
from sfumato.core.guarantees.base import ClassGuarantee, Knowledge
from sfumato.core.owner_files import parse_toml
from sfumato.core.plain_data import Plain, PlainDict

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.masking.base import Mask

_CALL = re.compile(r"\s*([A-Za-z]\w*)\s*\((.*)\)\s*", re.DOTALL)


def guarantee(entry: Plain) -> ClassGuarantee:
    """The guarantee that `{name = "KAnonymity", k = 5}` describes."""
    arguments = dict(entry)
    knowledge = arguments.get("knowledge")
    if isinstance(knowledge, Mapping):
        fields = {name: value for name, value in knowledge.items() if name != "name"}
        arguments["knowledge"] = build(Knowledge, fields)
    elif knowledge is not None and not isinstance(knowledge, Knowledge):
        raise ParameterError("knowledge is a table with the attributes an adversary knows")
    for name, value in arguments.items():
        if isinstance(value, float) and value != value:
            raise ParameterError(f"parameter '{name}' is not a number")
    promise: ClassGuarantee = registry.make("guarantee", arguments)
    return promise


@forgetting()
def guarantees(entries: Iterable[Plain], heading: str) -> tuple[ClassGuarantee, ...]:
    """Several guarantees; all faults are reported at once."""
    promises, faults = [], []
    for position, entry in enumerate(entries, 1):
        try:
            promises.append(guarantee(entry))
        except SfumatoError as error:
            faults.append(f"guarantee {position}: {error}")
    all_at_once(RecipeError, heading, faults)
    return tuple(promises)


def method(entry: Plain) -> Search | Mask:
    """The search or mask that `{name = "Lattice", suppression = 0.05}` describes."""
    return cast("Search | Mask", registry.make("method", entry))


@forgetting()
def inline(text: str) -> PlainDict:
    """`Mdav, k=5` or `Mdav(k=5)` as a mapping; the parameters are TOML."""
    called = _CALL.fullmatch(text)
    name, rest = called.groups() if called else text.partition(",")[::2]
    if not called and " by " in text:
        raise ParameterError(
            f"{as_name(text)} names a promise and a search: that is a method (--method, method=), as compare writes it"
        )
    if not called and "(" in name:
        raise ParameterError(
            f"the parenthesis after {as_name(name.partition('(')[0].strip())} is not closed: write it as in 'Mdav(k=5)'"
        )
    try:
        arguments = parse_toml(f"arguments = {{ {rest} }}")["arguments"]
    except (ValueError, RecursionError):
        raise ParameterError(
            f"cannot read {as_name(name.strip())}: write the name, then parameters as in TOML, "
            f"for instance 'Lattice, suppression=0.05' or 'Mdav(k=5)'{_parameters_of(name.strip())}"
        ) from None
    return {"name": name.strip(), **arguments}


def _parameters_of(name: str) -> str:
    """The names that parameters are written with, where the name is known."""
    kind = next((registry.find(each, name) for each in registry.kinds() if registry.has(each, name)), None)
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    listed = [field.name for field in sorted(fields, key=lambda field: field.kw_only is True) if field.init]
    return f". The parameters of {name} are called {', '.join(listed)}" if listed else ""


def is_drawn(entry: Plain | None) -> bool:
    """Whether a method is a mask that draws at random: then each run is a release of its own, whatever its rows. So is one that
    cannot be made again."""
    if entry is None or not registry.has("mask", entry.get("name")):
        return False
    try:
        return bool(registry.make("mask", registry.in_names_of_now("mask", entry)).draws)
    except SfumatoError:
        return True


def described(kind: type[object]) -> PlainDict:
    """What an algorithm does, in a line, and its parameters with their defaults."""
    what = (kind.__doc__ or "").strip().split("\n")[0]
    return {"what": what, "parameters": [_parameter(each) for each in declarations(kind)]}


def _parameter(declared: Declaration) -> str:
    """A parameter in a line: what it means, what it may be, and what it is where nobody says."""
    may = declared.words or "a value"
    default = "" if declared.required or declared.default is None else f"; {declared.default!r} if left out"
    return f"{declared.name}: {declared.meaning or 'see the documentation'} ({may}{default})"
