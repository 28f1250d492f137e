"""Methods × parameters: what is compared, from values, mappings or the words of a command line.

`Mdav, k=[3, 5, 10]` (or `Mdav(k=[3, 5, 10])`) stands for three methods; lists of parameters that are lists by nature
(columns, strata) stay as they are. `KAnonymity(k=[5, 10]) by Mondrian` recodes until the guarantee holds; several guarantees
are joined by a plus.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin, get_type_hints

from sfumato.anonymity.recoded import Recoded
from sfumato.core import registry
from sfumato.core.errors import ParameterError, SfumatoError, all_at_once
from sfumato.core.params import parameters
from sfumato.core.plain_data import Plain
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, kind_of
from sfumato.masking.base import Mask
from sfumato.masking.combined import Combined
from sfumato.workflow import named

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


def expanded(methods: Iterable[MethodLike]) -> list[Method]:
    """Every method at every parameter; all faults are reported at once."""
    choices: list[Method] = []
    faults = []
    for position, entry in enumerate(methods, 1):
        try:
            choices.extend(_expand(entry))
        except SfumatoError as error:
            faults.append(f"method {position}: {error}")
    all_at_once(ParameterError, "compare", faults)
    different = {(label_of(method), repr(method)): method for method in choices}
    if not different:
        raise ParameterError("compare: name at least one method, for instance sf.Mdav(5)")
    return list(different.values())


def label_of(method: Method) -> str:
    """A method with the parameters that differ from their defaults, its own before those that all masks have: `Mdav(k=5)`."""
    if isinstance(method, Combined):  # its description says which mask has which columns
        return " + ".join(label_of(dataclasses.replace(part, columns=None)) for part in method.masks)
    if isinstance(method, Recoded):
        return f"{' + '.join(map(_called, method.asked))} by {_called(method.search).removesuffix('()')}"
    return _called(method)


def typed(method: Method) -> tuple[str, str]:
    """What is typed to publish by this method: options of `sfumato protect`, and arguments of `sf.protect`."""
    if isinstance(method, Recoded):
        promised = [f"--guarantee {shlex.quote(_as_toml(each))}" for each in method.asked]
        calls = ", ".join(map(_as_python, method.asked))
        return " ".join(
            [*promised, f"--method {shlex.quote(_as_toml(method.search))}"]
        ), f"[{calls}], {_as_python(method.search)}"
    return f"--method {shlex.quote(_as_toml(method))}", f"method={_as_python(method)}"


def _own(value: Any) -> dict[str, Any]:
    """The parameters that differ from their defaults."""
    settings = {}
    for field in dataclasses.fields(value):
        usual = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.init and getattr(value, field.name) is not None and getattr(value, field.name) != usual:
            settings[field.name] = getattr(value, field.name)
    return settings


def _as_toml(value: Any) -> str:
    settings = ", ".join(f"{name}={_toml(each)}" for name, each in _own(value).items())
    return f"{type(value).__name__}({settings})"


def _toml(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {"name": type(value).__name__, **_own(value)}
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(str(name))} = {_toml(each)}' for name, each in value.items())}}}"
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (bool, int, float, str)) else json.dumps(str(value))


def _as_python(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_as_python, value))}]"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    return f"sf.{type(value).__name__}({', '.join(f'{name}={_as_python(each)}' for name, each in _own(value).items())})"


def _called(value: Any) -> str:
    own: list[str] = []
    shared: list[str] = []
    common = {field.name for field in dataclasses.fields(Mask)}
    for field in dataclasses.fields(value):
        value_of_field = getattr(value, field.name)
        usual = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.init and value_of_field is not None and value_of_field != usual:
            (shared if field.name in common else own).append(f"{field.name}={_word(value_of_field)}")
    return f"{type(value).__name__}({', '.join([*own, *shared])})"


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


def column_kinds(people: Microdata) -> dict[str, Kind]:
    """The kind of each quasi-identifier."""
    types = people.relation.schema()
    return {name: kind_of(types.field(name).type, people.schema.columns[name]) for name in people.schema.quasi}


def usual_methods(people: Microdata) -> list[Method]:
    """The usual masks; what one of them cannot change is left to another, so that no quasi-identifier stays as it is."""
    from sfumato.masking.pram.pram import Pram

    kinds = column_kinds(people)
    chosen: dict[str, Method] = {}
    for mask in (method for method in expanded(USUAL) if isinstance(method, Mask)):
        handled = _preferred(mask, kinds.values())
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


def _preferred(mask: Mask, kinds: Iterable[Kind]) -> frozenset[Kind]:
    """The kinds of columns that are left to a mask: one that needs an order has numbers, and ordered categories only where there
    are no numbers. A few values in order have so many ties that their ranks hardly move."""
    if "category" in mask.handles or "number" not in mask.handles or "number" not in kinds:
        return mask.handles
    return frozenset({"number"})


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


def _expand(entry: Any) -> list[Method]:
    if isinstance(entry, (Mask, Recoded)):
        return [entry]
    mapping = _as_mapping(entry) if isinstance(entry, str) else entry
    if isinstance(entry, type):
        raise ParameterError(f"{entry.__name__[:60]} is a class. Pass {entry.__name__[:60]}(…) with its parameters.")
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


def _as_mapping(text: str) -> dict[str, Any]:
    """`Mdav(k=5)` and `KAnonymity(k=5) + DistinctLDiversity(l=2) by Lattice` as mappings."""
    before, *after = _parts(text, " by ")
    if len(after) > 1:
        raise ParameterError("write one 'by': the guarantees, by, the search that reaches them")
    guarantees = [named.inline(part) for part in _parts(before, " + ")]
    if not after and not all(_is_guarantee(each["name"]) for each in guarantees):
        return named.inline(text)
    return {"name": Recoded.__name__, "guarantees": guarantees, "search": named.inline(after[0]) if after else None}


def _is_guarantee(name: str) -> bool:
    return registry.has("guarantee", name) or registry.has("loss", name)


def _parts(text: str, word: str) -> list[str]:
    """A text cut at a word, outside parentheses and quotes."""
    parts, begun, depth, quote = [], 0, 0, ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif depth == 0 and text.startswith(word, place) and place >= begun:
            parts.append(text[begun:place])
            begun = place + len(word)
    return [*parts, text[begun:]]


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


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, Mask):
        return label_of(value)
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_word(entry) for entry in value)})"
    return str(parameters(value)) if dataclasses.is_dataclass(value) and not isinstance(value, type) else str(value)
