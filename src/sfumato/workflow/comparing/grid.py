"""Methods × parameters: what is compared, from values, mappings or the words of a command line.

`Mdav, k=[3, 5, 10]` (or `Mdav(k=[3, 5, 10])`) stands for three methods; lists of parameters that are lists by nature
(columns, strata) stay as they are. `KAnonymity(k=[5, 10]) by Mondrian` recodes until the guarantee holds; several guarantees
are joined by a plus, and so are masks that share the quasi-identifiers (`workflow.labels`).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args, get_origin, get_type_hints

from sfumato.anonymity.recoded import Recoded
from sfumato.core import registry
from sfumato.core.errors import ParameterError, SfumatoError, Unsupported, all_at_once
from sfumato.core.plain_data import Plain, PlainDict
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, kind_of
from sfumato.masking.base import Mask
from sfumato.masking.combined import Combined
from sfumato.workflow import named
from sfumato.workflow.labels import called

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search
    from sfumato.core.guarantees.base import ClassGuarantee

#: What can be compared: it is applied to a table and described as plain data.
Method = Mask | Recoded
#: A method as somebody has it: itself, or a text or mapping that names it, with several values of a parameter perhaps.
MethodLike = Method | str | Plain


@dataclass(frozen=True)
class Shared:
    """Masks that share the quasi-identifiers of a table among them, once it is there."""

    masks: tuple[Mask, ...]


#: A method that may still have to be told its columns.
Unplaced: TypeAlias = "Search | Mask | Shared"

#: What is compared when nobody says what: a few strengths of the usual masks, and k-anonymity.
USUAL: tuple[Mapping[str, Any], ...] = (
    {"name": "Mdav", "k": [3, 5, 10, 25]},
    {"name": "RankSwapping", "p": [2, 5, 10, 25]},
    {"name": "AdditiveNoise", "ratio": [0.01, 0.1, 0.5]},
    {"name": "Pram", "stay": [0.95, 0.8]},
)
#: By the default search, and by Mondrian.
USUAL_RECODINGS = ("KAnonymity(k=[3, 10])", "KAnonymity(k=[3, 10]) by Mondrian")


#: How often PRAM keeps a value where it covers the columns of words beside another mask.
_STAY_BESIDE = 0.8


def expanded(methods: Iterable[MethodLike], people: Microdata | None = None) -> list[Method]:
    """Every method at every parameter, on these people; all faults are reported at once."""
    choices: list[Method] = []
    faults = []
    for position, entry in enumerate(methods, 1):
        try:
            choices.extend(_expand(entry, people))
        except SfumatoError as error:
            faults.append(f"method {position}: {error}")
    all_at_once(ParameterError, "compare", faults)
    different = {(label_of(method), repr(method)): method for method in choices}
    if not different:
        raise ParameterError("compare: name at least one method, for instance sf.Mdav(5)")
    return list(different.values())


def label_of(method: Method, people: Microdata | None = None) -> str:
    """A method as it is typed in `protect --method`, with the parameters that differ from their defaults: `Mdav(k=5)`. On these
    people masks in turn go without the columns that they get there anyway."""
    if isinstance(method, Combined):
        return masks_label(method.masks, people)
    if isinstance(method, Recoded):
        return f"{' + '.join(map(label, method.asked))} by {label(method.search).removesuffix('()')}"
    return label(method)


def typed(method: Method, called_so: str | None = None) -> tuple[str, str]:
    """What is typed to publish by this method with this label: options of `sfumato protect`, and arguments of `sf.protect`."""
    options = f"--method {shlex.quote(called_so or label_of(method))}"
    if isinstance(method, Recoded):
        return options, f"[{', '.join(map(_as_python, method.asked))}], {_as_python(method.search)}"
    return options, f"method={_as_python(method)}"


def _as_python(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_as_python, value))}]"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    return f"sf.{type(value).__name__}({', '.join(f'{name}={_as_python(each)}' for name, each in own(value).items())})"


def fitted(mask: Method, people: Microdata) -> tuple[Method, tuple[str, ...]]:
    """The mask on the quasi-identifiers that it can change, and those that it leaves as they are."""
    if isinstance(mask, Recoded) or mask.columns is not None or mask.synthetic or getattr(mask, "masks", None):
        return mask, ()
    kinds = column_kinds(people)
    able = tuple(name for name in people.schema.quasi if kinds[name] in mask.handles and name not in (mask.strata or ()))
    left = tuple(name for name in people.schema.quasi if name not in able and name not in (mask.strata or ()))
    if not left or not able:
        return mask, ()
    return dataclasses.replace(mask, columns=able), left


def usual_methods(people: Microdata) -> list[Method]:
    """The usual masks; what one of them cannot change is left to another, so that no quasi-identifier stays as it is."""
    from sfumato.masking.pram.pram import Pram

    kinds = column_kinds(people)
    chosen: dict[str, Method] = {}
    for mask in (method for method in expanded(USUAL) if isinstance(method, Mask)):
        handled = preferred(mask, kinds.values())
        able = tuple(name for name, kind in kinds.items() if kind in handled)
        rest = tuple(name for name in kinds if name not in able)
        if not able:
            continue
        if rest and all(kinds[name] in Pram.handles for name in rest):
            parts = (dataclasses.replace(mask, columns=able), Pram(stay=_STAY_BESIDE, columns=rest))
            mask = Combined(masks=parts)
        elif rest:
            continue  # a mask for words alone; the numbers come with the others
        chosen[label_of(mask)] = mask
    return [*chosen.values(), *expanded(USUAL_RECODINGS)]


def method_of(mapping: Plain) -> Method:
    """The method that a mapping describes, as `described` of every method writes it."""
    if mapping.get("name") != Recoded.__name__:
        mask = named.method(mapping)
        if not isinstance(mask, Mask):
            raise ParameterError(
                f"{mapping['name']} searches for guarantees: say which, for instance 'KAnonymity(k=5) by {mapping['name']}'"
            )
        return mask
    unknown = sorted(set(mapping) - {"name", "guarantees", "search"})
    if unknown:
        raise ParameterError(f"Recoded has no parameter '{str(unknown[0])[:60]}'; it takes guarantees and a search")
    promised, search = mapping.get("guarantees") or (), mapping.get("search")
    guarantees = named.guarantees([promised] if isinstance(promised, Mapping) else promised, "Recoded")
    if search is None:
        return Recoded(guarantees)
    return Recoded(guarantees, cast("Search", named.method(search)))  # which refuses a mask


def _expand(entry: Any, people: Microdata | None) -> list[Method]:
    if isinstance(entry, (Mask, Recoded)):
        return [entry]
    if isinstance(entry, type):
        raise ParameterError(f"{entry.__name__[:60]} is a class. Pass {entry.__name__[:60]}(…) with its parameters.")
    if isinstance(entry, str):
        said = called(entry)
        if len(said.methods) > 1:
            return [_sharing(each, people) for each in itertools.product(*map(_grid, said.methods))]
        searched = {"name": Recoded.__name__, "guarantees": said.guarantees, "search": said.methods[0] if said.methods else None}
        entry = searched if said.guarantees else said.methods[0]
    mapping = entry
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            f"{type(entry).__name__} is not a method to compare. Pass masks, sf.Recoded(guarantee, search), mappings, "
            "or texts such as 'Mdav(k=5)' and 'KAnonymity(k=5) by Mondrian'."
        )
    if mapping.get("name") != Recoded.__name__:
        return [method_of(each) for each in _grid(mapping)]
    promised = mapping.get("guarantees") or ()
    listed = [promised] if isinstance(promised, Mapping) else list(promised)
    search = mapping.get("search")
    searches = [None] if search is None else _grid(search)
    choices = itertools.product(itertools.product(*map(_grid, listed)), searches)
    return [method_of({**mapping, "guarantees": guarantees, "search": search}) for guarantees, search in choices]


def _sharing(entries: Iterable[Plain], people: Microdata | None) -> Method:
    """Masks that share the quasi-identifiers."""
    masks: tuple[Mask, ...] = tuple(registry.make("mask", each) for each in entries)
    if all(mask.columns for mask in masks) or people is None:
        return combined(masks)
    return cast("Mask", placed(Shared(masks), people))


def _grid(mapping: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A mapping for every choice of its parameters."""
    if not isinstance(mapping, Mapping):
        raise ParameterError(f"{type(mapping).__name__} describes no guarantee or search; write a name with its parameters")
    choices = {key: _choices(mapping, key) for key in mapping}
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def _choices(mapping: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = mapping[key]
    if not isinstance(value, (list, tuple)) or key == "name" or _takes_a_list(str(mapping.get("name")), key):
        return [value]
    if not value:
        raise ParameterError(f"parameter '{key}' has no value to compare")
    return value


def _takes_a_list(name: str, key: str) -> bool:
    kind = next((registry.find(each, name) for each in ("guarantee", "method") if registry.has(each, name)), None)
    if kind is None or not dataclasses.is_dataclass(kind):
        return False
    hint = get_type_hints(kind).get(key)
    kinds = {get_origin(part) or part for part in (hint, *get_args(hint))}
    return bool(kinds & {tuple, list, Sequence, Mapping, dict})


def method_called(text: str) -> tuple[Unplaced, tuple[ClassGuarantee, ...]]:
    """The method that a text calls for, and the guarantees that it names."""
    said = called(text)
    if not said.methods:
        name = said.guarantees[0]["name"]
        raise ParameterError(
            f"{name} is a guarantee and no method: pass it in guarantees= (--guarantee), or write '{name}(…) by …'"
        )
    promised = named.guarantees(said.guarantees, "method")
    if len(said.methods) == 1:
        return named.method(said.methods[0]), promised
    masks: tuple[Mask, ...] = tuple(registry.make("mask", each) for each in said.methods)
    return (combined(masks) if all(mask.columns for mask in masks) else Shared(masks)), promised


def combined(masks: Sequence[Mask]) -> Mask:
    """Masks that name their columns, in turn."""
    return Combined(masks=tuple(masks))


def placed(method: Unplaced, people: Microdata) -> Search | Mask:
    """The method on this table: masks that share its quasi-identifiers get their columns."""
    if not isinstance(method, Shared):
        return method
    kinds = column_kinds(people)
    left = {name: kind for name, kind in kinds.items() if not any(name in (mask.columns or ()) for mask in method.masks)}
    masks: list[Mask] = []
    faults: list[str] = []
    for place, mask in enumerate(method.masks):
        if mask.columns is None:
            last = place == len(method.masks) - 1
            handled = mask.handles if last else preferred(mask, kinds.values())
            able = tuple(name for name, kind in left.items() if kind in handled)
            left = {name: kind for name, kind in left.items() if name not in able}
            mask = dataclasses.replace(mask, columns=able or None)
            if not able:
                faults.append(f"no quasi-identifier is left for {type(mask).__name__}; name its columns, as columns=[…]")
        masks.append(mask)
    faults += [f"none of these masks changes '{name}'; add one that does, such as Pram(stay=0.8)" for name in left]
    all_at_once(Unsupported, " + ".join(type(mask).__name__ for mask in method.masks), faults)
    return combined(masks)


def preferred(mask: Mask, kinds: Iterable[Kind]) -> frozenset[Kind]:
    """The kinds of columns that are left to a mask: one that needs an order has numbers, and ordered categories only where there
    are no numbers. A few values in order have so many ties that their ranks hardly move."""
    if "category" in mask.handles or "number" not in mask.handles or "number" not in kinds:
        return mask.handles
    return frozenset({"number"})


def column_kinds(people: Microdata) -> dict[str, Kind]:
    """The kind of each quasi-identifier."""
    types = people.relation.schema()
    return {name: kind_of(types.field(name).type, people.schema.columns[name]) for name in people.schema.quasi}


def masks_label(masks: Sequence[Mask], people: Microdata | None) -> str:
    """Masks in turn: without their columns where these are the ones that they get on this table."""
    short = tuple(dataclasses.replace(mask, columns=None) for mask in masks)
    if people is not None and len(masks) > 1:
        try:
            if placed(Shared(short), people) == combined(masks):
                return " + ".join(map(label, short))
        except Unsupported:  # other columns than those that they would get
            pass
    listed = " + ".join(map(label, masks))
    return listed if len(masks) > 1 and all(mask.columns for mask in masks) else label(combined(masks))


def label(value: object) -> str:
    """A method or guarantee with the parameters that differ from their defaults, as it is typed: its own before those that all
    masks have."""
    common = {field.name for field in dataclasses.fields(Mask)}
    settings = own(value)
    ordered = sorted(settings, key=lambda name: name in common)
    return f"{type(value).__name__}({', '.join(f'{name}={toml(settings[name])}' for name in ordered)})"


def own(value: object) -> PlainDict:
    """The parameters that differ from their defaults."""
    settings = {}
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    for field in fields:
        usual = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.init and getattr(value, field.name) is not None and getattr(value, field.name) != usual:
            settings[field.name] = getattr(value, field.name)
    return settings


def toml(value: object) -> str:
    """A parameter as TOML has it in a line."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {"name": type(value).__name__, **own(value)}
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(str(name))}={toml(each)}' for name, each in value.items())}}}"
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return json.dumps(value if isinstance(value, (bool, int, float, str)) else str(value), ensure_ascii=False)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)
