"""Methods × parameters: what is compared, from values, mappings or the words of a command line.

`Mdav, k=[3, 5, 10]` (or `Mdav(k=[3, 5, 10])`) stands for three methods; lists of parameters that are lists by nature
(columns, strata) stay as they are.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args, get_origin, get_type_hints

from sfumato.core.errors import ParameterError, SfumatoError, all_at_once
from sfumato.core.params import parameters
from sfumato.data.microdata import Microdata
from sfumato.data.records import Kind, kind_of
from sfumato.masking.base import Mask
from sfumato.masking.combined import Combined
from sfumato.workflow import named

#: What is compared when nobody says what: a few strengths of the usual masks.
USUAL: tuple[Mapping[str, Any], ...] = (
    {"name": "Mdav", "k": [3, 5, 10, 25]},
    {"name": "RankSwapping", "p": [2, 5, 10, 25]},
    {"name": "AdditiveNoise", "k": [0.01, 0.1, 0.5]},
    {"name": "Pram", "stay": [0.95, 0.8]},
)


#: How often PRAM keeps a value where it covers the columns of words beside another mask.
_STAY_BESIDE = 0.8


def expanded(methods: Iterable[Any]) -> list[Mask]:
    """Every method at every parameter; all faults are reported at once."""
    made: list[Mask] = []
    faults = []
    for position, given in enumerate(methods, 1):
        try:
            made.extend(_expand(given))
        except SfumatoError as error:
            faults.append(f"method {position}: {error}")
    all_at_once(ParameterError, "compare", faults)
    different = {(label_of(mask), repr(mask)): mask for mask in made}
    if not different:
        raise ParameterError("compare: name at least one method, for instance sf.Mdav(5)")
    return list(different.values())


def label_of(mask: Mask) -> str:
    """A method with the parameters that differ from their defaults, its own before those that all masks have: `Mdav(k=5)`."""
    if isinstance(mask, Combined):  # which mask has which columns is told in its description
        return " + ".join(label_of(dataclasses.replace(part, columns=None)) for part in mask.masks)
    own: list[str] = []
    shared: list[str] = []
    common = {field.name for field in dataclasses.fields(Mask)}
    for field in dataclasses.fields(mask):
        value = getattr(mask, field.name)
        if field.init and value is not None and value != field.default:
            (shared if field.name in common else own).append(f"{field.name}={_word(value)}")
    return f"{type(mask).__name__}({', '.join([*own, *shared])})"


def fitted(mask: Mask, people: Microdata) -> tuple[Mask, tuple[str, ...]]:
    """The mask on the quasi-identifiers that it can change, and those that it leaves as they are."""
    if mask.columns is not None or mask.synthetic or getattr(mask, "masks", None):
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


def usual_methods(people: Microdata) -> list[Mask]:
    """The usual masks; what one of them cannot change is left to another, so that no quasi-identifier stays as it is."""
    from sfumato.masking.pram import Pram

    kinds = column_kinds(people)
    chosen: dict[str, Mask] = {}
    for mask in expanded(USUAL):
        able = tuple(name for name, kind in kinds.items() if kind in mask.handles)
        rest = tuple(name for name in kinds if name not in able)
        if not able:
            continue
        if rest and all(kinds[name] in Pram.handles for name in rest):
            parts = (dataclasses.replace(mask, columns=able), Pram(stay=_STAY_BESIDE, columns=rest))
            mask = Combined(masks=parts)
        elif rest:
            continue  # a mask for words alone; the numbers come with the others
        chosen[label_of(mask)] = mask
    return list(chosen.values())


def _expand(given: Any) -> list[Mask]:
    if isinstance(given, Mask):
        return [given]
    mapping = named.inline(given) if isinstance(given, str) else given
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            f"{type(given).__name__} is not a mask. Pass masks, mappings with a name, or texts such as 'Mdav(k=5)'."
        )
    choices = {key: _choices(mapping, key) for key in mapping}
    made = []
    for values in itertools.product(*choices.values()):
        method = named.method(dict(zip(choices, values, strict=True)))
        if not isinstance(method, Mask):
            raise ParameterError(f"{mapping['name']} searches for a guarantee; compare takes masks")
        made.append(method)
    return made


def _choices(mapping: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = mapping[key]
    if not isinstance(value, (list, tuple)) or key == "name" or _takes_a_list(str(mapping.get("name")), key):
        return [value]
    if not value:
        raise ParameterError(f"parameter '{key}' has no value to compare")
    return value


def _takes_a_list(name: str, key: str) -> bool:
    import sfumato

    kind = getattr(sfumato, name, None) if name in sfumato._TABLE else None
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
