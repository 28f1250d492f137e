"""Methods × parameters: what is compared, from values, mappings or the words of a command line.

`Mdav, k=[3, 5, 10]` (or `Mdav(k=[3, 5, 10])`) stands for three methods; lists of parameters that are lists by nature
(columns, strata) stay as they are. `KAnonymity(k=[5, 10]) by Mondrian` recodes until the guarantee holds; several guarantees
are joined by a plus, and so are masks that share the quasi-identifiers (`workflow.labels`).
"""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

from sfumato.anonymity.recoded import Recoded
from sfumato.core import registry
from sfumato.core.errors import ParameterError, SfumatoError, all_at_once
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.masking.base import Mask
from sfumato.masking.combined import Combined
from sfumato.workflow import named
from sfumato.workflow.labels import Shared, called, column_kinds, combined, label, masks_label, own, placed, preferred

if TYPE_CHECKING:
    from sfumato.anonymity.search.base import Search

#: What can be compared: it is applied to a table and described as plain data.
Method = Mask | Recoded
#: A method as somebody has it: itself, or a text or mapping that names it, with several values of a parameter perhaps.
MethodLike = Method | str | Plain

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
